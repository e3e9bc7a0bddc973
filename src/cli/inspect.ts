/** `agentd inspect RUN`, in all its forms. */

import { checkUrl } from "../config/url.ts";
import type { ExportFormat } from "../record/export.ts";
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
  if (forms[0] === "import") return await judgeFile(look, parsed);
  const place = findRun(look, parsed);
  if (!place) return EXIT_USAGE;
  if (typeof look.own.otlp_endpoint === "string") {
    return await sendSpans(look, place, look.own.otlp_endpoint);
  }
  if (forms[0] === "format") {
    const { exportCommand } = await import("../record/export.ts");
    const format = look.own.format as ExportFormat;
    return printOutput(ports, exportCommand(ports.files, place, format));
  }
  if (forms[0] === "html") return await writePage(look, place, String(look.own.html));
  if (forms[0] === "follow") return await follow(look, place);
  const json = look.own.json === true || look.basics.output === "json";
  return printOutput(ports, await inspectCommand(ports, place, { json }));
}

async function judgeFile(look: Look, parsed: ParsedArguments): Promise<number> {
  const { ports } = look;
  if (parsed.operands.length > 0) {
    ports.terminal.writeError("agentd: --import judges a file in place of RUN; leave one out\n");
    return EXIT_USAGE;
  }
  const { importCommand } = await import("../record/import.ts");
  const path = resolvePath(ports.cwd, String(look.own.import));
  const json = look.own.json === true || look.basics.output === "json";
  return printOutput(ports, await importCommand(ports, path, { json }));
}

async function sendSpans(look: Look, place: RunPlace, written: string): Promise<number> {
  const { ports } = look;
  const url = checkUrl(written, false);
  if (!url.ok) {
    ports.terminal.writeError(`agentd: --otlp-endpoint: ${url.failure.message}\n`);
    return EXIT_USAGE;
  }
  const { sendCommand } = await import("../record/export.ts");
  return printOutput(ports, await sendCommand(ports, place, url.value));
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
    if (ports.terminal.writeOut(text) !== "written") stop.abort();
  }, stop.signal);
  for (const cancel of cancels) cancel();
  return printOutput(ports, output);
}
