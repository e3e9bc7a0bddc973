/**
 * Time-like noise, masked before a digest: a status that differs only in its timestamp says nothing
 * new (contract 5). What is shown to the model is never masked so.
 */

const MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*";

/** In order: a longer form must come before the parts it is made of. */
const NOISE: readonly [RegExp, string][] = [
  // 2026-06-25T10:11:12.123Z, 2026-06-25 10:11, with any offset
  [
    /\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?/g,
    "<time>",
  ],
  // Thu, 25 Jun 2026 10:11:12 GMT and Thu Jun 25 10:11:12 2026
  [
    new RegExp(
      `\\b${DAY},? (?:\\d{1,2} ${MONTH}|${MONTH} \\d{1,2}),? [\\d: ]{5,}(?:GMT|UTC|[+-]\\d{4})?`,
      "g",
    ),
    "<time>",
  ],
  // 10:11:12, 10:11:12.123
  [/\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b/g, "<time>"],
  // 1h30m, 2m10s
  [/(?<![\w.-])\d+h(?:\d+m)?(?:\d+s)?\b|(?<![\w.-])\d+m\d+s\b/g, "<duration>"],
  // "timestamp": 1.5e9, uptime=12.5, elapsed: 17
  [
    /(["']?\b(?:[a-z]+[_-])*(?:timestamp|time|ts|uptime|elapsed|duration|took|latency)(?:[_-](?:ms|s|sec|secs|seconds|us|ns))?["']?\s*[:=]\s*)["']?\d+(?:\.\d+)?["']?/gi,
    "$1<time>",
  ],
  // Epoch seconds, milliseconds, microseconds between 2017 and 2033; wider would swallow numbers
  [/(?<![\w.-])1[5-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+)?(?![\w-])/g, "<time>"],
  // 12ms, 3.2 s, 5 minutes, 1h30m
  [
    /(?<![\w.-])(?:\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)\b\s?)+/g,
    "<duration>",
  ],
];

/** The text with everything that looks like a moment or a duration replaced. */
export function maskTime(text: string): string {
  let out = text;
  for (const [pattern, mask] of NOISE) out = out.replace(pattern, mask);
  return out;
}
