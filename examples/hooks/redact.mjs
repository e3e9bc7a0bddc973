#!/usr/bin/env node
// after_observation: replaces what must not reach the model, before anything of it is kept.
//
//   agentd … --hook 'after_observation=node examples/hooks/redact.mjs'
//   agentd … --hook 'after_observation=node examples/hooks/redact.mjs "ACME-[0-9]+" "[0-9]{16}"'
//
// Without patterns: addresses of mail. JSON on stdout replaces the observation; nothing leaves it.

import { readFileSync } from "node:fs";

const MAIL = "[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+";

const { observation } = JSON.parse(readFileSync(0, "utf8"));
const patterns = process.argv.length > 2 ? process.argv.slice(2) : [MAIL];
const text = patterns.reduce(
  (rest, pattern) => rest.replace(new RegExp(pattern, "gu"), "[redacted]"),
  observation.text,
);
if (text !== observation.text) console.log(JSON.stringify({ observation: { text } }));
