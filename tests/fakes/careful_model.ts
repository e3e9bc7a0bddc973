/**
 * A model that works through a job and minds what it reads: what it cannot know was done it looks up
 * before it does it again. It keeps nothing between requests, so a resumed run meets the same mind.
 * Both dialects; a request that breaks the dialect's rules is answered with 400.
 */

import { findFault } from "./model_rules.ts";
import { renderReply, type ScriptCall } from "./model_script.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

/** The job: so many items, each a file `out/K.txt` and a line in the ledger; then read both back. */
export interface Job {
  items: number;
  /** Turns of an undisturbed run. */
  turns: number;
}

/** The job with so many turns. */
export function jobOfTurns(turns: number): Job {
  // Two turns read back, the last one answers.
  return { items: turns - 3, turns };
}

/** What file `k` must hold. */
export function contentOf(k: number): string {
  return `item ${k}\n`;
}

/** One call that the model once made, and what it was told of it. */
interface Past {
  name: string;
  arguments: Loose;
  result: string;
}

const FILE = "fs__write";
const LINE = "ledger__append";
const LOOK_FILE = "fs__read";
const LOOK_LEDGER = "ledger__list";

/** What the model does next. */
export function nextCalls(job: Job, past: readonly Past[]): ScriptCall[] {
  const calls: ScriptCall[] = [];
  const looks = new Map<string, ScriptCall>();
  for (let k = 1; k <= job.items; k++) {
    for (
      const [name, args, look] of [
        [FILE, { path: `out/${k}.txt`, content: contentOf(k) }, {
          name: LOOK_FILE,
          arguments: { path: `out/${k}.txt` },
        }],
        [LINE, { item: k }, { name: LOOK_LEDGER, arguments: {} }],
      ] as const
    ) {
      const state = stateOf(past, name, args, k);
      if (state === "undone") calls.push({ name, arguments: args });
      else if (state === "unclear") looks.set(JSON.stringify(look), look);
    }
    // One item a turn, beside what is to be mended.
    if (!past.some((call) => call.arguments?.item === k)) break;
  }
  calls.unshift(...looks.values());
  if (past.filter((call) => call.arguments?.item === job.items).length === 0) return calls;
  const reads: ScriptCall[] = [
    { name: "fs__list", arguments: { path: "out" } },
    { name: LOOK_LEDGER, arguments: { all: true } },
  ];
  const readBack = reads.find((call) =>
    !past.some((each) =>
      each.name === call.name && JSON.stringify(each.arguments) === JSON.stringify(call.arguments)
    )
  );
  if (readBack !== undefined) calls.push(readBack);
  return calls;
}

/** Whether an effect happened, as far as the conversation tells. */
function stateOf(
  past: readonly Past[],
  name: string,
  args: Loose,
  k: number,
): "done" | "undone" | "unclear" {
  let state: "done" | "undone" | "unclear" = "undone";
  for (const call of past) {
    const isIt = call.name === name &&
      (name === LINE ? call.arguments.item === k : call.arguments.path === args.path);
    if (isIt) {
      state = /^\[ok\]|-> ok/.test(call.result)
        ? "done"
        : /^\[refused\]|-> refused/.test(call.result)
        ? state
        : "unclear";
    } else if (state === "unclear" && name === FILE && call.name === LOOK_FILE) {
      if (call.arguments.path !== args.path) continue;
      if (call.result.includes(contentOf(k).trim())) state = "done";
      else if (!call.result.startsWith("[refused]")) state = "undone";
    } else if (state === "unclear" && name === LINE && call.name === LOOK_LEDGER) {
      if (!call.result.startsWith("[ok]")) continue;
      state = call.result.split(/\s+/).includes(`item=${k}`) ? "done" : "undone";
    }
  }
  return state;
}

/** A running endpoint. */
export interface CarefulModel {
  /** Base URL as far as `/v1`. */
  url: string;
  /** Completions that were asked for. */
  completions(): number;
  /** Rules of a dialect that requests broke. */
  faults(): readonly string[];
  close(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1. */
export function startCarefulModel(job: Job): CarefulModel {
  let count = 0;
  const faults: string[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/models")) return Response.json({ data: [{ id: "careful" }] });
      const dialect = pathname.endsWith("/messages") ? "anthropic" : "openai";
      const text = await request.text().catch(() => null);
      // Who asked was killed while it wrote.
      if (text === null) return new Response(null, { status: 400 });
      const body = JSON.parse(text);
      count++;
      const fault = findFault(dialect, body);
      if (fault !== null) {
        faults.push(fault);
        return Response.json({ error: { message: fault } }, { status: 400 });
      }
      const calls = nextCalls(
        job,
        dialect === "openai" ? pastOfOpenAi(body) : pastOfAnthropic(body),
      );
      const reply = calls.length > 0 ? { calls } : { text: `${job.items} items are done.` };
      const facts = {
        n: count,
        turn: 0,
        last: "",
        model: String(body.model),
        bodyChars: text.length,
      };
      const { events } = renderReply(dialect, reply, facts);
      const stream = events.map((data) => {
        const type = /^\{"type":"([a-z_]+)"/.exec(data)?.[1];
        return `${type === undefined ? "" : `event: ${type}\n`}data: ${data}\n\n`;
      }).join("");
      return new Response(stream, { headers: { "content-type": "text/event-stream" } });
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/v1`,
    completions: () => count,
    faults: () => faults,
    close: () => server.shutdown(),
  };
}

function pastOfOpenAi(body: Loose): Past[] {
  const results = new Map<string, string>();
  for (const message of body.messages) {
    if (message.role === "tool") results.set(message.tool_call_id, textOf(message.content));
  }
  return body.messages.flatMap((message: Loose) =>
    (message.tool_calls ?? []).map((call: Loose) => ({
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
      result: results.get(call.id) ?? "",
    }))
  );
}

function pastOfAnthropic(body: Loose): Past[] {
  const blocks: Loose[] = body.messages.flatMap((message: Loose) => message.content);
  const results = new Map<string, string>();
  for (const block of blocks) {
    if (block.type === "tool_result") results.set(block.tool_use_id, textOf(block.content));
  }
  return blocks.filter((block) => block.type === "tool_use").map((block) => ({
    name: block.name,
    arguments: block.input,
    result: results.get(block.id) ?? "",
  }));
}

function textOf(content: Loose): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part: Loose) => part.text ?? "").join("\n");
}
