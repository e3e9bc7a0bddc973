import assert from "node:assert/strict";
import type { Outcome } from "../core/outcome.ts";
import { byteLength } from "../core/text.ts";
import type { Part } from "../ports/model.ts";
import type { ToolFailure, ToolResult } from "../ports/tools.ts";
import { systemDigest } from "../sys/digest.ts";
import { tool } from "../../tests/fakes/simulation.ts";
import { renderObservation } from "./render.ts";
import { shapeResult } from "./shape.ts";
import type { PlannedCall } from "./plan.ts";

const kept = new Map<string, string>();
const deps = {
  digest: systemDigest,
  mask: (text: string) => text.replaceAll("s3cret", "***"),
  keep: (id: string, content: string) => {
    kept.set(id, content);
    return true;
  },
};

const planned = (effect: PlannedCall["effect"] = "side_effect"): PlannedCall => ({
  call: "c1-1",
  tool: tool("a/x"),
  arguments: { n: 1 },
  effect,
  showBytesMax: 1024,
  mediaBytesMax: 2 * 1024 * 1024,
  mediaMax: 4,
});
const answer = (
  parts: Part[],
  more: Partial<ToolResult> = {},
): Outcome<ToolResult, ToolFailure> => ({
  ok: true,
  value: { parts, structured: null, isError: false, ...more },
});
const text = (content: string): Part => ({ type: "text", text: content });
const shown = (parts: readonly Part[]) =>
  parts.map((part) => part.type === "text" ? part.text : part.type).join("|");

Deno.test("shapeResult: a result over the limit shows head and tail with artifact and total", async () => {
  const whole = Array.from({ length: 400 }, (_, n) => `line ${n} ünï`).join("\n");
  const { observation, bytes } = await shapeResult(deps, planned(), answer([text(whole)]));
  assert.equal(observation.class, "truncated");
  assert.ok(observation.class === "truncated");
  assert.equal(observation.excerpt.total, byteLength(whole));
  assert.equal(bytes, byteLength(whole));
  assert.equal(kept.get("c1-1"), whole);
  const read = shown(renderObservation(observation));
  assert.match(read, /^\[truncated kept=\d+ total=\d+ artifact="c1-1"\]\nline 0 /);
  assert.match(read, /line 399 ünï$/);
  assert.match(read, /bytes left out here; artifact_read \{"id":"c1-1","offset":\d+\}/);
  // Cut on line borders: every line shown is whole.
  for (const line of read.split("\n").filter((line) => line.startsWith("line"))) {
    assert.match(line, /^line \d+ ünï$/);
  }
  assert.ok(byteLength(read) < 1024 + 300);
});

Deno.test("shapeResult: at the limit nothing is cut, one byte past it is", async () => {
  const at = await shapeResult(deps, planned(), answer([text("x".repeat(1024))]));
  assert.equal(at.observation.class, "ok");
  const past = await shapeResult(deps, planned(), answer([text("x".repeat(1025))]));
  assert.equal(past.observation.class, "truncated");
});

Deno.test("shapeResult: a cut never splits a code point, NULs and lone surrogates never pass", async () => {
  const { observation } = await shapeResult(deps, planned(), answer([text("😀".repeat(2_000))]));
  assert.ok(observation.class === "truncated");
  assert.ok(shown(observation.parts).isWellFormed());
  assert.doesNotMatch(shown(observation.parts), /\uFFFD/);
  const odd = await shapeResult(deps, planned(), answer([text("a\0b\uD800c")]));
  assert.ok(odd.observation.class === "ok");
  assert.equal(shown(odd.observation.parts), "a\uFFFDb\uFFFDc");
});

Deno.test("shapeResult: a mark of byte order is content, and what is left out begins where the head ends", async () => {
  const whole = "\uFEFF" + "x".repeat(3_000);
  const { observation } = await shapeResult(deps, planned(), answer([text(whole)]));
  assert.ok(observation.class === "truncated");
  const read = shown(observation.parts);
  const [head] = read.split("\n[");
  assert.ok(head!.startsWith("\uFEFFx"));
  assert.match(read, new RegExp(`"offset":${byteLength(head!)}}`));
});

Deno.test("shapeResult: secrets are gone before anything is kept", async () => {
  const { observation } = await shapeResult(
    deps,
    planned(),
    answer([text("token s3cret " + "x".repeat(2_000))]),
  );
  assert.doesNotMatch(JSON.stringify(observation), /s3cret/);
  assert.doesNotMatch(kept.get("c1-1")!, /s3cret/);
});

