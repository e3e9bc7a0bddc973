import assert from "node:assert/strict";
import fc from "fast-check";
import type { Message, Part } from "../ports/model.ts";
import { systemRandom } from "../sys/random.ts";
import { AnthropicMessages } from "./anthropic_messages.ts";
import { CallIds } from "./client.ts";
import { OpenAiMessages } from "./openai_messages.ts";
import type { Pieces } from "./settled.ts";

const whole = ({ head, settled, rest }: Pieces) => head + settled + rest;
const text = (content: string): Part => ({ type: "text", text: content });
const image: Part = { type: "image", mimeType: "image/png", data: "aGk=" };

/** One turn: a reply with so many calls, or prose and words back. */
function turnOf(n: number, calls: number, shown: boolean): Message[] {
  if (calls === 0) {
    return [
      { role: "assistant", text: `claim ${n}`, calls: [] },
      { role: "user", parts: [text(`no ${n}`)] },
    ];
  }
  const ids = Array.from({ length: calls }, (_, index) => `c${n}-${index}`);
  return [
    {
      role: "assistant",
      text: "",
      calls: ids.map((id) => ({ id, name: "a__b", arguments: "{}" })),
    },
    ...ids.map((callId): Message => ({
      role: "tool",
      callId,
      name: "a__b",
      parts: shown ? [text(`result ${callId}`), image] : [text(`result ${callId}`)],
      isError: false,
    })),
  ];
}

type Change = { kind: "turn"; calls: number; shown: boolean } | { kind: "old" | "drop" | "reply" };
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      kind: fc.constant("turn" as const),
      calls: fc.nat(3),
      shown: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "old" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "drop" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "reply" as const }) },
);

function apply(messages: readonly Message[], drawn: Change, n: number): Message[] {
  switch (drawn.kind) {
    case "turn":
      return [...messages, ...turnOf(n, drawn.calls, drawn.shown)];
    case "old": {
      // A lever reaches back further than any should.
      const at = messages.findIndex((message) => message.role === "tool");
      const old = messages[at];
      return old?.role === "tool"
        ? messages.with(at, { ...old, parts: [text("left out")] })
        : [...messages];
    }
    case "drop":
      return [{ role: "user", parts: [text(`ledger ${n}`)] }, ...turnOf(n, 1, false)];
    case "reply":
      return [...messages, { role: "assistant", text: "cut", calls: [] }, ...turnOf(n, 1, false)];
  }
}

Deno.test("SettledPrefix: what is rendered is what a fresh renderer gives, however it grew", () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 30, maxLength: 120 }), (changes) => {
      const openai = new OpenAiMessages(true, true);
      const anthropic = new AnthropicMessages(true, true);
      let messages: Message[] = [{ role: "user", parts: [text("do it")] }];
      changes.forEach((drawn, n) => {
        messages = apply(messages, drawn, n);
        assert.equal(
          whole(openai.render("system", messages)),
          whole(new OpenAiMessages(true, true).render("system", messages)),
        );
        JSON.parse(`[${whole(openai.render("system", messages))}]`);
        JSON.parse(`[${whole(openai.render("", messages))}]`);
        assert.equal(
          whole(anthropic.render(messages)),
          whole(new AnthropicMessages(true, true).render(messages)),
        );
      });
    }),
    { numRuns: 30 },
  );
});

Deno.test("CallIds: an id that stands anywhere in the conversation is given anew", () => {
  const ids = new CallIds(systemRandom);
  const call = (id: string) => ({ id, name: "a__b", arguments: "{}" });
  const messages: Message[] = [
    { role: "user", parts: [text("go")] },
    { role: "assistant", text: "", calls: [call("first")] },
  ];
  const fine = [call("second")];
  assert.equal(ids.makeUnique(fine, messages), fine);
  messages.push({ role: "assistant", text: "", calls: fine });
  const made = ids.makeUnique([call("first"), call("second"), call(""), call("x"), call("x")], [
    ...messages,
  ]);
  assert.equal(new Set(made.map(({ id }) => id)).size, 5);
  assert.equal(made[3]!.id, "x");
  for (const { id } of made) assert.ok(!["first", "second", ""].includes(id));
  // A conversation that was made anew is read anew.
  const rebuilt: Message[] = [{ role: "assistant", text: "", calls: [call("other")] }];
  assert.notEqual(ids.makeUnique([call("other")], rebuilt)[0]!.id, "other");
});
