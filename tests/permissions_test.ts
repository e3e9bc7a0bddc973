import assert from "node:assert/strict";
import { CLEAN_ENVIRONMENT } from "../src/wire/environment.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../src/wire/permissions.ts";
import { BAKED_FLAGS } from "../tools/build.ts";
import { posixTest, supervise, withDirectory } from "./supervised/harness.ts";

/** The table of permissions.md: by process and form, a value for each kind. */
type Table = Map<string, Record<PermissionKind, string>>;

const ROOT = decodeURIComponent(new URL("..", import.meta.url).pathname).replace(/\/$/, "");

function readTable(): Table {
  const table: Table = new Map();
  for (const line of Deno.readTextFileSync(`${ROOT}/permissions.md`).split("\n")) {
    const cells = line.split("|").slice(1, -1).map((cell) => cell.trim());
    if (cells.length !== 11 || cells[0] === "process" || cells[0]!.startsWith("---")) continue;
    const row = {} as Record<PermissionKind, string>;
    PERMISSION_KINDS.forEach((kind, index) => row[kind] = cells[index + 2]!);
    table.set(`${cells[0]} ${cells[1]}`, row);
  }
  return table;
}

/** The `--allow-…` flags among the arguments of `deno run`, before the module. */
function flagsOf(command: string): Record<PermissionKind, string[] | true | null> {
  const flags = {} as Record<PermissionKind, string[] | true | null>;
  for (const kind of PERMISSION_KINDS) flags[kind] = null;
  for (const word of command.slice(0, command.indexOf("/main.ts ")).split(" ")) {
    const match = /^--allow-([a-z]+)(?:=(.*))?$/.exec(word);
    if (match) flags[match[1] as PermissionKind] = match[2]?.split(",") ?? true;
  }
  return flags;
}

/** What a word of the table means for a given run. */
interface Meaning {
  run: string[];
  code: string[];
  endpoints: string[];
  grant: string[];
}

function meant(words: string, meaning: Meaning): string[] | true | null {
  if (words === "-") return null;
  if (words === "all") return true;
  return words.split(", ").flatMap((word) =>
    word === "clean" ? [...CLEAN_ENVIRONMENT] : meaning[word as keyof Meaning]
  );
}

function assertFlags(command: string, row: Record<PermissionKind, string>, meaning: Meaning): void {
  const flags = flagsOf(command);
  for (const kind of PERMISSION_KINDS) {
    const expected = meant(row[kind], meaning);
    const found = flags[kind];
    const sort = (value: string[] | true | null) =>
      Array.isArray(value) ? [...value].sort() : value;
    assert.deepEqual(sort(found), sort(expected), `${kind}: ${command}`);
  }
}

/**
 * Command lines of a process group, once it has so many different ones: a child that is forked, and
 * has not become its program yet, shows its parent's.
 */
async function commandsOf(groupId: number, members: number): Promise<string[]> {
  for (;;) {
    const { stdout } = await new Deno.Command("ps", { args: ["-eww", "-o", "pgid=,args="] })
      .output();
    const commands = new TextDecoder().decode(stdout).split("\n").map((line) => line.trim())
      .filter((line) => line.startsWith(`${groupId} `));
    if (new Set(commands).size >= members) return commands;
  }
}

Deno.test("permissions.md: has a row for every process, and nothing is granted ffi or import", () => {
  const table = readTable();
  assert.ok(table.size >= 13);
  for (const [name, row] of table) {
    if (name.startsWith("stdio") || name.startsWith("checks")) continue;
    assert.deepEqual([row.ffi, row.import], ["-", "-"], name);
  }
});

Deno.test("permissions.md: the binary is compiled with the kinds of the table", () => {
  const row = readTable().get("supervisor binary")!;
  for (const kind of PERMISSION_KINDS) {
    assert.equal(BAKED_FLAGS.includes(`--allow-${kind}`), row[kind] === "all", kind);
  }
});

posixTest(
  "permissions.md: processes of a real run have the flags of the table, its Worker the permissions",
  () =>
    withDirectory(async (directory) => {
      const table = readTable();
      const [data, program] = [`${directory}/data`, await Deno.realPath("/bin/sh")];
      await Deno.mkdir(data);
      const server = (name: string, permissions: Record<string, unknown>) => ({
        kind: "builtin" as const,
        name: name as "fs",
        permissions: {
          read: false,
          write: false,
          net: false,
          run: false,
          env: false,
          sys: false,
          ffi: false,
          import: false,
          ...permissions,
        },
        sandbox: "none" as const,
        required: true,
        startTimeoutMs: 20_000,
      });
      const run = await supervise({
        directory,
        script: { do: "grants", open: ["fs", "http", "exec"] },
        settings: {
          runId: "run",
          allowTrifecta: true,
          servers: [
            server("fs", { read: [data], write: [data] }),
            server("http", { net: ["docs.example:443"] }),
            server("exec", { run: [program], env: ["EDITOR"] }),
            {
              kind: "http",
              name: "remote",
              url: "https://tools.example/mcp",
              headers: {},
              era: "auto",
              required: false,
              startTimeoutMs: 1,
            },
          ],
        },
      });
      const { granted } = await run.seen((line) =>
        line.event === "proc.ready" && line.comp === "probe"
      );
      const { child_pid } = await run.seen((line) => line.event === "subagent.spawn");
      const commands = await commandsOf(child_pid as number, 4);
      run.signal("SIGTERM");
      await run.end;
      await run.drained;

      const own = { run: [`${directory}/runs/run`], endpoints: ["tools.example:443"] };
      const agentCode = [`${ROOT}/tests/supervised`, `${ROOT}/src`];
      const find = (text: string) =>
        commands.find((line) => line.includes(text)) ?? assert.fail(`${text} in ${commands}`);
      assertFlags(find("__agent"), table.get("agent, main thread source")!, {
        ...own,
        code: agentCode,
        grant: [],
      });
      for (
        const [name, grant] of [["fs", [data]], ["http", ["docs.example:443"]], ["exec", [
          "EDITOR",
        ]]] as const
      ) {
        assertFlags(find(`mcp ${name} `), table.get(`server ${name}, main thread source`)!, {
          ...own,
          code: agentCode,
          grant: [...grant],
        });
      }
      const worker = table.get("agent, loop Worker both")!;
      const states = granted as Record<PermissionKind, Record<string, string>>;
      for (const kind of PERMISSION_KINDS) {
        const expected = meant(worker[kind], { ...own, code: [], grant: [] });
        for (const [value, state] of Object.entries(states[kind])) {
          const has = Array.isArray(expected) && expected.includes(value);
          assert.equal(state === "granted", has, `${kind} ${value}: ${state}`);
        }
      }
    }),
);
