/**
 * What reaches an agent that is stopped while its supervisor is killed: the kernel's parent-death
 * signal, set by util-linux's setpriv. The signal is SIGCONT and not SIGKILL on purpose: awake, the
 * agent sees the end of its stdin and takes its whole group and its strays along, whereas killed
 * alone it would leave them behind.
 */

import type { FilesPort } from "../ports/files.ts";

/** Places where util-linux installs it; a link to anything else (busybox) lacks the option. */
const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"];

/** Words to put before an agent's command; none where the system has no such tool. */
export function leashFor(files: FilesPort): string[] {
  for (const path of SETPRIV) {
    const real = files.realPath(path);
    if (real.ok && real.value.endsWith("/setpriv")) {
      return [real.value, "--pdeathsig", "CONT", "--"];
    }
  }
  return [];
}
