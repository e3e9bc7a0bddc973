/** What operators say of tools: the grant of the root agent and the rules by glob. */

import { TOOL_RULES_MAX } from "../core/config_limits.ts";
import { isObject, type Json } from "../core/json.ts";
import type { Leg, ToolRule, ToolSettings } from "../wire/payload.ts";
import { durationOf, type Reading } from "./reading.ts";
import { parseRate } from "./shape.ts";
import { didYouMean } from "./suggest.ts";

const TOOL_TIMEOUT_MS = 60_000;

/** Reads the tools' settings; `servers`: names that a grant may mention. */
export function readTools(reading: Reading, servers: readonly string[]): ToolSettings {
  const written = reading.get("tool_rules");
  const entries = Object.entries(isObject(written) ? written : {});
  if (entries.length > TOOL_RULES_MAX) {
    reading.report(
      reading.where("tool_rules"),
      entries.length,
      `${entries.length} rules`,
      `at most ${TOOL_RULES_MAX}`,
    );
  }
  const rules = entries.map(([glob, rule]) => {
    checkGlob(reading, glob, reading.where("tool_rules", glob));
    return readRule(glob, isObject(rule) ? rule : {});
  });
  const grant = reading.texts("tools");
  grant.forEach((glob, index) => {
    const where = reading.where("tools", String(index));
    checkGlob(reading, glob.replace(/^!/, ""), where);
    const server = glob.replace(/^!/, "").split("/")[0]!;
    if (/[*?]/.test(server) || servers.includes(server)) return;
    reading.input.notice(
      `${where}: ${JSON.stringify(glob)} names no server; ${
        didYouMean(server, servers) || `there are: ${servers.join(", ") || "none"}`
      }`,
    );
  });
  // Removals alone take away from everything; they do not grant nothing.
  const positive = grant.some((glob) => !glob.startsWith("!"));
  return {
    grant: positive ? grant : ["*", ...grant],
    rules,
    timeoutMs: reading.ms("tool_timeout") ?? TOOL_TIMEOUT_MS,
    pin: reading.on("pin_tools"),
  };
}

function checkGlob(reading: Reading, glob: string, where: string): void {
  if (/^[^\s/]+(\/[^\s]+)?$/.test(glob) && !glob.startsWith("!")) return;
  reading.report(
    where,
    glob,
    `${JSON.stringify(glob)} is no glob over tools`,
    'write SERVER/TOOL, as in "docs/*"',
  );
}

function readRule(glob: string, rule: { [key: string]: Json }): ToolRule {
  const flag = (name: string): boolean | null =>
    typeof rule[name] === "boolean" ? rule[name] as boolean : null;
  return {
    glob,
    legs: Array.isArray(rule.legs) ? rule.legs as Leg[] : null,
    grant: flag("grant"),
    idempotent: flag("idempotent"),
    readOnly: flag("read_only"),
    poll: flag("poll"),
    timeoutMs: durationOf(rule.timeout),
    rate: typeof rule.rate === "string" ? parseRate(rule.rate) ?? null : null,
  };
}
