/** What the main thread of a built-in tool server needs of the system. */

import { systemClock } from "./clock.ts";
import { systemProcess } from "./process.ts";
import { systemSelf } from "./self.ts";
import { systemTree } from "./tree.ts";
import { systemWorkers } from "./worker.ts";

/** The ports of a tool server's process whose entry module is at `mainUrl`. */
export function systemToolServerPorts(mainUrl: string) {
  const entry = `./src/toolserver/worker.${mainUrl.endsWith(".ts") ? "ts" : "js"}`;
  return {
    self: systemSelf,
    revokeRun: async (): Promise<void> => {
      await Deno.permissions.revoke({ name: "run" });
    },
    worker: systemWorkers(new URL(entry, mainUrl)),
    process: systemProcess,
    clock: systemClock,
    environment: () => Deno.env.toObject(),
    realPath: (path: string): string | undefined => {
      const real = systemTree.realPath(path);
      return real.ok ? real.value : undefined;
    },
    workingDirectory: Deno.cwd(),
    say: (line: string): void => console.error(line),
  };
}
