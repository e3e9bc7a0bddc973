/** OTLP from outside: spans of a run, while it goes on and afterwards, at a real endpoint. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { FOUR_TURNS, withPlace } from "./recorded_run.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

interface Collector {
  url: string;
  /** Bodies that were posted, in order. */
  posted: { path: string; type: string | null; body: Loose }[];
  /** What the endpoint answers from now on. */
  status: number;
  [Symbol.asyncDispose](): Promise<void>;
}

function startCollector(): Collector {
  const posted: Collector["posted"] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      const type = request.headers.get("content-type");
      posted.push({ path: pathname, type, body: await request.json() });
      return Response.json({}, { status: collector.status });
    },
  );
  const collector: Collector = {
    url: `http://127.0.0.1:${server.addr.port}`,
    posted,
    status: 200,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return collector;
}

function spansOf(collector: Collector): Loose[] {
  return collector.posted.flatMap(({ body }) => body.resourceSpans).flatMap((each: Loose) =>
    each.scopeSpans
  ).flatMap((scope: Loose) => scope.spans);
}

/** One tree: the agent's span, four model calls and three tool calls below it, each once. */
function assertTree(spans: Loose[]): void {
  const names = spans.map((span) => span.name.split(" ")[0]).sort();
  assert.deepEqual(names, [
    ...Array(4).fill("chat"),
    ...Array(3).fill("execute_tool"),
    "invoke_agent",
  ]);
  const ids = new Set(spans.map((span) => span.spanId));
  assert.equal(ids.size, spans.length);
  assert.equal(new Set(spans.map((span) => span.traceId)).size, 1);
  const root = spans.find((span) => span.name.startsWith("invoke_agent"));
  assert.equal(root.parentSpanId, undefined, "nothing that is sent is above it");
  for (const span of spans) {
    assert.ok(span === root || ids.has(span.parentSpanId), span.name);
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), span.name);
    assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(root.startTimeUnixNano), span.name);
  }
}

for (const program of programs()) {
  Deno.test(`spans (${program.name}): sent while running, and sent again from the record`, () =>
    withPlace(program, FOUR_TURNS, async ({ agentd, url }) => {
      await using collector = startCollector();
      const run = ["run", "Say what is there", "--intelligence", url, "--allow-read=."];
      await agentd(0, ...run, "--otlp-endpoint", collector.url);
      for (const { path, type } of collector.posted) {
        assert.deepEqual([path, type], ["/v1/traces", "application/json"]);
      }
      const live = spansOf(collector);
      assertTree(live);

      collector.posted.length = 0;
      const sent = await agentd(0, "inspect", "last", "--otlp-endpoint", collector.url);
      assert.match(sent.stdout, /8 spans/);
      const again = spansOf(collector);
      assertTree(again);
      // The same spans: whoever sends twice is not told two stories.
      const idOf = (span: Loose) => span.spanId;
      assert.deepEqual(again.map(idOf).sort(), live.map(idOf).sort());
      const printed = await agentd(0, "inspect", "last", "--format", "otlp");
      const [{ scopeSpans }] = printed.json.resourceSpans;
      assert.deepEqual(scopeSpans[0].spans.map(idOf).sort(), live.map(idOf).sort());
    }));

  Deno.test(`spans (${program.name}): an endpoint that fails is one line and changes no run`, () =>
    withPlace(program, FOUR_TURNS, async ({ agentd, url }) => {
      await using collector = startCollector();
      collector.status = 400;
      const run = ["run", "Say what is there", "--intelligence", url, "--allow-read=."];
      const ran = await agentd(0, ...run, "--otlp-endpoint", collector.url);
      assert.match(ran.stderr, /^agentd: Cannot send .*spans.*400.*$/m);
      assert.equal(ran.stdout, "The file says hello.\n");
      const denied = await agentd(1, "inspect", "last", "--otlp-endpoint", collector.url);
      assert.match(denied.stderr, /^agentd: Cannot send .*400[^\n]*\n$/);
      const wrong = await agentd(2, "inspect", "last", "--otlp-endpoint", "nonsense");
      assert.match(wrong.stderr, /^agentd: --otlp-endpoint: [^\n]*\n$/);
    }));
}
