import assert from "node:assert/strict";
import { readResourceResult, readToolResult } from "./result.ts";

Deno.test("readToolResult: every kind of block becomes a part that can be shown", () => {
  const rows: [block: unknown, part: unknown][] = [
    [{ type: "text", text: "t" }, { type: "text", text: "t" }],
    [{ type: "image", data: "aW1n", mimeType: "image/png" }, {
      type: "image",
      data: "aW1n",
      mimeType: "image/png",
    }],
    [{ type: "audio", data: "c25k", mimeType: "audio/wav" }, {
      type: "audio",
      data: "c25k",
      mimeType: "audio/wav",
    }],
    [{ type: "resource", resource: { uri: "mem://a", text: "body" } }, {
      type: "text",
      text: "[resource mem://a]\nbody",
    }],
    [
      { type: "resource", resource: { uri: "mem://i", blob: "aW1n", mimeType: "image/png" } },
      { type: "image", data: "aW1n", mimeType: "image/png" },
    ],
    [
      {
        type: "resource",
        resource: { uri: "mem://z", blob: "A".repeat(4096), mimeType: "application/zip" },
      },
      { type: "text", text: "[resource mem://z: application/zip, 3KiB, not text]" },
    ],
    [
      {
        type: "resource_link",
        uri: "mem://l",
        name: "link",
        description: "more",
        mimeType: "text/html",
        size: 2048,
      },
      { type: "text", text: "[link to resource mem://l (text/html, 2KiB)]\nlink\nmore" },
    ],
    [{ type: "resource_link", uri: "mem://l" }, {
      type: "text",
      text: "[link to resource mem://l]",
    }],
    [{ type: "hologram" }, { type: "text", text: '[a block of type "hologram", not shown]' }],
    [{ type: "text" }, { type: "text", text: '[a block of type "text", not shown]' }],
    [{}, { type: "text", text: "[a block of type null, not shown]" }],
  ];
  for (const [block, part] of rows) {
    assert.deepEqual(readToolResult({ content: [block] }), {
      parts: [part],
      structured: null,
      isError: false,
    });
  }
  assert.deepEqual(readToolResult({ content: [null, "x"] })?.parts, []);
});

Deno.test("readToolResult: structured content is kept, isError is the tool's own word", () => {
  assert.deepEqual(readToolResult({ content: [], structuredContent: { a: 1 }, isError: true }), {
    parts: [],
    structured: { a: 1 },
    isError: true,
  });
  assert.deepEqual(readToolResult({ structuredContent: [1, 2] }), {
    parts: [{ type: "text", text: "[1,2]" }],
    structured: null,
    isError: false,
  });
  assert.deepEqual(readToolResult({}), { parts: [], structured: null, isError: false });
  assert.equal(readToolResult({ content: "text" }), undefined);
  assert.equal(readToolResult([]), undefined);
});

Deno.test("readResourceResult: contents as parts, named when there are several", () => {
  assert.deepEqual(readResourceResult({ contents: [{ uri: "a:b", text: "t" }] })?.parts, [{
    type: "text",
    text: "t",
  }]);
  assert.deepEqual(
    readResourceResult({ contents: [{ uri: "a:b", text: "t" }, { uri: "a:c", text: "u" }, 5] })
      ?.parts,
    [{ type: "text", text: "[resource a:b]\nt" }, { type: "text", text: "[resource a:c]\nu" }],
  );
  assert.equal(readResourceResult({}), undefined);
});
