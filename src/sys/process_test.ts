import assert from "node:assert/strict";
import { systemProcess } from "./process.ts";

Deno.test({
  name: "systemProcess.table: finds by its environment what nobody descends from any more",
  ignore: Deno.build.os === "windows",
  async fn() {
    const mark = `AGENTD_TEST_MARK=${crypto.randomUUID()}`;
    const [name, value] = mark.split("=") as [string, string];
    const start = (env: Record<string, string>) =>
      new Deno.Command("sh", {
        args: ["-c", `setsid sleep 30 >/dev/null 2>&1 & echo $!`],
        env,
      }).output();
    const children = [await start({ [name]: value }), await start({})];
    const [marked, other] = children.map(({ stdout }) => Number(new TextDecoder().decode(stdout)));
    try {
      const rows = await systemProcess.table(mark);
      assert.deepEqual(rows.filter((row) => row.marked).map((row) => row.pid), [marked]);
      assert.equal(rows.find((row) => row.pid === other)?.marked, false);
      assert.deepEqual((await systemProcess.table()).filter((row) => row.marked), []);
    } finally {
      for (const pid of [marked!, other!]) systemProcess.signal(pid, "SIGKILL");
    }
  },
});
