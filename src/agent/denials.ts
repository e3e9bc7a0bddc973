/** What Deno's permissions refuse to the loop itself: answered like any failure, and told. */

import type { FilesPort } from "../ports/files.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { isDenial } from "../wire/permissions.ts";

/** Denials of one agent that are told; who is refused more often than this has been noticed. */
const DENIALS_TOLD_MAX = 64;

/** Tells of denials, each way of being refused once. */
export class Denials {
  readonly #telemetry: TelemetryPort;
  readonly #told = new Set<string>();

  constructor(telemetry: TelemetryPort) {
    this.#telemetry = telemetry;
  }

  /** Takes a look at a failure's words; what is no denial is none of its business. */
  note(message: string): void {
    if (!isDenial(message) || this.#told.has(message) || this.#told.size >= DENIALS_TOLD_MAX) {
      return;
    }
    this.#told.add(message);
    const kind = /Requires ([a-z]+) access/.exec(message)?.[1] ?? "import";
    this.#telemetry.emit("permission.denied", { kind, message }, "error");
  }

  /** `fetch` with its denials told. */
  fetch(inner: typeof fetch): typeof fetch {
    return async (input, init) => {
      try {
        return await inner(input, init);
      } catch (error) {
        if (error instanceof Error) this.note(error.message);
        throw error;
      }
    };
  }

  /** Files with their denials told. */
  files(inner: FilesPort): FilesPort {
    const told = Object.entries(inner).map(([name, method]) => [
      name,
      (...args: unknown[]) => {
        const outcome = (method as Method).apply(inner, args);
        if (!outcome.ok && outcome.failure.class === "denied") this.note(outcome.failure.message);
        return outcome;
      },
    ]);
    return Object.fromEntries(told) as FilesPort;
  }
}

/** Every method of the port answers with an outcome. */
type Method = (...args: unknown[]) => ReturnType<FilesPort["stat"]>;
