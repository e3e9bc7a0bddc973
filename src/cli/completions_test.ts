import assert from "node:assert/strict";
import { renderCompletions } from "./completions.ts";

/** What bash offers for words, of which the last is being written. */
async function complete(directory: string, words: string[]): Promise<string[]> {
  const script = `
set -u
source ./agentd.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_agentd
printf '%s\\n' "\${COMPREPLY[@]}"
`;
  const { stdout, stderr, success } = await new Deno.Command("bash", {
    args: ["--norc", "-c", script, "bash", ...words],
    cwd: directory,
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  assert.equal(new TextDecoder().decode(stderr), "");
  return new TextDecoder().decode(stdout).split("\n").filter((word) => word !== "").sort();
}

Deno.test("renderCompletions: a real bash completes commands, options, choices and files", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/agentd.bash`, renderCompletions("bash"));
    await Deno.writeTextFile(`${directory}/task.md`, "");
    const rows: [words: string[], offered: string[]][] = [
      [["agentd", "va"], ["validate"]],
      [["agentd", "re"], ["replay", "resume"]],
      [["agentd", "ta"], ["task.md"]],
      [["agentd", "--max-s"], ["--max-steps", "--max-subagents"]],
      [["agentd", "run", "--output-"], ["--output-file", "--output-schema"]],
      [["agentd", "run", "--mode", ""], ["loop", "once", "reactive", "schedule"]],
      [["agentd", "run", "--mode", "re"], ["reactive"]],
      [["agentd", "run", "--system", "ta"], ["task.md"]],
      [["agentd", "run", "-o", "ta"], ["task.md"]],
      [["agentd", "run", "--model", ""], []],
      [["agentd", "run", "--hook", "on"], ["on_stop="]],
      [["agentd", "--config", "x", "insp"], ["inspect"]],
      [["agentd", "inspect", "--max"], []],
      [["agentd", "inspect", "--fo"], ["--follow", "--format"]],
      [["agentd", "inspect", "la"], ["last"]],
      [["agentd", "completions", ""], ["agentd.bash", "bash", "fish", "task.md", "zsh"]],
      [["agentd", "mcp", "e"], ["exec"]],
      [["agentd", "--ver"], ["--version"]],
    ];
    for (const [words, offered] of rows) {
      assert.deepEqual(await complete(directory, words), offered, words.join(" "));
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("renderCompletions: bash takes the script, and registers it", async () => {
  const child = new Deno.Command("bash", {
    args: ["--norc", "-c", "set -eu; source /dev/stdin; complete -p agentd"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(renderCompletions("bash")));
  await writer.close();
  const { stdout, success } = await child.output();
  assert.ok(success);
  assert.equal(
    new TextDecoder().decode(stdout).trim(),
    "complete -o filenames -F _agentd agentd",
  );
});

/** Whether a shell is installed here. */
function has(shell: string): boolean {
  return (Deno.env.get("PATH") ?? "").split(":").some((directory) => {
    try {
      return Deno.statSync(`${directory}/${shell}`).isFile;
    } catch {
      return false;
    }
  });
}

Deno.test({
  name: "renderCompletions: a real fish completes commands, options, choices and files",
  ignore: !has("fish"),
  async fn() {
    const directory = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${directory}/agentd.fish`, renderCompletions("fish"));
      await Deno.writeTextFile(`${directory}/task.md`, "");
      const rows: [line: string, offered: string[]][] = [
        ["agentd va", ["validate"]],
        ["agentd run --mode ", ["loop", "once", "reactive", "schedule"]],
        ["agentd run --max-s", ["--max-steps", "--max-subagents"]],
        ["agentd inspect --fo", ["--follow", "--format"]],
        ["agentd inspect --max", []],
        ["agentd run --system ta", ["task.md"]],
        ["agentd mcp e", ["exec"]],
      ];
      for (const [line, offered] of rows) {
        const { stdout, stderr } = await new Deno.Command("fish", {
          args: ["--no-config", "-c", `source agentd.fish; complete -C '${line}'`],
          cwd: directory,
          env: { HOME: directory },
        }).output();
        assert.equal(new TextDecoder().decode(stderr), "");
        const words = new TextDecoder().decode(stdout).split("\n").filter((each) => each !== "");
        assert.deepEqual(words.map((each) => each.split("\t")[0]).sort(), offered, line);
      }
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});

Deno.test({
  name: "renderCompletions: zsh finds no fault with its script",
  ignore: !has("zsh"),
  async fn() {
    const directory = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${directory}/_agentd`, renderCompletions("zsh"));
      const { stderr, success } = await new Deno.Command("zsh", {
        args: ["-f", "-n", "_agentd"],
        cwd: directory,
      }).output();
      assert.equal(new TextDecoder().decode(stderr), "");
      assert.ok(success);
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});
