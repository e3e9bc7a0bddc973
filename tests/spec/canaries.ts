/** Secrets to look for where they must not be: in texts, files, argv and environments. */

/** One secret for each place where one may be configured, and one that nobody needs. */
export const CANARIES = {
  model: "canary-model-3f9a41c7",
  server: "canary-server-88d2e05b",
  granted: "canary-granted-51c07e9d",
  bystander: "canary-bystander-0b6d4412",
};

/** Which canaries a text holds. */
export function found(text: string): string[] {
  return Object.entries(CANARIES).filter(([, value]) => text.includes(value)).map(([name]) => name);
}

/** Every file below a directory, as one text. */
export async function readTree(directory: string): Promise<string> {
  let text = "";
  for await (const entry of Deno.readDir(directory)) {
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory) text += await readTree(path);
    else if (entry.isFile) text += await Deno.readTextFile(path);
  }
  return text;
}

/** The environment that a process was started with; a program reads it, since Deno wants all for it. */
async function readEnvironment(pid: string): Promise<string> {
  const { stdout } = await new Deno.Command("cat", {
    args: [`/proc/${pid}/environ`],
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout);
}

/** Canaries in argv and environment of each process of some groups, by its command line. */
export async function spyOnProcesses(
  groups: readonly number[],
): Promise<{ group: number; command: string; argv: string[]; environ: string[] }[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eww", "-o", "pid=,pgid=,args="] })
    .output();
  const seen = [];
  for (const line of new TextDecoder().decode(stdout).split("\n")) {
    const [, pid, group, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    if (!groups.includes(Number(group))) continue;
    const environ = await readEnvironment(pid!);
    seen.push({
      group: Number(group),
      command: command!,
      argv: found(command!),
      environ: found(environ),
    });
  }
  return seen;
}
