import assert from "node:assert/strict";
import { Validator } from "@cfworker/json-schema";
import schema from "../../tests/schemas/atif-1.8.schema.json" with { type: "json" };
import { okText, runMachine, type Script } from "../../tests/fakes/machine_run.ts";
import type { Json, JsonObject } from "../core/json.ts";
import type { Observation } from "../agent/observation.ts";
import { systemFiles } from "../sys/files.ts";
import { systemHttp } from "../sys/http.ts";
import { systemClock } from "../sys/clock.ts";
import { exportCommand, sendCommand, streamSpans } from "./export.ts";
import { toAtif } from "./atif.ts";
import { toOpenai } from "./openai.ts";
import { sendOtlp, toOtlp } from "./otlp.ts";
import { type AgentTranscript, readTranscripts } from "./transcript.ts";

const PIXEL = "iVBORw0KGgo=";

/** One turn of each kind: text, image, error, nothing legal, an answer. */
const script: Script = {
  reply: (step) =>
    [
      { text: "I read.", calls: [{ tool: "fs/read", arguments: { path: "a" } }] },
      {
        text: "",
        calls: [
          { tool: "fs/list", arguments: { path: "b" } },
          { tool: "no/such", arguments: { x: 1 } },
        ],
      },
      { text: "", calls: [{ tool: "fs/read", arguments: { path: "c" } }] },
    ][step - 1] ?? { text: "Done.", calls: [] },
  observe: (call): Observation => {
    if (call.arguments.path === "a") return okText("text of a");
    if (call.arguments.path === "b") {
      return {
        class: "ok",
        parts: [
          { type: "text", text: "a picture" },
          { type: "image", mimeType: "image/png", data: PIXEL },
          { type: "image", mimeType: "image/tiff", data: PIXEL },
        ],
        structured: null,
      };
    }
    return { class: "error", error: "tool", message: "no c", retryable: false, excerpt: null };
  },
  child: (call) => call.arguments.path === "a" ? "0.1" : null,
};

