/** Mode loop: the same task again and again, with a wait between that follows its progress. */

import { MAIN_SESSION } from "./check.ts";
import type { Daemon } from "./daemon.ts";
import { startLoop, stepLoop } from "./mode.ts";
import type { Sessions } from "./sessions.ts";

/** Runs until the daemon stops; what was in flight then has ended. */
export async function runLoop(daemon: Daemon, sessions: Sessions): Promise<void> {
  const { settings, ports } = daemon;
  const warm = settings.trigger.session === "warm";
  const intervalMs = settings.trigger.intervalMs ?? 0;
  ports.telemetry.emit("trigger.armed", { kind: "loop", interval_ms: intervalMs, warm });
  let state = startLoop();
  while (daemon.stopping === null) {
    const runId = warm ? sessions.runIdOf(MAIN_SESSION) : daemon.mintRunId();
    ports.telemetry.emit("trigger.fired", { kind: "loop", run_id: runId });
    const instruction = settings.task.instruction;
    const result = warm
      ? await sessions.deliver(
        MAIN_SESSION,
        { id: `i${daemon.iterations + 1}`, instruction, uris: [] },
        [],
        "loop",
      )
      : await daemon.run({ runId, instruction: null, attachments: [], session: null }, "loop");
    const [next, waitMs] = stepLoop(state, result, intervalMs);
    state = next;
    if (waitMs > 0) await daemon.sleep(waitMs);
  }
}
