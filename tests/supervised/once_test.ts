import assert from "node:assert/strict";
import type { Settings } from "../../src/config/settings.ts";
import type { StdioServer } from "../../src/wire/payload.ts";
import {
  assertGone,
  type Line,
  living,
  posixTest,
  supervise,
  type Supervised,
  withDirectory,
} from "./harness.ts";
import type { Scenario } from "./settings.ts";

const HOSTILE = decodeURIComponent(new URL("../hostile/", import.meta.url).pathname);

type End = Awaited<Supervised["end"]>;

/** Runs a scenario to its end and checks that nothing is left of it. */
function scenario(
  name: string,
  make: (directory: string) => Omit<Scenario, "directory">,
  during: (run: Supervised, directory: string) => Promise<void>,
  after: (end: End, directory: string) => void | Promise<void>,
  ignore = false,
): void {
  const test = () =>
    withDirectory(async (directory) => {
      const run = await supervise({ ...make(directory), directory });
      await during(run, directory);
      const end = await run.end;
      await assertGone(directory);
      await run.drained;
      await after(end, directory);
    });
  posixTest(name, test, ignore);
}

/** Waits until a process with this text in its command line is there, ten seconds at most. */
async function untilLiving(text: string): Promise<void> {
  const untilMs = performance.now() + 10_000;
  while ((await living(text)).length === 0) {
    assert.ok(performance.now() < untilMs, `nothing has ${text} in its command line`);
  }
}

const nothing = () => Promise.resolve();
const agentPid = async (run: Supervised) =>
  (await run.seen((line) => line.event === "subagent.spawn")).child_pid as number;
const agentReady = (run: Supervised) =>
  run.seen((line) => line.event === "proc.ready" && line.comp === "supervisor");

function server(
  name: string,
  command: string,
  args: string[],
  more: Partial<StdioServer> = {},
): StdioServer {
  return {
    kind: "stdio",
    name,
    command,
    args,
    env: {},
    cwd: "/",
    required: true,
    startTimeoutMs: 5000,
    sandbox: "none",
    ...more,
  };
}

function servers(...list: (StdioServer | Partial<Settings>)[]): Partial<Settings> {
  const settings: Partial<Settings> = { servers: [] };
  for (const item of list) {
    if ("kind" in item) settings.servers!.push(item);
    else Object.assign(settings, item);
  }
  return settings;
}

function recordEnds(directory: string, runId: string): Record<string, unknown>[] {
  const text = Deno.readTextFileSync(`${directory}/runs/${runId}/record.jsonl`);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line)).filter((line) =>
    line.type === "run.ended"
  );
}

scenario(
  "runOnce: a result of the loop is the run's",
  () => ({ script: { do: "complete" } }),
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    assert.equal(end?.result, "done");
    const events = lines.map((line) => `${line.comp} ${line.event}`);
    for (
      const event of [
        "supervisor proc.start",
        "supervisor subagent.spawn",
        "broker proc.ready",
        "supervisor subagent.exit",
        "supervisor proc.exit",
      ]
    ) {
      assert.ok(events.includes(event), event);
    }
  },
);

scenario(
  "runOnce: an uncaught error of the loop is crashed, masked, recorded",
  () => ({
    script: { do: "throw" },
    secrets: { "env:TOKEN": "s3cret-value" },
    settings: servers(
      server("unused", "true", [], { env: { TOKEN: [{ secret: "env:TOKEN" }] } }),
      { allowTrifecta: true },
    ),
  }),
  nothing,
  ({ end, stderr }, directory) => {
    assert.equal(end?.status, "crashed");
    assert.match(end!.reason, /the loop broke over \*\*\*/);
    assert.ok(!stderr.includes("s3cret-value"));
    assert.equal(recordEnds(directory, end!.run_id).length, 1);
  },
);

