/** What the command line needs of the system, beside the ports of every role. */

import { systemDigest } from "./digest.ts";
import { systemFileWatch } from "./file_watch.ts";
import { systemHttp } from "./http.ts";
import { systemListen } from "./listen.ts";
import { isLockPending, systemLock } from "./lock.ts";
import { openNotify } from "./notify.ts";
import { systemPorts } from "./system.ts";
import { systemTerminal } from "./terminal.ts";

export { isLockPending };

/** The ports of the process that a user starts; `mainUrl` is its entry module. */
export function systemCliPorts(mainUrl: string) {
  const variables = Deno.env.toObject();
  return {
    ...systemPorts(mainUrl),
    lock: systemLock,
    terminal: systemTerminal,
    digest: systemDigest,
    http: systemHttp,
    listen: systemListen,
    fileWatch: systemFileWatch,
    notify: openNotify((name) => variables[name]),
    variables,
    cwd: Deno.cwd(),
    home: variables.HOME ?? variables.USERPROFILE ?? null,
    uid: Deno.build.os === "windows" ? null : Deno.uid(),
  };
}
