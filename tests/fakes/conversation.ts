/** Messages of a conversation in few words, for tests of the dialects. */

import type { Message, ToolCall } from "../../src/ports/model.ts";

export const PNG = { type: "image" as const, mimeType: "image/png", data: "aGk=" };

export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

export const call = (id: string, args = "{}", name = "fs__read"): ToolCall => ({
  id,
  name,
  arguments: args,
});

export const assistant = (text: string, ...calls: ToolCall[]): Message => ({
  role: "assistant",
  text,
  calls,
});

/** What came of a call of `fs__read`. */
export const result = (callId: string, text: string, more: Partial<Message> = {}): Message =>
  ({
    role: "tool",
    callId,
    name: "fs__read",
    parts: [{ type: "text", text }],
    isError: false,
    ...more,
  }) as Message;
