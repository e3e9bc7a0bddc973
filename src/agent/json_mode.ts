/** A native conversation rewritten for an endpoint that knows no tools. */

import type { Message, Part } from "../ports/model.ts";

/** The same message without native calls: actions as JSON text, results as user messages. */
export function toJsonMode(message: Message): Message {
  if (message.role === "assistant") {
    if (message.calls.length === 0) return message;
    const actions = message.calls.map((call) =>
      `{"action":"tool","tool":${JSON.stringify(call.name)},"arguments":${call.arguments || "{}"}}`
    );
    return {
      role: "assistant",
      text: [message.text, ...actions].filter((text) => text !== "").join("\n"),
      calls: [],
    };
  }
  if (message.role !== "tool") return message;
  const [first, ...rest] = message.parts;
  const head: Part = {
    type: "text",
    text: `Result of ${message.name}: ${first?.type === "text" ? first.text : ""}`,
  };
  const note: Part[] = message.note === undefined ? [] : [{ type: "text", text: message.note }];
  return { role: "user", parts: [head, ...rest, ...note] };
}
