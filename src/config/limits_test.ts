import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";
import {
  CONFIG_FILE_BYTES_MAX,
  CONFIG_LIST_ITEMS_MAX,
  ENDPOINTS_MAX,
  PROBLEM_VALUE_CHARS_MAX,
  RECORDING_FILE_BYTES_MAX,
  SCHEMA_FILE_BYTES_MAX,
  SECRET_FILE_BYTES_MAX,
  SERVERS_MAX,
  SYSTEM_TEXT_BYTES_MAX,
  TOOL_RULES_MAX,
} from "../core/config_limits.ts";
import { INSTRUCTION_BYTES_MAX } from "../core/limits.ts";
import { RECORDING_HEADER } from "../model/recording.ts";

/** A text of so many bytes that begins with `head`. */
const filled = (head: string, bytes: number, filler = " "): string => head.padEnd(bytes, filler);
const instruction = ["x"];
const many = (count: number, of: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => of(index));

/** Each bound: what is at it is fine, one more is said. */
const rows: [name: string, max: number, given: (size: number) => Surroundings, over: RegExp][] = [
  ["instruction", INSTRUCTION_BYTES_MAX, (size) => ({
    flags: { instruction: [filled("x", size, "y")] },
  }), /the instruction has \d+ bytes; at most/],
  ["instruction file", INSTRUCTION_BYTES_MAX, (size) => ({
    flags: { instruction: ["@t"] },
    files: { t: filled("x", size, "y") },
  }), /at most/],
  ["configuration", CONFIG_FILE_BYTES_MAX, (size) => ({
    flags: { instruction },
    files: { "agentd.yaml": filled("notes: true\n#", size, "c") },
  }), /agentd\.yaml: Cannot read it: .* at most/],
  ["system text", SYSTEM_TEXT_BYTES_MAX, (size) => ({
    flags: { instruction, system: ["s"] },
    files: { s: filled("s", size, "s") },
  }), /--system: Cannot read the system text: .* at most/],
  ["schema", SCHEMA_FILE_BYTES_MAX, (size) => ({
    flags: { instruction, output_schema: ["s"] },
    files: { s: filled("{}", size) },
  }), /--output-schema: Cannot read the output schema: .* at most/],
  ["secret", SECRET_FILE_BYTES_MAX, (size) => ({
    flags: { instruction, token_file: ["s"] },
    files: { s: filled("s", size, "s") },
  }), /Cannot read the secret file: .* at most/],
  ["recording", RECORDING_FILE_BYTES_MAX, (size) => ({
    flags: { instruction, intelligence: ["recorded:r"] },
    files: { r: filled(`${RECORDING_HEADER}\n`, size) },
  }), /Cannot read the recording: .* at most/],
  ["endpoints", ENDPOINTS_MAX, (size) => ({
    flags: { instruction, intelligence: many(size, (n) => `https://h${n}.example/v1`) },
  }), /\d+ endpoints; at most 16/],
  ["servers", SERVERS_MAX, (size) => ({
    flags: { instruction, mcp: many(size, (n) => `s${n}=true`) },
  }), /\d+ tool servers; at most 64/],
  ["tool rules", TOOL_RULES_MAX, (size) => ({
    flags: { instruction },
    files: {
      "agentd.yaml": JSON.stringify({
        tools: Object.fromEntries(many(size, (n) => `s/t${n}`).map((glob) => [glob, {}])),
      }),
    },
  }), /\d+ rules; at most 1000/],
  ["list items", CONFIG_LIST_ITEMS_MAX, (size) => ({
    flags: { instruction, require: many(size, (n) => `f${n}`) },
  }), /a list of \d+ items; at most 10000/],
];

Deno.test("loadSettings: every bound holds, and what is over it is said", async () => {
  for (const [name, max, given, over] of rows) {
    assert.deepEqual((await load(given(max))).problems, [], name);
    const { problems } = await load(given(max + 1));
    assert.equal(problems.length, 1, name);
    assert.match(problems[0]!, over, name);
  }
});

Deno.test("loadSettings: a value at fault is shown in short", async () => {
  const { problems } = await load({ flags: { instruction, mode: ["m".repeat(1000)] } });
  const [line] = problems;
  assert.ok(line!.includes(`"${"m".repeat(PROBLEM_VALUE_CHARS_MAX - 2)}… is not one of`));
});
