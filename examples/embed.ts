/**
 * agentd inside a program of one's own: two runs side by side, each followed by its events.
 *
 *     deno run --allow-read --allow-write --allow-net --allow-env --allow-run --allow-sys \
 *       examples/embed.ts QUESTION…
 *
 * The model is found as on the command line: by a key in the environment, or a local server.
 */

import { ConfigurationError, runAgent, type RunResult } from "../mod.ts";

/** Answers a question about the files of a directory; tells each turn as it ends. */
export async function ask(
  question: string,
  directory: string,
  env: Record<string, string>,
  tell: (line: string) => void,
): Promise<RunResult> {
  const { events, result } = runAgent({
    instruction: question,
    options: {
      "allow-read": directory,
      max_steps: "20",
      deadline: "2m",
      "run-dir": `${directory}/.runs`,
    },
    cwd: directory,
    env,
    signal: AbortSignal.timeout(150_000),
  });
  for await (const event of events) {
    if (event.type === "turn.judged") tell(`${question}: turn ${event.step} ${event.verdict}`);
  }
  return await result;
}

if (import.meta.main) {
  try {
    const answers = await Promise.all(
      Deno.args.map((question) => ask(question, Deno.cwd(), Deno.env.toObject(), console.error)),
    );
    for (const { status, reason, result } of answers) {
      console.log(status === "completed" ? result : `${status}: ${reason}`);
    }
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    for (const problem of error.problems) console.error(problem);
    Deno.exitCode = 2;
  }
}
