/** How an observation reads to the model: its class first, then what came back. */

import { SHOWN_NAME_CHARS_MAX } from "../core/limits.ts";
import { clip, toWellFormed } from "../core/text.ts";
import type { Message, Part } from "../ports/model.ts";
import { isSuccess, type Observation } from "./observation.ts";
import { classHeader, withoutMark } from "./prompt.ts";

/** The parts of an observation, its class and facts before the first text. */
export function renderObservation(observation: Observation): Part[] {
  switch (observation.class) {
    case "ok":
      return withHeader("[ok]", observation.parts);
    case "truncated":
      return withHeader(
        classHeader("truncated", {
          kept: observation.excerpt.kept,
          total: observation.excerpt.total,
          artifact: observation.excerpt.artifact,
        }),
        observation.parts,
      );
    case "partial":
      return withHeader(
        classHeader("partial", { done: observation.done, missing: observation.missing }),
        observation.parts,
      );
    case "error":
      return [{
        type: "text",
        text: toWellFormed(
          `${
            classHeader("error", {
              class: observation.error,
              retryable: observation.retryable,
              ...(observation.excerpt === null ? {} : {
                total: observation.excerpt.total,
                artifact: observation.excerpt.artifact,
              }),
            })
          }\n${withoutMark(observation.message)}`,
        ),
      }];
    case "unknown":
    case "refused":
    case "invalid":
      return [{ type: "text", text: toWellFormed(`[${observation.class}] ${observation.why}`) }];
  }
}

function withHeader(header: string, parts: readonly Part[]): Part[] {
  const first = parts[0];
  if (first?.type === "text") {
    return [
      { type: "text", text: `${header}\n${withoutMark(toWellFormed(first.text))}` },
      ...parts.slice(1).map(sound),
    ];
  }
  return [{ type: "text", text: header }, ...parts.map(sound)];
}

function sound(part: Part): Part {
  return part.type === "text" ? { type: "text", text: withoutMark(toWellFormed(part.text)) } : part;
}

/** The message that answers a call: a tool message, or a user message in JSON mode. */
export function resultMessage(
  mode: "native" | "json",
  wireId: string,
  wireName: string,
  observation: Observation,
): Message {
  const parts = renderObservation(observation);
  const isError = !isSuccess(observation);
  if (mode === "native") return { role: "tool", callId: wireId, name: wireName, parts, isError };
  const [first, ...rest] = parts;
  const head = `Result of ${clip(wireName, SHOWN_NAME_CHARS_MAX)}: ${
    first?.type === "text" ? first.text : ""
  }`;
  return { role: "user", parts: [{ type: "text", text: head }, ...rest] };
}

/** The text of an observation in short, for ledgers and tables. */
export function observationDetail(observation: Observation): string {
  switch (observation.class) {
    case "error":
      return `${observation.error}: ${observation.message}`;
    case "unknown":
    case "refused":
    case "invalid":
      return observation.why;
    case "partial":
      return `missing ${observation.missing}`;
    case "ok":
    case "truncated":
      return "";
  }
}
