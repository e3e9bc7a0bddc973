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
    let open = true;
    const close = () => {
      if (open) watcher.close();
      open = false;
    };
    void (async () => {
      for await (const event of watcher) {
        if (event.flag === "rescan") events.missed();
        if (event.kind === "access") continue;
        // Removed or moved away: what has its name later is another directory.
        if (event.kind === "remove" && event.paths.includes(directory)) break;
        for (const path of event.paths) events.changed(path);
      }
      if (!open) return;
      close();
      events.gone();
    })();
    return success(close);
  },
};
