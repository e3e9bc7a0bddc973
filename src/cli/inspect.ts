/** `agentd inspect RUN`, in all its forms. */

import { inspectCommand } from "../record/inspect.ts";
import type { RunPlace } from "../record/runs.ts";
import { resolvePath } from "../toolserver/paths.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { findRun, type Look, openLook, printOutput } from "./record_commands.ts";

/** Shows a run; the exit code. */
export async function inspectRun(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const look = await openLook(ports, parsed);
  if (!look) return EXIT_USAGE;
  const forms = ["html", "format", "follow", "import"].filter((name) =>
    look.own[name] !== undefined && look.own[name] !== false
  );
  if (forms.length > 1) {
    ports.terminal.writeError(
      `agentd: ${forms.map((name) => `--${name}`).join(" and ")} exclude each other\n`,
    );
    return EXIT_USAGE;
  }
  const place = findRun(look, parsed);
  if (!place) return EXIT_USAGE;
  if (forms[0] === "html") return await writePage(look, place, String(look.own.html));
  if (forms[0] === "follow") return await follow(look, place);
  const json = look.own.json === true || look.basics.output === "json";
  return printOutput(ports, await inspectCommand(ports, place, { json }));
}

async function writePage(look: Look, place: RunPlace, file: string): Promise<number> {
  const { htmlCommand } = await import("../record/html.ts");
  const path = resolvePath(look.ports.cwd, file);
  return printOutput(look.ports, await htmlCommand(look.ports, place, path));
}

/** Until the run is over, its reader is gone, or the user has seen enough. */
async function follow(look: Look, place: RunPlace): Promise<number> {
  const { followCommand } = await import("../record/inspect.ts");
  const { ports } = look;
  const stop = new AbortController();
  const cancels = [
    ports.signals.on("SIGINT", () => stop.abort()),
    ports.signals.on("SIGTERM", () => stop.abort()),
  ];
  const json = look.own.json === true || look.basics.output === "json";
  const output = await followCommand(ports, place, { json }, (text) => {
    if (!ports.terminal.writeOut(text)) stop.abort();
  }, stop.signal);
  for (const cancel of cancels) cancel();
  return printOutput(ports, output);
}
