/** What each process of a run may do, for people: the third rendering of the grants. */

import type { Settings } from "../config/settings.ts";
import { formatSize } from "../core/units.ts";
import type { Permission, PermissionSet, ServerSettings } from "../wire/payload.ts";
import { CLEAN_ENVIRONMENT } from "../wire/environment.ts";
import { PERMISSION_KINDS } from "../wire/permissions.ts";
import { usedPermissions, workerPermissions } from "../toolserver/permissions.ts";
import { processGrant, workerGrant } from "./grant.ts";
import { judgeGrant, LEGS, type Verdict } from "./rule_of_two.ts";

/** One process or Worker. */
export interface PermissionRow {
  process: string;
  /** Null: Deno's permissions do not reach it. */
  permissions: PermissionSet | null;
  enforcedBy: string;
}

/** Every process of a run, and the Rule of Two's word on the root agent. */
export interface PermissionReport {
  rows: PermissionRow[];
  verdict: Verdict;
  /** The operator permits all three legs. */
  allowed: boolean;
  notes: string[];
}

/** The report for a configuration. `standalone`: for the compiled program, else for the source. */
export function reportPermissions(settings: Settings, standalone: boolean): PermissionReport {
  const directory = `${settings.runDirectory}/<run>`;
  const worker = workerGrant({ ...settings, directory });
  const rows: PermissionRow[] = [
    {
      process: "supervisor",
      permissions: null,
      enforcedBy: standalone
        ? "the kinds baked into the program (all but ffi); it runs no model and no tool code"
        : "the flags that deno was started with; it runs no model and no tool code",
    },
    {
      process: "agent, main thread",
      permissions: standalone ? { ...processGrant(worker), ...ONLY_RUN } : processGrant(worker),
      enforcedBy: standalone
        ? "Deno.permissions.revoke, once the loop Worker is up"
        : "--allow-… flags of its process",
    },
    { process: "agent, loop Worker", permissions: worker, enforcedBy: "Worker permissions" },
    ...settings.servers.flatMap((server) => rowOfServer(server, standalone)),
  ];
  if (settings.task.checks.length > 0 || hasHooks(settings)) {
    rows.push({ process: "checks and hooks", permissions: null, enforcedBy: OUTSIDE });
  }
  return {
    rows,
    verdict: judgeGrant(settings.servers, settings.tools),
    allowed: settings.allowTrifecta,
    notes: [
      `<run> is the run's id. A subagent has ${directory}/agents/<path> instead.`,
      `Each agent with its tool servers may hold ${formatSize(settings.limits.memoryBytesMax)}.`,
    ],
  };
}

/** What revoking leaves of the main thread's grant. */
const ONLY_RUN = { read: false, write: false, net: false, env: false } as const;
const OUTSIDE = "nothing of Deno: a program with the user's rights, in the agent's process group";

function hasHooks(settings: Settings): boolean {
  return Object.values(settings.hooks).some((commands) => commands.length > 0);
}

function rowOfServer(server: ServerSettings, standalone: boolean): PermissionRow[] {
  switch (server.kind) {
    case "http":
      return [{
        process: `tool server ${server.name} (${new URL(server.url).host})`,
        permissions: null,
        enforcedBy: "not ours: a remote service, reached by the loop Worker",
      }];
    case "stdio":
      return [{
        process: `tool server ${server.name}`,
        permissions: null,
        enforcedBy: server.sandbox === "bwrap"
          ? "bwrap: read-only system, private /tmp, own process tree, network as it is"
          : OUTSIDE,
      }];
    case "builtin": {
      const used = usedPermissions(server.name, server.permissions);
      return [{
        process: `tool server ${server.name}, Worker`,
        permissions: workerPermissions(server.name, used, server.sandbox),
        enforcedBy: standalone
          ? "Worker permissions; its main thread revokes"
          : "Worker permissions, and --allow-… flags of its process",
      }];
    }
  }
}

/** The report as text: each process with what it may do, then the verdict with who brings which leg. */
export function renderPermissions(report: PermissionReport): string {
  return [
    ...report.rows.flatMap(renderRow),
    "Nothing is granted ffi or import. What is not listed is not granted.",
    ...report.notes,
    "",
    ...renderVerdict(report),
    "",
  ].join("\n");
}

function renderRow({ process, permissions, enforcedBy }: PermissionRow): string[] {
  const lines = [`${process}`, `  held by  ${enforcedBy}`];
  if (!permissions) return [...lines, ""];
  let granted = 0;
  for (const kind of PERMISSION_KINDS) {
    const value = permissions[kind];
    if (value === false || (value !== true && value.length === 0)) continue;
    lines.push(`  ${kind.padEnd(7)}  ${describe(value)}`);
    granted++;
  }
  if (granted === 0) lines.push("  nothing");
  return [...lines, ""];
}

function describe(value: Exclude<Permission, false>): string {
  if (value === true) return "everything";
  const clean = CLEAN_ENVIRONMENT.every((name) => value.includes(name));
  const items = clean ? value.filter((name) => !CLEAN_ENVIRONMENT.includes(name)) : value;
  return [...(clean ? ["the clean environment"] : []), ...items].join(", ");
}

function renderVerdict({ verdict, allowed }: PermissionReport): string[] {
  const lines = ["Rule of Two"];
  for (const source of verdict.sources) {
    lines.push(`  ${source.tool}: ${source.legs.join(", ") || "no leg"} (${source.why})`);
  }
  const legs = LEGS.filter((leg) => verdict.by[leg].length > 0);
  if (!verdict.trifecta) {
    lines.push(`  verdict: ${legs.length} of 3 legs: granted`);
  } else if (allowed) lines.push("  verdict: all 3 legs: granted, since --allow-trifecta is set");
  else lines.push("  verdict: all 3 legs: refused; narrow, split, or --allow-trifecta");
  return lines;
}
