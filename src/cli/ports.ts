import type { DigestPort } from "../ports/digest.ts";
import type { FileWatchPort } from "../ports/file_watch.ts";
import type { HttpPort } from "../ports/http.ts";
import type { ListenPort } from "../ports/listen.ts";
import type { NotifyPort } from "../ports/notify.ts";
import type { TerminalPort } from "../ports/terminal.ts";
import type { SupervisorPorts } from "../supervisor/ports.ts";

/** Effects that the command line needs: the supervisor's, and its user's surroundings. */
export interface CliPorts extends SupervisorPorts {
  terminal: TerminalPort;
  digest: DigestPort;
  http: HttpPort;
  listen: ListenPort;
  fileWatch: FileWatchPort;
  notify: NotifyPort;
  /** The whole environment. */
  variables: Readonly<Record<string, string>>;
  /** Absolute. */
  cwd: string;
  home: string | null;
  /** Null where the system has no such ids. */
  uid: number | null;
}