for (const [signal, reason] of [["SIGINT", "sigint"], ["SIGTERM", "sigterm"]] as const) {
  scenario(
    `runOnce: ${signal} cancels a waiting loop`,
    () => ({ script: { do: "wait" } }),
    async (run) => {
      await agentReady(run);
      run.signal(signal);
    },
    ({ end }) => {
      assert.equal(end?.status, "cancelled");
      assert.equal(end?.reason, reason);
      assert.equal(end?.signal, signal);
      assert.equal(end?.forced, false);
    },
  );
}

scenario(
  "runOnce: SIGTERM ends a loop that spins, within the drain time",
  () => ({ script: { do: "spin" }, settings: { drainTimeoutMs: 2000 } }),
  async (run) => {
    await agentReady(run);
    run.signal("SIGTERM");
  },
  ({ end }, directory) => {
    assert.equal(end?.status, "cancelled");
    assert.equal(recordEnds(directory, end!.run_id)[0]?.status, "cancelled");
  },
);

scenario(
  "runOnce: a second signal kills at once",
  () => ({ script: { do: "ignore_cancel" }, settings: { drainTimeoutMs: 600_000 } }),
  async (run) => {
    await agentReady(run);
    run.signal("SIGINT");
    await run.seen((line) => line.event === "proc.shutdown");
    run.signal("SIGINT");
  },
  ({ end }) => {
    assert.equal(end?.status, "cancelled");
    assert.equal(end?.forced, true);
  },
);

scenario(
  "runOnce: a spinning loop past its deadline is ended by the supervisor",
  () => ({ script: { do: "spin" }, limits: { deadlineMs: 300 } }),
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "deadline");
    assert.ok(lines.some((line) => line.event === "limit.exceeded"));
  },
);

scenario(
  "runOnce: an agent that is killed has its terminal line from the supervisor",
  () => ({ script: { do: "wait" } }),
  async (run) => {
    const pid = await agentPid(run);
    await agentReady(run);
    Deno.kill(pid, "SIGKILL");
  },
  ({ end }, directory) => {
    assert.equal(end?.status, "crashed");
    assert.match(end!.reason, /SIGKILL/);
    const [line, ...more] = recordEnds(directory, end!.run_id);
    assert.equal(line?.status, "crashed");
    assert.equal(more.length, 0);
  },
);

for (const script of ["ignore_term", "leave_group"]) {
  const make = (directory: string) => ({
    script: { do: "ask", steps: [{ type: "open_server", server: "bad", until: 1e9 }] },
    settings: servers(server("bad", "sh", [`${HOSTILE}${script}.sh`, directory])),
  });
  const serverUp = async (directory: string) => {
    const sign = script === "leave_group" ? `stray-of-${directory}` : `${script}.sh ${directory}`;
    while ((await living(sign)).length === 0);
  };

  scenario(
    `runOnce: SIGKILL of the supervisor leaves nothing of ${script}`,
    make,
    async (run, directory) => {
      await agentReady(run);
      await serverUp(directory);
      run.signal("SIGKILL");
    },
    ({ end, code }) => {
      assert.equal(end, null);
      assert.equal(code, 137);
    },
  );

  scenario(
    `runOnce: SIGKILL of the agent leaves nothing of ${script}`,
    make,
    async (run, directory) => {
      const pid = await agentPid(run);
      await agentReady(run);
      await serverUp(directory);
      Deno.kill(pid, "SIGKILL");
    },
    ({ end }) => assert.equal(end?.status, "crashed"),
  );

  scenario(
    `runOnce: SIGTERM leaves nothing of ${script}`,
    make,
    async (run, directory) => {
      await agentReady(run);
      await serverUp(directory);
      run.signal("SIGTERM");
    },
    ({ end }) => assert.equal(end?.status, "cancelled"),
  );
}

