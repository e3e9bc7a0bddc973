/**
 * Time-like noise, masked before a digest: a status that differs only in its timestamp says nothing
 * new. What is shown to the model is never masked so.
 *
 * Every form holds a run of digits. One pass finds the runs, looks at what stands around them, and
 * only then tries the one expression that may fit: each result of each turn goes through here.
 */

const MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*";

/** How far back of a number its key, or the name of its day, is looked for. */
const BACK_CHARS_MAX = 80;

/** 2026-06-25T10:11:12.123Z, 2026-06-25 10:11, with any offset. */
const ISO =
  /\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?/y;
/** 20260625T101112Z. */
const BASIC_ISO = /\d{8}T\d{6}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\b/y;
/** Thu, 25 Jun 2026 10:11:12 GMT and Thu Jun 25 10:11:12 2026. */
const DATED = new RegExp(
  `\\b${DAY},? (?:\\d{1,2} ${MONTH}|${MONTH} \\d{1,2}),? [\\d: ]{5,}(?:GMT|UTC|[+-]\\d{4})?`,
  "y",
);
const BEFORE_DATE = new RegExp(`\\b${DAY},? (?:${MONTH} )?$`);
/** 10:11:12, 10:11:12.123. */
const CLOCK = /\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b/y;
/** 1h30m, 2m10s, 0m2.345s, 2d3h, 1m 2s. */
const COMPOUND = /(?:\d+d ?)?(?:\d+h(?: ?\d+m)?(?: ?\d+(?:\.\d+)?s)?\b|\d+m ?\d+(?:\.\d+)?s\b)/y;
/** The key before the number in "timestamp": 1.5e9, uptime=12.5, elapsed: 17. */
const TIMED_KEY =
  /^(?:[a-z]+[_-])*(?:timestamp|time|ts|uptime|elapsed|duration|took|latency)(?:[_-](?:ms|s|sec|secs|seconds|us|ns))?$/i;
/** How such a key can end: most keys are told by that. */
const TIMED_ENDS: ReadonlySet<string> = new Set(
  "timestamp time ts uptime elapsed duration took latency ms s sec secs seconds us ns".split(" "),
);
const NUMBER = /["']?\d+(?:\.\d+)?["']?/y;
/** Epoch seconds, milliseconds, microseconds between 2017 and 2033; wider would swallow numbers. */
const EPOCH = /1[5-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+)?(?![\w-])/y;
/** The end of a key whose words begin with capitals: durationMs, startTime. */
const CAPITAL_END = /[a-z]([A-Z]+[a-z]*)$/;
/**
 * 12ms, 3.2 s, 5 minutes, several in a row. Number and unit stand on one line and in one column:
 * `mean: 5` before a line that begins with `min` is no time.
 */
const DURATION =
  /(?:\d+(?:\.\d+)?[ \u00a0\u202f]?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)\b[ \u00a0\u202f]?)+/y;

/** ns, µs, us, ms, s, hours, days. */
const UNIT_STARTS: ReadonlySet<number> = new Set([..."numshd"].map((unit) => unit.charCodeAt(0)));

/** Where something was found, and what stands for it. */
interface Found {
  start: number;
  end: number;
  mask: "<time>" | "<duration>";
}

/** The text with everything that looks like a moment or a duration replaced. */
export function maskTime(text: string): string {
  let out = "";
  let copied = 0;
  for (let at = 0; at < text.length;) {
    if (!isDigit(text.charCodeAt(at))) {
      at++;
      continue;
    }
    let end = at + 1;
    while (isDigit(text.charCodeAt(end))) end++;
    const found = findNoise(text, at, end, copied);
    if (found !== null) {
      out += text.slice(copied, found.start) + found.mask;
      copied = found.end;
      end = found.end;
    }
    at = end;
  }
  return copied === 0 ? text : out + text.slice(copied);
}

/** Noise around the digits from `start` to `end`; it may begin no earlier than at `from`. */
function findNoise(text: string, start: number, end: number, from: number): Found | null {
  const before = text.charCodeAt(start - 1);
  const after = text.charCodeAt(end);
  const length = end - start;
  const isWhole = !isWord(before);
  let matched: number;
  if (isWhole && length === 4 && after === MINUS) {
    if ((matched = matchAt(ISO, text, start)) > 0) return { start, end: matched, mask: "<time>" };
  }
  if (isWhole && length === 8 && after === UPPER_T) {
    matched = matchAt(BASIC_ISO, text, start);
    if (matched > 0) return { start, end: matched, mask: "<time>" };
  }
  if (before === SPACE && length <= 2) {
    const dated = findDated(text, start, from);
    if (dated !== null) return dated;
  }
  if (isWhole && length <= 2 && after === COLON) {
    if ((matched = matchAt(CLOCK, text, start)) > 0) return { start, end: matched, mask: "<time>" };
  }
  const isFree = isWhole && before !== DOT && before !== MINUS;
  if (isFree && (after === LOWER_H || after === LOWER_M || after === LOWER_D)) {
    if ((matched = matchAt(COMPOUND, text, start)) > 0) {
      return { start, end: matched, mask: "<duration>" };
    }
  }
  const timed = findTimed(text, start, from);
  if (timed !== null) return timed;
  if (isFree && (length === 10 || length === 13 || length === 16)) {
    if ((matched = matchAt(EPOCH, text, start)) > 0) return { start, end: matched, mask: "<time>" };
  }
  if (isFree && mayBeginUnit(text, end)) {
    matched = matchAt(DURATION, text, start);
    if (matched > 0) return { start, end: matched, mask: "<duration>" };
  }
  return null;
}

