/** Secrets go where they were sent, and nowhere else: not into records, logs, argv, reports, or others' environments. */

import assert from "node:assert/strict";
import { chatCompletion } from "../fakes/chat_completion.ts";
import { programs } from "../program.ts";
import { conversation, runAgents, spawn } from "./agents.ts";
import { CANARIES, found, readTree, spyOnProcesses } from "./canaries.ts";
import { aliveInGroups, runProgram, withDirectory } from "./harness.ts";

const SERVER = decodeURIComponent(new URL("../fakes/token_server.ts", import.meta.url).pathname);

for (const program of programs()) {
  Deno.test({
    name: `secrets (${program.name}): a full job with a canary wherever one may be configured`,
    // The environments of other processes are read from /proc.
    ignore: Deno.build.os !== "linux",
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        const replies = ["token__tell", "token__fail", null];
        let turn = 0;
        let authorizations: (string | null)[] = [];
        let spied: Awaited<ReturnType<typeof spyOnProcesses>> = [];
        let bodies = "";
        const groups: number[] = [];
        const endpoint = Deno.serve(
          { hostname: "127.0.0.1", port: 0, onListen() {} },
          async (request) => {
            authorizations.push(request.headers.get("authorization"));
            bodies += await request.text();
            // A proxy in front that quotes what it was sent, once.
            if (turn === 1 && authorizations.length === 2) {
              return new Response(`bad gateway; you sent ${authorizations[1]}`, { status: 502 });
            }
            if (turn === 0) spied = await spyOnProcesses(groups);
            const name = replies[turn++] ?? null;
            return chatCompletion({
              text: name ? null : "done",
              calls: name ? [{ id: `c${turn}`, name, arguments: {} }] : [],
            });
          },
        );
        await Deno.writeTextFile(`${project}/token`, CANARIES.model + "\n");
        await Deno.writeTextFile(
          `${project}/agentd.json`,
          JSON.stringify({
            instruction: "Tell me the token.",
            model: {
              intelligence: [`http://127.0.0.1:${endpoint.addr.port}/v1`],
              name: "m",
              token: "${file:token}",
            },
            mcp_servers: {
              token: {
                command: Deno.execPath(),
                args: ["run", "--no-prompt", "--allow-env=SERVER_TOKEN", SERVER],
                env: { SERVER_TOKEN: "${env:MY_TOKEN}" },
              },
              idle: {
                command: Deno.execPath(),
                args: ["run", "--no-prompt", "--allow-env", SERVER],
                required: false,
              },
            },
            allow: { run: ["/bin/true"], env: ["GRANTED_KEY"] },
            verify: { checks: [{ command: "env" }] },
            hooks: { after_observation: ["env"] },
            allow_trifecta: true,
          }),
        );
        const base = ["--config", "agentd.json", "--run-dir", runs, "--log-format", "json"];
        const env = {
          MY_TOKEN: CANARIES.server,
          GRANTED_KEY: CANARIES.granted,
          OTHER_SECRET: CANARIES.bystander,
        };
        const run = (args: string[]) =>
          runProgram(program, {
            cwd: project,
            env,
            args,
            on: { event: "subagent.spawn", act: ({ agents }) => void groups.push(...agents) },
          });
        try {
          const ran = await run([
            "run",
            ...base,
            "--log-level",
            "debug",
            "--log-content",
            "--output",
            "json",
          ]);
          assert.equal(ran.json?.status, "completed", ran.stderr);
          assert.ok(authorizations.every((value) => value === `Bearer ${CANARIES.model}`));
          assert.deepEqual(found(bodies), [], "what the model was sent");
          assert.deepEqual(found(ran.stderr), [], "telemetry, with content");
          assert.deepEqual(found(ran.stdout), [], "the result");
          assert.deepEqual(found(await readTree(runs)), [], "record and artifacts");

          assert.ok(spied.length >= 4, spied.map(({ command }) => command.slice(-90)).join("\n"));
          for (const { command, argv, environ } of spied) {
            assert.deepEqual(argv, [], command);
            const may = command.includes("SERVER_TOKEN")
              ? ["server"]
              : / mcp exec /.test(command)
              ? ["granted"]
              : [];
            assert.deepEqual(environ, may, command);
          }

          for (
            const report of [
              ["validate", ...base],
              ["permissions", ...base],
              ["inspect", "last", "--run-dir", runs],
              ["inspect", "last", "--json", "--run-dir", runs],
              ["runs", "--run-dir", runs],
            ]
          ) {
            const { stdout, stderr, code } = await run(report);
            assert.equal(code, 0, `${report[0]}: ${stderr}`);
            assert.deepEqual(found(stdout + stderr), [], report.join(" "));
          }

          // Crash output: the agent is killed in the middle.
          turn = 0;
          authorizations = [];
          const crashed = await runProgram(program, {
            cwd: project,
            env,
            args: ["run", ...base, "--output", "json"],
            on: {
              event: "tool.call",
              act: ({ agents }) => agents.forEach((pid) => Deno.kill(pid, "SIGKILL")),
            },
          });
          assert.equal(crashed.json?.status, "crashed", crashed.stderr);
          assert.deepEqual(found(crashed.stdout + crashed.stderr + await readTree(runs)), []);
          assert.deepEqual(await aliveInGroups(groups), []);
        } finally {
          await endpoint.shutdown();
        }
      }),
  });
}

