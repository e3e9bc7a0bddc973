/** `agentd validate`: every problem of the configuration, or what it comes to. */

import { loadBasics } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { Settings } from "../config/settings.ts";
import { formatDuration } from "../core/units.ts";
import { formatIso } from "../core/time.ts";
import { cronSlots, intervalSlots, loadCron, nextSlots } from "../trigger/slots.ts";
import { countOf } from "../record/output.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_OK, EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { readOwn } from "./record_commands.ts";
import { loadCommandSettings, loadInput } from "./settings.ts";

/** Validates, and prints all of it to stdout; the exit code. */
export async function validateCommand(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const loaded = await loadCommandSettings(ports, parsed, "validate");
  const own = readOwn(parsed);
  const problems = [...own.problems, ...loaded.problems];
  const { notices } = loaded;
  const settings = problems.length === 0 ? loaded.settings : null;
  const count = typeof own.values.next === "number" ? own.values.next : null;
  if (count !== null && settings !== null && settings.mode !== "schedule") {
    notices.push(`--next has no use in mode ${settings.mode}: only a schedule has start times`);
  }
  if (await wantsJson(ports, parsed, settings)) {
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

/** Whether the form that was asked for, by whatever source, is JSON; also of what is not valid. */
async function wantsJson(
  ports: CliPorts,
  parsed: ParsedArguments,
  settings: Settings | null,
): Promise<boolean> {
  if (settings !== null) return settings.output === "json";
  const basics = await loadBasics(loadInput(ports, parsed, "inspect", []));
  return basics.ok ? basics.value.output === "json" : parsed.texts.output?.at(-1) === "json";
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
