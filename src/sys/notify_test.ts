import assert from "node:assert/strict";
import { openNotify } from "./notify.ts";

const UNIX = Deno.build.os !== "windows";

Deno.test({
  name: "openNotify: what is told arrives at the socket, in order",
  ignore: !UNIX,
  fn: async () => {
    const directory = Deno.makeTempDirSync();
    const path = `${directory}/notify.sock`;
    const manager = Deno.listenDatagram({ transport: "unixpacket", path });
    try {
      const env: Record<string, string> = { NOTIFY_SOCKET: path, WATCHDOG_USEC: "3000000" };
      const notify = openNotify((name) => env[name]);
      assert.equal(notify.present, true);
      assert.equal(notify.watchdogMs, 1500);
      const said = ["READY=1", "WATCHDOG=1", "STOPPING=1"];
      for (const state of said) notify.tell(state);
      for (const expected of said) {
        const [bytes] = await manager.receive();
        assert.equal(new TextDecoder().decode(bytes), expected);
      }
    } finally {
      manager.close();
      Deno.removeSync(directory, { recursive: true });
    }
  },
});

Deno.test("openNotify: no manager, a strange address, a watchdog of another process", () => {
  const rows: [Record<string, string>, boolean, number | null][] = [
    [{}, false, null],
    [{ WATCHDOG_USEC: "1000000" }, false, null],
    [{ NOTIFY_SOCKET: "relative.sock" }, false, null],
    [{ NOTIFY_SOCKET: "/run/x", WATCHDOG_USEC: "2000000", WATCHDOG_PID: "1" }, true, null],
    [
      { NOTIFY_SOCKET: "/run/x", WATCHDOG_USEC: "2000000", WATCHDOG_PID: String(Deno.pid) },
      true,
      1000,
    ],
    [{ NOTIFY_SOCKET: "/run/x" }, true, null],
  ];
  for (const [env, present, watchdogMs] of rows) {
    const notify = openNotify((name) => env[name]);
    assert.deepEqual([notify.present, notify.watchdogMs], [present, watchdogMs]);
    if (!present) notify.tell("READY=1");
  }
});
