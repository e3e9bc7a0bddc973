/** Texts of flags and variables into values in the file's form. */

import type { Json, JsonObject } from "../core/json.ts";
import { formatDuration, parseDurationMs, parseSizeBytes } from "../core/units.ts";
import type { Option } from "./option.ts";
import { SERVER_NAME, SERVER_NAME_EXPECTS } from "./shapes.ts";
import { showValue } from "./problem.ts";
import { isCredentialName } from "./secrets.ts";
import { describeShape, type Shape } from "./shape.ts";
import { didYouMean } from "./suggest.ts";
import { splitWords } from "./words.ts";

/** What a switch without a value leaves: no argument of a process can hold a NUL. */
export const BARE = "\0";

/** Told of what cannot be read: the value, what is wrong, what would be right. */
export type Complain = (value: string, message: string, hint: string) => void;

/**
 * The value of an option from its texts, one per occurrence; undefined if any of them was
 * complained of. `below` is the value that `+N` adds to; undefined: `+N` is no number here.
 */
export function readTexts(
  option: Option,
  texts: readonly string[],
  complain: Complain,
  below?: Json,
): Json | undefined {
  switch (option.form) {
    case "plain":
      return readPlain(option.shape, texts, complain, below);
    case "check":
      return texts.map((command) => ({ command }));
    case "command_map":
      return readCommandMap(option, texts, complain);
    case "mcp":
      return readServers(texts, complain);
    case "mcp_config":
      return undefined;
    case "permission":
      return readPermission(texts, complain);
    case "route":
      return every(texts, (text) => readRoute(text, complain));
    case "token_env":
      return "${env:AGENT_INTELLIGENCE_TOKEN}";
    case "token_file":
      return readTokenFile(texts.at(-1)!, complain);
  }
}

function readTokenFile(path: string, complain: Complain): Json | undefined {
  if (path !== "" && !path.includes("}")) return `\${file:${path}}`;
  complain(path, `${showValue(path)} is not a path${path === "" ? "" : " without }"}`, "");
}

function readPlain(
  shape: Shape,
  texts: readonly string[],
  complain: Complain,
  below: Json | undefined,
): Json | undefined {
  if (shape.kind === "list") {
    return shape.comma ? texts.flatMap(splitCommas) : [...texts];
  }
  const text = texts.at(-1)!;
  const wrong = (): undefined => {
    complain(text, `${showValue(text)} is not ${describeShape(shape)}`, "");
  };
  if (text.startsWith("+") && below !== undefined && below !== null) {
    return addTo(shape, below, text.slice(1)) ?? wrong();
  }
  switch (shape.kind) {
    case "int":
      return /^-?\d{1,15}$/.test(text) ? Number(text) : wrong();
    case "number":
      return /^-?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : wrong();
    case "boolean":
      if (text === BARE || /^(true|1|yes|on)$/i.test(text)) return true;
      return /^(false|0|no|off)$/i.test(text) ? false : wrong();
    default:
      return text;
  }
}

/** A value and what `+N` adds to it, in the file's form. */
function addTo(shape: Shape, below: Json, text: string): Json | undefined {
  switch (shape.kind) {
    case "int":
      return /^\d{1,15}$/.test(text) ? Number(below) + Number(text) : undefined;
    case "number":
      return /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(below) + Number(text) : undefined;
    case "duration": {
      const sum = (parseDurationMs(String(below)) ?? NaN) + (parseDurationMs(text) ?? NaN);
      return Number.isNaN(sum) ? undefined : formatDuration(sum);
    }
    case "size": {
      const sum = (parseSizeBytes(String(below)) ?? NaN) + (parseSizeBytes(text) ?? NaN);
      return Number.isNaN(sum) ? undefined : sum;
    }
    default:
      return undefined;
  }
}

/** Parts between commas; two commas stand for one inside a part, as in Deno's flags. */
export function splitCommas(text: string): string[] {
  return text.split(/(?<!,),(?!,)/).map((part) => part.replaceAll(",,", ",").trim()).filter((
    part,
  ) => part !== "");
}

function every<Value extends Json>(
  texts: readonly string[],
  read: (text: string) => Value | undefined,
): Value[] | undefined {
  const values = texts.map(read);
  return values.every((value) => value !== undefined) ? values as Value[] : undefined;
}

function readPermission(texts: readonly string[], complain: Complain): Json | undefined {
  if (texts.some((text) => text === BARE || text === "true")) return true;
  if (texts.at(-1) === "false") return [];
  const list = texts.flatMap(splitCommas);
  if (list.length > 0) return list;
  complain("", "an empty list", "leave =LIST out to allow everything");
}

