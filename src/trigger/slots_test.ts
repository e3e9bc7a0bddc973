import assert from "node:assert/strict";
import fc from "fast-check";
import { formatIso, parseIso } from "../core/time.ts";
import { cronSlots, intervalSlots, loadCron, nextSlots, type Slots } from "./slots.ts";
import { openZone } from "./zone.ts";

const Cron = await loadCron();

function compile(expression: string, zone: string): Slots {
  const compiled = cronSlots(Cron, expression, zone);
  assert(compiled.ok, JSON.stringify(compiled));
  return compiled.value;
}

function fires(expression: string, zone: string, from: string, count: number): string[] {
  return nextSlots(compile(expression, zone), parseIso(from)!, count).map((at) =>
    formatIso(at).replace(/:00\.000Z$|\.000Z$/, "")
  );
}

Deno.test("cronSlots: fields, names, ranges, steps, seconds, nicknames", () => {
  const from = "2025-01-15T10:20:30Z"; // a Wednesday
  const rows: [string, string[]][] = [
    ["*/15 * * * *", ["2025-01-15T10:30", "2025-01-15T10:45"]],
    ["0 9 * JAN-MAR MON-FRI", ["2025-01-16T09:00", "2025-01-17T09:00"]],
    ["0 9 * * 0", ["2025-01-19T09:00", "2025-01-26T09:00"]],
    ["0 9 * * 7", ["2025-01-19T09:00", "2025-01-26T09:00"]],
    ["0 0 1 * MON", ["2025-01-20T00:00", "2025-01-27T00:00"]], // day or weekday
    ["10-20/5 8,12 * * *", ["2025-01-15T12:10", "2025-01-15T12:15"]],
    ["*/20 * * * * *", ["2025-01-15T10:20:40", "2025-01-15T10:21"]],
    ["15 30 10 * * *", ["2025-01-15T10:30:15", "2025-01-16T10:30:15"]],
    ["@daily", ["2025-01-16T00:00", "2025-01-17T00:00"]],
    ["@HOURLY", ["2025-01-15T11:00", "2025-01-15T12:00"]],
    ["@weekly", ["2025-01-19T00:00", "2025-01-26T00:00"]],
    ["@monthly", ["2025-02-01T00:00", "2025-03-01T00:00"]],
    ["@yearly", ["2026-01-01T00:00", "2027-01-01T00:00"]],
    ["0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]],
    ["0 0 L * *", ["2025-01-31T00:00", "2025-02-28T00:00"]],
  ];
  for (const [expression, expected] of rows) {
    assert.deepEqual(fires(expression, "UTC", from, 2), expected, expression);
  }
});

Deno.test("cronSlots: what is wrong is said, of expression and zone at once", () => {
  const rows: [string, string, RegExp[]][] = [
    ["", "UTC", [/cron.*empty/]],
    ["* * * *", "UTC", [/cron.*4 fields/]],
    ["* * * * * * *", "UTC", [/cron.*7 fields/]],
    ["60 * * * *", "UTC", [/cron.*minute/]],
    ["5/10 * * * *", "UTC", [/cron/]],
    ["*/70 * * * *", "UTC", [/cron/]],
    ["0 0 * * FOO", "UTC", [/cron.*FOO/]],
    ["0 0 30 2 *", "UTC", [/cron.*never fires/]],
    ["0 0 31 2,4,6,9,11 *", "Europe/Berlin", [/cron.*never fires/]],
    ["@reboot", "UTC", [/cron.*nickname/]],
    ["2030-01-01T00:00:00", "UTC", [/cron.*1 fields/]],
    ["0 0 * * *", "Mars/Base", [/timezone/]],
    ["0 0 30 2 *", "Mars/Base", [/timezone/, /cron/]],
  ];
  for (const [expression, zone, expected] of rows) {
    const compiled = cronSlots(Cron, expression, zone);
    assert(!compiled.ok, `${expression} ${zone}`);
    assert.equal(compiled.failure.length, expected.length, JSON.stringify(compiled.failure));
    compiled.failure.forEach((problem, i) =>
      assert.match(`${problem.field}: ${problem.message}`, expected[i]!)
    );
  }
});

Deno.test("cronSlots: real changes of the clocks, each slot exactly once", () => {
  const rows: [string, string, string, string[]][] = [
    // Berlin, 30 March 2025: 02:00 becomes 03:00 (01:00 UTC).
    ["30 2 * * *", "Europe/Berlin", "2025-03-29T12:00:00Z", [
      "2025-03-30T01:00",
      "2025-03-31T00:30",
    ]],
    ["*/15 2 * * *", "Europe/Berlin", "2025-03-29T12:00:00Z", [
      "2025-03-30T01:00",
      "2025-03-31T00:00",
    ]],
    ["0 2,3 * * *", "Europe/Berlin", "2025-03-29T12:00:00Z", [
      "2025-03-30T01:00",
      "2025-03-31T00:00",
      "2025-03-31T01:00",
    ]],
    ["30 * * * *", "Europe/Berlin", "2025-03-30T00:00:00Z", [
      "2025-03-30T00:30",
      "2025-03-30T01:30",
    ]],
    // Berlin, 26 October 2025: 03:00 becomes 02:00 (01:00 UTC).
    ["30 2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", [
      "2025-10-26T00:30",
      "2025-10-27T01:30",
    ]],
    ["*/30 2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", [
      "2025-10-26T00:00",
      "2025-10-26T00:30",
      "2025-10-27T01:00",
    ]],
    ["30 1,2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", [
      "2025-10-25T23:30",
      "2025-10-26T00:30",
      "2025-10-27T00:30",
    ]],
    ["0 3 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", ["2025-10-26T02:00"]],
    ["*/30 * * * *", "Europe/Berlin", "2025-10-25T23:45:00Z", [
      "2025-10-26T00:00",
      "2025-10-26T00:30",
      "2025-10-26T01:00",
      "2025-10-26T01:30",
      "2025-10-26T02:00",
    ]],
    // New York, 9 March and 2 November 2025.
    ["30 2 * * *", "America/New_York", "2025-03-08T12:00:00Z", [
      "2025-03-09T07:00",
      "2025-03-10T06:30",
    ]],
    ["30 1 * * *", "America/New_York", "2025-11-01T12:00:00Z", [
      "2025-11-02T05:30",
      "2025-11-03T06:30",
    ]],
    // Lord Howe moves by half an hour: 5 October 2025, 02:00 becomes 02:30 (15:30 UTC).
    ["15 2 * * *", "Australia/Lord_Howe", "2025-10-03T16:00:00Z", [
      "2025-10-04T15:30",
      "2025-10-05T15:15",
    ]],
    // Samoa had no 30 December 2011.
    ["0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", [
      "2011-12-30T10:00",
      "2012-12-29T22:00",
    ]],
    ["0 0 * * *", "Asia/Kathmandu", "2025-01-01T00:00:00Z", ["2025-01-01T18:15"]],
  ];
  for (const [expression, zone, from, expected] of rows) {
    assert.deepEqual(
      fires(expression, zone, from, expected.length),
      expected,
      `${expression} ${zone}`,
    );
  }
});

Deno.test("cronSlots: asked from inside the second pass, a slot of the first is over", () => {
  assert.deepEqual(fires("30 2 * * *", "Europe/Berlin", "2025-10-26T01:10:00Z", 1), [
    "2025-10-27T01:30",
  ]);
});

Deno.test("cronSlots: strictly increasing, and a daily slot is daily in every zone and year", () => {
  const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"];
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      fc.integer({
        min: parseIso("2015-01-01T00:00:00Z")!,
        max: parseIso("2030-01-01T00:00:00Z")!,
      }),
      (zoneName, hour, minute, from) => {
        const slots = nextSlots(compile(`${minute} ${hour} * * *`, zoneName), from, 20);
        const zone = openZone(zoneName)!;
        const days = slots.map((at) => formatIso(zone.toLocalMs(at)).slice(0, 10));
        assert.equal(new Set(days).size, 20, days.join(" "));
        for (let i = 1; i < slots.length; i++) {
          const hours = (slots[i]! - slots[i - 1]!) / 3_600_000;
          assert(hours >= 22.5 && hours <= 25.5, `${hours}`);
        }
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("openZone: toInstantMs undoes toLocalMs outside overlaps and never decreases", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"),
      fc.integer({ min: 0, max: parseIso("2040-01-01T00:00:00Z")! }),
      fc.integer({ min: 0, max: 3 * 3_600_000 }),
      (name, at, more) => {
        const zone = openZone(name)!;
        const local = zone.toLocalMs(at);
        assert(zone.toInstantMs(local) <= at);
        assert.equal(zone.toLocalMs(zone.toInstantMs(local)), local);
        assert(zone.toInstantMs(local + more) >= zone.toInstantMs(local));
      },
    ),
    { numRuns: 200 },
  );
  assert.equal(openZone("Mars/Base"), undefined);
});

Deno.test("intervalSlots: multiples from the anchor, also asked from before it", () => {
  const rows: [number, number][] = [[1000, 1100], [1099, 1100], [1100, 1200], [0, 1100], [
    5_000_000_050,
    5_000_000_100,
  ]];
  for (const [after, expected] of rows) {
    assert.equal(intervalSlots(100, 1000).next(after), expected, `${after}`);
  }
});
