/**
 * The Rule of Two (contract 10): one agent may take in untrusted input, see what is sensitive, and
 * let data leave or change state, but not all three. Judged from the operator's configuration
 * alone, before anything starts: what a server says of itself takes no leg away.
 */

import { grantsTool, matchesTool } from "../core/glob.ts";
import type { SecretText } from "../core/secret.ts";
import type {
  BuiltinServer,
  Leg,
  Permission,
  ServerSettings,
  ToolRule,
  ToolSettings,
} from "../wire/payload.ts";

/** The three legs, in the order in which they are shown. */
export const LEGS: readonly Leg[] = ["untrusted_input", "sensitive", "egress"];

/** What is assumed of a tool of which nothing was declared. */
export const ASSUMED_LEGS: readonly Leg[] = ["untrusted_input", "egress"];

/** One tool, or all of a server's that no rule names, with what it brings and why. */
export interface LegSource {
  /** `server/tool`, or a glob where the tools are not known by name. */
  tool: string;
  legs: Leg[];
  /** `declared`, or what was assumed and from what. */
  why: string;
}

/** What a grant unites. */
export interface Verdict {
  sources: LegSource[];
  /** Per leg, the tools that bring it. */
  by: Record<Leg, string[]>;
  trifecta: boolean;
}

/** Stands for any text in a tool's name; no real name holds it. */
const ANY = "\u2026";

/** Names of variables and headers that hold keys, tokens and the like. */
export const KEY_LIKE = /key|token|secret|passw|credential|auth|cookie|session/i;

/** Judges what one agent's grant unites. */
export function judgeGrant(servers: readonly ServerSettings[], tools: ToolSettings): Verdict {
  const sources = servers.flatMap((server) => legsOfServer(server, tools));
  const by: Record<Leg, string[]> = { untrusted_input: [], sensitive: [], egress: [] };
  for (const source of sources) for (const leg of source.legs) by[leg].push(source.tool);
  return { sources, by, trifecta: LEGS.every((leg) => by[leg].length > 0) };
}

/** The refusal: who brings what, and the three ways out. */
export function explainTrifecta(verdict: Verdict): string {
  const who = LEGS.map((leg) => `${leg} by ${listed(verdict.by[leg])}`).join("; ");
  return `Cannot grant all three of untrusted input, sensitive data and egress to one agent: ${who}. ` +
    "Ways out: narrow the tools (--tools, or legs declared for them in the file); split the work " +
    "between a reader and an actor, as subagents with fewer tools each; or allow it with " +
    "--allow-trifecta.";
}

const LISTED_MAX = 8;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_MAX).join(", ");
  return names.length > LISTED_MAX ? `${shown} and ${names.length - LISTED_MAX} more` : shown;
}

/** The servers of which at least one tool is granted. */
export function grantedServers(
  servers: readonly ServerSettings[],
  tools: ToolSettings,
): ServerSettings[] {
  return servers.filter((server) =>
    candidates(server.name, tools).some((name) => isGranted(tools, name))
  );
}

function isGranted(tools: ToolSettings, name: string): boolean {
  return grantsTool(tools.grant, name) && first(rulesFor(tools.rules, name), "grant") !== false;
}

/** What each tool of a server brings, as far as they can be told apart before it was started. */
function legsOfServer(server: ServerSettings, tools: ToolSettings): LegSource[] {
  const sources: LegSource[] = [];
  for (const name of candidates(server.name, tools)) {
    if (!isGranted(tools, name)) continue;
    const declared = first(rulesFor(tools.rules, name), "legs");
    const shown = name.replaceAll(ANY, "*");
    if (declared) sources.push({ tool: shown, legs: declared, why: "declared" });
    else if (server.kind === "builtin") sources.push(...legsOfBuiltin(server, shown));
    else sources.push(assumed(server, shown));
  }
  return sources;
}

/** Names that stand for every tool a server may have: those that globs name, and any other. */
function candidates(server: string, tools: ToolSettings): string[] {
  const names = new Set<string>([`${server}/${ANY}`]);
  const globs = [
    ...tools.grant.map((glob) => glob.replace(/^!/, "")),
    ...tools.rules.map((rule) => rule.glob),
  ];
  for (const glob of globs) {
    const slash = glob.indexOf("/");
    if (slash === -1 || !matchesTool(glob.slice(0, slash), `${server}/x`)) continue;
    names.add(`${server}/${representative(glob.slice(slash + 1))}`);
  }
  return [...names];
}

