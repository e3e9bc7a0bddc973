/**
 * The resource catalogue: awareness, never bodies. One line a resource within a byte
 * budget; beyond it, counts by URI prefix. Everything in it is a server's word and shown as data.
 */

import { byteLength, clip, withoutControls } from "../core/text.ts";
import type { Resource } from "../ports/tools.ts";
import { fitLines } from "../selftools/paging.ts";
import { withoutMark } from "./prompt.ts";

const DESCRIPTION_CHARS_MAX = 120;
const URI_CHARS_MAX = 300;
/** Room for the line of what is left out. */
const MORE_BYTES = 64;

/** The catalogue as text; empty when there are no resources. */
export function renderCatalogue(resources: readonly Resource[], bytesMax: number): string {
  if (resources.length === 0) return "";
  const lines = resources.map(renderResource);
  const text = lines.join("\n");
  return byteLength(text) <= bytesMax ? text : renderPrefixes(resources, bytesMax);
}

/** One line: URI, name, description, size, etag, as far as the server told. */
export function renderResource(resource: Resource): string {
  const facts = [
    resource.template ? "template" : "",
    resource.mimeType ?? "",
    resource.bytes === null ? "" : `${resource.bytes} bytes`,
    resource.etag === null ? "" : `etag ${clip(resource.etag, 64)}`,
  ].filter((fact) => fact !== "");
  const described = oneLine(
    resource.description === "" ? resource.name : `${resource.name}: ${resource.description}`,
    DESCRIPTION_CHARS_MAX,
  );
  const tail = facts.length > 0 ? ` (${facts.join(", ")})` : "";
  return `- ${resource.server} ${oneLine(resource.uri, URI_CHARS_MAX)} ${described}${tail}`;
}

function renderPrefixes(resources: readonly Resource[], bytesMax: number): string {
  for (let depth = 4; depth >= 0; depth--) {
    const counts = new Map<string, number>();
    for (const resource of resources) {
      const prefix = `${resource.server} ${uriPrefix(resource.uri, depth)}`;
      counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
    const head = `${resources.length} resources, too many to list; by URI prefix:`;
    const tail = "List some with resource_list {prefix, query}.";
    const lines = [...counts].map(([prefix, count]) => `- ${oneLine(prefix, 200)}… ${count}`);
    const text = [head, ...lines, tail].join("\n");
    if (byteLength(text) <= bytesMax) return text;
    if (depth > 0) continue;
    const kept = fitLines(lines, bytesMax - byteLength(`${head}\n${tail}`) - MORE_BYTES);
    return [head, ...kept, `- ${lines.length - kept.length} prefixes more`, tail].join("\n");
  }
  return "";
}

function uriPrefix(uri: string, depth: number): string {
  const scheme = /^[a-z][a-z0-9+.-]*:(?:\/\/)?/i.exec(uri)?.[0] ?? "";
  const segments = uri.slice(scheme.length).split("/");
  return scheme +
    segments.slice(0, Math.min(depth, segments.length - 1)).map((s) => s + "/").join("");
}

function oneLine(text: string, charsMax: number): string {
  return clip(withoutMark(withoutControls(text)).replace(/\s+/g, " ").trim(), charsMax);
}
