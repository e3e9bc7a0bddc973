/** Modes and triggers from the configuration, and what can be wrong with them before any start. */

import { ROUTE_CAP, ROUTE_DEBOUNCE_MS, ROUTE_INFLIGHT_MAX } from "../core/config_limits.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { checkTriggers } from "../trigger/check.ts";
import { loadCron } from "../trigger/slots.ts";
import { durationOf, type Reading } from "./reading.ts";
import type { Mode, Route, TriggerSettings } from "./settings.ts";
import { didYouMean } from "./suggest.ts";

/** Options by the file key that the checks of triggers name. */
const OPTION_BY_KEY: Readonly<Record<string, string>> = {
  "trigger.cron": "cron",
  "trigger.interval": "interval",
  "trigger.timezone": "timezone",
  "trigger.subscribe": "subscribe",
  "trigger.routes": "route",
  "mode": "mode",
  "lock": "lock",
  "listen": "listen",
  "instruction": "instruction",
};

/** Options of daemons that a single run has no use for, and that are no mistake elsewhere. */
const DAEMON_OPTIONS: readonly string[] = [
  "subscribe",
  "route",
  "timezone",
  "overlap",
  "jitter",
  "catch_up",
  "max_iterations",
  "session",
  "lifetime",
  "lifetime_tokens",
  "trigger_token_file",
  "listen",
  "health_file",
];

/** Reads mode and triggers; `servers`: names that may be subscribed to. */
export async function readTrigger(
  reading: Reading,
  servers: readonly string[],
  hasInstruction: boolean,
): Promise<{ mode: Mode; trigger: TriggerSettings }> {
  const mode = (reading.text("mode") ?? "once") as Mode;
  const intervalMs = reading.ms("interval");
  const written = readRoutes(reading);
  const trigger: TriggerSettings = {
    intervalMs,
    cron: reading.text("cron"),
    timezone: reading.text("timezone")!,
    overlap: reading.text("overlap") as TriggerSettings["overlap"],
    jitterMs: reading.ms("jitter")!,
    catchUp: reading.on("catch_up"),
    subscribe: reading.texts("subscribe"),
    routes: written.map(({ route }) => route),
    sessions: reading.texts("sessions"),
    session: (reading.text("session") ??
      (mode === "loop" && intervalMs === null ? "warm" : "fresh")) as TriggerSettings["session"],
    maxIterations: reading.number("max_iterations")!,
    lifetimeMs: reading.ms("lifetime")!,
    lifetimeTokens: reading.number("lifetime_tokens")!,
    tokenSecret: readTriggerToken(reading),
  };
  const around = {
    mode,
    servers,
    listen: reading.text("listen"),
    lock: reading.text("lock"),
    hasInstruction,
  };
  if (mode === "once") tellUnused(reading);
  const parser = trigger.cron === null ? null : await loadCron();
  for (const each of checkTriggers(trigger, around, parser)) {
    const name = optionOf(each.key);
    // A file may hold the triggers of several modes, of which this run uses none.
    const dormant = mode === "once" && /^trigger\.(cron|interval)$/.test(each.key) &&
      ["file", "record"].includes(reading.layers.level(name ?? "mode")) &&
      /^only /.test(each.message);
    if (dormant) continue;
    const value = name === "interval" ? reading.text(name) ?? each.value : each.value;
    reading.report(
      whereOf(reading, each.key, each.value, written),
      value,
      `Cannot use ${JSON.stringify(value)}: ${each.message}`,
      hintFor(each.key, each.value, servers, reading.texts("sessions")),
    );
  }
  return { mode, trigger };
}

/** Says of flags that are meant for daemons that a single run makes no use of them. */
function tellUnused(reading: Reading): void {
  for (const name of DAEMON_OPTIONS) {
    if (reading.layers.level(name) !== "flag") continue;
    reading.input.notice(`${reading.where(name)} has no use in mode once; did you mean --mode?`);
  }
}

function optionOf(key: string): string | undefined {
  return OPTION_BY_KEY[key.replace(/\[.*$/s, "")];
}

/** Where a key stands that may name a route by its match, as in `trigger.routes[MATCH].cap`. */
function whereOf(
  reading: Reading,
  key: string,
  value: string,
  routes: readonly WrittenRoute[],
): string {
  const name = optionOf(key);
  if (name === undefined) return key;
  if (name === "subscribe") {
    const index = reading.texts("subscribe").indexOf(value);
    return index === -1 ? reading.where(name) : reading.where(name, String(index));
  }
  if (name !== "route") return reading.where(name);
  const match = /^trigger\.routes\[(.*)\](?:\.([a-z_.]+))?$/s.exec(key);
  const wanted = match ? match[1]! : value;
  // Of two that match the same, the later is the mistake.
  const found = routes.findLast(({ route }) => route.match === wanted);
  if (!found) return reading.where(name);
  return reading.where(name, String(found.index), ...(match?.[2]?.split(".") ?? []));
}

function hintFor(
  key: string,
  value: string,
  servers: readonly string[],
  sessions: readonly string[],
): string {
  if (key === "trigger.subscribe") {
    const colon = value.indexOf(":");
    return colon > 0 ? didYouMean(value.slice(0, colon), [...servers, "file"]) : "";
  }
  return key.endsWith(".continue") ? didYouMean(value, ["main", ...sessions]) : "";
}

/** A route, and its place among those that were written. */
interface WrittenRoute {
  route: Route;
  index: number;
}

function readRoutes(reading: Reading): WrittenRoute[] {
  const list = reading.get("route");
  const routes: WrittenRoute[] = [];
  (Array.isArray(list) ? list : []).forEach((item, index) => {
    if (!isObject(item)) return;
    const where = reading.where("route", String(index));
    const hasSpawn = (item.spawn ?? null) !== null;
    const session = typeof item.continue === "string" ? item.continue : null;
    if (hasSpawn === (session !== null)) {
      reading.report(
        where,
        item.match,
        hasSpawn ? "a route has both spawn and continue" : "a route has neither spawn nor continue",
        "write spawn: {} or continue: NAME",
      );
      return;
    }
    routes.push({ route: readRoute(item, session), index });
  });
  return routes;
}

function readRoute(item: JsonObject, session: string | null): Route {
  const inflight: Json | undefined = isObject(item.spawn) ? item.spawn.max_inflight : undefined;
  return {
    match: String(item.match),
    target: session === null
      ? { kind: "spawn", maxInflight: typeof inflight === "number" ? inflight : ROUTE_INFLIGHT_MAX }
      : { kind: "continue", session },
    debounceMs: durationOf(item.debounce) ?? ROUTE_DEBOUNCE_MS,
    cap: typeof item.cap === "number" ? item.cap : ROUTE_CAP,
    overflow: (item.overflow ?? "coalesce") as Route["overflow"],
    instruction: typeof item.instruction === "string" ? item.instruction : null,
  };
}

function readTriggerToken(reading: Reading): string | null {
  const path = reading.text("trigger_token_file");
  if (path === null) return null;
  const text = reading.secretText(`\${file:${path}}`, reading.where("trigger_token_file"));
  const part = text?.[0];
  return typeof part === "object" ? part.secret : null;
}
