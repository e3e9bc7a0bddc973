/** Moments as ISO 8601 text in UTC, without the runtime's clock or its `Date`. */

const DAY_MS = 86_400_000;

let cachedDay = NaN;
let cachedPrefix = "";

/** `2026-01-31T23:59:59.999Z` of milliseconds since the Unix epoch; fractions are dropped. */
export function formatIso(wallMs: number): string {
  const ms = Math.floor(wallMs);
  const day = Math.floor(ms / DAY_MS);
  if (day !== cachedDay) {
    cachedDay = day;
    cachedPrefix = formatDay(day);
  }
  const rest = ms - day * DAY_MS;
  const hour = Math.floor(rest / 3_600_000);
  const minute = Math.floor(rest / 60_000) % 60;
  const second = Math.floor(rest / 1000) % 60;
  return `${cachedPrefix}T${two(hour)}:${two(minute)}:${two(second)}.${three(rest % 1000)}Z`;
}

/** Milliseconds since the Unix epoch of a text that {@link formatIso} wrote, else undefined. */
export function parseIso(text: string): number | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3})\d*)?Z$/.exec(text);
  if (!match) return undefined;
  const [year, month, date, hour, minute, second] = match.slice(1, 7).map(Number) as number[];
  const ms = Number((match[7] ?? "0").padEnd(3, "0"));
  return daysFromCivil(year!, month!, date!) * DAY_MS + hour! * 3_600_000 + minute! * 60_000 +
    second! * 1000 + ms;
}

function two(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

function three(value: number): string {
  return value < 10 ? `00${value}` : value < 100 ? `0${value}` : `${value}`;
}

/** The proleptic Gregorian calendar in eras of 400 years that begin in March. */
function formatDay(days: number): string {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra -
    (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const date = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(date)}`;
}

function daysFromCivil(year: number, month: number, date: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + date - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) +
    dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
