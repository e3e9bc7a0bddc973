/** `agentd validate`: every problem of the configuration, or what it comes to. */

import { formatProblem } from "../config/problem.ts";
import type { Settings } from "../config/settings.ts";
import { formatDuration } from "../core/units.ts";
import { formatIso } from "../core/time.ts";
import { cronSlots, intervalSlots, loadCron, nextSlots } from "../trigger/slots.ts";
import { countOf } from "../record/output.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_OK, EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { loadCommandSettings } from "./settings.ts";

/** Validates, and prints all of it to stdout; the exit code. */
export async function validateCommand(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const loaded = await loadCommandSettings(ports, parsed, "validate");
  const count = readCount(parsed);
  const { problems, notices, settings } = loaded;
  if (parsed.texts.output?.at(-1) === "json" || settings?.output === "json") {
    const next = settings && count !== null ? await nextStarts(ports, settings, count) : [];
    ports.terminal.writeOut(
      JSON.stringify({
        valid: settings !== null,
        problems,
        notices,
        ...(settings ? { configuration: settings.configuration } : {}),
        ...(count === null ? {} : { next }),
      }) + "\n",
    );
    return settings ? EXIT_OK : EXIT_USAGE;
  }
  if (!settings) {
    const lines = problems.map((each) => `${formatProblem(each)}\n`);
    ports.terminal.writeOut(lines.join(""));
  } else {
    ports.terminal.writeOut(summarize(settings));
    if (count !== null) {
      for (const at of await nextStarts(ports, settings, count)) {
        ports.terminal.writeOut(`next ${at}\n`);
      }
    }
  }
  for (const notice of notices) ports.terminal.writeOut(`note: ${notice}\n`);
  return settings ? EXIT_OK : EXIT_USAGE;
}

function readCount(parsed: ParsedArguments): number | null {
  const text = parsed.texts.next?.at(-1);
  if (text === undefined) return null;
  return /^[1-9]\d{0,3}$/.test(text) ? Math.min(1000, Number(text)) : null;
}

/** The next start times of a schedule, as ISO 8601 in UTC; none for another mode. */
async function nextStarts(ports: CliPorts, settings: Settings, count: number): Promise<string[]> {
  const { cron, intervalMs, timezone } = settings.trigger;
  const nowMs = ports.clock.wallMs();
  if (settings.mode !== "schedule") return [];
  if (cron !== null) {
    const slots = cronSlots(await loadCron(), cron, timezone);
    return slots.ok ? nextSlots(slots.value, nowMs, count).map(formatIso) : [];
  }
  return nextSlots(intervalSlots(intervalMs!, nowMs), nowMs, count).map(formatIso);
}

function summarize(settings: Settings): string {
  const { model, servers, limits, task } = settings;
  const endpoints = model.endpoints.map((endpoint) =>
    `${endpoint.url}${endpoint.probe ? " (if it answers)" : ""}`
  );
  const verified = [
    ...(task.outputSchema ? ["a schema"] : []),
    ...(task.require.length > 0 ? [countOf(task.require.length, "artifact")] : []),
    ...(task.checks.length > 0 ? [countOf(task.checks.length, "check")] : []),
  ];
  return [
    "valid",
    `  file      ${settings.configurationFile ?? "none"}`,
    `  mode      ${settings.mode}`,
    `  model     ${model.name ?? "first that is listed"} at ${endpoints.join(", ")}`,
    `  tools     ${servers.map((server) => server.name).join(", ") || "none"}`,
    `  verified  ${verified.join(", ") || "nothing is declared"}`,
    `  limits    ${limits.maxSteps} turns, ${limits.maxTokens} tokens, ${
      formatDuration(limits.deadlineMs)
    }`,
    `  runs      ${settings.runDirectory}`,
    "",
  ].join("\n");
}
