import type { LockPort } from "../ports/lock.ts";
import type { TerminalPort } from "../ports/terminal.ts";
import type { SupervisorPorts } from "../supervisor/ports.ts";

/** Effects that the command line needs: the supervisor's, and its user's surroundings. */
export interface CliPorts extends SupervisorPorts {
  lock: LockPort;
  terminal: TerminalPort;
  /** The whole environment. */
  variables: Readonly<Record<string, string>>;
  /** Absolute. */
  cwd: string;
  home: string | null;
  /** Null where the system has no such ids. */
  uid: number | null;
}
