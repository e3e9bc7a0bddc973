/** Messages between a tool server's main thread and its Worker. */

import type { PermissionSet } from "../wire/payload.ts";

/** The built-in servers. */
export const SERVER_KINDS = ["fs", "http", "exec"] as const;

/** One of {@link SERVER_KINDS}. */
export type ServerKind = typeof SERVER_KINDS[number];

/** How commands of exec are confined beyond their permission to run. */
export type Sandbox = "none" | "bwrap";

/** What a Worker serves. */
export interface ServerOrder {
  kind: ServerKind;
  version: string;
  permissions: PermissionSet;
  /** Absolute. */
  workingDirectory: string;
  sandbox: Sandbox;
  /** The environment of commands; empty but for exec. */
  environment: Record<string, string>;
  /** Whether commands may be started in groups of their own: somebody watches over them. */
  groups: boolean;
}

/** Signals that the Worker may ask for: to a group that it said it started. */
export type GroupSignal = "SIGTERM" | "SIGKILL";

/** What the main thread says. */
export type ToToolWorker =
  | { type: "start"; order: ServerOrder }
  /** What was left of the group is killed. */
  | { type: "signalled"; groupId: number };

/** What the Worker says. */
export type FromToolWorker =
  /** Loaded and serving: the main thread may give up its permissions. */
  | { type: "up" }
  /** A command runs in a group of this id. */
  | { type: "group_started"; groupId: number }
  /** Its program is gone: what is left of the group is to be killed. */
  | { type: "group_ended"; groupId: number }
  | { type: "signal_group"; groupId: number; signal: GroupSignal }
  /** The client closed the connection and everything is wound up. */
  | { type: "done" };