/** A name that a glob matches, and that only globs as wide as it match too. */
function representative(glob: string): string {
  return glob.replace(/\*+|\?/g, ANY);
}

/** The rules that match a name, the longest glob first. */
function rulesFor(rules: readonly ToolRule[], name: string): ToolRule[] {
  return rules.filter((rule) => matchesTool(rule.glob, name)).sort((a, b) =>
    b.glob.length - a.glob.length
  );
}

/** Key by key, the longest match that says something. */
function first<Key extends keyof ToolRule>(
  rules: readonly ToolRule[],
  key: Key,
): ToolRule[Key] | null {
  for (const rule of rules) if (rule[key] !== null) return rule[key];
  return null;
}

function assumed(server: Exclude<ServerSettings, BuiltinServer>, tool: string): LegSource {
  const credential = credentialOf(server);
  return credential
    ? { tool, legs: [...LEGS], why: `undeclared; it is handed ${credential}` }
    : { tool, legs: [...ASSUMED_LEGS], why: "undeclared" };
}

/** The first thing handed to a server that looks like a credential. */
function credentialOf(server: Exclude<ServerSettings, BuiltinServer>): string | null {
  const handed = server.kind === "stdio" ? server.env : server.headers;
  const noun = server.kind === "stdio" ? "the variable" : "the header";
  for (const [name, text] of Object.entries(handed)) {
    if (KEY_LIKE.test(name) || holdsSecret(text)) return `${noun} ${name}`;
  }
  return null;
}

function holdsSecret(text: SecretText): boolean {
  return text.some((part) => typeof part !== "string");
}

const FS_WRITERS = new Set(["write", "edit"]);

/** Read grants are sensitive, write, net and run grants are egress, net is untrusted input too. */
function legsOfBuiltin(server: BuiltinServer, tool: string): LegSource[] {
  const { read, write, net, run, env } = server.permissions;
  const name = tool.slice(tool.indexOf("/") + 1);
  const legs = new Set<Leg>();
  const why: string[] = [];
  const add = (granted: boolean, grant: string, ...brought: Leg[]) => {
    if (!granted) return;
    for (const leg of brought) legs.add(leg);
    why.push(grant);
  };
  if (server.name === "fs") {
    const known = FS_WRITERS.has(name);
    add(given(read) && !known, "read", "sensitive");
    add(given(write) && (known || name.includes("*")), "write", "egress");
  } else {
    add(given(read), "read", "sensitive");
    add(given(write), "write", "egress");
    add(given(net), "net", "untrusted_input", "egress");
    add(given(run), "run", "egress");
    add(holdsKey(env), "env", "sensitive");
  }
  if (legs.size === 0) return [];
  return [{ tool, legs: LEGS.filter((leg) => legs.has(leg)), why: `grants: ${why.join(", ")}` }];
}

function given(permission: Permission): boolean {
  return permission === true || (permission !== false && permission.length > 0);
}

function holdsKey(env: Permission): boolean {
  return env === true || (env !== false && env.some((name) => KEY_LIKE.test(name)));
}

/**
 * Narrows a grant for a child: each glob that it wants must lie within one of the parent's, and what
 * the parent's grant removes stays removed. The failure is the first glob that is wider.
 */
export function narrowGrant(
  parent: readonly string[],
  wanted: readonly string[],
): { ok: true; value: string[] } | { ok: false; failure: string } {
  const removals = parent.filter((glob) => glob.startsWith("!"));
  const grants = parent.filter((glob) => !glob.startsWith("!"));
  for (const glob of wanted) {
    if (glob.startsWith("!")) continue;
    if (!grants.some((outer) => covers(outer, glob))) return { ok: false, failure: glob };
  }
  return { ok: true, value: [...new Set([...wanted, ...removals])] };
}

/** Whether every name that `inner` matches is matched by `outer`. */
function covers(outer: string, inner: string): boolean {
  if (outer === "*" || outer === "**" || outer === inner) return true;
  if (inner === "*" || inner === "**") return false;
  const whole = inner.includes("/") ? inner : `${inner}/*`;
  // Across a `/` a wildcard of the outer glob does not reach; `**` in the inner one would.
  if (whole.includes("**")) return false;
  return matchesTool(outer, representative(whole));
}
