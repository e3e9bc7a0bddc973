import assert from "node:assert/strict";
import { failedResult } from "../wire/result.ts";
import { Metrics } from "./metrics.ts";

Deno.test("Metrics: text exposition: zeros from the start, labels escaped, histograms cumulative", () => {
  const metrics = new Metrics();
  metrics.countEnd(failedResult("stalled", ""), 1500);
  metrics.countEnd({ ...failedResult("crashed", ""), status: null, abort: "mcp" }, 3_600_000);
  metrics.set("depth", 3, 'mem://"x"\\y\nz');
  metrics.set("depth", 4, 'mem://"x"\\y\nz');
  metrics.add("dropped", 2, "a", "full");
  const lines = metrics.render().split("\n");
  for (
    const expected of [
      'agentd_runs_total{status="completed"} 0',
      'agentd_runs_total{status="stalled"} 1',
      'agentd_runs_total{status="abort_mcp"} 1',
      "# TYPE agentd_run_duration_seconds histogram",
      'agentd_run_duration_seconds_bucket{le="1"} 0',
      'agentd_run_duration_seconds_bucket{le="2.5"} 1',
      'agentd_run_duration_seconds_bucket{le="1800"} 1',
      'agentd_run_duration_seconds_bucket{le="+Inf"} 2',
      "agentd_run_duration_seconds_count 2",
      'agentd_queue_depth{route="mem://\\"x\\"\\\\y z"} 4',
      'agentd_events_dropped_total{route="a",reason="full"} 2',
    ]
  ) assert(lines.includes(expected), expected);
  assert.equal(lines.at(-1), "");
  // One family, one block: HELP, TYPE, samples.
  const families = lines.filter((line) => line.startsWith("# TYPE")).map((line) =>
    line.split(" ")[2]
  );
  assert.equal(new Set(families).size, families.length);
});

Deno.test("Metrics: series are bounded; what is over it is counted as other", () => {
  const metrics = new Metrics();
  for (let i = 0; i < 1_005; i++) metrics.add("received", 1, `route ${i}`);
  assert.equal(metrics.get("received", "route 999"), 1);
  assert.equal(metrics.get("received", "route 1000"), 0);
  assert.equal(metrics.get("received", "other"), 5);
});
