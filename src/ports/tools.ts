/** What the loop knows of tools: a catalogue, calls, resources. */

import type { JsonObject } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Part } from "./model.ts";

/** One tool, as it may be called. Metadata is a stranger's: bounded and without controls here. */
export interface Tool {
  /** `server/tool`, as operators write it. */
  name: string;
  server: string;
  /** The tool's own name on its server. */
  remoteName: string;
  /** `server__tool`, as the model sees it. */
  wireName: string;
  description: string;
  inputSchema: JsonObject;
  /** By configuration, else by hint: such calls run side by side and may be sent again. */
  readOnly: boolean;
  /** By configuration: may be sent again under the same key. */
  idempotent: boolean;
  /** By configuration: polled on purpose. */
  poll: boolean;
}

/** One resource of a server, as listed: never its body. */
export interface Resource {
  server: string;
  uri: string;
  name: string;
  description: string;
  mimeType: string | null;
  bytes: number | null;
  etag: string | null;
  /** A URI template: cannot be read as it stands. */
  template: boolean;
}

/** One call that was allowed. */
export interface ToolCallSpec {
  tool: Tool;
  arguments: JsonObject;
  /** The idempotency key: run id and the sequence number of the intent. */
  key: string;
  traceparent: string;
}

/** What came back. `structured` is the result's structured content, if any. */
export interface ToolResult {
  parts: readonly Part[];
  structured: JsonObject | null;
  /** The tool's own domain error (`isError: true`), which is a successful protocol exchange. */
  isError: boolean;
}

/**
 * Why there is no result. `protocol`: a JSON-RPC error, the call did not happen as asked;
 * `not_sent`: it never left; `lost`: it left and its answer is gone (timeout, death, reset), so it
 * may have happened; `denied`: Deno's permissions refused it; `server_down`: a required server is
 * gone for good; `cancelled`: we withdrew it after sending.
 */
export interface ToolFailure {
  class: "protocol" | "not_sent" | "lost" | "denied" | "server_down" | "cancelled";
  message: string;
  /** JSON-RPC error code, for `protocol`. */
  code?: number;
  retryable: boolean;
}

/** Why a server is not there. */
export interface ServerFailure {
  server: string;
  message: string;
  /** The end of its stderr. */
  stderr: string;
}

/** What changed at a server while the run goes on. */
export type ToolsChange =
  | { kind: "tools"; server: string }
  | { kind: "resources"; server: string }
  /** `possibly`: nobody saw it change, but while the server was not heard it may have. */
  | { kind: "resource_updated"; server: string; uri: string; possibly: boolean }
  /** It is not heard for now, or is heard again: what was watched then is possibly changed. */
  | { kind: "heard"; server: string; heard: boolean }
  | { kind: "server_down"; failure: ServerFailure };

/**
 * Tool servers. Contract: `connect` starts all of them side by side and fails only for a required
 * one; transport failures of calls that cannot have had an effect are retried below this port (3
 * times) and nowhere else; nothing throws for what a server does.
 */
export interface ToolsPort {
  connect(
    signal: AbortSignal,
  ): Promise<Outcome<{ tools: Tool[]; resources: Resource[] }, ServerFailure>>;
  /** The catalogue as it is now; after a `tools` or `resources` change, listed anew. */
  list(signal: AbortSignal): Promise<{ tools: Tool[]; resources: Resource[] }>;
  call(spec: ToolCallSpec, signal: AbortSignal): Promise<Outcome<ToolResult, ToolFailure>>;
  readResource(
    server: string | null,
    uri: string,
    signal: AbortSignal,
  ): Promise<Outcome<ToolResult, ToolFailure>>;
  subscribe(server: string, uri: string): Promise<Outcome<void, ToolFailure>>;
  unsubscribe(server: string, uri: string): Promise<Outcome<void, ToolFailure>>;
  /** Called for every change, at most one listener. */
  onChange(handle: (change: ToolsChange) => void): void;
  close(): Promise<void>;
}
