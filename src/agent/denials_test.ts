import assert from "node:assert/strict";
import type { Fields } from "../ports/telemetry.ts";
import { systemFiles } from "../sys/files.ts";
import { systemFetch } from "../sys/worker_scope.ts";
import { Denials } from "./denials.ts";

function listen() {
  const told: Fields[] = [];
  const denials = new Denials({
    emit: (event, fields) => void (event === "permission.denied" && told.push(fields ?? {})),
  });
  return { denials, told };
}

Deno.test({
  name: "Denials: what Deno refuses is answered as before and told once",
  permissions: { read: false, write: false, net: false },
  async fn() {
    const { denials, told } = listen();
    const files = denials.files(systemFiles);
    const fetch = denials.fetch(systemFetch);
    for (let i = 0; i < 3; i++) {
      const read = files.readText("/etc/passwd", 100);
      assert.equal(read.ok ? null : read.failure.class, "denied");
      assert.equal(files.openAppend("/tmp/agentd-nowhere").ok, false);
      await assert.rejects(fetch("http://127.0.0.1:8099/", { method: "POST", body: "x" }), {
        name: "NotCapable",
      });
    }
    assert.deepEqual(told.map(({ kind }) => kind), ["read", "write", "net"]);
    assert.match(String(told[2]?.message), /127\.0\.0\.1:8099/);
  },
});

Deno.test({
  name: "Denials: other failures are nobody's denial; what is told is bounded",
  permissions: { read: true, net: ["127.0.0.1"] },
  async fn() {
    const { denials, told } = listen();
    assert.equal(denials.files(systemFiles).stat("/no/such/file").ok, false);
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    await assert.rejects(denials.fetch(systemFetch)(`http://127.0.0.1:${port}/`));
    assert.deepEqual(told, []);
    for (let i = 0; i < 100; i++) denials.note(`Requires net access to "h${i}:80"`);
    assert.equal(told.length, 64);
  },
});
