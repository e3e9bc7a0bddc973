/** Texts that users wrote into files. */

import { failed, type Outcome, success } from "../core/outcome.ts";
import type { FileFailure, FilesPort } from "../ports/files.ts";

/**
 * A file's text, which has to be UTF-8: read otherwise, a task, a key or a name would silently be
 * another one. Shells of Windows write UTF-16 by themselves, so that this is named.
 */
export function readUserText(
  files: Pick<FilesPort, "readBytes">,
  path: string,
  bytesMax: number,
): Outcome<string, FileFailure> {
  const bytes = files.readBytes(path, bytesMax);
  if (!bytes.ok) return bytes;
  try {
    return success(new TextDecoder("utf-8", { fatal: true }).decode(bytes.value));
  } catch {
    const [first, second] = bytes.value;
    const isWide = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
    return failed({
      class: "not_text",
      message: `${path}: it is ${isWide ? "UTF-16" : "not UTF-8"}; save it as UTF-8`,
    });
  }
}
