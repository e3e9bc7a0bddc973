/** What of the servers' tools this agent may call, under which names, and which are refused. */

import { TOOLS_MAX } from "../core/limits.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { Tool } from "../ports/tools.ts";
import type { ToolSettings } from "../wire/payload.ts";
import type { ListedTool } from "./metadata.ts";
import { Namer } from "./naming.ts";
import { type ResolvedRule, Rules } from "./rules.ts";

/** A tool that may be called. */
export interface Entry {
  tool: Tool;
  listed: ListedTool;
  rule: ResolvedRule;
}

/** A server's listed tools. */
export interface ServerTools {
  name: string;
  tools: readonly ListedTool[];
}

/** Tools that one host remembers, with those that are gone: a server may list new names for ever. */
const KNOWN_TOOLS_MAX = 16 * TOOLS_MAX;

/** The catalogue. Pins and names last as long as it does. */
export class Catalogue {
  readonly #settings: ToolSettings;
  readonly #telemetry: TelemetryPort;
  readonly #rules: Rules;
  readonly #namer = new Namer();
  /** What each tool was when it was first seen, or last accepted. */
  readonly #pins = new Map<string, string>();
  readonly #refused = new Map<string, string>();
  readonly #known = new Set<string>();
  #full = false;
  #entries = new Map<string, Entry>();

  constructor(settings: ToolSettings, telemetry: TelemetryPort) {
    this.#settings = settings;
    this.#telemetry = telemetry;
    this.#rules = new Rules(settings);
  }

  /** The tools that are offered, in order of servers, then by name. */
  get tools(): Tool[] {
    return [...this.#entries.values()].map((entry) => entry.tool);
  }

  /** The entry of a tool by its `server/tool` name. */
  get(name: string): Entry | undefined {
    return this.#entries.get(name);
  }

  /** Whether a tool is refused because what its server says of it has changed. */
  isRefused(name: string): boolean {
    return this.#refused.has(name);
  }

  /** Takes what the servers list now. Tools that did not change keep their object. */
  update(servers: readonly ServerTools[]): void {
    const accepted: { server: string; listed: ListedTool; name: string; rule: ResolvedRule }[] = [];
    for (const server of servers) {
      const sorted = server.tools.toSorted((a, b) => a.remoteName < b.remoteName ? -1 : 1);
      for (const listed of sorted) {
        const name = `${server.name}/${listed.remoteName}`;
        if (!this.#remembers(name)) continue;
        const rule = this.#rules.resolve(name);
        if (!rule.granted || !this.#accepts(server.name, name, listed)) continue;
        accepted.push({ server: server.name, listed, name, rule });
      }
    }
    if (accepted.length > TOOLS_MAX) {
      const fields = { limit: "tools", kept: TOOLS_MAX, total: accepted.length };
      this.#telemetry.emit("limit.exceeded", fields, "warn");
      accepted.length = TOOLS_MAX;
    }
    const wireNames = this.#namer.assign(
      accepted.map(({ server, listed }) => ({ server, remoteName: listed.remoteName })),
    );
    const before = this.#entries;
    this.#entries = new Map(accepted.map(({ server, listed, name, rule }, index) => {
      const known = before.get(name);
      if (known?.listed.fingerprint === listed.fingerprint) return [name, known];
      return [name, { tool: makeTool(server, listed, rule, wireNames[index]!), listed, rule }];
    }));
  }

  #remembers(name: string): boolean {
    if (this.#known.has(name)) return true;
    if (this.#known.size === KNOWN_TOOLS_MAX) {
      if (this.#full) return false;
      this.#full = true;
      this.#telemetry.emit(
        "limit.exceeded",
        { limit: "known_tools", bound: KNOWN_TOOLS_MAX },
        "warn",
      );
      return false;
    }
    this.#known.add(name);
    return true;
  }

  /** Whether a tool may be offered as it is listed now; tells of a change once. */
  #accepts(server: string, name: string, listed: ListedTool): boolean {
    const pinned = this.#pins.get(name);
    if (pinned === undefined || pinned === listed.fingerprint) {
      this.#pins.set(name, listed.fingerprint);
      this.#refused.delete(name);
      return true;
    }
    if (this.#refused.get(name) !== listed.fingerprint) {
      this.#telemetry.emit("mcp.tool.changed", {
        server,
        tool: listed.remoteName,
        change: "metadata",
        refused: this.#settings.pin,
      }, "warn");
    }
    if (!this.#settings.pin) {
      this.#pins.set(name, listed.fingerprint);
      return true;
    }
    this.#refused.set(name, listed.fingerprint);
    return false;
  }
}

function makeTool(server: string, listed: ListedTool, rule: ResolvedRule, wireName: string): Tool {
  return {
    name: `${server}/${listed.remoteName}`,
    server,
    remoteName: listed.remoteName,
    wireName,
    description: listed.description,
    inputSchema: listed.inputSchema,
    readOnly: rule.readOnly ?? listed.readOnlyHint,
    idempotent: rule.idempotent,
    poll: rule.poll,
  };
}
