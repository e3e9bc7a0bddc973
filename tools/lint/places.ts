/** Who may import whom, and where effects live: the house's map, as data for the lint rules. */

/** Where a file stands. `null`: outside what the rules speak of (tests, tools). */
export type Area = "main" | "entry" | string | null;

/**
 * The area of a file: a folder of `src`; `main` for the composition root; `entry` for what runs first
 * in a Worker, which is a composition root too; null for tests, tools and everything else.
 */
export function areaOf(path: string): Area {
  const file = path.replaceAll("\\", "/");
  if (/_test\.tsx?$/.test(file)) return null;
  const inSource = /(?:^|\/)src\/([^/]+)\/(.+)$/.exec(file);
  if (inSource) {
    return inSource[2] === "worker.ts" && inSource[1] !== "wire"
      ? entryOr(inSource[1]!)
      : inSource[1]!;
  }
  if (/(?:^|\/)(?:tests|tools|examples)\//.test(file)) return null;
  return /(?:^|\/)(?:main|mod)\.ts$/.test(file) ? "main" : null;
}

/** Only these folders have Worker entries; `worker.ts` elsewhere is a file like any other. */
function entryOr(folder: string): Area {
  return folder === "agent" || folder === "toolserver" ? "entry" : folder;
}

const SHARED = ["core", "ports", "wire"];

/** Folders of the middle: they meet in ports, and import of each other what a port cannot say. */
const MIDDLE: readonly string[] = [
  "agent",
  "model",
  "mcp",
  "selftools",
  "supervisor",
  "broker",
  "trigger",
  "record",
  "toolserver",
  "config",
];

/** What each area may import of `src`. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: ["core"],
  ports: ["core", "wire", "ports"],
  wire: ["core", "wire", "ports"],
  sys: [...SHARED, "sys"],
  ...Object.fromEntries(MIDDLE.map((folder) => [folder, [...SHARED, ...MIDDLE]])),
  cli: [...SHARED, ...MIDDLE, "cli"],
  entry: [...SHARED, ...MIDDLE, "sys"],
  main: [...SHARED, ...MIDDLE, "cli", "sys"],
};

/** What must never meet, whatever the table above allows: importer, imported, why. */
export const NEVER: readonly { from: RegExp; to: RegExp; why: string }[] = [
  {
    from: /(?:^|\/)src\/supervisor\//,
    to: /(?:^|\/)src\/(?:ports\/model\.ts$|model\/)/,
    why: "the supervisor has no model",
  },
  {
    from: /(?:^|\/)src\/agent\//,
    to: /(?:^|\/)src\/ports\/process\.ts$/,
    why: "the agent starts no process; its broker does",
  },
];

/** Packages, and the only areas that may import them. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "@modelcontextprotocol/client": ["mcp"],
  "@modelcontextprotocol/server": ["toolserver"],
  "zod": ["mcp", "toolserver"],
  "@cfworker/json-schema": ["agent", "mcp", "selftools", "config", "supervisor", "toolserver"],
  "yaml": ["config"],
  "eventsource-parser": ["model"],
  "commander": ["cli"],
  "croner": ["trigger", "config", "cli"],
};

/** Globals that do something, or that answer differently from one moment to the next. */
export const EFFECTS: ReadonlySet<string> = new Set([
  "Deno",
  "fetch",
  "Date",
  "setTimeout",
  "setInterval",
  "clearTimeout",
  "clearInterval",
  "performance",
  "crypto",
  "console",
  "Worker",
  "WebSocket",
  "EventSource",
  "BroadcastChannel",
  "navigator",
  "localStorage",
  "sessionStorage",
  "caches",
  "process",
  "Buffer",
  "alert",
  "confirm",
  "prompt",
]);

/** Areas that may name them. */
export const EFFECT_AREAS: ReadonlySet<string> = new Set(["sys", "main"]);

/** Files that decide, in step with the record, and therefore never wait. */
export const SYNCHRONOUS =
  /(?:^|\/)src\/(?:core\/.*|[^/]+\/(?:step|table|stops|progress|verify))\.ts$/;

/** Names that say nothing of what a file holds. */
export const EMPTY_NAMES = /^(?:.*_)?(?:utils?|helpers?|common|types|managers?|misc|shared)$/;
