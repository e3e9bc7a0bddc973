/** A process that made one model call ends by itself: no timer, connection or wait keeps it. */

import assert from "node:assert/strict";
import { type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";

interface Row {
  case: string;
  reply: ScriptReply;
  /** Aborted once the server has the request and, where one is named, the event was seen. */
  abort?: boolean;
  /** Without the permission to connect. */
  denied?: boolean;
  class: string;
  event?: string;
}

const quota = { error: { message: "Your monthly quota is spent.", type: "x" } };

const ROWS: Row[] = [
  { case: "an answer", reply: { text: "x" }, class: "ok" },
  { case: "an answer whose body stays open", reply: { text: "x", keepOpen: true }, class: "ok" },
  { case: "a spent quota", reply: { status: 429, body: quota }, class: "quota" },
  {
    case: "a spent quota that asks for sixteen days",
    reply: { status: 429, body: quota, headers: { "retry-after": "1382400" } },
    class: "quota",
  },
  {
    case: "a wait of a day",
    reply: { status: 429, headers: { "retry-after": "86400" } },
    class: "unreachable",
  },
  { case: "an abort before the answer", reply: { hang: true }, abort: true, class: "cancelled" },
  {
    case: "an abort inside the stream",
    reply: { text: "half of it", pieceChars: 2, cutAfter: 5, then: "silence" },
    abort: true,
    class: "cancelled",
  },
  {
    case: "an abort while waiting to retry",
    reply: { status: 429, headers: { "retry-after": "55" } },
    abort: true,
    class: "cancelled",
    event: "intel.retry",
  },
  {
    case: "no permission to connect",
    reply: { text: "x" },
    denied: true,
    class: "unreachable",
    event: "permission.denied",
  },
];

for (const dialect of ["openai", "anthropic"]) {
  Deno.test(`a process ends after its model call (${dialect})`, async (t) => {
    await using server = await startModelServer();
    for (const row of ROWS) {
      await t.step(row.case, async () => {
        await server.script({ replies: [row.reply], loop: true });
        const child = new Deno.Command(Deno.execPath(), {
          args: [
            "run",
            "--no-prompt",
            ...(row.denied ? [] : ["--allow-net=127.0.0.1"]),
            new URL("./model_once.ts", import.meta.url).href,
            server.url,
            dialect,
            ...(row.abort ? ["abort"] : []),
          ],
          stdin: "piped",
          stdout: "piped",
          stderr: "inherit",
          // Bounds the test, not the time that an end may take.
          signal: AbortSignal.timeout(40_000),
        }).spawn();
        const lines: string[] = [];
        const printed = (async () => {
          for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
            // A line is one write, and so one piece.
            lines.push(...text.trimEnd().split("\n"));
          }
        })();
        let ended = false;
        void child.status.then(() => ended = true);
        if (row.abort) {
          const due = () => row.event === undefined || lines.includes(row.event);
          while (!ended && ((await server.completions()).length === 0 || !due())) {
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
          const writer = child.stdin.getWriter();
          await writer.write(new Uint8Array(1));
          await writer.close();
        }
        const { code } = await child.status;
        await printed;
        if (!row.abort) await child.stdin.close();
        assert.equal(code, 0);
        assert.equal(lines.at(-1), row.class);
        if (row.event) assert.ok(lines.includes(row.event), lines.join("\n"));
      });
    }
  });
}
