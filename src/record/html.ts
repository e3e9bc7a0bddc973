/** `agentd inspect RUN --html FILE`: one page that needs nothing but itself. */

import { fnv64 } from "../core/hash.ts";
import { isObject, type Json } from "../core/json.ts";
import { parseIso } from "../core/time.ts";
import type { RecordLine } from "../wire/record.ts";
import { observationText } from "./artifacts.ts";
import { STYLE } from "./html_style.ts";
import { SCRIPT } from "./html_script.ts";
import {
  composeTrace,
  faultLines,
  type InspectDeps,
  shortActions,
  shortObservations,
  stateOf,
} from "./inspect.ts";
import {
  type CommandOutput,
  formatCost,
  formatCount,
  formatElapsed,
  oneLine,
  usageError,
} from "./output.ts";
import { isForeignVersion, refusal } from "./read.ts";
import type { RunPlace } from "./runs.ts";
import { type AgentTrace, runRecords, type RunTrace, TraceBuilder } from "./trace.ts";

/** Of one reply, call or observation, what the page holds. The record has the rest. */
const CONTENT_CHARS_MAX = 4_000;
/** Of all contents together; beyond it they are named and left out. */
const CONTENT_CHARS_TOTAL_MAX = 24 * 1024 * 1024;
/** Iterations whose contents are parsed at once. */
const CHUNK_ITERATIONS = 50;
const SPAN_KINDS = ["model", "tool", "summary"];

/** A piece of an iteration, as the page shows it. */
interface Content {
  title: string;
  text: string;
}

/** Writes the report; an existing file is replaced. The records are only read. */
export async function htmlCommand(
  deps: InspectDeps,
  place: RunPlace,
  file: string,
): Promise<CommandOutput> {
  const contents: Content[][][] = [];
  const budget = { chars: CONTENT_CHARS_TOTAL_MAX };
  const agents = runRecords(deps.files, place.directory).map(({ path, record }) => {
    const builder = new TraceBuilder(path, record);
    const collector = new ContentCollector(budget);
    builder.read(deps.files, (line) => collector.push(line));
    contents.push(collector.iterations);
    return builder.trace;
  });
  const { fault } = agents[0]!;
  if (fault && isForeignVersion(fault)) return usageError(refusal("inspect", place, fault));
  const trace = composeTrace(place, agents, await stateOf(deps, place, agents[0]!));
  const written = deps.files.writeAtomic(file, renderHtml(trace, contents));
  if (!written.ok) {
    const stderr = `agentd: Cannot write ${file}: ${written.failure.message}\n`;
    return { exitCode: 2, stdout: "", stderr };
  }
  const damaged = agents.some((agent) => agent.fault !== null);
  return { exitCode: damaged ? 1 : 0, stdout: "", stderr: faultLines(agents) };
}

/** Gathers what each iteration said and saw, clipped. */
class ContentCollector {
  readonly iterations: Content[][] = [];
  readonly #budget: { chars: number };
  #open: Content[] = [];
  #tools = new Map<string, string>();

  constructor(budget: { chars: number }) {
    this.#budget = budget;
  }

  push(line: RecordLine): void {
    switch (line.type) {
      case "model.answered":
        this.#add("Model reply", line.text, line.seq);
        break;
      case "model.failed":
        this.#add("Model failure", isObject(line.failure) ? line.failure.message : "", line.seq);
        break;
      case "summary.made":
        this.#add("Summary", line.text, line.seq);
        break;
      case "call.intended":
        this.#tools.set(String(line.call), String(line.tool));
        this.#add(
          `Call ${line.call}: ${line.tool}`,
          JSON.stringify(line.arguments, null, 2),
          line.seq,
        );
        break;
      case "call.refused":
        this.#add(`Call ${line.call}: ${line.tool}, ${line.class}`, line.why, line.seq);
        break;
      case "call.observed": {
        const kind = isObject(line.observation) ? line.observation.class : "";
        const tool = this.#tools.get(String(line.call)) ?? "";
        const title = `Result of ${line.call} ${tool}: ${kind}, ${
          formatCount(Number(line.bytes))
        } bytes`;
        this.#add(title, observationText(line.observation), line.seq);
        break;
      }
      case "action.invalid":
        this.#add("Invalid proposal", `${line.why}\n${line.echo}`, line.seq);
        break;
      case "verify.judged":
        this.#add(
          `Verification ${line.passed ? "passed" : "failed"}`,
          verificationText(line.items),
          line.seq,
        );
        break;
      case "turn.judged":
        this.iterations.push(this.#open);
        this.#open = [];
        this.#tools.clear();
        break;
    }
  }

  #add(title: string, value: Json | undefined, seq: number): void {
    const text = typeof value === "string" ? value : "";
    if (text === "") return;
    let shown = text.slice(0, CONTENT_CHARS_MAX).toWellFormed();
    if (shown.length > this.#budget.chars) shown = "";
    this.#budget.chars -= shown.length;
    const left = text.length - shown.length;
    const rest = left > 0
      ? `\n… ${formatCount(left)} more characters: line ${seq} of the record`
      : "";
    this.#open.push({ title: oneLine(title, 160), text: shown + rest });
  }
}

