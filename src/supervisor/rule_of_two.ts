/**
 * The Rule of Two: one agent may take in untrusted input, see what is sensitive, and
 * let data leave or change state, but not all three. Judged from the operator's configuration
 * alone, before anything starts: what a server says of itself takes no leg away.
 */

import { coversTools, grantsTools, overlapTools } from "../core/glob.ts";
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
const ASSUMED_LEGS: readonly Leg[] = ["untrusted_input", "egress"];

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
    patternsOf(server.name, tools).some((pattern) => isGranted(tools, pattern))
  );
}

function isGranted(tools: ToolSettings, pattern: string): boolean {
  return grantsTools(tools.grant, pattern) &&
    first(rulesFor(tools.rules, pattern), "grant") !== false;
}

/** What each tool of a server brings, as far as they can be told apart before it was started. */
function legsOfServer(server: ServerSettings, tools: ToolSettings): LegSource[] {
  const sources: LegSource[] = [];
  for (const pattern of patternsOf(server.name, tools)) {
    if (!isGranted(tools, pattern)) continue;
    const declared = first(rulesFor(tools.rules, pattern), "legs");
    if (declared) sources.push({ tool: pattern, legs: declared, why: "declared" });
    else if (server.kind === "builtin") sources.push(...legsOfBuiltin(server, pattern));
    else sources.push(assumed(server, pattern));
  }
  return [...sources, ...legsBetween(server, tools)];
}

/**
 * What a rule brings of which only a part is granted, by a grant or by another rule, where no glob names
 * that part: it counts whole.
 */
function legsBetween(server: ServerSettings, tools: ToolSettings): LegSource[] {
  const every = `${server.name}/*`;
  const removals = tools.grant.filter((glob) => glob.startsWith("!"));
  const grants = tools.grant.filter((glob) => !glob.startsWith("!") && overlapTools(glob, every));
  const rules = tools.rules.filter((rule) => overlapTools(rule.glob, every));
  const isPartial = ({ glob }: ToolRule) =>
    grants.some((grant) => overlapTools(grant, glob) && !isNamed(grant, glob));
  const isRefused = ({ glob }: ToolRule) => first(rulesFor(rules, glob), "grant") === false;
  // A longer one with legs of its own does not bring those of the rule that it makes an exception of.
  const hasException = ({ glob }: ToolRule) =>
    rules.some((rule) =>
      rule.grant === true && overlapTools(rule.glob, glob) &&
      (rule.legs === null || rule.glob.length <= glob.length) &&
      grants.some((grant) => [rule.glob, glob].every((each) => overlapTools(grant, each)))
    );
  return rules.filter((rule) =>
    !removals.some((removal) => coversTools(removal.slice(1), rule.glob)) &&
    (isRefused(rule) ? hasException(rule) : isPartial(rule))
  ).flatMap(({ glob }) => {
    const legs = first(rulesFor(rules, glob), "legs");
    if (legs !== null) return [{ tool: glob, legs, why: "declared" }];
    return server.kind === "builtin" ? legsOfBuiltin(server, glob) : [assumed(server, glob)];
  });
}

/** Whether one of two globs, or one between them, is the whole of what they have in common. */
function isNamed(grant: string, rule: string): boolean {
  if (coversTools(grant, rule) || coversTools(rule, grant)) return true;
  const [one, two] = [toolOf(grant), toolOf(rule)];
  const common = meet(one, two);
  if (common === null || !isCommon(one, two, common)) return false;
  // Of `send_*` and `*_all`, `send_*_all` is not all: there is `send_all`, too.
  const ends = /^([^*?]+)\*([^*?]+)$/.exec(common);
  if (ends === null) return false;
  const [, start, end] = ends as unknown as [string, string, string];
  for (let shared = 1; shared <= end.length; shared++) {
    const name = start + end.slice(shared);
    if (start.endsWith(end.slice(0, shared)) && isCommon(one, two, name)) return false;
  }
  return true;
}

/** The tools' part of a glob. */
function toolOf(glob: string): string {
  const slash = glob.indexOf("/");
  return slash === -1 ? "*" : glob.slice(slash + 1);
}

