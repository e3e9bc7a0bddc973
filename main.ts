/**
 * The composition root: runs one role over the system's ports and exits with its code. Each role
 * loads only what it needs; `--version` loads nothing.
 */

import { VERSION } from "./src/core/version.ts";

/** Runs the role that the first argument names. */
async function main(args: readonly string[]): Promise<void> {
  switch (args[0]) {
    case "--version":
    case "-V":
      console.log(`agentd ${VERSION}`);
      return;
    case "__agent": {
      const [{ runBroker }, { systemPorts }] = await Promise.all([
        import("./src/broker/main.ts"),
        import("./src/sys/system.ts"),
      ]);
      return await runBroker(systemPorts(import.meta.url));
    }
    case "mcp": {
      const [{ runToolServer }, { systemToolServerPorts }] = await Promise.all([
        import("./src/toolserver/entry.ts"),
        import("./src/sys/tool_server.ts"),
      ]);
      return Deno.exit(await runToolServer(args.slice(1), systemToolServerPorts(import.meta.url)));
    }
    default: {
      const [{ runCli }, { isLockPending, systemCliPorts }] = await Promise.all([
        import("./src/cli/main.ts"),
        import("./src/sys/cli.ts"),
      ]);
      const ports = systemCliPorts(import.meta.url);
      Deno.exitCode = await runCli(args, ports);
      // What nobody reads does not keep a program alive that is done.
      if (!await ports.terminal.settle()) Deno.exit();
      // Deno 2.4 cannot take back its waiting for a lock, and would wait on.
      if (isLockPending()) Deno.exit();
    }
  }
}

if (import.meta.main) await main(Deno.args);
