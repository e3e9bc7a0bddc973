/** Code that was got to run in a tool server's Worker: tries everything, and tells what worked. */

const granted = await order();

const attempts: Record<string, () => unknown> = {
  "read a system file": () => Deno.readTextFileSync("/etc/passwd"),
  "read above the grant": () => Deno.readTextFileSync(`${granted.directory}/../secret`),
  "list the root": () => [...Deno.readDirSync("/")],
  "read in the grant": () => Deno.readTextFileSync(`${granted.directory}/a`),
  "write above the grant": () => Deno.writeTextFileSync(`${granted.directory}/../new`, ""),
  "write in the grant": () => Deno.writeTextFileSync(`${granted.directory}/b`, ""),
  "run a shell": () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).outputSync(),
  "run a granted program": () => new Deno.Command("printf", { args: ["x"] }).outputSync(),
  "signal another process": () => Deno.kill(Deno.ppid, "SIGCONT"),
  "read the environment": () => Deno.env.get("PATH"),
  "connect": async () => (await Deno.connect({ hostname: "127.0.0.1", port: 9 })).close(),
  "fetch": () => fetch("http://127.0.0.1:9999/"),
  "listen": () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close(),
  "load a library": () => Deno.dlopen("/lib/libc.so.6", {}).close(),
  "know the host": () => Deno.hostname(),
  "import from the network": () => import(["https:", "", "a.example", "x.js"].join("/")),
  "widen by a nested Worker": () =>
    new Worker("data:application/javascript,", {
      type: "module",
      deno: { permissions: { read: true } },
    }).terminate(),
};

const outcomes: Record<string, string> = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcomes[name] = "worked";
  } catch (error) {
    outcomes[name] = (error as Error).message;
  }
}
(globalThis as unknown as { postMessage(data: unknown): void }).postMessage(outcomes);

function order(): Promise<{ directory: string }> {
  return new Promise((resolve) => {
    globalThis.addEventListener(
      "message",
      (event) => resolve((event as MessageEvent<{ directory: string }>).data),
      { once: true },
    );
  });
}
