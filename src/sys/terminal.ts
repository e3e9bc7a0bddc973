import { joinBytes } from "../core/bytes.ts";
import { failed, success } from "../core/outcome.ts";
import type { TerminalPort } from "../ports/terminal.ts";
import { queueStdout, settleOutput, settleStderr, writeNow, writeStderr } from "./output.ts";

/** The standard streams of this process. */
export const systemTerminal: TerminalPort = {
  get stdoutIsTerminal() {
    return Deno.stdout.isTerminal();
  },
  get stderrIsTerminal() {
    return Deno.stderr.isTerminal();
  },
  get columns() {
    try {
      return Deno.stdout.isTerminal() ? Deno.consoleSize().columns : null;
    } catch {
      return null;
    }
  },
  writeOut: (text) => writeNow(Deno.stdout, text),
  queueOut: queueStdout,
  writeError: writeStderr,
  settleError: settleStderr,
  settle: settleOutput,
  async readIn(bytesMax) {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (;;) {
        const count = await Deno.stdin.read(buffer);
        if (count === null) break;
        bytes += count;
        if (bytes > bytesMax) return failed(`more than ${bytesMax} bytes`);
        parts.push(buffer.slice(0, count));
      }
      return success(new TextDecoder("utf-8", { fatal: true }).decode(joinBytes(parts)));
    } catch (error) {
      if (error instanceof TypeError) return failed("it is not UTF-8");
      return failed(error instanceof Error ? error.message : String(error));
    }
  },
};
