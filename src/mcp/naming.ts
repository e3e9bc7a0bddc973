/** Names of tools on the wire: `server__tool`, unique and stable while the run goes on. */

import { fnv64 } from "../core/hash.ts";
import { WIRE_TOOL_NAME_CHARS_MAX } from "../core/limits.ts";
import { SELF_TOOL_NAMES } from "../selftools/specs.ts";

const SEPARATOR = "__";
const HASH_CHARS = 8;

/** A tool as names see it. */
export interface ToolId {
  server: string;
  remoteName: string;
}

/**
 * Gives wire names. A name once given is kept for the host's lifetime. Of several tools whose
 * plain names are the same, the one that needed no change keeps it and the others get a hash of
 * their full name, whatever order they come in.
 */
export class Namer {
  readonly #given = new Map<string, string>();
  readonly #used = new Set<string>(SELF_TOOL_NAMES);

  /** Wire names of these tools, in their order. */
  assign(tools: readonly ToolId[]): string[] {
    const claims = new Map<string, number>();
    const fresh = tools.filter((tool) => !this.#given.has(key(tool)));
    for (const tool of fresh) {
      const plain = plainName(tool);
      claims.set(plain, (claims.get(plain) ?? 0) + 1);
    }
    const exactFirst = fresh.toSorted((a, b) =>
      Number(isExact(b)) - Number(isExact(a)) || (key(a) < key(b) ? -1 : 1)
    );
    for (const tool of exactFirst) {
      const plain = plainName(tool);
      const contested = claims.get(plain)! > 1 && !isExact(tool);
      const fits = plain.length <= WIRE_TOOL_NAME_CHARS_MAX;
      this.#give(tool, fits && !contested && !this.#used.has(plain) ? plain : this.#hashed(tool));
    }
    return tools.map((tool) => this.#given.get(key(tool))!);
  }

  #give(tool: ToolId, name: string): void {
    this.#given.set(key(tool), name);
    this.#used.add(name);
  }

  #hashed(tool: ToolId): string {
    const head = plainName(tool).slice(0, WIRE_TOOL_NAME_CHARS_MAX - HASH_CHARS - 1);
    for (let salt = 0;; salt++) {
      const digest = fnv64(salt === 0 ? key(tool) : `${key(tool)}\n${salt}`);
      const name = `${head}_${digest.slice(0, HASH_CHARS)}`;
      if (!this.#used.has(name)) return name;
    }
  }
}

function key(tool: ToolId): string {
  return `${tool.server}/${tool.remoteName}`;
}

function plainName(tool: ToolId): string {
  return clean(tool.server) + SEPARATOR + clean(tool.remoteName);
}

function clean(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_");
}

/** Whether the plain name says server and tool unchanged and can be split in only one way. */
function isExact(tool: ToolId): boolean {
  return clean(tool.server) === tool.server && clean(tool.remoteName) === tool.remoteName &&
    !tool.server.includes(SEPARATOR) && !tool.server.endsWith("_");
}
