/**
 * The program under black-box test, in both its forms. `deno task test` builds the binary first and
 * names it in AGENTD_BINARY; without that, the tests run on the source alone.
 */

import { BAKED_FLAGS } from "../tools/build.ts";

/** How to start agentd: `new Deno.Command(command, { args: [...args, "run", …] })`. */
export interface Program {
  name: "source" | "binary";
  command: string;
  args: readonly string[];
}

const root = new URL("..", import.meta.url);

/** The source, and the binary where there is one. */
export function programs(): Program[] {
  const source: Program = {
    name: "source",
    command: Deno.execPath(),
    args: ["run", ...BAKED_FLAGS, new URL("main.ts", root).href],
  };
  const binary = Deno.env.get("AGENTD_BINARY");
  return binary ? [source, { name: "binary", command: binary, args: [] }] : [source];
}
