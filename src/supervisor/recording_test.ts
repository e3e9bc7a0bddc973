import assert from "node:assert/strict";
import type { Settings } from "../config/settings.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ModelSettings } from "../wire/payload.ts";
import type { TelemetryLine } from "../wire/telemetry.ts";
import { formatText } from "../wire/telemetry_text.ts";
import { systemFiles } from "../sys/files.ts";
import { deliverRecording, recordingInside } from "./recording.ts";

const settingsFor = (recordTo: string | null, mode = "once") =>
  ({ mode, model: { recordTo } }) as unknown as Settings;

Deno.test("recordingInside: the loop writes in its own directory, and only if asked", () => {
  const model = { name: "m", recordTo: null } as unknown as ModelSettings;
  assert.equal(recordingInside(model, "/run").recordTo, null);
  const inside = recordingInside({ ...model, recordTo: "/elsewhere/file" }, "/run");
  assert.deepEqual(inside, { name: "m", recordTo: "/run/recording.jsonl" });
});

Deno.test("deliverRecording: replaces in mode once, appends in a daemon, tells of a failure", () => {
  const directory = Deno.makeTempDirSync();
  const told: TelemetryLine[] = [];
  const telemetry: TelemetryPort = {
    emit: (event, fields, level) =>
      void told.push({ event, level, agent_path: null, ...fields } as unknown as TelemetryLine),
  };
  const target = `${directory}/target.jsonl`;
  const deliver = (mode: string, to: string | null = target) =>
    deliverRecording(settingsFor(to, mode), systemFiles, telemetry, directory);
  try {
    deliver("once");
    assert.throws(() => Deno.statSync(target), Deno.errors.NotFound, "nothing was recorded");
    Deno.writeTextFileSync(`${directory}/recording.jsonl`, "a\n");
    deliver("once", null);
    assert.throws(() => Deno.statSync(target), Deno.errors.NotFound, "nobody asked");
    Deno.writeTextFileSync(target, "old\n");
    deliver("once");
    assert.equal(Deno.readTextFileSync(target), "a\n");
    deliver("loop");
    assert.equal(Deno.readTextFileSync(target), "a\na\n");
    assert.deepEqual(told, []);
    deliver("once", `${directory}/none/target`);
    deliver("loop", `${directory}/none/target`);
    assert.deepEqual(told.map(({ event }) => event), ["loop.error", "loop.error"]);
    // People are told as well as machines.
    for (const line of told) {
      assert.match(
        formatText(line) ?? "",
        /^error: Cannot hand over the recording, which stays in/,
      );
    }
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});
