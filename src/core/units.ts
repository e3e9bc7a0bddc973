/** Durations and sizes as users write them. */

const DURATION_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const SIZE_BYTES: Record<string, number> = {
  B: 1,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Milliseconds of `500ms`, `30s`, `10m`, `2h`, `30d`, `1h30m`; undefined if it is none. */
export function parseDurationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return text === "0" ? 0 : undefined;
  let total = 0;
  for (const part of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    total += Number(part[1]) * DURATION_MS[part[2]!]!;
  }
  return Math.round(total);
}

/** Bytes of `512MiB`, `16KiB`, `1000`; undefined if it is none. */
export function parseSizeBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|KiB|MiB|GiB)?$/.exec(text);
  if (!match) return undefined;
  return Math.round(Number(match[1]) * SIZE_BYTES[match[2] ?? "B"]!);
}

/** The shortest exact duration text for whole milliseconds. */
export function formatDuration(durationMs: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const size = DURATION_MS[unit]!;
    if (durationMs >= size && durationMs % size === 0) return `${durationMs / size}${unit}`;
  }
  return `${durationMs}ms`;
}

/** A size for people: whole bytes below 1 KiB, else one decimal of a binary unit. */
export function formatSize(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"]) {
    const size = SIZE_BYTES[unit]!;
    if (bytes >= size) return `${+(bytes / size).toFixed(1)}${unit}`;
  }
  return `${bytes}B`;
}
