import assert from "node:assert/strict";
import { byteLength } from "../core/text.ts";
import type { Resource } from "../ports/tools.ts";
import { renderCatalogue, renderResource } from "./catalogue.ts";

const resource = (uri: string, name: string): Resource => ({
  server: "docs",
  uri,
  name,
  description: "",
  mimeType: null,
  bytes: null,
  etag: null,
  template: false,
});

Deno.test("renderCatalogue: at the budget every resource is listed, one byte past it counts are", () => {
  const resources = ["ü", "日本", "c"].map((name) => resource(`mem://a/${name}`, name));
  const whole = resources.map(renderResource).join("\n");
  const bytes = byteLength(whole);
  assert.ok(bytes > whole.length);
  assert.equal(renderCatalogue(resources, bytes), whole);
  assert.match(renderCatalogue(resources, bytes - 1), /^3 resources, too many to list/);
  assert.equal(renderCatalogue([], 100), "");
});

Deno.test("renderCatalogue: whatever the prefixes, within its budget and with the way to the rest", () => {
  for (const name of ["x", "日".repeat(100)]) {
    const wide = Array.from({ length: 500 }, (_, n) => resource(`s${n}${name}://h/${n}`, name));
    const deep = Array.from(
      { length: 500 },
      (_, n) => resource(`mem://${name}/${n % 7}/${n}`, name),
    );
    for (const resources of [wide, deep]) {
      const text = renderCatalogue(resources, 4_096);
      assert.ok(byteLength(text) <= 4_096, `${byteLength(text)}`);
      assert.match(text, /List some with resource_list \{prefix, query\}\.$/);
    }
  }
});
