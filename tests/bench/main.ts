/**
 * `deno task bench`: what agentd must reach, as ratios to bare programs measured in the same run. It
 * needs Linux, Node and npm. Exit 1 if a goal is missed. Names of sections as arguments run only those.
 */

import { startEndpoint } from "./endpoint.ts";
import { missed } from "./report.ts";
import { SECTIONS } from "./sections.ts";
import { prepare } from "./setup.ts";

const root = await Deno.realPath(`${import.meta.dirname}/../..`);
const unknown = Deno.args.filter((name) => !(name in SECTIONS));
if (unknown.length > 0) {
  console.error(
    `Cannot measure ${unknown.join(", ")}: sections are ${Object.keys(SECTIONS).join(", ")}.`,
  );
  Deno.exit(2);
}
const programs = await prepare(root);
const endpoint = startEndpoint();
try {
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (Deno.args.length === 0 || Deno.args.includes(name)) await section({ programs, endpoint });
  }
} finally {
  await endpoint.close();
  await Deno.remove(programs.scratch, { recursive: true });
}
console.log(missed.length === 0 ? "\nEvery goal is met." : `\nMissed: ${missed.join("; ")}.`);
Deno.exit(missed.length === 0 ? 0 : 1);
