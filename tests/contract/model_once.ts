/**
 * One model call in a process of its own, which must end by itself: `model_once.ts URL DIALECT
 * [abort]`. Prints a line per telemetry event as it comes, then the outcome's class. With `abort`, the
 * call is aborted by the first byte on stdin.
 */

import { endpointAt, never, requestOf, settingsOf, user } from "./model_setup.ts";
import { Vault } from "../../src/core/secret.ts";
import { createModel } from "../../src/model/client.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemHttp } from "../../src/sys/http.ts";
import { systemRandom } from "../../src/sys/random.ts";

async function main(): Promise<void> {
  const [url, dialect, mode] = Deno.args;
  const model = createModel({
    settings: settingsOf([endpointAt(url!, { dialect: dialect as "openai" | "anthropic" })]),
    vault: new Vault(),
    http: systemHttp,
    clock: systemClock,
    random: systemRandom,
    telemetry: { emit: (event) => console.log(event) },
  });
  const controller = new AbortController();
  if (mode === "abort") void Deno.stdin.read(new Uint8Array(1)).then(() => controller.abort());
  const signal = mode === "abort" ? controller.signal : never;
  const outcome = await model.complete(requestOf([user("x")]), signal);
  console.log(outcome.ok ? "ok" : outcome.failure.class);
}

if (import.meta.main) await main();