Deno.test("shapeResult: structured content is shown once and kept structured", async () => {
  const same = await shapeResult(
    deps,
    planned(),
    answer([text('{"a": 1}')], { structured: { a: 1 } }),
  );
  assert.ok(same.observation.class === "ok");
  assert.equal(shown(same.observation.parts), '{"a": 1}');
  const apart = await shapeResult(
    deps,
    planned(),
    answer([text("see below")], { structured: { a: 1 } }),
  );
  assert.ok(apart.observation.class === "ok");
  assert.equal(shown(apart.observation.parts), 'see below\n{"a":1}');
  assert.deepEqual(apart.observation.structured, { a: 1 });
});

Deno.test("shapeResult: a result that says it is partial is partial", async () => {
  const { observation } = await shapeResult(
    deps,
    planned(),
    answer([], { structured: { partial: true, done: "3 files", missing: ["x.txt"] } }),
  );
  assert.ok(observation.class === "partial");
  assert.equal(observation.missing, '["x.txt"]');
});

Deno.test("shapeResult: isError is the tool's own error, a JSON-RPC error the protocol's", async () => {
  const own = await shapeResult(deps, planned(), answer([text("ENOENT")], { isError: true }));
  assert.deepEqual(own.observation, {
    class: "error",
    error: "tool",
    message: "ENOENT",
    retryable: false,
    excerpt: null,
  });
  const rows: [ToolFailure["class"], PlannedCall["effect"], string][] = [
    ["protocol", "side_effect", "error"],
    ["not_sent", "side_effect", "error"],
    ["denied", "side_effect", "error"],
    ["server_down", "side_effect", "error"],
    ["lost", "side_effect", "unknown"],
    ["lost", "read_only", "error"],
    ["cancelled", "side_effect", "unknown"],
    ["cancelled", "read_only", "refused"],
  ];
  for (const [failure, effect, expected] of rows) {
    const { observation } = await shapeResult(deps, planned(effect), {
      ok: false,
      failure: { class: failure, message: "gone s3cret", retryable: false },
    });
    assert.equal(observation.class, expected, `${failure} ${effect}`);
    assert.doesNotMatch(JSON.stringify(observation), /s3cret/);
  }
});

Deno.test("shapeResult: an unknown outcome says what was asked and how to find out", async () => {
  const { observation } = await shapeResult(deps, planned(), {
    ok: false,
    failure: { class: "lost", message: "timed out after 60 s", retryable: false },
  });
  assert.ok(observation.class === "unknown");
  assert.match(
    observation.why,
    /a\/x \{"n":1\} was sent.*timed out after 60 s.*may have happened.*Read the state/,
  );
});

Deno.test("shapeResult: an image is carried, one too large described", async () => {
  const small: Part = { type: "image", mimeType: "image/png", data: "aGk=" };
  const ok = await shapeResult(deps, planned(), answer([text("see"), small]));
  assert.ok(ok.observation.class === "ok");
  assert.deepEqual(ok.observation.parts[1], small);
  const huge: Part = { type: "image", mimeType: "image/png", data: "A".repeat(3 * 1024 * 1024) };
  const told = await shapeResult(deps, planned(), answer([huge]));
  assert.ok(told.observation.class === "ok");
  assert.match(
    shown(told.observation.parts),
    /image image\/png, 3145728 bytes of base64, too large/,
  );
});

Deno.test("shapeResult: media over their number, and those of an error, are described and still count", async () => {
  const icon = (data: string): Part => ({ type: "image", mimeType: "image/png", data });
  const icons = (count: number, last: string) =>
    Array.from({ length: count }, (_, n) => icon(n === count - 1 ? last : "aGk="));
  const classes = async (count: number) => {
    const { observation } = await shapeResult(deps, planned(), answer(icons(count, "aGk=")));
    return observation.class === "ok" ? observation.parts.map((part) => part.type).join(" ") : "";
  };
  assert.equal(await classes(4), "image image image image");
  assert.equal(await classes(5), "text image image image image");
  const over = await shapeResult(deps, planned(), answer(icons(5, "aGk=")));
  const other = await shapeResult(deps, planned(), answer(icons(5, "aGl=")));
  assert.notEqual(over.digest, other.digest);
  const failing = answer([text("button not found"), icon("aGk=")], { isError: true });
  const { observation } = await shapeResult(deps, planned(), failing);
  assert.ok(observation.class === "error");
  assert.equal(
    observation.message,
    "button not found\n[image image/png, 4 bytes of base64, an error shows none]",
  );
});

Deno.test("shapeResult: the digest does not see time, and sees everything else", async () => {
  const digest = async (content: string) =>
    (await shapeResult(deps, planned(), answer([text(content)]))).digest;
  assert.equal(await digest("up at 10:11:12"), await digest("up at 10:11:13"));
  assert.notEqual(await digest("count 1"), await digest("count 2"));
  const long = "x".repeat(300_000);
  assert.notEqual(await digest(long + "a"), await digest(long + "b"));
});
