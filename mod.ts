/**
 * agentd as a library: {@link runAgent} runs one agent as `agentd run` does, with its record as an
 * event stream and its result as a value.
 *
 * ```ts
 * import { runAgent } from "./mod.ts";
 *
 * const { events, result } = runAgent({
 *   instruction: "Summarise ./docs into ./out/summary.md",
 *   options: { "allow-read": ["./docs"], "allow-write": ["./out"], require: ["./out/summary.md"] },
 *   env: { OPENAI_API_KEY: "…" },
 * });
 * for await (const line of events) if (line.type === "turn.judged") console.log(line.verdict);
 * console.log((await result).status);
 * ```
 *
 * @module
 */

import { type AgentRun, embedAgent, type RunAgentOptions } from "./src/cli/embed.ts";
import { systemCliPorts } from "./src/sys/cli.ts";
import { systemFetch } from "./src/sys/worker_scope.ts";

export { type AgentRun, ConfigurationError, type RunAgentOptions } from "./src/cli/embed.ts";
export type { Json, JsonObject } from "./src/core/json.ts";
export type { Outcome } from "./src/core/outcome.ts";
export type {
  FinishReason,
  Message,
  ModelFailure,
  ModelFailureClass,
  ModelPort,
  ModelReply,
  ModelRequest,
  Part,
  ToolCall,
  ToolSpec,
  Usage,
} from "./src/ports/model.ts";
export { STATUSES } from "./src/wire/result.ts";
export type { RecordLine } from "./src/wire/record.ts";
export type {
  Abort,
  RunResult,
  Status,
  UsageTotals,
  Verification,
  VerificationItem,
} from "./src/wire/result.ts";

/**
 * Runs an agent. By default in processes of its own, with the permissions of its grant; this needs
 * `--allow-run` for the program itself and read and write for the run directory.
 */
export function runAgent(options: RunAgentOptions): AgentRun {
  const main = new URL("./main.ts", import.meta.url).href;
  return embedAgent({ ...systemCliPorts(main), fetch: systemFetch }, options);
}
