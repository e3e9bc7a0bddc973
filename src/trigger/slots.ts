/** When a schedule is due: slots of an interval, or of a cron expression in a time zone. */

import type { Cron } from "croner";
import { formatIso } from "../core/time.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { openZone, type Zone } from "./zone.ts";

/** Slots in order. Instants are milliseconds since the Unix epoch. */
export interface Slots {
  /** The first slot after an instant; null: there is none, ever. */
  next(afterMs: number): number | null;
}

/** Slots every `intervalMs` from an anchor, the anchor itself not among them. */
export function intervalSlots(intervalMs: number, anchorMs: number): Slots {
  return {
    next: (afterMs) =>
      anchorMs + Math.max(1, Math.floor((afterMs - anchorMs) / intervalMs) + 1) * intervalMs,
  };
}

/** Loads the cron parser: only a schedule needs it. */
export async function loadCron(): Promise<typeof Cron> {
  return (await import("croner")).Cron;
}

const NICKNAMES: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/**
 * Slots of a cron expression: five fields, or six with seconds first; names, ranges, steps, lists,
 * nicknames. Across a change of the clocks each slot comes exactly once: an expression with `*` for
 * its hours follows elapsed time (through both passes of a repeated hour, past a missing one); any
 * other names times of day, so a time in a gap comes at the end of the gap and a time in an overlap
 * at its first pass only. A failure says what is wrong with the expression, the zone, or both.
 */
export function cronSlots(
  parser: typeof Cron,
  expression: string,
  zoneName: string,
): Outcome<Slots, { field: "cron" | "timezone"; message: string }[]> {
  const problems: { field: "cron" | "timezone"; message: string }[] = [];
  const zone = openZone(zoneName);
  if (zone === undefined) {
    problems.push({
      field: "timezone",
      message: "no such time zone: an IANA name such as Europe/Berlin or UTC is needed",
    });
  }
  const trimmed = expression.trim();
  const pattern = NICKNAMES[trimmed.toLowerCase()] ?? trimmed;
  const fields = pattern.split(/\s+/);
  const compiled = compile(parser, pattern, fields.length);
  if (!compiled.ok) problems.push({ field: "cron", message: compiled.failure });
  if (zone === undefined || !compiled.ok) return failed(problems);
  const hours = fields.at(-4)!;
  const local = compiled.value;
  const slots = hours === "*" || hours === "?" || hours === "*/1"
    ? elapsedSlots(parser, pattern, zone)
    : timeOfDaySlots(local, zone);
  return success(slots);
}

function compile(
  parser: typeof Cron,
  pattern: string,
  fieldCount: number,
): Outcome<Cron, string> {
  if (pattern === "") return failed("it is empty");
  if (pattern.startsWith("@")) {
    return failed(`no such nickname: ${Object.keys(NICKNAMES).join(", ")} exist`);
  }
  if (fieldCount !== 5 && fieldCount !== 6) {
    return failed(
      `it has ${fieldCount} fields: five (minute hour day month weekday), or six with seconds ` +
        `first, are needed`,
    );
  }
  let cron: Cron;
  try {
    cron = new parser(pattern, { paused: true, timezone: "UTC", mode: "5-or-6-parts" });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return failed(message.replace(/^CronPattern: /, ""));
  }
  // Every combination of date and weekday that exists comes within 28 years, or never.
  return cron.nextRun("2000-01-01T00:00:00Z") === null ? failed("it never fires") : success(cron);
}

function elapsedSlots(parser: typeof Cron, pattern: string, zone: Zone): Slots {
  const cron = new parser(pattern, { paused: true, timezone: zone.name, mode: "5-or-6-parts" });
  return { next: (afterMs) => cron.nextRun(formatIso(afterMs))?.getTime() ?? null };
}

function timeOfDaySlots(local: Cron, zone: Zone): Slots {
  return {
    next(afterMs) {
      let localMs = zone.toLocalMs(afterMs);
      for (;;) {
        const slot = local.nextRun(formatIso(localMs));
        if (slot === null) return null;
        localMs = slot.getTime();
        // In the second pass of an overlap the slots of the first are over.
        const instantMs = zone.toInstantMs(localMs);
        if (instantMs > afterMs) return instantMs;
      }
    },
  };
}

/** The next `count` slots after an instant: what `agentd validate --next N` prints. */
export function nextSlots(slots: Slots, afterMs: number, count: number): number[] {
  const out: number[] = [];
  let at: number | null = afterMs;
  while (out.length < count) {
    at = slots.next(at);
    if (at === null) break;
    out.push(at);
  }
  return out;
}
