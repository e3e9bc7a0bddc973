/** A model endpoint for measuring: it answers at once, with a fixed number of tool calls, then ends. */

/** One running endpoint. It serves one run at a time. */
export interface Endpoint {
  /** Base URL as far as `/v1`. */
  url: string;
  /** Starts counting anew: the first `calls` requests get tool calls, the next one the end. */
  reset(plan: Plan): void;
  close(): Promise<void>;
}

/** A reply: words, or calls of tools by their wire names. */
export interface Say {
  text?: string;
  calls?: { name: string; arguments: object }[];
}

/** What the endpoint does in one run. */
export interface Plan {
  calls: number;
  /** Answers by itself; the rest of the plan is not used. `task`: the first words of the user. */
  say?: (task: string, replies: number) => Say | Promise<Say>;
  /** Tool calls of one reply; 1 unless said. */
  each?: number;
  /** Asked of the tool: how many bytes its answers have beside the number. */
  bytes?: number;
  /** Called before request `n` (from 1) is answered: everything else stands still meanwhile. */
  before?: (n: number) => Promise<void>;
}

interface ChatRequest {
  stream?: boolean;
  messages: { role: string; content: unknown }[];
  tools?: { function: { name: string } }[];
}

/** Starts an endpoint on a free port of the loopback. */
export function startEndpoint(): Endpoint {
  let plan: Plan = { calls: 0 };
  let count = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method === "GET") {
      return Response.json({ object: "list", data: [{ id: "bench", object: "model" }] });
    }
    const text = await request.text();
    const body = JSON.parse(text) as ChatRequest;
    const tool = body.tools?.find((entry) => entry.function.name.endsWith("echo"))?.function.name;
    const usage = { prompt_tokens: Math.ceil(text.length / 4), completion_tokens: 20 };
    if (plan.say) {
      const first = body.messages.find((message) => message.role === "user");
      const task = typeof first?.content === "string" ? first.content : JSON.stringify(first);
      const own = body.messages.filter((message) => message.role === "assistant").length;
      const { text = null, calls = [] } = await plan.say(task, own);
      const wire = calls.map((call, index) => ({
        id: `call_${own}_${index}`,
        type: "function",
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      }));
      return wire.length > 0
        ? reply(body, { content: text, tool_calls: wire }, "tool_calls", usage)
        : reply(body, { content: text }, "stop", usage);
    }
    // A request without the tool asks for a summary; it is no turn.
    if (tool === undefined) return reply(body, { content: "Counted so far." }, "stop", usage);
    count++;
    await plan.before?.(count);
    if (count > plan.calls) return reply(body, { content: "Counted." }, "stop", usage);
    const each = plan.each ?? 1;
    const calls = Array.from({ length: each }, (_, index) => {
      const n = (count - 1) * each + index + 1;
      const args = plan.bytes ? { n, bytes: plan.bytes } : { n };
      const call = { name: tool, arguments: JSON.stringify(args) };
      return { id: `call_${n}`, type: "function", function: call };
    });
    return reply(body, { content: null, tool_calls: calls }, "tool_calls", usage);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/v1`,
    reset(next) {
      plan = next;
      count = 0;
    },
    close: () => server.shutdown(),
  };
}

function reply(
  body: ChatRequest,
  message: { content: string | null; tool_calls?: object[] },
  finish: string,
  usage: { prompt_tokens: number; completion_tokens: number },
): Response {
  const head = { id: "chatcmpl-bench", created: 0, model: "bench" };
  if (!body.stream) {
    return Response.json({
      ...head,
      object: "chat.completion",
      choices: [{
        index: 0,
        message: { role: "assistant", ...message },
        finish_reason: finish,
      }],
      usage,
    });
  }
  const delta = {
    role: "assistant",
    ...message,
    ...(message.tool_calls
      ? { tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) }
      : {}),
  };
  const chunk = { ...head, object: "chat.completion.chunk" };
  const events = [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { ...chunk, choices: [], usage },
  ];
  return new Response(
    events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + "data: [DONE]\n\n",
    { headers: { "content-type": "text/event-stream" } },
  );
}
