/** The built-in servers under the official SDK's own client, in both eras of the protocol. */

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { LineTransport } from "../../src/toolserver/transport.ts";
import { programs } from "../program.ts";

const MODES = ["legacy", "auto", { pin: "2026-07-28" }] as const;

for (const program of programs()) {
  for (const mode of MODES) {
    const label = typeof mode === "string" ? mode : mode.pin;
    Deno.test(`mcp fs (${program.name}): the SDK's client is served, ${label}`, async () => {
      const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-sdk-" }));
      await Deno.writeTextFile(`${directory}/a.txt`, "hello\n");
      const child = new Deno.Command(program.command, {
        args: [...program.args, "mcp", "fs", `--allow-read=${directory}`],
        cwd: directory,
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      const stdin = child.stdin.getWriter();
      const transport = new LineTransport(
        child.stdout,
        new WritableStream({ write: (chunk) => stdin.write(chunk) }),
      );
      const client = new Client({ name: "test", version: "1" }, {
        capabilities: {},
        versionNegotiation: { mode },
      });
      await client.connect(transport);
      assert.equal(client.getServerVersion()?.name, "agentd-fs");
      assert.match(client.getInstructions() ?? "", /Relative paths start in/);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((tool) => tool.name), ["list", "glob", "search", "read", "stat"]);
      for (const tool of tools) {
        assert.equal(tool.inputSchema.type, "object");
        assert.ok((tool.description?.length ?? 0) < 400, "descriptions are prompt text");
      }
      const read = await client.callTool({ name: "read", arguments: { path: "a.txt" } });
      assert.deepEqual((read.content as { text?: string }[])[0]?.text, "hello\n");
      const refused = await client.callTool({ name: "read", arguments: { path: "/etc/passwd" } });
      assert.equal(refused.isError, true);
      await client.close();
      await stdin.close();
      await transport.ended;
      assert.equal((await child.status).code, 0);
      await Deno.remove(directory, { recursive: true });
    });
  }
}
