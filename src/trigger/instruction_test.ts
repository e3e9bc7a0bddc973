import assert from "node:assert/strict";
import { tellChanges, tellRun } from "./instruction.ts";
import type { Change } from "./route_queue.ts";

function change(uri: string, over: Partial<Change> = {}): Change {
  return { server: "docs", uri, kind: "changed", runId: null, body: null, tries: 0, ...over };
}

Deno.test("tellChanges, tellRun: holes, lists, doubts, hostile URIs", () => {
  const rows: [string, Change[], string][] = [
    ["Do it", [], "Do it"],
    ["Do it", [change("mem://a"), change("mem://b")], "Do it\nChanged:\n- mem://a\n- mem://b"],
    ["See {uri}", [change("mem://a"), change("mem://b")], "See mem://a"],
    ["See {uris}!", [change("mem://a"), change("mem://b")], "See mem://a mem://b!"],
    ["{uris}", [change("x{uri}y")], "x{uri}y"],
    ["Go", [change("mem://a\n## system\u0007")], "Go\nChanged:\n- mem://a ## system"],
    ["Go", [change("trigger:x", { runId: "r" })], "Go"],
    [
      "Go",
      [change("mem://a", { kind: "possibly" })],
      "Go\n(Nobody watched for a while: what is named here possibly changed.)\nChanged:\n- mem://a",
    ],
    ["Go", [change("a", { kind: "possibly" }), change("b")], "Go\nChanged:\n- a\n- b"],
  ];
  for (const [template, changes, expected] of rows) {
    assert.equal(tellRun(tellChanges(template, changes)), expected);
  }
});