function readCommandMap(
  option: Option,
  texts: readonly string[],
  complain: Complain,
): Json | undefined {
  const events = option.shape.kind === "record" ? Object.keys(option.shape.fields) : [];
  const map: Record<string, string[]> = {};
  let sound = true;
  for (const text of texts) {
    const at = text.indexOf("=");
    const event = at === -1 ? text : text.slice(0, at);
    if (at === -1 || !events.includes(event)) {
      complain(
        text,
        `Cannot read ${showValue(text)}: ${
          at === -1 ? "it has no =" : `${showValue(event)} is no event`
        }`,
        didYouMean(event, events) || `write EVENT=COMMAND, EVENT one of ${events.join(", ")}`,
      );
      sound = false;
    } else (map[event] ??= []).push(text.slice(at + 1));
  }
  return sound ? map : undefined;
}

function readServers(texts: readonly string[], complain: Complain): Json | undefined {
  const servers: JsonObject = {};
  let sound = true;
  for (const text of texts) {
    const at = text.indexOf("=");
    const name = at === -1 ? "" : text.slice(0, at);
    const rest = text.slice(at + 1).trim();
    const fault = at === -1
      ? "it has no ="
      : !SERVER_NAME.test(name)
      ? `${showValue(name)} is not ${SERVER_NAME_EXPECTS}`
      : Object.hasOwn(servers, name)
      ? `the server ${showValue(name)} is declared twice`
      : null;
    const server = fault === null ? readServer(rest) : {};
    if (fault !== null || typeof server === "string") {
      complain(
        text,
        `Cannot read ${showValue(hideCredentials(text))}: ${fault ?? server}`,
        fault === null ? "" : "write NAME=COMMAND ARGS… or NAME=URL",
      );
      sound = false;
    } else servers[name] = server;
  }
  return sound ? servers : undefined;
}

/** A server from what stands after `NAME=`, or what is wrong with it. */
function readServer(rest: string): JsonObject | string {
  if (/^https?:\/\//i.test(rest)) return { url: rest };
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(rest);
  if (scheme) return `${scheme[1]}:// is neither http:// nor https://`;
  const words = splitWords(rest);
  if (!words.ok) return `the command cannot be split into words: ${words.failure}`;
  return { command: words.value[0]!, args: words.value.slice(1) };
}

/** The text with the credentials of its URLs replaced. */
export function hideCredentials(text: string): string {
  return text.replace(/(\w+:\/\/)[^/\s@]*@/g, "$1***@")
    .replace(
      /([?&])([^=&#\s]+)=[^&#\s]+/g,
      (all, mark, name) => isCredentialName(name) ? `${mark}${name}=***` : all,
    );
}

/** `MATCH=>spawn|continue:NAME[,key=value…]`. */
function readRoute(text: string, complain: Complain): JsonObject | undefined {
  const wrong = (message: string, hint = ""): undefined => {
    complain(
      text,
      `Cannot read ${showValue(text)}: ${message}`,
      hint || "write MATCH=>spawn or MATCH=>continue:NAME, then ,debounce=250ms,cap=16,overflow=…",
    );
  };
  const at = text.indexOf("=>");
  if (at <= 0) return wrong(at === 0 ? "nothing stands before =>" : "it has no =>");
  const [target, ...extras] = text.slice(at + 2).split(",");
  const route: JsonObject = { match: text.slice(0, at).trim() };
  const session = /^continue:(.*)$/.exec(target!.trim());
  if (session) route.continue = session[1]!;
  else if (target!.trim() === "spawn") route.spawn = {};
  else {
    return wrong(
      `${showValue(target!.trim())} is neither spawn nor continue:NAME`,
      didYouMean(target!.trim().split(":")[0]!, ["spawn", "continue"]),
    );
  }
  const known = ["debounce", "cap", "overflow", "max_inflight"];
  for (const extra of extras) {
    const [key, ...rest] = extra.split("=");
    const name = key!.trim().replaceAll("-", "_");
    const value = rest.join("=").trim();
    if (!known.includes(name)) {
      return wrong(
        `${showValue(name)} is no setting of a route`,
        didYouMean(name, known) || `known: ${known.join(", ")}`,
      );
    }
    const number = /^\d{1,9}$/.test(value) ? Number(value) : value;
    if (name === "max_inflight") {
      if (session) return wrong("max_inflight is of spawn only");
      route.spawn = { max_inflight: number };
    } else route[name] = name === "cap" ? number : value;
  }
  return route;
}