function verificationText(items: Json | undefined): string {
  if (!Array.isArray(items)) return "";
  return items.filter(isObject).map((item) =>
    `${item.passed ? "passed" : "failed"} ${item.kind} ${item.name}` +
    (item.detail ? `\n${item.detail}` : "")
  ).join("\n");
}

/** The page. `contents` by agent and iteration. */
function renderHtml(trace: RunTrace, contents: Content[][][]): string {
  const order = trace.agents.flatMap((agent, a) =>
    agent.iterations.map((iteration, i) => ({ a, i, ts: iteration.ts }))
  ).sort((x, y) => x.ts < y.ts ? -1 : x.ts > y.ts ? 1 : x.a - y.a || x.i - y.i);
  const data = embed(pageData(trace, order));
  const nonce = fnv64(data);
  let chunks = "";
  for (let from = 0; from < order.length; from += CHUNK_ITERATIONS) {
    const part = order.slice(from, from + CHUNK_ITERATIONS).map(({ a, i }) =>
      contents[a]![i] ?? []
    );
    chunks += `<script type="application/json" id="content-${from / CHUNK_ITERATIONS}">${
      embed(part as unknown as Json)
    }</script>\n`;
  }
  const policy =
    `default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>agentd run ${escape(trace.run_id)}</title>
<style>${STYLE}</style>
</head>
<body>
${renderHeader(trace)}
${MAIN}
<script type="application/json" id="data">${data}</script>
${chunks}<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>
`;
}

function pageData(trace: RunTrace, order: { a: number; i: number }[]): Json {
  const spans = trace.agents.flatMap((agent, a) =>
    agent.spans.map((span) => [a, SPAN_KINDS.indexOf(span.kind), span.start, span.end])
  );
  const rows = order.map(({ a, i }) => pageRow(trace.agents[a]!, a, i));
  const from = spans.reduce((least, span) => Math.min(least, span[2]!), startMs(trace));
  const to = spans.reduce((most, span) => Math.max(most, span[3]!), from);
  return {
    rows,
    spans,
    agents: trace.agents.map(({ path }) => ({ path })),
    chunk: CHUNK_ITERATIONS,
    from,
    to,
  };
}

function startMs(trace: RunTrace): number {
  const started = parseIso(trace.started_at ?? "");
  return started ?? parseIso(trace.last_at ?? "") ?? 0;
}

/** In the order that the script knows the fields by. */
function pageRow(agent: AgentTrace, a: number, i: number): Json[] {
  const iteration = agent.iterations[i]!;
  return [
    a,
    iteration.step,
    parseIso(iteration.ts) ?? 0,
    shortActions(iteration),
    shortObservations(iteration.actions),
    iteration.verdict,
    iteration.delta,
    iteration.idle,
    iteration.tokens_in,
    iteration.tokens_out,
    iteration.tokens_cached,
    iteration.model_ms,
    iteration.tools_ms,
    iteration.cost,
    iteration.delta === 0 && iteration.step === agent.first_non_advancing ? 1 : 0,
    iteration.context_hash,
    iteration.note,
  ];
}

