/** The tools of one list: each once, each sound. */

import { hasSoundHeaders } from "./header_schema.ts";
import { type ListedTool, readTool } from "./metadata.ts";

/**
 * Reads what a server lists as its tools. What cannot be offered is told to `leftOut` with the
 * reason. `mirrors`: this connection sends arguments as headers, so their declarations must hold.
 */
export function readTools(
  items: readonly unknown[],
  mirrors: boolean,
  leftOut: (name: string, why: string) => void,
): ListedTool[] {
  const tools = new Map<string, ListedTool>();
  for (const raw of items) {
    const tool = readTool(raw);
    if ("why" in tool) leftOut(tool.name, tool.why);
    else if (mirrors && tool.mirrorsHeaders && !hasSoundHeaders(tool.inputSchema)) {
      leftOut(tool.remoteName, "its x-mcp-header declarations break the protocol");
    } else if (tools.has(tool.remoteName)) leftOut(tool.remoteName, "it is listed twice");
    else tools.set(tool.remoteName, tool);
  }
  return [...tools.values()];
}

/** What a model would see of these tools: another text, other tools. */
export function fingerprint(tools: readonly ListedTool[]): string {
  return tools.map((tool) => `${tool.remoteName}\n${tool.fingerprint}`).join("\n\n");
}
