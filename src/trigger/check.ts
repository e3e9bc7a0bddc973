/**
 * What can be wrong with triggers before anything starts: pure, every problem at once. Texts name
 * the value and what would be right; the caller adds where it was written.
 */

import { ROUTES_MAX, SESSIONS_MAX } from "../core/limits.ts";
import type { Mode, Route, TriggerSettings } from "../config/settings.ts";
import type { Cron } from "croner";
import { cronSlots } from "./slots.ts";

/** One problem. `key` is the file key, as in `trigger.cron`. */
export interface TriggerProblem {
  key: string;
  value: string;
  message: string;
}

/** What the checks look at beside the triggers themselves. */
export interface TriggerSurroundings {
  mode: Mode;
  /** Names of the configured tool servers. */
  servers: readonly string[];
  listen: string | null;
  lock: string | null;
  hasInstruction: boolean;
}

/** A lock's, a session's and a trigger's name: it becomes part of a path or a URI. */
export const TRIGGER_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** The warm session that always exists. */
export const MAIN_SESSION = "main";

/** Every problem of the triggers. `parser` is needed (by {@link loadCron}) where `cron` is set. */
export function checkTriggers(
  trigger: TriggerSettings,
  around: TriggerSurroundings,
  parser: typeof Cron | null,
): TriggerProblem[] {
  const problems: TriggerProblem[] = [];
  const report = (key: string, value: unknown, message: string) =>
    problems.push({ key, value: String(value), message });
  checkTimes(trigger, around, parser, report);
  checkSources(trigger, around, report);
  checkRoutes(trigger, around, report);
  if (around.lock !== null && !TRIGGER_NAME.test(around.lock)) {
    report("lock", around.lock, "a name of letters, digits, - and _ is needed, at most 64");
  }
  if (around.listen !== null && parseListen(around.listen) === undefined) {
    report("listen", around.listen, "ADDRESS:PORT is needed, as in 127.0.0.1:9464");
  }
  return problems;
}

type Report = (key: string, value: unknown, message: string) => void;

function checkTimes(
  trigger: TriggerSettings,
  around: TriggerSurroundings,
  parser: typeof Cron | null,
  report: Report,
): void {
  const { mode } = around;
  const { intervalMs, cron } = trigger;
  if (cron !== null) {
    if (mode !== "schedule") report("trigger.cron", cron, "only mode schedule uses it");
    if (parser !== null) {
      const compiled = cronSlots(parser, cron, trigger.timezone);
      for (const problem of compiled.ok ? [] : compiled.failure) {
        const value = problem.field === "cron" ? cron : trigger.timezone;
        report(`trigger.${problem.field}`, value, problem.message);
      }
    }
  }
  if (intervalMs !== null && mode !== "loop" && mode !== "schedule") {
    report("trigger.interval", `${intervalMs}ms`, "only the modes loop and schedule use it");
  }
  if (mode !== "schedule") return;
  if (cron === null && intervalMs === null) {
    report("mode", mode, "needs trigger.interval or trigger.cron");
  }
  if (cron !== null && intervalMs !== null) {
    report("trigger.interval", `${intervalMs}ms`, "stands beside trigger.cron: one of them");
  }
  if (intervalMs === 0) report("trigger.interval", "0", "a schedule's interval is at least 1ms");
}

function checkSources(
  trigger: TriggerSettings,
  around: TriggerSurroundings,
  report: Report,
): void {
  const { mode } = around;
  const served = around.listen !== null && trigger.tokenSecret !== null;
  if (mode === "reactive" && trigger.subscribe.length === 0 && !served) {
    report("mode", mode, "needs trigger.subscribe, or listen with a trigger token");
  }
  for (const source of trigger.subscribe) {
    const colon = source.indexOf(":");
    const server = source.slice(0, colon);
    const rest = source.slice(colon + 1);
    if (colon <= 0 || rest === "") {
      report("trigger.subscribe", source, "SERVER:URI or file:GLOB is needed");
    } else if (server !== "file" && !around.servers.includes(server)) {
      const known = around.servers.length === 0 ? "none is configured" : around.servers.join(", ");
      report("trigger.subscribe", source, `no tool server is named ${server} (${known})`);
    }
  }
}

function checkRoutes(
  trigger: TriggerSettings,
  around: TriggerSurroundings,
  report: Report,
): void {
  const { routes } = trigger;
  if (routes.length > ROUTES_MAX) {
    report("trigger.routes", routes.length, `at most ${ROUTES_MAX} routes are taken`);
  }
  const sessions = trigger.sessions ?? [];
  if (sessions.length >= SESSIONS_MAX) {
    report(
      "trigger.sessions",
      sessions.length,
      `at most ${SESSIONS_MAX - 1} beside main are taken`,
    );
  }
  const seen = new Set<string>();
  for (const route of routes) {
    const key = `trigger.routes[${route.match}]`;
    if (route.match === "") report("trigger.routes", "", "a route matches a URI or a glob");
    if (seen.has(route.match)) {
      report("trigger.routes", route.match, "two routes match it: the second would never be used");
    }
    seen.add(route.match);
    if (route.cap < 1) report(`${key}.cap`, route.cap, "a queue holds at least 1");
    checkTarget(route, key, sessions, report);
    if (around.mode === "reactive" && route.instruction === null && !around.hasInstruction) {
      report(key, route.match, "neither the route nor the task has an instruction");
    }
  }
  if (around.mode === "reactive" && routes.length === 0 && !around.hasInstruction) {
    report("instruction", "", "without routes that have one, an instruction is needed");
  }
}

function checkTarget(
  route: Route,
  key: string,
  declared: readonly string[],
  report: Report,
): void {
  const { target } = route;
  if (target.kind === "spawn") {
    if (target.maxInflight < 1) {
      report(`${key}.spawn.max_inflight`, target.maxInflight, "at least 1 run may be in flight");
    }
  } else if (!TRIGGER_NAME.test(target.session)) {
    report(
      `${key}.continue`,
      target.session,
      "a session's name has letters, digits, - and _, at most 64",
    );
  } else if (target.session !== MAIN_SESSION && !declared.includes(target.session)) {
    const known = [MAIN_SESSION, ...declared].join(", ");
    report(
      `${key}.continue`,
      target.session,
      `no session of this name is declared (${known}); trigger.sessions declares more`,
    );
  }
}

/** Host and port of a listen address: `127.0.0.1:9464`, `[::1]:9464`, `:9464`, `9464`. */
export function parseListen(address: string): { hostname: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]:|([^:[\]\s/]*):)?(\d{1,5})$/.exec(address);
  if (!match || Number(match[3]) > 65_535) return undefined;
  return { hostname: match[1] ?? (match[2] || "127.0.0.1"), port: Number(match[3]) };
}
