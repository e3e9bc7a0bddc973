import assert from "node:assert/strict";
import { REPETITION_CHARS_MAX } from "../core/limits.ts";
import {
  PERIOD_CHARS_MAX,
  repeatedPeriod,
  RepetitionGauge,
  withoutRepetition,
} from "./repetition.ts";

/** Characters fed until the gauge says stop, in pieces; null if it never does. */
function cutAt(text: string, piece: number): number | null {
  const gauge = new RepetitionGauge();
  for (let at = 0; at < text.length; at += piece) {
    if (gauge.push(text.slice(at, at + piece)) > 0) return Math.min(text.length, at + piece);
  }
  return null;
}

Deno.test("repeatedPeriod: the shortest period that covers the whole text, up to its bound", () => {
  const unit = (chars: number) =>
    Array.from({ length: chars }, (_, i) => String.fromCharCode(0x4e00 + i)).join("");
  const rows: [string, number][] = [
    ["a".repeat(4000), 1],
    ["again ".repeat(700), 6],
    ["aab".repeat(2000), 3],
    [unit(PERIOD_CHARS_MAX).repeat(20), PERIOD_CHARS_MAX],
    [unit(PERIOD_CHARS_MAX + 1).repeat(20), 0],
    ["x" + "again ".repeat(700), 0],
    ["again ".repeat(700) + "x", 0],
    ["ab".repeat(PERIOD_CHARS_MAX), 2],
    ["ab".repeat(PERIOD_CHARS_MAX - 1), 0],
    ["", 0],
  ];
  for (const [text, period] of rows) assert.equal(repeatedPeriod(text), period, text.slice(0, 20));
});

Deno.test("RepetitionGauge: cuts soon after the bound, whatever the pieces", () => {
  for (const unit of ["again ", "a", "I will try once more.\n", "{}\n", "é\u{1F600}"]) {
    const text = unit.repeat(20_000);
    for (const piece of [1, unit.length, 7, 333, 5000]) {
      const at = cutAt(text, piece);
      assert.ok(
        at !== null && at >= REPETITION_CHARS_MAX,
        `${JSON.stringify(unit)} ${piece}: ${at}`,
      );
      assert.ok(
        at <= REPETITION_CHARS_MAX + 500 + piece,
        `${JSON.stringify(unit)} ${piece}: ${at}`,
      );
    }
  }
});

Deno.test("RepetitionGauge: one character short of the bound goes on", () => {
  const prose = Array.from({ length: 600 }, (_, i) => `sentence ${i} `).join("");
  assert.equal(cutAt(prose + "z".repeat(REPETITION_CHARS_MAX - 500), 500), null);
  assert.equal(cutAt("z".repeat(REPETITION_CHARS_MAX - 1), 1), null);
});

Deno.test("RepetitionGauge: honest tables, code and lists are never cut", () => {
  const rows = Array.from({ length: 400 }, (_, i) => i);
  const honest = {
    table: rows.map((i) => `| ${i} | ok | ok | ok | ok |\n`).join(""),
    list: JSON.stringify(rows.map((i) => ({ id: i, done: false, tags: [] })), null, 2),
    code: rows.map((i) => `  case ${i}:\n    return handle(state, event);\n`).join(""),
    rule: `${"-".repeat(2000)}\n${"=".repeat(2000)}\n`.repeat(2),
    numbers: JSON.stringify(rows.map((i) => i % 7)) + JSON.stringify(rows.map((i) => i % 11)),
    long: rows.map((i) => `${i}`.padStart(250, "ab")).join("\n"),
  };
  for (const [name, text] of Object.entries(honest)) {
    for (const piece of [1, 40, 4096]) assert.equal(cutAt(text, piece), null, name);
  }
});

Deno.test("withoutRepetition: keeps what came before and two periods", () => {
  const rows: [string, number, string][] = [
    ["Well. " + "again ".repeat(900), 6, "Well. again again"],
    ["b" + "a".repeat(900), 1, "baa"],
    ["a".repeat(900), 1, "aa"],
  ];
  for (const [text, period, kept] of rows) assert.equal(withoutRepetition(text, period), kept);
});