async function withTree(run: (agents: AgentTranscript[]) => void | Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "agentd-export-" });
  try {
    const child = { ...script, child: () => null };
    runMachine({ directory: `${directory}/agents/0.1`, path: "0.1", script: child, runId: "R" });
    runMachine({ directory, script: { ...script, child: () => null }, runId: "R" });
    await run(readTranscripts(systemFiles, directory));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("toAtif: valid against a schema of the specification, and by its rules beyond it", () =>
  withTree((agents) => {
    const atif = toAtif(agents);
    const checked = new Validator(schema as object, "2020-12", false).validate(atif);
    assert.deepEqual(checked.errors, []);
    const documents = [atif, ...(atif.subagent_trajectories as JsonObject[])];
    assert.equal(new Set(documents.map((document) => document.trajectory_id)).size, 2);
    for (const document of documents) {
      (document.steps as JsonObject[]).forEach((step, i) => {
        assert.equal(step.step_id, i + 1);
        const calls = ((step.tool_calls ?? []) as JsonObject[]).map((call) => call.tool_call_id);
        const results = (step.observation as { results: JsonObject[] } | undefined)?.results ?? [];
        for (const result of results) assert.ok(calls.includes(result.source_call_id!));
        assert.equal(results.length, calls.length);
      });
      // "If not equivalent to the number of steps in the trajectory, must be documented" in notes.
      const { total_steps: steps } = document.final_metrics as JsonObject;
      assert.equal(steps === (document.steps as Json[]).length, document.notes === undefined);
    }
  }));

Deno.test("toAtif: a cost includes those of subagents, and is left out where one is unknown", () =>
  withTree((agents) => {
    const costs = (...each: (number | null)[]) => {
      const priced = agents.map((agent, i) => ({
        ...agent,
        usage: { ...agent.usage, cost: each[i]! },
      }));
      const atif = toAtif(priced);
      return [atif, ...(atif.subagent_trajectories as JsonObject[])].map((document) =>
        (document.final_metrics as JsonObject).total_cost_usd
      );
    };
    assert.deepEqual(costs(0.5, 0.25), [0.75, 0.25]);
    assert.deepEqual(costs(0.5, null), [undefined, undefined]);
    assert.deepEqual(costs(null, 0.25), [undefined, 0.25]);
  }));

Deno.test("toAtif: the schema refuses what the specification forbids", () =>
  withTree((agents) => {
    const edits: ((atif: JsonObject) => void)[] = [
      (atif) => atif.schema_version = "ATIF-v2.0",
      (atif) => atif.steps = [],
      (atif) => delete atif.agent,
      (atif) => atif.surprise = 1,
      (atif) => (atif.steps as JsonObject[])[0]!.metrics = {},
      (atif) => (atif.steps as JsonObject[])[2]!.timestamp = "yesterday",
      (atif) =>
        ((atif.subagent_trajectories as JsonObject[])[0]!).trajectory_id = undefined as never,
    ];
    const validator = new Validator(schema as object, "2020-12", false);
    for (const edit of edits) {
      const atif = JSON.parse(JSON.stringify(toAtif(agents)));
      edit(atif);
      assert.equal(validator.validate(JSON.parse(JSON.stringify(atif))).valid, false, `${edit}`);
    }
  }));

Deno.test("toAtif: the run's own facts", () =>
  withTree((agents) => {
    const atif = toAtif(agents) as {
      steps: JsonObject[];
      final_metrics: JsonObject;
      agent: JsonObject;
    };
    assert.deepEqual(atif.steps.map((step) => step.source), [
      "system",
      "user",
      "agent",
      "agent",
      "agent",
      "agent",
    ]);
    assert.equal(atif.steps[1]!.message, "Summarise ./docs");
    assert.deepEqual(atif.steps[2]!.tool_calls, [
      { tool_call_id: "c1-1", function_name: "fs__read", arguments: { path: "a" } },
    ]);
    const [, second] = atif.steps.slice(2) as unknown as {
      observation: { results: JsonObject[] };
    }[];
    assert.deepEqual(second!.observation.results[0]!.content, [
      { type: "text", text: "a picture" },
      {
        type: "image",
        source: { media_type: "image/png", path: `data:image/png;base64,${PIXEL}` },
      },
      { type: "text", text: "[image image/tiff, 9 bytes]" },
    ]);
    assert.equal((second!.observation.results[1]!.extra as JsonObject).class, "invalid");
    assert.equal((atif.steps[5]!.extra as JsonObject).verdict, "answered");
    assert.equal(atif.final_metrics.total_steps, 4);
    assert.equal((atif.final_metrics.extra as JsonObject).status, "completed");
    assert.equal((atif.agent.tool_definitions as Json[]).length > 2, true);
  }));

Deno.test("toOpenai: roles alternate, every call is answered once, right after it", () =>
  withTree((agents) => {
    const { messages, tools, subagents } = toOpenai(agents) as {
      messages: JsonObject[];
      tools: JsonObject[];
      subagents: { path: string; messages: JsonObject[] }[];
    };
    assert.equal(subagents[0]!.path, "0.1");
    assert.equal(subagents[0]!.messages.length, messages.length);
    assert.ok(tools.length > 2);
    let open: string[] = [];
    for (const message of messages) {
      if (message.role === "tool") {
        assert.equal(message.tool_call_id, open.shift());
        continue;
      }
      assert.deepEqual(open, []);
      const calls = (message.tool_calls ?? []) as { id: string; function: { arguments: string } }[];
      open = calls.map((call) => call.id);
      for (const call of calls) JSON.parse(call.function.arguments);
    }
    assert.deepEqual(open, []);
    assert.deepEqual(messages.map((message) => message.role).slice(0, 4), [
      "system",
      "user",
      "assistant",
      "tool",
    ]);
    assert.match(String(messages[3]!.content), /^\[ok\]\ntext of a/);
    assert.equal(messages.at(-1)!.content, "Done.");
  }));

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
}

function spansOf(body: JsonObject): Span[] {
  const [resource] = body.resourceSpans as unknown as { scopeSpans: { spans: Span[] }[] }[];
  return resource!.scopeSpans[0]!.spans;
}

Deno.test("toOtlp: a span for each agent, model call and tool call, in one tree", () =>
  withTree((agents) => {
    const linked = [agents[0]!, agents[1]!];
    const first = linked[0]!.entries[0]!;
    assert.ok(first.kind === "turn");
    first.calls[0]!.child = "0.1";
    const spans = spansOf(toOtlp(linked));
    assert.deepEqual(
      spans.slice(0, 4).map((span) => span.name),
      ["invoke_agent agentd", "chat some-model", "execute_tool fs/read", "chat some-model"],
    );
    const ids = new Set(spans.map((span) => span.spanId));
    assert.equal(ids.size, spans.length);
    for (const span of spans) {
      assert.match(span.traceId, /^[0-9a-f]{32}$/);
      assert.match(span.spanId, /^[0-9a-f]{16}$/);
      assert.match(span.startTimeUnixNano, /^\d{19}$/);
      assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
      assert.equal(span.traceId, spans[0]!.traceId);
      if (span.parentSpanId !== undefined) assert.ok(ids.has(span.parentSpanId), span.name);
    }
    const roots = spans.filter((span) => span.parentSpanId === undefined);
    assert.equal(roots.length, 1);
    const child = spans.filter((span) => span.name === "invoke_agent agentd")[1]!;
    assert.equal(child.parentSpanId, spans[2]!.spanId);
    const chat = Object.fromEntries(spans[1]!.attributes.map(({ key, value }) => [key, value]));
    assert.deepEqual(chat["gen_ai.operation.name"], { stringValue: "chat" });
    assert.deepEqual(chat["gen_ai.response.finish_reasons"], {
      arrayValue: { values: [{ stringValue: "tool_calls" }] },
    });
    assert.ok(Number(chat["gen_ai.usage.input_tokens"]!.intValue) > 0);
    const failed = spans.find((span) => span.status.code === 2)!;
    assert.equal(failed.name, "execute_tool fs/read");
    assert.deepEqual(spansOf(toOtlp(linked)), spans);
  }));

