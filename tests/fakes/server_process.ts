/** A server of a test in a process of its own, which prints its port on its first line. */

/** The process. */
export interface ServerProcess {
  port: number;
  /** Kills it and waits until it is gone. */
  stop(): Promise<void>;
}

/** Starts one. It ends with its stdin, so it cannot outlive the test's process. */
export async function startServer(
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<ServerProcess> {
  const child = new Deno.Command(words[0]!, {
    args: words.slice(1),
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  let line = "";
  while (!line.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) break;
    line += new TextDecoder().decode(value);
  }
  const drained = (async () => {
    while (!(await reader.read()).done);
  })();
  return {
    port: Number(line.split("\n")[0]),
    stop: async () => {
      try {
        child.kill("SIGKILL");
      } catch { /* it is gone already */ }
      await child.status;
      await drained;
      await child.stdin.close().catch(() => {});
    },
  };
}

/** A port that nobody listens on, most likely. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}
