#!/usr/bin/env node
// on_stop: posts how a run ended to a web hook.
//
//   agentd … --hook 'on_stop=node examples/hooks/notify.mjs https://chat.example/hooks/abc'
//
// A final is announced before it is accepted, every other end when it is there. That nobody could be
// told must not hold up the work: exit 1 is logged and blocks nothing.

import { readFileSync } from "node:fs";

const { run_id: run, status, abort, reason } = JSON.parse(readFileSync(0, "utf8"));
const ended = status ?? `abort ${abort}`;
const answer = await fetch(process.argv[2], {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ text: `agentd ${run}: ${ended}${reason ? ` (${reason})` : ""}` }),
  signal: AbortSignal.timeout(5_000),
});
if (!answer.ok) {
  console.error(`the web hook answered ${answer.status}`);
  process.exit(1);
}
