import assert from "node:assert/strict";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { sandboxArguments, sandboxCommand } from "./bwrap.ts";
import { ToolError } from "./tool.ts";

const env = { PATH: "/usr/bin:/bin:relative:" };

function started(program: string, run: true | string[]): string {
  const command = sandboxCommand([program, "x"], "/w", { ...NO_PERMISSIONS, run }, env);
  assert.equal(command[0], "bwrap");
  assert.equal(command.at(-1), "x");
  return command.at(-2)!;
}

Deno.test("sandboxCommand: only what is listed, as it is called or by its path", () => {
  assert.equal(started("git", ["git"]), "git");
  assert.equal(started("/usr/bin/git", ["/usr/bin/git"]), "/usr/bin/git");
  assert.equal(started("git", ["/usr/bin/git"]), "/usr/bin/git");
  assert.equal(started("/usr/bin/git", ["git"]), "/usr/bin/git");
  assert.equal(started("anything", true), "anything");
  const refused: [string, string[]][] = [
    ["git", ["/opt/git"]],
    ["/tmp/git", ["git"]],
    ["/usr/bin/../../tmp/git", ["git"]],
    ["/usr/bin/git2", ["/usr/bin/git"]],
    ["relative/git", ["git"]],
    ["bwrap", ["git"]],
  ];
  for (const [program, run] of refused) {
    assert.throws(() => started(program, run), ToolError, program);
  }
});

Deno.test("sandboxArguments: nothing is writable and no network unless granted", () => {
  const text = (permissions: object, cwd = "/w") =>
    sandboxArguments(cwd, { ...NO_PERMISSIONS, ...permissions }).join(" ");
  assert.match(text({}), /--ro-bind \/ \/ .*--tmpfs \/tmp --chdir \/w$/);
  assert.match(text({}), /--unshare-net/);
  assert.doesNotMatch(text({}), /(?<!ro-)bind(?:-try)? /);
  assert.match(text({ net: ["a.example"] }), /--unshare-net/);
  assert.doesNotMatch(text({ net: true }), /--unshare-net/);
  assert.match(text({ write: ["/w/out"] }), /--bind-try \/w\/out \/w\/out --chdir/);
  assert.match(text({ write: true }), /--bind \/ \//);
  assert.match(text({}, "/tmp/x"), /--tmpfs \/tmp --ro-bind \/tmp\/x \/tmp\/x/);
});