const SPACE = 0x20;
const MINUS = 0x2d;
const DOT = 0x2e;
const COLON = 0x3a;
const EQUALS = 0x3d;
const UPPER_T = 0x54;
const LOWER_D = 0x64;
const LOWER_H = 0x68;
const LOWER_M = 0x6d;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** As `\w` has it. */
function isWord(code: number): boolean {
  return isDigit(code) || (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) ||
    code === 0x5f;
}

/** As `\s` has it. */
function isSpace(code: number): boolean {
  return code === SPACE || (code >= 0x09 && code <= 0x0d) || code === 0xa0 ||
    (code >= 0x1680 && /\s/.test(String.fromCharCode(code)));
}

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** A date that begins with the name of its day, before these digits. */
function findDated(text: string, start: number, from: number): Found | null {
  const letter = text.charCodeAt(start - 2);
  if (!(letter >= 0x61 && letter <= 0x7a) && letter !== 0x2c) return null;
  const back = text.slice(Math.max(from, start - BACK_CHARS_MAX), start);
  const head = BEFORE_DATE.exec(back);
  if (head === null) return null;
  const at = start - back.length + head.index;
  const end = matchAt(DATED, text, at);
  return end > 0 ? { start: at, end, mask: "<time>" } : null;
}

/** A number whose key speaks of time. */
function findTimed(text: string, start: number, from: number): Found | null {
  const number = start - 1 >= from && isQuote(text.charCodeAt(start - 1)) ? start - 1 : start;
  let at = number - 1;
  while (at >= from && isSpace(text.charCodeAt(at))) at--;
  const code = at < from ? 0 : text.charCodeAt(at);
  if (code !== COLON && code !== EQUALS) return null;
  at--;
  while (at >= from && isSpace(text.charCodeAt(at))) at--;
  if (at >= from && isQuote(text.charCodeAt(at))) at--;
  const end = at + 1;
  while (at >= from && isKey(text.charCodeAt(at)) && end - at <= BACK_CHARS_MAX) at--;
  const key = text.slice(at + 1, end);
  // A place in a file of TypeScript: main.ts:12.
  if (key === "ts" && text.charCodeAt(at) === DOT) return null;
  if (!isTimedKey(key, isWord(text.charCodeAt(at)))) return null;
  return { start: number, end: matchAt(NUMBER, text, number), mask: "<time>" };
}

/** Whether a key, or its part after a hyphen, speaks of time; `isGlued`: it begins inside a word. */
function isTimedKey(key: string, isGlued: boolean): boolean {
  const tail = key.slice(Math.max(key.lastIndexOf("_"), key.lastIndexOf("-")) + 1);
  if (!TIMED_ENDS.has(tail.toLowerCase())) {
    const end = CAPITAL_END.exec(tail)?.[1];
    if (end === undefined || !TIMED_ENDS.has(end.toLowerCase())) return false;
    return isTimedKey(key.replace(/([a-z])([A-Z])/g, "$1_$2"), isGlued);
  }
  if (!isGlued && TIMED_KEY.test(key)) return true;
  for (let at = key.indexOf("-"); at !== -1; at = key.indexOf("-", at + 1)) {
    if (TIMED_KEY.test(key.slice(at + 1))) return true;
  }
  return false;
}

function isQuote(code: number): boolean {
  return code === 0x22 || code === 0x27;
}

function isKey(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f ||
    code === MINUS;
}

/** Whether a unit may follow a number that ends here, its fraction aside. */
function mayBeginUnit(text: string, end: number): boolean {
  let at = end;
  if (text.charCodeAt(at) === DOT) {
    at++;
    while (isDigit(text.charCodeAt(at))) at++;
  }
  let code = text.charCodeAt(at);
  if (code === SPACE || code === 0xa0 || code === 0x202f) code = text.charCodeAt(at + 1);
  return code >= 0x80 || UNIT_STARTS.has(code);
}
