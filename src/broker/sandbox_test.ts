import assert from "node:assert/strict";
import { wrapInBwrap } from "./sandbox.ts";

Deno.test("wrapInBwrap: read-only but for what is granted; network only where granted", () => {
  const words = wrapInBwrap(["cat", "x"], { write: ["/out"], network: false }).join(" ");
  assert.match(
    words,
    /^bwrap --ro-bind \/ \/ .*--tmpfs \/tmp --bind \/out \/out --unshare-all --die-with-parent -- cat x$/,
  );
  assert.ok(wrapInBwrap(["cat"], { write: [], network: true }).includes("--share-net"));
});
