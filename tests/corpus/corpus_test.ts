/** The corpus holds what its scripts say, and the defaults do to it what ARCHITECTURE.md says. */

import assert from "node:assert/strict";
import { DEFAULT_LIMITS } from "../../src/core/limits.ts";
import { judgeCorpus, readCorpus, settings } from "../../tools/tune.ts";
import { playScript, scriptedTrajectories, SCRIPTS } from "./scenarios.ts";
import { judgeTrajectory } from "./trajectory.ts";

const root = decodeURIComponent(new URL("../..", import.meta.url).pathname);
const corpus = await readCorpus(root);

Deno.test("corpus: the scripted trajectories are what the machine plays (deno task tune write)", () => {
  const scripted = corpus.filter((trajectory) => trajectory.source === "scenario");
  assert.deepEqual(scripted, scriptedTrajectories());
  assert.ok(corpus.some((trajectory) => trajectory.source === "run"), "runs are part of it");
});

Deno.test("corpus: a trajectory is stopped where the machine stops the run it came from", () => {
  for (const script of SCRIPTS) {
    const played = playScript(script, {});
    const trajectory = corpus.find(({ name }) => name === script.name)!;
    const end = judgeTrajectory(trajectory, DEFAULT_LIMITS);
    const { status, usage } = played.result;
    assert.equal(
      end?.stop.status ?? "completed",
      status === "exhausted_steps" ? "completed" : status,
      script.name,
    );
    if (end !== null) assert.equal(end.turn, usage.steps, script.name);
  }
});

Deno.test("corpus: the defaults catch every spin, and cut one good run, where every edit was in vain", () => {
  const { cut, missed, caught } = judgeCorpus(corpus, DEFAULT_LIMITS);
  assert.deepEqual(missed, []);
  assert.deepEqual(cut, ["three edits in a row that change nothing in what fails (turn 14)"]);
  const slow = caught.filter((spin) => spin.turns > 5).map((spin) => spin.name);
  assert.deepEqual(slow, ["one call among real progress, for ever"]);
});

Deno.test("corpus: tighter limits than the defaults cut more good runs", () => {
  const cutOf = (knobs: Parameters<typeof judgeCorpus>[1]) => judgeCorpus(corpus, knobs).cut.length;
  const chosen = cutOf(DEFAULT_LIMITS);
  for (const knobs of settings()) {
    const isTighter = knobs.idleLimit < DEFAULT_LIMITS.idleLimit ||
      knobs.failLimit < DEFAULT_LIMITS.failLimit;
    if (isTighter && knobs.repeatCap === DEFAULT_LIMITS.repeatCap) {
      assert.ok(cutOf(knobs) > chosen, JSON.stringify(knobs));
    }
  }
});
