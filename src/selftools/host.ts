/** Executes the runtime's own tools: resources, artifacts, notes, subagents, subscriptions. */

import type { JsonObject } from "../core/json.ts";
import { success } from "../core/outcome.ts";
import { NOTES_BYTES_MAX } from "../core/limits.ts";
import { parseDurationMs } from "../core/units.ts";
import { renderResource } from "../agent/catalogue.ts";
import type { Artifacts } from "../record/artifacts.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { Resource, ToolsPort } from "../ports/tools.ts";
import type { ChildEnd } from "../wire/control.ts";
import { domainError, refuse, type SelfToolAnswer, text, wordsOf } from "./answer.ts";
import { Children } from "./children.ts";
import {
  fitLines,
  matchesInText,
  pageBytes,
  pageOfText,
  renderMatches,
  renderPage,
} from "./paging.ts";

/** What the self tools work on. */
export interface SelfToolDeps {
  tools: ToolsPort;
  broker: BrokerPort;
  artifacts: Artifacts;
  files: FilesPort;
  clock: ClockPort;
  /** The agent's own directory; notes are `notes.md` in it. */
  directory: string;
  resources: () => readonly Resource[];
  /** Servers whose resources are kept from this agent (the Rule of Two). */
  withheld?: ReadonlySet<string>;
  /** Everything done so far, from the record: what `artifact_read {"id":"ledger"}` shows. */
  ledger: () => string;
}

const PAGE_LINES = 100;
/** The artifact that is no file: every action of the run, read from the record. */
const LEDGER_ID = "ledger";

/** The self tools of one agent. */
export class SelfToolHost {
  readonly children: Children;
  readonly #deps: SelfToolDeps;

  constructor(deps: SelfToolDeps) {
    this.#deps = deps;
    this.children = new Children(deps);
  }

  /** Runs one call whose arguments have passed its schema; pages keep within what will be shown. */
  async call(
    name: string,
    args: JsonObject,
    signal: AbortSignal,
    showBytesMax: number,
  ): Promise<SelfToolAnswer> {
    switch (name) {
      case "resource_list":
        return text(this.#listResources(args, showBytesMax));
      case "resource_read":
        return await this.#readResource(args, signal);
      case "artifact_read":
        return this.#readArtifact(args, showBytesMax);
      case "note_write":
        return this.#writeNote(String(args.text));
      case "note_read":
        return this.#readNotes();
      case "subagent_spawn":
        return await this.children.spawn(args, signal);
      case "subagent_status":
        return await this.children.status(args);
      case "subagent_await":
        return await this.#await(args, signal, showBytesMax);
      case "subagent_cancel":
        return await this.children.cancel(args);
      case "subscribe":
      case "unsubscribe":
        return await this.#subscribe(name, args);
      default:
        return refuse(`there is no self tool ${name}`);
    }
  }

  async #await(
    args: JsonObject,
    signal: AbortSignal,
    showBytesMax: number,
  ): Promise<SelfToolAnswer> {
    const timeoutMs = typeof args.timeout === "string" ? parseDurationMs(args.timeout) : null;
    if (timeoutMs === undefined) {
      return domainError(`timeout must be a duration such as 30s or 5m, not ${args.timeout}`);
    }
    return await this.children.await(args, signal, timeoutMs, showBytesMax);
  }

  /** A subagent of this agent ended. */
  childEnded(end: ChildEnd): void {
    this.children.ended(end);
  }

  #listResources(args: JsonObject, showBytesMax: number): string {
    const prefix = typeof args.prefix === "string" ? args.prefix : "";
    const query = typeof args.query === "string" ? args.query.toLowerCase() : "";
    const from = Number(args.cursor ?? 0) || 0;
    const found = this.#deps.resources().filter((resource) =>
      resource.uri.startsWith(prefix) &&
      `${resource.uri}\n${resource.name}\n${resource.description}`.toLowerCase().includes(query)
    );
    if (found.length === 0) {
      return `no resource matches; there are ${this.#deps.resources().length} in all`;
    }
    if (from >= found.length) return `nothing at this cursor; ${found.length} match in all`;
    const lines = found.slice(from, from + PAGE_LINES).map(renderResource);
    const page = fitLines(lines, pageBytes(showBytesMax, undefined));
    const next = from + page.length;
    if (next < found.length) {
      page.push(`${found.length - next} more: cursor ${JSON.stringify(String(next))}`);
    }
    return page.join("\n");
  }

  /** A server is asked, the one that is named or else lists the URI: a URI never opens a file here. */
  async #readResource(args: JsonObject, signal: AbortSignal): Promise<SelfToolAnswer> {
    const server = typeof args.server === "string" ? args.server : null;
    if (server !== null && this.#deps.withheld?.has(server)) {
      return refuse(
        `the resources of ${server} are not granted: they have legs of the Rule of Two that no tool ` +
          "granted of it has",
      );
    }
    return { result: await this.#deps.tools.readResource(server, String(args.uri), signal) };
  }

  #readArtifact(args: JsonObject, showBytesMax: number): SelfToolAnswer {
    const id = String(args.id);
    const { artifacts, ledger } = this.#deps;
    if (typeof args.pattern === "string") {
      const found = id === LEDGER_ID
        ? success(matchesInText(ledger(), args.pattern))
        : artifacts.search(id, args.pattern);
      return found.ok
        ? text(renderMatches(found.value, showBytesMax))
        : domainError(found.failure.message);
    }
    const offset = typeof args.offset === "number" ? args.offset : 0;
    const length = pageBytes(showBytesMax, args.length);
    const page = id === LEDGER_ID
      ? success(pageOfText(ledger(), offset, length))
      : artifacts.read(id, offset, length);
    return page.ok ? text(renderPage(page.value)) : domainError(page.failure.message);
  }

  #writeNote(note: string): SelfToolAnswer {
    const path = `${this.#deps.directory}/notes.md`;
    const before = this.#deps.files.stat(path);
    const bytes = new TextEncoder().encode(note.endsWith("\n") ? note : note + "\n");
    const size = before.ok ? before.value.bytes : 0;
    if (size + bytes.length > NOTES_BYTES_MAX) {
      return domainError(
        `the notes would be ${size + bytes.length} bytes; at most ${NOTES_BYTES_MAX}`,
      );
    }
    const handle = this.#deps.files.openAppend(path);
    if (!handle.ok) return domainError(handle.failure.message);
    const written = handle.value.append(bytes);
    handle.value.close();
    return written.ok
      ? text(`noted; ${size + bytes.length} bytes in all`)
      : domainError(written.failure.message);
  }

  #readNotes(): SelfToolAnswer {
    const notes = this.#deps.files.readText(`${this.#deps.directory}/notes.md`, NOTES_BYTES_MAX);
    if (notes.ok) return text(notes.value);
    return notes.failure.class === "not_found"
      ? text("(no notes yet)")
      : domainError(notes.failure.message);
  }

  async #subscribe(op: "subscribe" | "unsubscribe", args: JsonObject): Promise<SelfToolAnswer> {
    const uri = String(args.uri);
    const server = typeof args.server === "string"
      ? args.server
      : this.#deps.resources().find((resource) => resource.uri === uri)?.server;
    if (server === undefined) return domainError(`no server lists ${uri}; name the server`);
    const reply = await this.#deps.broker.request(op, { server, uri });
    return reply.ok
      ? text(typeof reply.value === "string" ? reply.value : `${op}d`)
      : refuse(wordsOf(reply.value));
  }
}
