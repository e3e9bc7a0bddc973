import assert from "node:assert/strict";
import { classifyError, classifyStatus, HttpFault, NotSent, Refused } from "./failure.ts";
import { OVERSIZED, STREAM_ENDED } from "./message.ts";
import { loadSdk } from "./sdk.ts";

Deno.test("classifyStatus: what an HTTP status says of the call", () => {
  const rows: [status: number, text: string, session: boolean, cls: string, remedy: string][] = [
    [400, "bad", false, "protocol", "no"],
    [400, "No valid session ID", false, "protocol", "no"],
    [400, "No valid session ID", true, "not_sent", "session"],
    [401, "", true, "protocol", "no"],
    [403, "", true, "protocol", "no"],
    [404, "", false, "protocol", "no"],
    [404, "", true, "not_sent", "session"],
    [405, "", true, "protocol", "no"],
    [307, "Redirect not followed", false, "protocol", "no"],
    [408, "", false, "not_sent", "transport"],
    [429, "", false, "not_sent", "transport"],
    [500, "", false, "lost", "transport"],
    [502, "", true, "lost", "transport"],
    [503, "", true, "lost", "transport"],
  ];
  for (const [status, text, session, failureClass, remedy] of rows) {
    const fault = classifyStatus(status, text, session);
    assert.deepEqual(
      [fault.failure.class, fault.remedy],
      [failureClass, remedy],
      `${status} ${text}`,
    );
  }
  const said = classifyStatus(
    400,
    '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no\\u0007pe"}}',
    false,
  );
  assert.equal(said.failure.message, "HTTP 400: nope");
  assert.ok(classifyStatus(500, "x".repeat(5_000), false).failure.message.length <= 800);
});

Deno.test("classifyError: what the SDK finds wrong with a reply is one line", async () => {
  const sdk = await loadSdk();
  const { z } = await import("zod");
  const shape = z.union([z.object({ jsonrpc: z.literal("2.0") }), z.object({ id: z.string() })]);
  for (const value of [{ a: 1 }, { id: 5 }, "x", null]) {
    for (const schema of [shape, z.string().min(100), z.array(z.url())]) {
      const { error } = schema.safeParse(value);
      const { failure } = classifyError(sdk, error, false);
      assert.equal(failure.message, "the reply is no message of the protocol");
    }
  }
  const prefixed = new Error(`probe failed: ${shape.safeParse(1).error?.message}`);
  assert.equal(
    classifyError(sdk, prefixed, false).failure.message,
    "probe failed: the reply is no message of the protocol",
  );
  // A server's own words to whoever called it are not touched.
  const told = `bad arguments: ${shape.safeParse(1).error?.message}`;
  const { failure } = classifyError(sdk, new sdk.ProtocolError(-32602, told), false);
  assert.match(failure.message, /bad arguments: \[.*"code"/s);
  const moved = new sdk.SdkHttpError(
    sdk.SdkErrorCode.ClientHttpNotImplemented,
    "Redirect to https://b.example/ not followed (redirectPolicy: 'same-origin')",
    { status: 302 },
  );
  assert.equal(
    classifyError(sdk, moved, false).failure.message,
    "HTTP 302: Redirect to https://b.example/ not followed",
  );
  const redirect = new Error("not followed; use that URL (redirectPolicy: 'same-origin')");
  assert.equal(
    classifyError(sdk, redirect, false).failure.message,
    "not followed; use that URL",
  );
});

Deno.test("classifyError: what the SDK and the transports throw", async () => {
  const sdk = await loadSdk();
  const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } = sdk;
  const rows: [error: unknown, cls: string, remedy: string][] = [
    [new Refused("x"), "not_sent", "no"],
    [new NotSent("x"), "not_sent", "transport"],
    [new HttpFault("x", false, false), "not_sent", "transport"],
    [new HttpFault("x", true, false), "lost", "transport"],
    [new HttpFault("x", false, true), "denied", "no"],
    [new ProtocolError(-32601, "x"), "protocol", "no"],
    [new ProtocolError(-32000, "x", OVERSIZED), "lost", "oversized"],
    [new ProtocolError(-32000, "x", { ...OVERSIZED }), "protocol", "no"],
    [new ProtocolError(-32000, "x", STREAM_ENDED), "lost", "transport"],
    [
      new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "x", { status: 502 }),
      "lost",
      "transport",
    ],
    [new SdkError(SdkErrorCode.ConnectionClosed, "x"), "lost", "transport"],
    [new SdkError(SdkErrorCode.NotConnected, "x"), "not_sent", "transport"],
    [new SdkError(SdkErrorCode.UnsupportedResultType, "x"), "protocol", "no"],
    [new SdkError(SdkErrorCode.InvalidResult, "x"), "protocol", "no"],
    [new Error("Not connected"), "not_sent", "transport"],
    [new SyntaxError("x"), "lost", "transport"],
    ["text", "lost", "transport"],
  ];
  for (const [error, failureClass, remedy] of rows) {
    const fault = classifyError(sdk, error, false);
    assert.deepEqual([fault.failure.class, fault.remedy], [failureClass, remedy], String(error));
  }
});
