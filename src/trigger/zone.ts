/** Wall clocks of IANA time zones, and the way back from them across gaps and overlaps. */

import { parseIso } from "../core/time.ts";

/** Zones lie within 14 hours of UTC; an hour more, and both sides of a change are outside. */
const AROUND_MS = 15 * 3_600_000;

/** A time zone's rules. Local times are milliseconds as if the wall clock showed UTC. */
export interface Zone {
  name: string;
  /** What the wall clock shows at an instant. */
  toLocalMs(instantMs: number): number;
  /**
   * The instant at which the wall clock shows a local time: the first of two in an overlap, the end
   * of the gap in a gap. Never decreases as `localMs` grows.
   */
  toInstantMs(localMs: number): number;
}

/** The zone of an IANA name (`Europe/Berlin`, `UTC`), undefined if there is none. */
export function openZone(name: string): Zone | undefined {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  } catch {
    return undefined;
  }
  const toLocalMs = (instantMs: number): number => {
    const fields: Record<string, string> = {};
    const second = Math.floor(instantMs / 1000) * 1000;
    for (const part of format.formatToParts(second)) fields[part.type] = part.value;
    const { year, month, day, hour, minute } = fields;
    const local = parseIso(
      `${year!.padStart(4, "0")}-${month}-${day}T${hour}:${minute}:${fields.second}Z`,
    );
    return local! + (instantMs - second);
  };
  const offsetMs = (instantMs: number): number => toLocalMs(instantMs) - instantMs;
  return {
    name,
    toLocalMs,
    toInstantMs(localMs) {
      const before = offsetMs(localMs - AROUND_MS);
      const after = offsetMs(localMs + AROUND_MS);
      const first = localMs - before;
      if (before === after || offsetMs(first) === before) return first;
      const second = localMs - after;
      if (offsetMs(second) === after) return second;
      return findChange(offsetMs, localMs - AROUND_MS, localMs + AROUND_MS);
    },
  };
}

/** The first instant in (low, high] with another offset than `low` has. */
function findChange(offsetMs: (at: number) => number, low: number, high: number): number {
  const before = offsetMs(low);
  let below = low;
  let above = high;
  while (above - below > 1) {
    const middle = Math.floor((below + above) / 2);
    if (offsetMs(middle) === before) below = middle;
    else above = middle;
  }
  return above;
}
