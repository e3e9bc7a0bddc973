import assert from "node:assert/strict";
import fc from "fast-check";
import { WIRE_TOOL_NAME_CHARS_MAX } from "../core/limits.ts";
import { SELF_TOOL_NAMES } from "../selftools/specs.ts";
import { Namer, type ToolId } from "./naming.ts";

function id(name: string): ToolId {
  const [server = "", ...rest] = name.split("/");
  return { server, remoteName: rest.join("/") };
}

function assign(...names: string[]): string[] {
  return new Namer().assign(names.map(id));
}

Deno.test("Namer: a plain name is server__tool, at the bound and one past it", () => {
  const fits = "n".repeat(WIRE_TOOL_NAME_CHARS_MAX - "docs__".length);
  assert.deepEqual(assign("docs/read"), ["docs__read"]);
  assert.deepEqual(assign("docs/read.file"), ["docs__read_file"]);
  assert.deepEqual(assign(`docs/${fits}`), [`docs__${fits}`]);
  const [cut] = assign(`docs/${fits}n`);
  assert.equal(cut?.length, WIRE_TOOL_NAME_CHARS_MAX);
  assert.match(cut!, /^docs__n+_[0-9a-f]{8}$/);
});

Deno.test("Namer: of tools that collide, the unchanged name stays, whatever the order", () => {
  const names = ["a/x.y", "a/x_y", "a/x y"];
  const [dotted, exact, spaced] = assign(...names);
  assert.equal(exact, "a__x_y");
  assert.notEqual(dotted, spaced);
  assert.deepEqual(assign(...names.toReversed()), [spaced, exact, dotted]);
  // The same wire name from two servers: both readings are told apart.
  const [one, two] = assign("a__b/c", "a/b__c");
  assert.equal(two, "a__b__c");
  assert.match(one!, /^a__b__c_[0-9a-f]{8}$/);
});

Deno.test("Namer: a name once given is kept when others come and go", () => {
  const namer = new Namer();
  assert.deepEqual(namer.assign([id("a/x.y")]), ["a__x_y"]);
  const [late, first] = namer.assign([id("a/x_y"), id("a/x.y")]);
  assert.equal(first, "a__x_y");
  assert.match(late!, /^a__x_y_[0-9a-f]{8}$/);
  assert.deepEqual(namer.assign([id("a/x_y")]), [late]);
});

Deno.test("Namer: any names give legal, unique, stable wire names that shadow no self tool", () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 90, unit: "grapheme" }),
    fc.constantFrom("a", "a_", "_a", "__", "a__b", "b__a", "a.b", "a-b", ...SELF_TOOL_NAMES),
  );
  fc.assert(fc.property(
    fc.uniqueArray(fc.record({ server: name, remoteName: name }), {
      selector: (tool) => `${tool.server}/${tool.remoteName}`,
      maxLength: 20,
    }),
    (tools) => {
      const wire = new Namer().assign(tools);
      assert.equal(new Set(wire).size, tools.length);
      for (const each of wire) {
        assert.match(each, /^[A-Za-z0-9_-]{1,64}$/);
        assert.ok(!(SELF_TOOL_NAMES as readonly string[]).includes(each));
      }
      assert.deepEqual(new Namer().assign(tools.toReversed()), wire.toReversed());
    },
  ));
});
