/** What an agent is told when something changed: names of it, never its content. */

import { byteLength, withoutControls } from "../core/text.ts";
import { INSTRUCTION_BYTES_MAX } from "../core/limits.ts";
import type { Change } from "./route_queue.ts";

/**
 * The instruction of one delivery. `{uri}` and `{uris}` in the template stand for what changed, the
 * first and all of them; a template with neither is followed by a list. A URI is a stranger's: it
 * comes without control characters.
 */
export function renderInstruction(template: string, changes: readonly Change[]): string {
  const resources = changes.filter((change) => change.runId === null);
  const names = resources.map((change) => withoutControls(change.uri).replaceAll("\n", " "));
  let text = template;
  if (/\{uris?\}/.test(template)) {
    text = template.replaceAll(
      /\{uris?\}/g,
      (hole) => hole === "{uri}" ? names[0] ?? "" : names.join(" "),
    );
  } else if (names.length > 0) {
    const lines = resources.map((change, i) => {
      const server = change.server === null ? "" : ` (server ${change.server})`;
      const unsure = change.kind === "possibly" ? " (possibly changed, nobody watched)" : "";
      return `- ${names[i]}${server}${unsure}`;
    });
    text = `${template}\n\nChanged, read the current state:\n${lines.join("\n")}`;
  }
  return byteLength(text) <= INSTRUCTION_BYTES_MAX ? text : template;
}
