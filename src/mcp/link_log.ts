/** What one server's link tells telemetry. */

import { TOOL_LINE_BYTES_MAX, TOOLS_MAX } from "../core/limits.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ServerFailure } from "../ports/tools.ts";
import type { ServerSettings } from "../wire/payload.ts";
import type { Connection } from "./connection.ts";
import type { Listing } from "./listing.ts";
import { PortTransport, type ServerExit, type StrayLine } from "./stdio.ts";

/** The log of one link. */
export class LinkLog {
  readonly #telemetry: TelemetryPort;
  readonly #settings: ServerSettings;
  /** Names and reasons that were told already. */
  readonly #told = new Set<string>();

  constructor(telemetry: TelemetryPort, settings: ServerSettings) {
    this.#telemetry = telemetry;
    this.#settings = settings;
  }

  /** It is connected and listed. */
  connected(connection: Connection, tools: number, resources: number, durMs: number): void {
    this.#telemetry.emit("mcp.connect", {
      server: this.#settings.name,
      tools,
      resources,
      protocol: connection.protocol,
      ...strayFields(connection),
      dur_ms: durMs,
    });
  }

  /** It could not be connected. */
  connectFailed(failure: ServerFailure, type: string, durMs: number): void {
    const { name, required } = this.#settings;
    this.#telemetry.emit("mcp.connect.fail", {
      server: name,
      required,
      err: { type, message: failure.message },
      stderr: failure.stderr,
      dur_ms: durMs,
    }, required ? "error" : "warn");
  }

  /** A connection is over. */
  disconnected(connection: Connection, reason: string): void {
    const exit = exitOf(connection);
    this.#telemetry.emit("mcp.disconnect", {
      server: this.#settings.name,
      reason,
      ...(exit === null ? {} : { code: exit.code, signal: exit.signal }),
      ...strayFields(connection),
    }, reason === "closed" ? "info" : "warn");
  }

  /** A tool is not offered; told once. */
  leftOut(tool: string, why: string): void {
    const key = `${tool}\n${why}`;
    if (this.#told.size >= TOOLS_MAX || this.#told.has(key)) return;
    this.#told.add(key);
    const fields = { server: this.#settings.name, tool, change: "left_out", why };
    this.#telemetry.emit("mcp.tool.changed", fields, "warn");
  }

  /** A list was not read to its end, if so. */
  cut(list: string, listing: Listing): void {
    if (listing.cut === null) return;
    const kept = listing.items.length;
    const fields = { server: this.#settings.name, limit: `list_${listing.cut}`, list, kept };
    this.#telemetry.emit("limit.exceeded", fields, "warn");
  }

  /** The first line of a kind that was no message. */
  stray(line: StrayLine): void {
    const server = this.#settings.name;
    const { kind, bytes } = line;
    if (kind === "oversized") {
      const fields = { limit: "tool_line_bytes", server, bound: TOOL_LINE_BYTES_MAX, bytes };
      this.#telemetry.emit("limit.exceeded", fields, "warn");
    } else this.#telemetry.emit("mcp.connect", { server, stray: kind, bytes }, "warn");
  }
}

/** How a connection's process ended; null if it has none or lives. */
export function exitOf(connection: Connection): ServerExit | null {
  return connection.transport instanceof PortTransport ? connection.transport.exit : null;
}

/** Counts of what was no message, those that are not 0. */
function strayFields(connection: Connection): Record<string, number> {
  const { transport } = connection;
  const stray = transport instanceof PortTransport ? transport.stray : null;
  const fields: Record<string, number> = {
    noise_lines: stray?.noise ?? 0,
    invalid_lines: stray?.invalid ?? 0,
    oversized_lines: stray?.oversized ?? 0,
    complaints: connection.complaints,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, count]) => count > 0));
}
