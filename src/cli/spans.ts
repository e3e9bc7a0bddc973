/** Spans on their way out while runs go on, where the configuration wants them. */

import { otlpEndpointOf } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { RunsPort } from "../ports/runs.ts";
import type { CliPorts } from "./ports.ts";

/** Spans of one run on their way to where the configuration wants them, if it does. */
export async function openSpans(
  ports: CliPorts,
  settings: Settings,
  runId: string,
): Promise<{ close(): Promise<void> }> {
  const endpoint = otlpEndpointOf(settings);
  if (endpoint === null) return { close: () => Promise.resolve() };
  const { streamSpans } = await import("../record/export.ts");
  const over = new AbortController();
  const directory = `${settings.runDirectory}/${runId}`;
  const sending = streamSpans(ports, directory, endpoint, over.signal);
  return {
    async close() {
      over.abort();
      const sent = await sending;
      if (!sent.ok) ports.terminal.writeError(`agentd: ${sent.failure.message}\n`);
    },
  };
}

/** The same runs, the spans of each sent while it goes on. */
export function withSpans(ports: CliPorts, settings: Settings, runs: RunsPort): RunsPort {
  if (otlpEndpointOf(settings) === null) return runs;
  return {
    ...runs,
    start(request, listener) {
      const handle = runs.start(request, listener);
      const spans = openSpans(ports, settings, handle.runId);
      const ended = handle.ended.then(async (end) => {
        await (await spans).close();
        return end;
      });
      return { ...handle, ended };
    },
  };
}
