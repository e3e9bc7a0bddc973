/**
 * Cases from the field, from outside: a guard's end is never taken for success, and ends are told
 * apart by exit code and status or abort alone; what HTTP loses is one call's outcome, not the run's.
 */

import assert from "node:assert/strict";
import { type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";
import { startServer } from "../fakes/server_process.ts";
import { programs } from "../program.ts";
import { runProgram, withDirectory } from "./harness.ts";

const path = (name: string) => decodeURIComponent(new URL(name, import.meta.url).pathname);
const LIBRARY = path("../fakes/library.mjs");
const HTTP = path("../hostile/http_server.mjs");
const CHEERFUL = "All done, everything works!";
const reread = (n: number): ScriptReply => ({
  text: CHEERFUL,
  calls: [{ name: "lib__big", arguments: { bytes: 10, n } }],
});

/** Name, replies, exit code, status or abort, whether there is a partial. */
const ENDS: [string, ScriptReply[], number, string, boolean][] = [
  ["stalled", [reread(0), reread(0), reread(0), reread(0)], 3, "stalled", true],
  [
    "loop_detected",
    Array.from({ length: 14 }, (_, turn) => reread(turn % 2 === 0 ? turn + 1 : 0)),
    3,
    "loop_detected",
    true,
  ],
  [
    "a loop without a word",
    [0, 0, 0, 0].map((n) => ({ ...reread(n), text: "" })),
    1,
    "stalled",
    false,
  ],
  ["refused credentials", [{ status: 401 }], 4, "intelligence", false],
];

for (const program of programs()) {
  Deno.test(`ends (${program.name}): a guard's stop is labelled, and told apart from others`, async () => {
    for (const [name, replies, code, end, partial] of ENDS) {
      await using server = await startModelServer({ replies });
      await withDirectory(async ({ project, runs }) => {
        const args = ["run", "Look", "--intelligence", server.url, "--model", "m"];
        const library = ["--mcp", `lib=node ${LIBRARY}`, "--run-dir", runs];
        const ran = await runProgram(program, {
          args: [...args, ...library, "--output", "json"],
          cwd: project,
        });
        assert.equal(ran.code, code, `${name}: ${ran.stdout}${ran.stderr.slice(-500)}`);
        assert.equal(ran.json.status ?? ran.json.abort, end, name);
        assert.equal(ran.json.partial, partial, name);
        assert.equal(ran.json.result, partial ? CHEERFUL : null, name);
      });
    }
  });

  Deno.test(`calls (${program.name}): what HTTP loses is one outcome, and the next turn happens`, async () => {
    const web = await startServer(["node", HTTP, "", "0"]);
    const names = ["reset", "bad-gateway", "reset-look"];
    await using server = await startModelServer({
      replies: [
        ...names.map((name) => ({ calls: [{ name: `web__${name}`, arguments: {} }] })),
        { calls: [{ name: "web__act", arguments: {} }] },
        { text: "done" },
      ],
    });
    try {
      await withDirectory(async ({ project, runs }) => {
        const args = ["run", "Act", "--intelligence", server.url, "--model", "m"];
        const ran = await runProgram(program, {
          args: [
            ...args,
            ...["--mcp", `web=http://127.0.0.1:${web.port}/mcp`],
            ...["--run-dir", runs, "--output", "json"],
          ],
          cwd: project,
        });
        assert.equal(ran.code, 0, ran.stdout + ran.stderr.slice(-1_000));
        const steps = ran.lines.filter((line) => line.event === "loop.step");
        assert.deepEqual(steps.map((step) => (step.actions as string[])[0]), [
          "web/reset:unknown",
          "web/bad-gateway:unknown",
          "web/reset-look:error",
          "web/act:ok",
          undefined,
        ]);
      });
    } finally {
      await web.stop();
    }
  });
}
