import type { Cancel } from "./clock.ts";
import type { Outcome } from "../core/outcome.ts";

/**
 * Changes of files. Contract: `changed` is called with absolute paths that were made, written,
 * renamed or removed; `missed` when the system lost some; `gone`, once, when the directory is not
 * there any more and nothing more will be heard; nothing throws for the world.
 */
export interface FileWatchPort {
  watch(
    directory: string,
    recursive: boolean,
    events: { changed(path: string): void; missed(): void; gone(): void },
  ): Outcome<Cancel, { message: string }>;
}