function renderHeader(trace: RunTrace): string {
  const root = trace.agents[0]!;
  const status = trace.state === "ended" ? trace.status ?? `abort ${trace.abort}` : trace.state;
  const sum = (value: (agent: AgentTrace) => number): string =>
    formatCount(trace.agents.reduce((total, agent) => total + value(agent), 0));
  const costs = trace.agents.map((agent) => agent.usage.cost);
  const cost = costs.includes(null) ? null : costs.reduce((a, b) => a! + b!, 0);
  const totals: [string, string][] = [
    ["agents", formatCount(trace.agents.length)],
    ["steps", sum(({ usage }) => usage.steps)],
    ["model calls", sum(({ usage }) => usage.model_calls)],
    ["tool calls", sum(({ usage }) => usage.tool_calls)],
    ["tokens", sum(({ usage }) => usage.tokens_in + usage.tokens_out)],
    ["of them cached", sum(({ usage }) => usage.tokens_cached)],
    ["cost", formatCost(cost ?? null)],
    ["time", formatElapsed(trace.elapsed_ms)],
  ];
  return `<header>
<h1>Run ${escape(trace.run_id)} <span class="status">${escape(status)}</span></h1>
<p>${escape(oneLine(root.instruction, 300))}</p>
<p class="faint">${escape(root.model ?? "")} · started ${escape(trace.started_at ?? "–")}</p>
<p>${escape(oneLine(trace.reason, 600))} <span class="faint">${escape(trace.advice)}</span></p>
<ul class="totals">${
    totals.map(([name, value]) => `<li>${name} <b>${escape(value)}</b></li>`).join("")
  }</ul>
</header>`;
}

const MAIN = `<main>
<section aria-label="Timeline">
<div class="tools"><h2>Timeline</h2>
<span class="key"><i style="background:var(--model)"></i>model</span>
<span class="key"><i style="background:var(--tool)"></i>tools</span>
<span class="key"><i style="background:var(--summary)"></i>summary</span>
<span class="spring"></span>
<button id="earlier" type="button" aria-label="Earlier">←</button>
<button id="later" type="button" aria-label="Later">→</button>
<button id="zoom-in" type="button">Zoom in</button>
<button id="zoom-out" type="button">Zoom out</button>
<button id="zoom-all" type="button">Whole run</button></div>
<div class="lanes"><canvas id="lanes" role="img" aria-label="Model and tool spans of every agent over time; the table below has the same"></canvas></div>
</section>
<section class="plots" aria-label="Per iteration">
<figure><div class="tools"><h2>Tokens</h2>
<span class="key"><i style="background:var(--cached)"></i>cached</span>
<span class="key"><i style="background:var(--model)"></i>in</span>
<span class="key"><i style="background:var(--tool)"></i>out</span></div>
<canvas id="tokens" role="img"></canvas></figure>
<figure><div class="tools"><h2>New evidence (delta)</h2></div>
<canvas id="deltas" role="img"></canvas></figure>
</section>
<section aria-label="Iterations" style="display:contents">
<div class="tools">
<label>Filter <input id="filter" type="search" placeholder="tool, class, verdict… (/)" size="26"></label>
<label>Verdict <select id="verdict"><option value="">all</option><option value="stuck">without new evidence</option></select></label>
<label>Agent <select id="agent"><option value="">all</option></select></label>
<button id="first" type="button">First without new evidence</button>
<span id="count" class="faint" role="status"></span></div>
<div id="work" class="work">
<div class="table">
<div class="row head" aria-hidden="true"><span>agent</span><span class="n">step</span><span>actions</span><span>observed</span><span>verdict</span><span class="n">delta</span><span class="n">idle</span><span class="n">tokens</span><span class="n">cached</span><span class="n">model</span><span class="n">tools</span></div>
<div id="body" class="body" role="grid" tabindex="0" aria-label="Iterations: agent, step, actions, observed, verdict, delta, idle, tokens, cached, model time, tool time. Arrow keys move, Enter shows one in full."><div id="space" role="rowgroup"></div></div>
</div>
<aside id="detail" hidden aria-labelledby="detail-title"><header><h2 id="detail-title"></h2><button id="close" type="button">Close</button></header><div id="detail-body"></div></aside>
</div>
</section>
</main>
<noscript><p style="padding:0 20px">This report draws itself with a script that it carries. Without one, use <code>agentd inspect --json</code>.</p></noscript>`;

/** JSON that can stand inside a script element: no `<` can end it, whatever a record holds. */
function embed(value: Json): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

function escape(text: string): string {
  const entities: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replace(/[&<>"']/g, (c) => entities[c]!);
}
