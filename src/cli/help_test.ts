import assert from "node:assert/strict";
import { OPTIONS } from "../config/options.ts";
import { commandNamed, COMMANDS, optionsOf } from "./commands.ts";
import { renderCompletions, SHELLS } from "./completions.ts";
import { detailsOf, renderHelp, renderOverview, usageOf } from "./help.ts";

Deno.test("renderHelp: shows flag, file key, variable and default of every option of a run", () => {
  const help = renderHelp(commandNamed("run")!);
  for (const option of OPTIONS) {
    if (option.flag !== null) assert.ok(help.includes(`  ${usageOf(option)}`), option.name);
    else assert.ok(help.includes(`  ${option.key.join(".")} `), option.name);
    if (option.inFile && option.flag !== null) {
      assert.ok(help.includes(`file ${option.key.join(".")}`), option.name);
    }
    if (option.env !== null) assert.ok(help.includes(`env ${option.env}`), option.name);
    assert.ok(help.includes(option.help), option.name);
  }
  assert.match(
    help,
    /--max-steps N +turns of one agent\n +file limits\.max_steps · env AGENT_MAX_STEPS · default 40/,
  );
});

Deno.test("renderHelp: lines fit a terminal", () => {
  for (const command of COMMANDS) {
    for (const line of renderHelp(command).split("\n")) {
      assert.ok(line.length <= 132, `${command.name}: ${line}`);
    }
  }
  for (const line of renderOverview().split("\n")) assert.ok(line.length <= 110, line);
});

Deno.test("renderHelp: a command shows its own options, and only those it takes", () => {
  const inspect = renderHelp(commandNamed("inspect")!);
  assert.match(inspect, /--html FILE/);
  assert.match(inspect, /--run-dir DIR/);
  assert.doesNotMatch(inspect, /--max-steps/);
  assert.match(renderHelp(commandNamed("resume")!), /--max-steps/);
  for (const command of COMMANDS) assert.ok(renderOverview().includes(command.summary));
});

Deno.test("detailsOf: switches are on or off, lists are joined", () => {
  const byName = (name: string) => OPTIONS.find((option) => option.name === name)!;
  assert.equal(detailsOf(byName("notes")), "file notes · env AGENT_NOTES · default off");
  assert.match(detailsOf(byName("pin_tools")), /default on$/);
  assert.match(detailsOf(byName("intelligence")), /default auto$/);
  assert.equal(detailsOf(byName("lock")), "env AGENT_LOCK");
});

Deno.test("renderCompletions: every command, flag and choice is in every shell's script", () => {
  for (const shell of SHELLS) {
    const script = renderCompletions(shell);
    for (const command of COMMANDS) {
      assert.ok(script.includes(command.name), `${shell} ${command.name}`);
      for (const option of optionsOf(command)) {
        const flag = shell === "fish" ? `-l ${option.flag!.slice(2)}` : option.flag!;
        assert.ok(script.includes(flag), `${shell} ${flag}`);
        if (option.shape.kind === "enum") {
          assert.ok(script.includes(option.shape.values.join(" ")), `${shell} ${option.name}`);
        }
      }
    }
  }
});

Deno.test("COMMANDS: own options have neither variable nor file key, and collide with none", () => {
  for (const command of COMMANDS) {
    for (const option of command.own) assert.equal(option.env, null);
    const flags = optionsOf(command).map((option) => option.flag);
    assert.equal(new Set(flags).size, flags.length, command.name);
  }
});
