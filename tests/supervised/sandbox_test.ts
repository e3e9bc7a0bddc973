import assert from "node:assert/strict";
import { compileSupervised } from "./compiled.ts";
import { type EscapeOrder, ESCAPES } from "./escapes.ts";
import { assertGone, posixTest, supervise, withDirectory } from "./harness.ts";

/** Deno's own words for a permission that is not there. */
const DENIED = /NotCapable|Requires [a-z]+ access|Can't escalate parent thread permissions/;

/** Names of variables and hosts that some attempts need; a few exist on Linux only. */
const LINUX_ONLY = new Set(["read its own environment through /proc", "load a native library"]);

/**
 * Attempts that do not come as far as a permission in the binary: its runtime loads no module that
 * is not in it, and its node:net tells a missing permission as a refused connection.
 */
const ENDS_EARLIER: Record<string, RegExp> = {
  "connect through node:net": /ECONNREFUSED/,
  "import from the network": /Module not found/,
  "import from a known registry": /Module not found/,
};

/** Its loader would read any file as a module without asking: it is led nowhere by the module map. */
const LED_NOWHERE = /agentd-refuses:\//;

/** A host that answers whoever reaches it, and counts them. */
function answeringHost(): { port: number; connections(): number; close(): Promise<void> } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let connections = 0;
  const accepted = (async () => {
    for await (const connection of listener) {
      connections++;
      connection.close();
    }
  })();
  return {
    port: listener.addr.port,
    connections: () => connections,
    close: () => {
      listener.close();
      return accepted;
    },
  };
}

async function tryEscapes(directory: string, command: string[] | undefined): Promise<void> {
  const host = answeringHost();
  await Deno.mkdir(`${directory}/runs/other`, { recursive: true });
  await Deno.writeTextFile(`${directory}/runs/other/record.jsonl`, "{}\n");
  await Deno.writeTextFile(`${directory}/secret`, "secret");
  await Deno.writeTextFile(`${directory}/secret.json`, '"secret"');
  await Deno.writeTextFile(`${directory}/secret.js`, 'export const secret = "secret";');
  try {
    for (const [index, escape] of Object.keys(ESCAPES).entries()) {
      if (LINUX_ONLY.has(escape) && Deno.build.os !== "linux") continue;
      const order: EscapeOrder = {
        escape,
        secretFile: `${directory}/secret`,
        otherRecord: `${directory}/runs/other/record.jsonl`,
        outside: `${directory}/outside`,
        inside: `${directory}/runs/run-${index}`,
        host: `127.0.0.1:${host.port}`,
      };
      const run = await supervise({
        script: { do: "escape", ...order },
        directory,
        settings: { runId: `run-${index}` },
      }, command);
      const { end, lines } = await run.end;
      await run.drained;
      const said = `${escape}: ${JSON.stringify(end?.result)} ${end?.reason}`;
      assert.equal(end?.status, "crashed", said);
      assert.equal(host.connections(), 0, said);
      if (command && ENDS_EARLIER[escape]?.test(end.reason)) continue;
      const expected = command && /^import .* outside/.test(escape) ? LED_NOWHERE : DENIED;
      assert.match(end.reason, expected, said);
      const denied = lines.find((line) => line.event === "permission.denied");
      assert.match(String(denied?.message), expected, said);
    }
    await assert.rejects(Deno.lstat(`${directory}/outside`), Deno.errors.NotFound);
    await assertGone(directory);
  } finally {
    await host.close();
  }
}

/** In the binary an agent's main thread has nothing but `run` once its Worker is up. */
async function tryMainThread(directory: string, command: string[]): Promise<void> {
  const run = await supervise({ script: { do: "wait" }, directory }, command);
  const { read, write, net, env, sys, run: left } = await run.seen((line) =>
    line.comp === "revoked"
  );
  run.signal("SIGTERM");
  await run.end;
  await run.drained;
  assert.deepEqual([read, write, net, env, sys], Array(5).fill("denied"));
  assert.equal(left, "possible");
}

posixTest(
  "loop Worker: no way out, from source",
  () => withDirectory((directory) => tryEscapes(directory, undefined)),
);

posixTest(
  "loop Worker: no way out, in the binary",
  () =>
    withDirectory(async (directory) => {
      const program = await compileSupervised(directory);
      await tryEscapes(directory, [program]);
      await tryMainThread(directory, [program]);
    }),
  // Compiling needs what the gate's build step needs, and comes after it.
  Deno.env.get("AGENTD_BINARY") === undefined,
);
