/** examples/service: its commands are commands of this program, its exit codes are those of it. */

import assert from "node:assert/strict";
import { parse } from "yaml";
import { splitWords } from "../src/config/words.ts";
import { EXIT_USAGE } from "../src/cli/exit_code.ts";
import { programs } from "./program.ts";

const folder = new URL("../examples/service/", import.meta.url);
const read = (name: string) => Deno.readTextFileSync(new URL(name, folder));

// deno-lint-ignore no-explicit-any
type Loose = any;

function unit(text: string): Map<string, string> {
  const lines = text.split("\n").filter((line) => /^\w+=/.test(line));
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

/** The arguments of `agentd run …` in each example that has one. */
function commands(): [string, string[]][] {
  const cron = read("crontab").split("\n").find((line) => line.includes("agentd run"))!;
  const job = parse(read("cronjob.yaml")) as Loose;
  const [container] = job.spec.jobTemplate.spec.template.spec.containers;
  const words = (text: string): string[] => {
    const split = splitWords(text) as Loose;
    return Array.isArray(split) ? split : split.value;
  };
  return [
    ["crontab", words(cron.slice(cron.indexOf("agentd run")))],
    ...["agentd-nightly.service", "agentd-inbox.service"].map((name): [string, string[]] => [
      name,
      words(unit(read(name)).get("ExecStart")!.replaceAll("%d", "/run/credentials")),
    ]),
    ["cronjob.yaml", ["agentd", ...container.args]],
  ];
}

Deno.test("examples/service: every command is one that this program takes", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/key`, "secret-of-the-example");
    await Deno.writeTextFile(
      `${directory}/config.yaml`,
      "instruction: Go\nmodel: { intelligence: ['http://127.0.0.1:1/v1'], name: x }\n",
    );
    const [program] = programs();
    for (const [name, [first, second, ...args]] of commands()) {
      assert.match(first!, /agentd$/, name);
      assert.equal(second, "run", name);
      const local = args.map((arg) =>
        /\.yaml$/.test(arg)
          ? `${directory}/config.yaml`
          : /llm|key/.test(arg)
          ? `${directory}/key`
          : arg.replace("/var/lib/agentd", directory)
      );
      const { code, stdout, stderr } = await new Deno.Command(program!.command, {
        args: [...program!.args, "validate", ...local],
        cwd: directory,
      }).output();
      const said = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert.equal(code, 0, `${name}: ${said}`);
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("examples/service: exit codes and times fit", () => {
  const job = parse(read("cronjob.yaml")).spec.jobTemplate.spec as Loose;
  const rules = job.podFailurePolicy.rules as Loose[];
  const codes = (action: string) =>
    rules.filter((rule) => rule.action === action && rule.onExitCodes)
      .flatMap((rule) => rule.onExitCodes.values as number[]);
  assert(codes("FailJob").includes(EXIT_USAGE));
  assert.deepEqual(codes("FailJob"), [2, 3, 5, 7, 124]);
  assert.deepEqual(codes("Ignore"), [130, 143]);
  for (const rule of rules) {
    if (rule.onExitCodes) assert.equal(rule.onExitCodes.containerName, "agentd");
  }
  assert.equal(job.template.spec.restartPolicy, "Never");
  const service = unit(read("agentd-inbox.service"));
  assert.equal(service.get("Type"), "notify");
  assert.equal(service.get("RestartPreventExitStatus"), "2 4");
  assert(Number(service.get("TimeoutStopSec")) > 25);
  assert.match(read("Containerfile"), /^ENTRYPOINT \["\/usr\/bin\/tini", "--"/m);
});

Deno.test("examples/service: the container's volume is a directory that its user can write", () => {
  const lines = read("Containerfile").split("\n");
  const at = (pattern: RegExp) => lines.findIndex((line) => pattern.test(line));
  const home = /--home-dir (\S+) --uid 10001/.exec(read("Containerfile"))![1];
  assert.deepEqual(JSON.parse(lines[at(/^VOLUME /)]!.slice(7)), [`${home}/.local/state/agentd`]);
  // The default of --run-dir and --state-dir lies below it.
  const order = [at(/^USER 10001$/), at(/^RUN mkdir -p \.local\/state\/agentd$/), at(/^VOLUME /)];
  assert(order[0] !== -1 && order.every((line, i) => i === 0 || line > order[i - 1]!), `${order}`);
});
