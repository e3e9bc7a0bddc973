import assert from "node:assert/strict";
import type { ModelFailure, ModelFailureClass } from "../ports/model.ts";
import { goesToNext, HealthMemory, joinFailures } from "./failover.ts";

function failure(failureClass: ModelFailureClass, retryable: boolean, attempts = 1): ModelFailure {
  return { class: failureClass, retryable, attempts, message: failureClass, endpoint: "e" };
}

Deno.test("HealthMemory: a failing endpoint is skipped for a growing time, up to five minutes", () => {
  const health = new HealthMemory(2);
  assert.deepEqual(health.order(0), [0, 1]);
  let now = 0;
  const waits: number[] = [];
  for (let i = 0; i < 9; i++) {
    health.failed(0, "unreachable", now);
    assert.deepEqual(health.order(now), [1, 0]);
    let wait = 0;
    while (health.order(now + wait)[0] === 1) wait += 1_000;
    waits.push(wait / 1_000);
    now += wait;
  }
  assert.deepEqual(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
  health.succeeded(0);
  assert.deepEqual(health.order(now), [0, 1]);
  health.failed(0, "unreachable", now);
  assert.deepEqual(health.order(now + 5_000), [0, 1]);
});

Deno.test("HealthMemory: what lasts is skipped longest; the skipped are the last resort", () => {
  const health = new HealthMemory(3);
  health.failed(0, "auth", 0);
  health.failed(1, "unreachable", 0);
  assert.deepEqual(health.order(1_000), [2, 1, 0]);
  assert.deepEqual(health.order(6_000), [1, 2, 0]);
  assert.deepEqual(health.order(300_000), [0, 1, 2]);
});

Deno.test("goesToNext: the conversation's own faults are not asked about elsewhere", () => {
  const rows: [ModelFailureClass, boolean][] = [
    ["auth", true],
    ["quota", true],
    ["unreachable", true],
    ["not_found", true],
    ["bad_request", true],
    ["uncovered", true],
    ["context_length", false],
    ["tools_unsupported", false],
    ["cancelled", false],
  ];
  for (const [name, goes] of rows) assert.equal(goesToNext(name), goes, name);
});

Deno.test("joinFailures: names all, counts all, and is retryable if one is", () => {
  const auth = failure("auth", false, 1);
  assert.equal(joinFailures([auth]), auth);
  const both = joinFailures([auth, failure("unreachable", true, 4)]);
  assert.deepEqual([both.class, both.retryable, both.attempts], ["unreachable", true, 5]);
  assert.match(both.message, /auth.*unreachable/);
  assert.equal(joinFailures([failure("quota", false), auth]).class, "quota");
});
