/** What an agent is told when something changed: names of it, never its content. */

import { withoutControls } from "../core/text.ts";
import type { Change } from "./route_queue.ts";

/** A delivery's words, and the URIs that are listed after them. */
export interface Told {
  instruction: string;
  uris: string[];
}

/**
 * What one delivery says. `{uri}` and `{uris}` in the template stand for what changed, the first and
 * all of them; a template with neither is followed by the list. A URI is a stranger's: it comes
 * without controls and on one line.
 */
export function tellChanges(template: string, changes: readonly Change[]): Told {
  const resources = changes.filter((change) => change.runId === null);
  const names = resources.map((change) => withoutControls(change.uri).replaceAll(/\s+/g, " "));
  if (/\{uris?\}/.test(template)) {
    const instruction = template.replaceAll(
      /\{uris?\}/g,
      (hole) => hole === "{uri}" ? names[0] ?? "" : names.join(" "),
    );
    return { instruction, uris: [] };
  }
  const unsure = resources.length > 0 &&
    resources.every((change) => change.kind === "possibly");
  const instruction = unsure
    ? `${template}\n(Nobody watched for a while: what is named here possibly changed.)`
    : template;
  return { instruction, uris: names };
}

/** The same as one text, for a run of its own. */
export function tellRun(told: Told): string {
  if (told.uris.length === 0) return told.instruction;
  return `${told.instruction}\nChanged:\n${told.uris.map((uri) => `- ${uri}`).join("\n")}`;
}
