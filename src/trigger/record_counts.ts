/** What a daemon's figures take from records: verdicts and outcomes of calls, of runs that ended. */

import { isObject, parseJson } from "../core/json.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import { LineSplitter } from "../wire/lines.ts";
import type { Metrics } from "./metrics.ts";

/** Of one record, after one end; what is beyond is left out of the figures. */
const SCAN_BYTES_MAX = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** The supervisor's loop gets a turn after so many chunks. */
const CHUNKS_PER_TURN = 4;
const LINE_BYTES_MAX = 1024 * 1024;
/** Records that may be read on from where they were read to: those of warm sessions. */
const OFFSETS_MAX = 64;
/** Records below one run that are read. */
const AGENTS_MAX = 64;

const JUDGED = '"type":"turn.judged"';

/** Reads records as runs end, each byte once. */
export class RecordCounts {
  readonly #ports: { files: FilesPort; clock: ClockPort };
  readonly #metrics: Metrics;
  readonly #offsets = new Map<string, number>();
  #queue: Promise<void> = Promise.resolve();

  constructor(ports: { files: FilesPort; clock: ClockPort }, metrics: Metrics) {
    this.#ports = ports;
    this.#metrics = metrics;
  }

  /** Counts what is new in the records of a run; one run after the other. Never rejects. */
  count(runDirectory: string): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      await this.#countFile(`${runDirectory}/record.jsonl`);
      const agents = this.#ports.files.list(`${runDirectory}/agents`);
      for (const name of agents.ok ? agents.value.slice(0, AGENTS_MAX) : []) {
        await this.#countFile(`${runDirectory}/agents/${name}/record.jsonl`);
      }
    });
    return this.#queue;
  }

  async #countFile(path: string): Promise<void> {
    const opened = this.#ports.files.openRead(path);
    if (!opened.ok) return;
    const splitter = new LineSplitter(LINE_BYTES_MAX);
    const buffer = new Uint8Array(CHUNK_BYTES);
    const from = this.#offsets.get(path) ?? 0;
    let offset = from;
    for (let chunks = 1; offset - from < SCAN_BYTES_MAX; chunks++) {
      const read = opened.value.readAt(offset, buffer);
      if (!read.ok || read.value === 0) break;
      offset += read.value;
      for (const event of splitter.push(buffer.slice(0, read.value))) {
        if (event.type === "line" && event.text.includes(JUDGED)) this.#countLine(event.text);
      }
      if (chunks % CHUNKS_PER_TURN === 0) await this.#turn();
    }
    opened.value.close();
    this.#offsets.delete(path);
    this.#offsets.set(path, offset);
    for (const oldest of this.#offsets.keys()) {
      if (this.#offsets.size <= OFFSETS_MAX) break;
      this.#offsets.delete(oldest);
    }
  }

  #turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ports.clock.after(0, resolve);
    return promise;
  }

  #countLine(text: string): void {
    const parsed = parseJson(text);
    if (!parsed.ok || !isObject(parsed.value) || parsed.value.type !== "turn.judged") return;
    const { verdict, actions } = parsed.value;
    if (typeof verdict === "string") this.#metrics.add("verdicts", 1, verdict);
    for (const action of Array.isArray(actions) ? actions : []) {
      if (!isObject(action) || typeof action.class !== "string") continue;
      this.#metrics.add("calls", 1, action.class);
      if (action.class === "refused" && String(action.tool).endsWith("subagent_spawn")) {
        this.#metrics.add("refusals", 1);
      }
    }
  }
}
