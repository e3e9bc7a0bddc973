#!/usr/bin/env node
// on_stop: commits what a run made, once it claims to be done.
//
//   agentd … --hook 'on_stop=node examples/hooks/commit_on_stop.mjs'
//
// If git refuses (its own pre-commit hook, say), the final is not accepted: exit 2 shows the model
// why, and it goes on. A run that ended otherwise is left uncommitted for people to look at.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const { run_id: run, status, result } = JSON.parse(readFileSync(0, "utf8"));
if (status !== "completed") process.exit(0);

try {
  git("add", "--all");
  if (git("status", "--porcelain") === "") process.exit(0);
  const words = typeof result === "string" ? result : JSON.stringify(result);
  git("commit", "--quiet", "--message", `agentd ${run}\n\n${words.slice(0, 2_000)}`);
} catch (error) {
  console.error(`git refused: ${error.stderr || error.message}`);
  process.exit(2);
}

function git(...args) {
  return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
