import assert from "node:assert/strict";
import type { ChildEnd } from "../wire/control.ts";
import { failedResult } from "../wire/result.ts";
import { childLines, endChild, forgetShown, loseChildren } from "./children.ts";
import { type AgentState, initialState } from "./state.ts";

function parentOf(...ids: string[]): AgentState {
  const state = initialState();
  for (const [index, id] of ids.entries()) {
    state.children.set(id, { id, path: `0.${index + 1}`, end: null });
  }
  return state;
}

const end = (childId: string, result: string | null = "found"): ChildEnd => ({
  childId,
  path: "0.1",
  status: "completed",
  result: { ...failedResult("completed", "done"), result },
});

Deno.test("forgetShown: what an await has shown is not told again, what it only names is", () => {
  const state = parentOf("A", "B", "C");
  for (const id of ["A", "B"]) endChild(state, end(id));
  const line = JSON.stringify({ child_id: "A", path: "0.1", status: "completed" });
  forgetShown(state, {
    class: "partial",
    done: "A",
    missing: "still running: B, C",
    parts: [{ type: "text", text: line }],
    excerpt: null,
  });
  assert.deepEqual(state.ended.map(({ childId }) => childId), ["B"]);
});

Deno.test("loseChildren: who ran when the run was cut is over, who had ended stays so", () => {
  const state = parentOf("A", "B");
  endChild(state, end("A"));
  loseChildren(state);
  const ends = [...state.children.values()].map((child) => child.end?.status);
  assert.deepEqual(ends, ["completed", "cancelled"]);
  assert.match(childLines(state.ended)[1]!, /^- B \(0\.2\) cancelled: the run was cut/);
});

Deno.test("childLines: at the bound whole, one past it cut, with the way to the rest", () => {
  const [whole, cut, none] = childLines([
    end("A", "x".repeat(2_000)),
    end("A", "x".repeat(2_001)),
    end("A", null),
  ]);
  assert.equal(whole, `- A (0.1) completed: ${"x".repeat(2_000)}`);
  assert.match(cut!, /\(cut; subagent_await \{"ids":\["0\.1"\]\} gives it whole\)$/);
  assert.equal(none, "- A (0.1) completed: done");
});
