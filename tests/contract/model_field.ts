/** What the field cases of endpoints share: both dialects over one scripted server each. */

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/core/json.ts";
import type { ModelReply } from "../../src/ports/model.ts";
import type { ModelSettings } from "../../src/wire/payload.ts";
import {
  type ModelServerProcess,
  type ScriptReply,
  startModelServer,
} from "../fakes/model_server_process.ts";
import { endpointAt, never, requestOf, type Rig, rigOf, settingsOf, user } from "./model_setup.ts";

export type Dialect = "openai" | "anthropic";
export const DIALECTS: Dialect[] = ["openai", "anthropic"];
export const TASK = [user("Read the file.")];
export const OK: ScriptReply = { text: "fine" };

export function errorBody(dialect: Dialect, message: string, type = "some_error"): JsonObject {
  return dialect === "openai"
    ? { error: { message, type, code: type } }
    : { type: "error", error: { type, message } };
}

export async function replyOf(rig: Rig, messages = TASK): Promise<ModelReply> {
  const outcome = await rig.model.complete(requestOf(messages), never);
  assert.ok(outcome.ok, outcome.ok ? "" : outcome.failure.message);
  return outcome.value;
}

export async function failureOf(rig: Rig, messages = TASK) {
  const outcome = await rig.model.complete(requestOf(messages), never);
  assert.ok(!outcome.ok, "a reply instead of a failure");
  return outcome.failure;
}

/** One server for both dialects of one test. */
export function forBoth(
  name: string,
  check: (
    dialect: Dialect,
    server: ModelServerProcess,
    open: (settings?: Partial<ModelSettings>, deps?: Parameters<typeof rigOf>[1]) => Rig,
  ) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    await using server = await startModelServer();
    for (const dialect of DIALECTS) {
      await t.step(
        dialect,
        () =>
          check(
            dialect,
            server,
            (more, deps) => rigOf(settingsOf([endpointAt(server.url, { dialect })], more), deps),
          ),
      );
    }
  });
}

export const fault =
  (status: number, message: string, type?: string, headers = {}) => (dialect: Dialect) => ({
    status,
    headers,
    body: errorBody(dialect, message, type),
  });