Deno.test("sendOtlp: posts to /v1/traces; a refusal is one sentence", async () => {
  const seen: { path: string; type: string | null; body: JsonObject }[] = [];
  let status = 200;
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    seen.push({
      path: new URL(request.url).pathname,
      type: request.headers.get("content-type"),
      body: await request.json(),
    });
    return new Response("{}", { status });
  });
  const base = `http://127.0.0.1:${server.addr.port}`;
  const { signal } = new AbortController();
  try {
    assert.ok((await sendOtlp(systemHttp, base, { resourceSpans: [] }, signal)).ok);
    assert.ok((await sendOtlp(systemHttp, `${base}/custom`, { resourceSpans: [] }, signal)).ok);
    status = 503;
    const refused = await sendOtlp(systemHttp, base, {}, signal);
    assert.match(
      refused.ok ? "" : refused.failure.message,
      /^Cannot send spans to .*: it answered 503$/,
    );
    assert.deepEqual(seen.map(({ path, type }) => [path, type]), [
      ["/v1/traces", "application/json"],
      ["/custom", "application/json"],
      ["/v1/traces", "application/json"],
    ]);
  } finally {
    await server.shutdown();
  }
  const gone = await sendOtlp(systemHttp, base, {}, signal);
  assert.match(gone.ok ? "" : gone.failure.message, /^Cannot send spans to 127\.0\.0\.1:\d+: /);
});

Deno.test("exportCommand: each format is one document; a record without a start is exit 2", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const place = { id: "R", directory, record: `${directory}/record.jsonl` };
    runMachine({ directory, script: { ...script, child: () => null } });
    for (
      const [format, key] of [["atif", "steps"], ["openai", "messages"], [
        "otlp",
        "resourceSpans",
      ]] as const
    ) {
      const output = exportCommand(systemFiles, place, format);
      assert.equal(output.exitCode, 0);
      assert.ok(JSON.parse(output.stdout)[key].length > 0);
    }
    const text = Deno.readTextFileSync(place.record).split("\n");
    Deno.writeTextFileSync(place.record, [...text.slice(0, 8), "{}", ...text.slice(8)].join("\n"));
    const damaged = exportCommand(systemFiles, place, "openai");
    assert.equal(damaged.exitCode, 1);
    assert.match(
      damaged.stderr,
      /^agentd: agent 0 is exported up to line 9: it is no line of a record\n$/,
    );
    Deno.writeTextFileSync(place.record, "");
    assert.equal(exportCommand(systemFiles, place, "atif").exitCode, 2);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("streamSpans: every span once, also when a delivery fails, the agent's when it is over", async () => {
  const directory = await Deno.makeTempDir();
  const received: Span[] = [];
  let refuse = true;
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const body = await request.json();
    if (refuse) return new Response("", { status: 500 });
    received.push(...spansOf(body));
    return new Response("{}");
  });
  const base = `http://127.0.0.1:${server.addr.port}`;
  try {
    const own = { ...script, child: () => null };
    const deps = { files: systemFiles, http: systemHttp, clock: systemClock };
    let events = 0;
    runMachine({ directory, script: own, kill: () => ++events === 8 });
    const over = AbortSignal.abort();
    const refused = await streamSpans(deps, directory, base, over);
    assert.match(refused.ok ? "" : refused.failure.message, /it answered 500$/);
    refuse = false;
    const first = await streamSpans(deps, directory, base, over);
    assert.ok(first.ok && first.value > 0);
    assert.ok(!received.some((span) => span.name.startsWith("invoke_agent")));
    runMachine({ directory, script: own, resume: true });
    const place = { id: "R", directory, record: `${directory}/record.jsonl` };
    received.length = 0;
    // A run that is over is sent whole, in one delivery.
    const sent = await sendCommand(deps, place, base);
    assert.match(sent.stdout, /^\d+ spans sent\n$/);
    assert.equal(received.filter((span) => span.name.startsWith("invoke_agent")).length, 1);
    const whole = received.map((span) => span.spanId).sort();
    received.length = 0;
    const streamed = await streamSpans(deps, directory, base, over);
    assert.ok(streamed.ok);
    assert.deepEqual(received.map((span) => span.spanId).sort(), whole);
  } finally {
    await server.shutdown();
    await Deno.remove(directory, { recursive: true });
  }
});