scenario(
  "runOnce: SIGKILL of the supervisor reaches an agent that is stopped",
  (directory) => ({
    script: { do: "ask", steps: [{ type: "open_server", server: "bad", until: 1e9 }] },
    settings: servers(server("bad", "sh", [`${HOSTILE}ignore_term.sh`, directory])),
  }),
  async (run, directory) => {
    const pid = await agentPid(run);
    await agentReady(run);
    await untilLiving(`ignore_term.sh ${directory}`);
    Deno.kill(pid, "SIGSTOP");
    run.signal("SIGKILL");
  },
  ({ end }) => assert.equal(end, null),
);

scenario(
  "Servers: bytes both ways, clean environment, secrets only where declared, stderr in telemetry",
  () => ({
    script: {
      do: "ask",
      steps: [{ type: "open_server", server: "echo", lines: ["hello"], until: 6 }],
    },
    secrets: { "env:TOKEN": "s3cret-value" },
    settings: servers(
      server("echo", "sh", ["-c", "env >&2; exec cat"], {
        env: { DECLARED: ["x-", { secret: "env:TOKEN" }] },
      }),
      { allowTrifecta: true },
    ),
  }),
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    const [answer] = end!.result as { said: { text: string } }[];
    assert.equal(answer?.said.text, "hello\n");
    const names = stderrOf(lines).map((line) => line.split("=")[0]);
    const clean = ["PATH", "HOME", "TMPDIR", "LANG", "AGENTD_AGENT_ID"];
    const known = [...clean, "DECLARED", "PWD", "OLDPWD", "SHLVL", "_"];
    assert.deepEqual(names.filter((name) => !known.includes(name!)), []);
    assert.ok(names.includes("AGENTD_AGENT_ID"));
    assert.ok(stderrOf(lines).includes("DECLARED=x-***"));
  },
);

function stderrOf(lines: Line[]): string[] {
  return lines.filter((line) => typeof line.stderr === "string").map((line) =>
    line.stderr as string
  );
}

/** Whether a process can be put into bwrap here. */
const bwrapWorks = (() => {
  try {
    return new Deno.Command("bwrap", {
      args: ["--ro-bind", "/", "/", "--unshare-all", "--", "true"],
    })
      .outputSync().success;
  } catch {
    return false;
  }
})();

scenario(
  "Servers: bwrap gives a server a read-only system and a /tmp of its own",
  (directory) => ({
    script: { do: "ask", steps: [{ type: "open_server", server: "boxed", until: 20 }] },
    settings: servers(
      server("boxed", "sh", [
        "-c",
        `touch /etc/agentd-test 2>/dev/null || echo read-only; ls -a ${directory} >/dev/null 2>&1 || echo hidden; ` +
        "touch /tmp/x && echo tmp; exec cat",
      ], { sandbox: "bwrap" }),
    ),
  }),
  nothing,
  ({ end }) => {
    const [answer] = end!.result as unknown as { said: { text: string } }[];
    assert.equal(answer!.said.text, "read-only\nhidden\ntmp\n");
  },
  !bwrapWorks,
);

scenario(
  "Servers: what leaves its group inside bwrap dies with the agent",
  (directory) => ({
    script: { do: "ask", steps: [{ type: "open_server", server: "boxed", until: 1e9 }] },
    settings: servers(
      // As a text: the box has a /tmp of its own, and this project may stand in /tmp.
      server(
        "boxed",
        "sh",
        ["-c", Deno.readTextFileSync(`${HOSTILE}leave_group.sh`), "sh", directory],
        { sandbox: "bwrap" },
      ),
    ),
  }),
  async (run, directory) => {
    const pid = await agentPid(run);
    await untilLiving(`stray-of-${directory}`);
    Deno.kill(-pid, "SIGKILL");
  },
  ({ end }) => assert.equal(end?.status, "crashed"),
  !bwrapWorks,
);

scenario(
  "Servers: a flood on stdout and on stderr is carried within bounds",
  () => ({
    script: { do: "ask", steps: [{ type: "open_server", server: "flood", until: 20_000_000 }] },
    settings: servers(server("flood", "sh", ["-c", "yes noise >&2 & exec yes"])),
  }),
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    const [answer] = end!.result as { said: { bytes: number } }[];
    assert.ok(answer!.said.bytes >= 20_000_000);
    assert.ok(stderrOf(lines).length < 1000, `${stderrOf(lines).length} lines`);
  },
);