for (const program of programs()) {
  Deno.test({
    name: `secrets (${program.name}): a child is handed those of its own tools, and no other`,
    ignore: Deno.build.os !== "linux",
    fn: async () => {
      let spied: Awaited<ReturnType<typeof spyOnProcesses>> = [];
      let narrow: string[] = [];
      await runAgents(program, {
        script: {
          token: CANARIES.model,
          routes: [
            {
              when: "NARROW",
              by: "turn",
              replies: [
                { calls: [{ name: "token__tell", arguments: {} }], delayMs: 1_500 },
                { text: `I heard of ${CANARIES.model}.` },
              ],
            },
            {
              when: "WIDE",
              by: "turn",
              replies: [{ calls: [{ name: "token__tell", arguments: {} }] }, { text: "told" }],
            },
            {
              when: "The root.",
              by: "turn",
              replies: [
                {
                  calls: [
                    spawn("WIDE"),
                    spawn(`NARROW, with ${CANARIES.model} in hand`, { tools: [] }),
                  ],
                },
                { text: "both" },
              ],
            },
          ],
        },
        files: {
          token: CANARIES.model,
          "agentd.json": JSON.stringify({
            model: { token: "${file:token}" },
            mcp_servers: {
              token: {
                command: Deno.execPath(),
                args: ["run", "--no-prompt", "--allow-env=SERVER_TOKEN", SERVER],
                env: { SERVER_TOKEN: "${env:MY_TOKEN}" },
              },
            },
            allow_trifecta: true,
          }),
        },
        env: { MY_TOKEN: CANARIES.server, OTHER_SECRET: CANARIES.bystander },
        args: ["--config", "agentd.json", "--log-level", "debug", "--log-content"],
        on: {
          event: "loop.start",
          path: "0.2",
          act: async ({ agents }) => {
            spied = await spyOnProcesses(agents);
            narrow = spied.filter(({ group }) => group === agents.at(-1)).map(({ command }) =>
              command
            );
          },
        },
      }, async ({ ran, asked, directory }) => {
        assert.equal(ran.json.status, "completed", ran.stderr);
        assert.deepEqual(found(JSON.stringify([asked("NARROW"), asked("WIDE")])), []);
        assert.match(conversation(asked("NARROW")[1]), /invalid/);
        assert.deepEqual(found(ran.stderr), [], "telemetry, with content");
        assert.deepEqual(found(ran.stdout), [], "the result");
        assert.deepEqual(found(await readTree(directory)), [], "records of all three");
        assert.ok(await Deno.stat(`${directory}/agents/0.2/record.jsonl`));
        const servers = spied.filter(({ command }) => command.includes("SERVER_TOKEN"));
        assert.ok(servers.length >= 1, "the root's own server");
        for (const { command, argv, environ } of spied) {
          assert.deepEqual(argv, [], command);
          assert.deepEqual(
            environ,
            servers.some((server) => server.command === command) ? ["server"] : [],
            command,
          );
        }
        assert.equal(narrow.length, 1, `nothing beside the agent itself: ${narrow.join(" | ")}`);
        assert.ok(narrow[0]!.includes("__agent"));
      });
    },
  });
}
