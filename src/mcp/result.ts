/** Results of tools and resources as parts that a model can read. */

import { isNestedDeeper, isObject, type Json, type JsonObject } from "../core/json.ts";
import { JSON_LEVELS_MAX } from "../core/limits.ts";
import { formatSize } from "../core/units.ts";
import type { Part } from "../ports/model.ts";
import type { ToolResult } from "../ports/tools.ts";

/** The result of `tools/call`; undefined if it is none. */
export function readToolResult(raw: unknown): ToolResult | undefined {
  if (!isObject(raw)) return undefined;
  const { content } = raw;
  if (content !== undefined && !Array.isArray(content)) return undefined;
  const parts: Part[] = [];
  for (const block of content ?? []) addBlock(parts, block);
  const tooDeep = isNestedDeeper(raw.structuredContent, JSON_LEVELS_MAX);
  const structuredContent = tooDeep ? undefined : raw.structuredContent;
  if (tooDeep) {
    const text = `[structured content nested in more than ${JSON_LEVELS_MAX} levels, not shown]`;
    parts.push({ type: "text", text });
  }
  // Structured content may be any JSON value; what is no object is at least shown.
  const shown = structuredContent !== undefined && !isObject(structuredContent) &&
    parts.length === 0;
  if (shown) parts.push({ type: "text", text: JSON.stringify(structuredContent) });
  return {
    parts,
    structured: isObject(structuredContent) ? structuredContent : null,
    isError: raw.isError === true,
  };
}

/** The result of `resources/read`; undefined if it is none. */
export function readResourceResult(raw: unknown): ToolResult | undefined {
  if (!isObject(raw) || !Array.isArray(raw.contents)) return undefined;
  const parts: Part[] = [];
  for (const item of raw.contents) {
    if (isObject(item)) addResource(parts, item, raw.contents.length > 1);
  }
  return { parts, structured: null, isError: false };
}

function addBlock(parts: Part[], block: Json): void {
  if (!isObject(block)) return;
  const { type } = block;
  if (type === "text" && typeof block.text === "string") {
    parts.push({ type, text: block.text });
  } else if ((type === "image" || type === "audio") && typeof block.data === "string") {
    const mimeType = text(block.mimeType) || `${type}/*`;
    parts.push({ type, mimeType, data: block.data });
  } else if (type === "resource" && isObject(block.resource)) {
    addResource(parts, block.resource, true);
  } else if (type === "resource_link") {
    parts.push({ type: "text", text: describeLink(block) });
  } else {
    parts.push({
      type: "text",
      text: `[a block of type ${JSON.stringify(type ?? null)}, not shown]`,
    });
  }
}

/** The content of a resource; `named`: with its URI in front of a text. */
function addResource(parts: Part[], resource: JsonObject, named: boolean): void {
  const uri = text(resource.uri);
  const mimeType = text(resource.mimeType);
  if (typeof resource.text === "string") {
    const head = named && uri !== "" ? `[resource ${uri}]\n` : "";
    parts.push({ type: "text", text: head + resource.text });
  } else if (typeof resource.blob === "string") {
    const kind = /^(image|audio)\//.exec(mimeType)?.[1] as "image" | "audio" | undefined;
    if (kind !== undefined) parts.push({ type: kind, mimeType, data: resource.blob });
    else {
      const bytes = Math.floor(resource.blob.length * 3 / 4);
      const what = `${mimeType || "binary"}, ${formatSize(bytes)}`;
      parts.push({ type: "text", text: `[resource ${uri}: ${what}, not text]` });
    }
  }
}

function describeLink(link: JsonObject): string {
  const details = [
    text(link.mimeType),
    typeof link.size === "number" ? formatSize(link.size) : "",
  ].filter((detail) => detail !== "").join(", ");
  const head = `[link to resource ${text(link.uri)}${details === "" ? "" : ` (${details})`}]`;
  return [head, text(link.title) || text(link.name), text(link.description)]
    .filter((line) => line !== "").join("\n");
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
