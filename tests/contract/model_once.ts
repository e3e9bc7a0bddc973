/**
 * One model call in a process of its own, which must end by itself: `model_once.ts URL DIALECT
 * [abort]`. Prints the outcome's class and the telemetry events. With `abort`, the call is aborted
 * by the first byte on stdin.
 */

import { endpointAt, never, requestOf, settingsOf, user } from "./model_setup.ts";
import { Vault } from "../../src/core/secret.ts";
import { createModel } from "../../src/model/client.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemHttp } from "../../src/sys/http.ts";
import { systemRandom } from "../../src/sys/random.ts";

async function main(): Promise<void> {
  const [url, dialect, mode] = Deno.args;
  const events: string[] = [];
  const model = createModel({
    settings: settingsOf([endpointAt(url!, { dialect: dialect as "openai" | "anthropic" })]),
    vault: new Vault(),
    http: systemHttp,
    clock: systemClock,
    random: systemRandom,
    telemetry: { emit: (event) => void events.push(event) },
  });
  const controller = new AbortController();
  if (mode === "abort") void Deno.stdin.read(new Uint8Array(1)).then(() => controller.abort());
  const signal = mode === "abort" ? controller.signal : never;
  const outcome = await model.complete(requestOf([user("x")]), signal);
  console.log(JSON.stringify({ class: outcome.ok ? "ok" : outcome.failure.class, events }));
}

if (import.meta.main) await main();
