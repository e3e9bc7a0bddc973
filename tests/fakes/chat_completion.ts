/** A reply of an endpoint of chat/completions in one piece, for tests that serve their own. */

/** What the model says. */
export interface Said {
  text: string | null;
  calls: readonly { id: string; name: string; arguments: unknown }[];
  tokensIn?: number;
}

/** The reply on the wire. */
export function chatCompletion({ text, calls, tokensIn = 10 }: Said): Response {
  return Response.json({
    id: "x",
    object: "chat.completion",
    model: "m",
    choices: [{
      index: 0,
      finish_reason: calls.length > 0 ? "tool_calls" : "stop",
      message: {
        role: "assistant",
        content: text,
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, arguments: args }) => ({
            id,
            type: "function",
            function: { name, arguments: JSON.stringify(args) },
          })),
        }),
      },
    }],
    usage: { prompt_tokens: tokensIn, completion_tokens: 1 },
  });
}