function isCommon(one: string, two: string, common: string): boolean {
  return [one, two].every((part) => coversTools(`x/${part}`, `x/${common}`));
}

/**
 * Servers whose resources are kept from an agent although it has tools of theirs: what is declared for
 * all of a server's tools holds for its resources, too, and with a leg that none of the tools granted
 * has, they would bring in by the side door what no verdict has seen.
 */
export function withheldResources(
  servers: readonly ServerSettings[],
  tools: ToolSettings,
): Set<string> {
  const withheld = new Set<string>();
  for (const server of grantedServers(servers, tools)) {
    if (server.kind === "builtin") continue;
    const legs = first(rulesFor(tools.rules, `${server.name}/*`), "legs") ?? [];
    const sources = legsOfServer(server, tools);
    const isNew = (leg: Leg) => !sources.some((source) => source.legs.includes(leg));
    if (legs.some(isNew)) withheld.add(server.name);
  }
  return withheld;
}

/**
 * Globs that stand for every tool a server may have: any tool, those that a grant or a rule names,
 * and what a grant and a rule have in common. Each is judged for the tools that no narrower one is of.
 */
function patternsOf(server: string, tools: ToolSettings): string[] {
  const grants = partsFor(server, tools.grant.filter((glob) => !glob.startsWith("!")));
  const rules = partsFor(server, tools.rules.map((rule) => rule.glob));
  const parts = new Set(["*", ...grants, ...rules]);
  for (const grant of grants) {
    for (const rule of rules) {
      const common = meet(grant, rule);
      if (common !== null && isCommon(grant, rule, common)) parts.add(common);
    }
  }
  return [...parts].map((part) => `${server}/${part}`);
}

/** The tools' parts of the globs that are about a server. */
function partsFor(server: string, globs: readonly string[]): string[] {
  const parts: string[] = [];
  for (const glob of globs) {
    const slash = glob.indexOf("/");
    if (slash === -1 || !coversTools(`${glob.slice(0, slash)}/*`, `${server}/*`)) continue;
    parts.push(glob.slice(slash + 1));
  }
  return parts;
}

/** A glob of names that two globs may have in common; null where it is one of the two. */
function meet(one: string, two: string): string | null {
  const [a, b] = [one.split(/[*?]+/), two.split(/[*?]+/)];
  if (a.length === 1 || b.length === 1) return null;
  const longer = (x: string, y: string) => x.length >= y.length ? x : y;
  const middles = [...a.slice(1, -1), ...b.slice(1, -1)].filter((part) => part !== "");
  return [longer(a[0]!, b[0]!), ...middles, longer(a.at(-1)!, b.at(-1)!)].join("*");
}

/**
 * The rules that match every tool of a pattern, the longest glob first; of equal lengths the later one, as
 * where tools are called (src/mcp/rules.ts).
 */
function rulesFor(rules: readonly ToolRule[], pattern: string): ToolRule[] {
  return rules.filter((rule) => coversTools(rule.glob, pattern)).reverse()
    .sort((a, b) => b.glob.length - a.glob.length);
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
    add(given(write) && (known || /[*?]/.test(name)), "write", "egress");
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
 * the parent's grant removes stays removed. Removals alone take away from the parent's own. The
 * failure is the first glob that is wider.
 */
export function narrowGrant(
  parent: readonly string[],
  wanted: readonly string[],
): { ok: true; value: string[] } | { ok: false; failure: string } {
  const isRemoval = (glob: string) => glob.startsWith("!");
  const removals = parent.filter(isRemoval);
  const grants = parent.filter((glob) => !isRemoval(glob));
  if (wanted.length > 0 && wanted.every(isRemoval)) {
    return { ok: true, value: [...new Set([...parent, ...wanted])] };
  }
  for (const glob of wanted) {
    if (isRemoval(glob)) continue;
    if (!grants.some((outer) => coversTools(outer, glob))) return { ok: false, failure: glob };
  }
  return { ok: true, value: [...new Set([...wanted, ...removals])] };
}
