/** The fs server: files within a grant. */

import type { ClockPort } from "../ports/clock.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TreePort } from "../ports/tree.ts";
import type { PermissionSet } from "../wire/payload.ts";
import { globTool, searchTool } from "./fs_find.ts";
import { listTool, readTool, statTool } from "./fs_read.ts";
import { editTool, writeTool } from "./fs_write.ts";
import { PathGrant } from "./grant.ts";
import type { BuiltinTool } from "./tool.ts";

/** What the tools of fs work with. */
export interface FsDeps {
  tree: TreePort;
  clock: ClockPort;
  random: RandomPort;
  grant: PathGrant;
  /** Runs one change after the other: calls side by side must not undo each other's edits. */
  alone<Value>(act: () => Promise<Value>): Promise<Value>;
}

/** Tools that a grant makes possible, those it does not, and what a client is told of it. */
export interface BuiltTools {
  tools: BuiltinTool[];
  withheld: Record<string, string>;
  instructions: string;
}

/** The tools of fs for a grant. With nothing granted all are there, and each call is refused. */
export function buildFsTools(
  deps: { tree: TreePort; clock: ClockPort; random: RandomPort },
  permissions: PermissionSet,
  workingDirectory: string,
): BuiltTools {
  const grant = new PathGrant(deps.tree, permissions, workingDirectory);
  let last: Promise<unknown> = Promise.resolve();
  const fs: FsDeps = {
    ...deps,
    grant,
    alone: (act) => {
      const next = last.then(act);
      last = next.catch(() => {});
      return next;
    },
  };
  const all = {
    read: [listTool(fs), globTool(fs), searchTool(fs), readTool(fs), statTool(fs)],
    write: [writeTool(fs)],
    both: [editTool(fs)],
  };
  const read = permissions.read !== false;
  const write = permissions.write !== false;
  const none = !read && !write;
  const withheld: Record<string, string> = {};
  const tools: BuiltinTool[] = [];
  const offer = (group: BuiltinTool[], granted: boolean, remedy: string) => {
    for (const tool of group) {
      if (granted || none) tools.push(tool);
      else withheld[tool.name] = remedy;
    }
  };
  offer(all.read, read, "--allow-read");
  offer(all.write, write, "--allow-write");
  offer(all.both, read && write, write ? "--allow-read" : "--allow-write");
  return {
    tools,
    withheld,
    instructions: `Relative paths start in ${grant.workingDirectory}. ` +
      `Readable: ${grant.describe("read")}. Writable: ${grant.describe("write")}.`,
  };
}
