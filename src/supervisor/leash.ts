/**
 * What binds an agent's life to its supervisor's beyond the end of its stdin: the kernel's
 * parent-death signal, by util-linux's setpriv, for the agent that is stopped or wedged itself.
 */

import type { FilesPort } from "../ports/files.ts";

/** Places where util-linux installs it; a link to anything else (busybox) lacks the option. */
const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"];

/** Words to put before an agent's command; empty where the system has no such tool. */
export function leashFor(files: FilesPort): string[] {
  for (const path of SETPRIV) {
    const real = files.realPath(path);
    if (real.ok && real.value.endsWith("/setpriv")) {
      return [real.value, "--pdeathsig", "KILL", "--"];
    }
  }
  return [];
}
