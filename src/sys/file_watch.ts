import { failed, success } from "../core/outcome.ts";
import type { FileWatchPort } from "../ports/file_watch.ts";

/** Changes of files by the system's own notifications. */
export const systemFileWatch: FileWatchPort = {
  watch(directory, recursive, events) {
    let watcher: Deno.FsWatcher;
    try {
      watcher = Deno.watchFs(directory, { recursive });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return failed({ message: `${directory}: ${message}` });
    }
    void (async () => {
      for await (const event of watcher) {
        if (event.flag === "rescan") events.missed();
        if (event.kind === "access") continue;
        for (const path of event.paths) events.changed(path);
      }
    })();
    let open = true;
    return success(() => {
      if (open) watcher.close();
      open = false;
    });
  },
};
