/** A built-in server over the official SDK: lists its tools, runs calls, a bounded number at once. */

import { Server, type Tool, type Transport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Json, JsonObject } from "../core/json.ts";
import { PARALLEL_CALLS_MAX, WAITING_CALLS_MAX } from "../core/tool_limits.ts";
import { toWellFormed } from "../core/text.ts";
import { type Answer, Arguments, type BuiltinTool, errorAnswer, ToolError } from "./tool.ts";

/** What a server is made of. */
export interface ServerSpec {
  name: string;
  version: string;
  /** One line for the client's model: where relative paths start, what is granted. */
  instructions: string;
  /** Shown by tools/list. */
  tools: readonly BuiltinTool[];
  /** Exists, but nothing grants it: name to what would. */
  withheld: Readonly<Record<string, string>>;
}

/** A server at work. */
export interface ServedTools {
  /** Resolves when no call is under way. */
  settled(): Promise<void>;
}

/** Serves tools on a transport until the transport closes. */
export function serveTools(spec: ServerSpec, transport: Transport): ServedTools {
  const calls = new CallQueue();
  const listed: Tool[] = spec.tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema as Tool["inputSchema"],
    annotations: { ...tool.annotations },
  }));
  serveStdio(() => {
    const server = new Server(
      { name: spec.name, version: spec.version },
      {
        capabilities: { tools: {} },
        instructions: spec.instructions,
        // Only elicitation would use it; the default one would be built at every start.
        jsonSchemaValidator: {
          getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "unused" }),
        },
      },
    );
    server.setRequestHandler("tools/list", () => ({ tools: listed }));
    server.setRequestHandler("tools/call", async (request, context) => {
      const { name, arguments: values } = request.params;
      const answer = await calls.run(
        () => callTool(spec, name, values as JsonObject | undefined, context.mcpReq.signal),
      );
      return { content: answer.blocks, isError: answer.isError };
    });
    return server;
  }, { transport });
  return { settled: () => calls.settled() };
}

async function callTool(
  spec: ServerSpec,
  name: string,
  values: Json | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  const tool = spec.tools.find((candidate) => candidate.name === name);
  if (tool === undefined) {
    const remedy = spec.withheld[name];
    const names = spec.tools.map((candidate) => candidate.name).join(", ");
    return errorAnswer(
      remedy === undefined
        ? `Cannot call ${JSON.stringify(name)}: there is no such tool; there are ${names}.`
        : `Cannot call ${name}: this server was started without ${remedy}. Tools at hand: ${names}.`,
    );
  }
  try {
    const answer = await tool.run(new Arguments(name, values, tool.inputSchema), signal);
    for (const block of answer.blocks) {
      if (block.type === "text") block.text = toWellFormed(block.text);
    }
    return answer;
  } catch (error) {
    if (error instanceof ToolError) return errorAnswer(toWellFormed(error.message));
    throw error;
  }
}

/** Runs calls side by side up to a bound; what comes above it waits, and above that is refused. */
class CallQueue {
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  #idle: (() => void)[] = [];

  async run(call: () => Promise<Answer>): Promise<Answer> {
    if (this.#running >= PARALLEL_CALLS_MAX) {
      if (this.#waiting.length >= WAITING_CALLS_MAX) {
        return errorAnswer(
          `Cannot take this call: ${this.#waiting.length} are waiting already. Wait for answers first.`,
        );
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next !== undefined) next();
      else if (--this.#running === 0) {
        for (const resolve of this.#idle) resolve();
        this.#idle = [];
      }
    }
  }

  async settled(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}