scenario(
  "Servers: one that exits says how, with the end of its stderr; one that does not exist fails",
  () => ({
    script: {
      do: "ask",
      steps: [
        { type: "open_server", server: "dies" },
        { type: "open_server", server: "missing" },
        { type: "open_server", server: "undeclared" },
      ],
    },
    settings: servers(
      server("dies", "sh", ["-c", "echo cannot open the thing >&2; exit 3"]),
      server("missing", "no-such-command-anywhere", []),
    ),
  }),
  nothing,
  ({ end }) => {
    const [dies, missing, undeclared] = end!.result as Record<string, unknown>[];
    const said = dies!.said as { exited: { code: number; stderr: string } };
    assert.equal(said.exited.code, 3);
    assert.equal(said.exited.stderr, "cannot open the thing");
    assert.match(missing!.message as string, /no-such-command-anywhere does not exist/);
    assert.match(undeclared!.message as string, /no such stdio server/);
  },
);

scenario(
  "runCommand: checks by their place, bounded in time and output, killing what they leave",
  (directory) => ({
    script: {
      do: "ask",
      steps: [0, 1, 2, 3, 4].map((index) => ({ type: "run_check", index })),
    },
    settings: {
      task: {
        instruction: "",
        system: null,
        seeds: [],
        outputSchema: null,
        require: [],
        checks: [
          ["sh", "-c", "echo out; echo err >&2; exit 7"],
          ["sh", "-c", `sh ${HOSTILE}ignore_term.sh ${directory}`],
          ["sh", "-c", "yes | head -c 300000; echo end"],
          ["sh", `${HOSTILE}fork_and_exit.sh`, directory],
        ].map((command) => ({ command, when: "final" as const, timeoutMs: 500 })),
      },
    },
  }),
  nothing,
  ({ end }) => {
    type Outcome = {
      outcome: {
        exitCode: number | null;
        timedOut: boolean;
        output: string;
        totalBytes: number;
        failure: string | null;
      };
    };
    const outcomes = (end!.result as Outcome[]).map((answer) => answer.outcome);
    const [plain, slow, loud, leaves, none] = outcomes;
    assert.equal(plain?.exitCode, 7);
    assert.deepEqual(plain?.output.trim().split("\n").sort(), ["err", "out"]);
    assert.deepEqual([slow?.exitCode, slow?.timedOut], [null, true]);
    assert.equal(loud?.exitCode, 0);
    assert.equal(loud?.totalBytes, 300_004);
    assert.ok(loud!.output.length < 70_000 && loud!.output.endsWith("end\n"));
    assert.match(loud!.output, /bytes left out/);
    assert.equal(leaves?.exitCode, 0);
    assert.equal(none?.failure, "no check 4");
  },
);

scenario(
  "Desk: what a subverted Worker may not say is dropped or refused, never believed",
  () => ({
    script: {
      do: "raw",
      steps: [
        { type: "nonsense" },
        { type: "forward", frame: { v: 1, type: "result", result: "forged" } },
        { type: "open_server", id: 1, server: "__proto__" },
        { type: "run_hook", id: 2, event: "constructor", index: 0, input: {} },
        { type: "run_check", id: 3, index: -1 },
        { type: "request", id: "x", op: "spawn", arguments: {} },
      ],
    },
  }),
  nothing,
  ({ end, lines }) => {
    const denied = lines.filter((line) => line.event === "permission.denied");
    assert.deepEqual(denied.map((line) => line.target).sort(), [
      "check -1",
      "hook constructor 0",
      "server __proto__",
    ]);
    // The malformed request is what its supervisor takes it down for.
    assert.equal(end?.status, "crashed");
    assert.match(end!.reason, /request.id is "x"/);
  },
);
