/** Ways out of the loop Worker's sandbox, as code that runs in it would try them. */

export interface EscapeOrder {
  escape: string;
  /** A file that the Worker has no business with. */
  secretFile: string;
  /** A record of another run. */
  otherRecord: string;
  /** A path outside its run directory. */
  outside: string;
  /** Its own run directory. */
  inside: string;
  /** A server that answers, outside its grant: `host:port`. */
  host: string;
}

type Attempt = (order: EscapeOrder) => unknown;

/** The name keeps bundlers and the static module graph from seeing it. */
const load = (specifier: string): Promise<unknown> => import(specifier);

const nested = (permissions: unknown, code: string) => () =>
  new Promise((resolve, reject) => {
    const url = `data:text/javascript,${encodeURIComponent(code)}`;
    const worker = new Worker(url, { type: "module", deno: { permissions } } as WorkerOptions);
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
  });

export const ESCAPES: Record<string, Attempt> = {
  "read a system file": ({ secretFile }) => Deno.readTextFileSync(secretFile),
  "read through node:fs": async ({ secretFile }) => {
    const fs = await import("node:fs");
    return fs.readFileSync(secretFile, "utf8");
  },
  "read its own environment through /proc": () => Deno.readTextFileSync("/proc/self/environ"),
  "read the record of another run": ({ otherRecord }) => Deno.readTextFileSync(otherRecord),
  "climb out with ..": ({ inside }) => Deno.readTextFileSync(`${inside}/../../scenario.json`),
  "link out of its directory": ({ inside, secretFile }) => {
    Deno.symlinkSync(secretFile, `${inside}/link`);
    return Deno.readTextFileSync(`${inside}/link`);
  },
  "write outside its directory": ({ outside }) => Deno.writeTextFileSync(outside, "x"),
  "rename out of its directory": ({ inside, outside }) => {
    Deno.writeTextFileSync(`${inside}/note`, "x");
    Deno.renameSync(`${inside}/note`, outside);
  },
  "fetch a host outside its grant": async ({ host }) => (await fetch(`http://${host}/`)).status,
  "connect to a host outside its grant": async ({ host }) => {
    const [hostname, port] = host.split(":");
    (await Deno.connect({ hostname: hostname!, port: Number(port) })).close();
  },
  "connect through node:net": ({ host }) =>
    import("node:net").then((net) =>
      new Promise((resolve, reject) => {
        const [hostname, port] = host.split(":");
        net.connect(Number(port), hostname).on("connect", resolve).on("error", reject);
      })
    ),
  "open a web socket": ({ host }) =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://${host}/`);
      socket.onopen = resolve;
      socket.onerror = (event) => reject(new Error((event as ErrorEvent).message));
    }),
  "look a name up": () => Deno.resolveDns("example.com", "A"),
  "listen": () => Deno.listen({ port: 0 }).close(),
  "spawn a program": async () => (await new Deno.Command("true").output()).code,
  "spawn through node:child_process": () =>
    import("node:child_process").then((child) => child.execFileSync("true")),
  "signal its supervisor": () => Deno.kill(Deno.ppid, "SIGCONT"),
  "read the environment": () => Deno.env.get("HOME"),
  "read the environment whole": () => Deno.env.toObject(),
  "read the environment through node": () => import("node:process").then((p) => p.default.env.HOME),
  "ask for the system": () => Deno.hostname(),
  "load a native library": () => Deno.dlopen("libc.so.6", {}),
  "import from the network": ({ host }) => load(`http://${host}/module.js`),
  "import from a known registry": () => load("https://deno.land/std@0.224.0/version.ts"),
  "import a file outside": ({ secretFile }) => load(`file://${secretFile}`),
  "import JSON outside": async ({ secretFile }) => {
    const specifier = `file://${secretFile}.json`;
    return (await import(specifier, { with: { type: "json" } })).default;
  },
  "import a file outside by way of its own place": ({ secretFile }) =>
    load(new URL(`${"../".repeat(20)}${secretFile.slice(1)}`, import.meta.url).href),
  "import a file outside through a module of data": ({ secretFile }) =>
    load(`data:text/javascript,${encodeURIComponent(`export * from "file://${secretFile}.js"`)}`),
  "import a file outside in a nested Worker": ({ secretFile }) =>
    nested("none", `postMessage((await import(String("file://${secretFile}.js"))).secret)`)(),
  "watch a directory": () => Deno.watchFs("/tmp").close(),
  "make a temporary file": () => Deno.makeTempFileSync(),
  "change the directory": () => Deno.chdir("/"),
  "send a datagram": () => Deno.listenDatagram({ transport: "udp", port: 0 }).close(),
  "open a local socket": async ({ inside }) =>
    (await Deno.connect({ transport: "unix", path: `${inside}/../socket` })).close(),
  "open a database outside": async ({ outside }) => {
    const { DatabaseSync } = await import("node:sqlite");
    new DatabaseSync(outside).close();
  },
  "require a file outside": async ({ secretFile }) =>
    (await import("node:module")).createRequire(`file://${secretFile}`)(`${secretFile}.json`),
  "escalate by a nested Worker": nested(
    { read: true },
    "postMessage(Deno.readTextFileSync('/etc/passwd'))",
  ),
  "escalate by a nested Worker with everything": nested(
    { read: true, write: true, net: true, run: true, env: true, sys: true },
    "postMessage(Deno.env.get('HOME'))",
  ),
  "read in a nested Worker that inherits": nested(
    "inherit",
    "postMessage(Deno.readTextFileSync('/etc/passwd'))",
  ),
  "ask for more, then read": async ({ secretFile }) => {
    await Deno.permissions.request({ name: "read" });
    return Deno.readTextFileSync(secretFile);
  },
};

/** Tries one way out; what it got, where it got anything. */
export async function escape(order: EscapeOrder): Promise<string> {
  const got = await ESCAPES[order.escape]!(order);
  return String(got);
}
