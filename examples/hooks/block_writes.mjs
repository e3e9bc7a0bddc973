#!/usr/bin/env node
// before_action: lets the fs server write below the given folders and nowhere else.
//
//   agentd … --allow-write=. --hook 'before_action=node examples/hooks/block_writes.mjs out notes'
//
// Exit 0 lets the call go on; exit 2 blocks it, and the model reads what stands on stderr.

import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";

const WRITING = new Set(["fs/write", "fs/edit"]);

const { tool, arguments: args } = JSON.parse(readFileSync(0, "utf8"));
if (!WRITING.has(tool)) process.exit(0);

const folders = process.argv.slice(2);
const target = realPathOf(resolve(String(args.path)));
if (folders.some((folder) => isWithin(target, realPathOf(resolve(folder))))) process.exit(0);
console.error(`${args.path} is outside ${folders.join(" and ") || "every folder"}; write there`);
process.exit(2);

/** Where a path really is, links followed; what does not exist yet lies below what does. */
function realPathOf(path) {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(realPathOf(dirname(path)), basename(path));
  }
}

function isWithin(path, folder) {
  const way = relative(folder, path);
  return way === "" || (way.split(/[\\/]/)[0] !== ".." && !isAbsolute(way));
}
