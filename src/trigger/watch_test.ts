import assert from "node:assert/strict";
import { UPDATES_BURST_MAX } from "../core/limits.ts";
import { failed, success } from "../core/outcome.ts";
import type { Resource, ServerFailure, ToolsChange, ToolsPort } from "../ports/tools.ts";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { splitSource, startWatch, watchResult } from "./watch.ts";

function resource(server: string, uri: string, template = false): Resource {
  return {
    server,
    uri,
    name: uri,
    description: "",
    mimeType: null,
    bytes: null,
    etag: null,
    template,
  };
}

/** Tool servers that a test moves. */
class FakeTools implements ToolsPort {
  resources: Resource[] = [];
  held = new Set<string>();
  refuses = new Set<string>();
  failure: ServerFailure | null = null;
  closed = false;
  tell: (change: ToolsChange) => void = () => {};

  connect() {
    return Promise.resolve(
      this.failure === null
        ? success({ tools: [], resources: this.resources })
        : failed(this.failure),
    );
  }
  list() {
    return Promise.resolve({ tools: [], resources: this.resources });
  }
  call(): never {
    throw new Error("a watcher calls no tool");
  }
  readResource(): never {
    throw new Error("a watcher reads no resource");
  }
  subscribe(server: string, uri: string) {
    if (this.refuses.has(uri)) {
      return Promise.resolve(
        failed({ class: "protocol" as const, message: "no", retryable: false }),
      );
    }
    this.held.add(`${server}:${uri}`);
    return Promise.resolve(success(undefined));
  }
  unsubscribe(server: string, uri: string) {
    this.held.delete(`${server}:${uri}`);
    return Promise.resolve(success(undefined));
  }
  onChange(handle: (change: ToolsChange) => void) {
    this.tell = handle;
  }
  close() {
    this.closed = true;
    return Promise.resolve();
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

function open(subscribe: string[], resources: Resource[], possibly = false) {
  const tools = new FakeTools();
  tools.resources = resources;
  const clock = new ManualClock();
  const told: string[] = [];
  const controller = new AbortController();
  const begin = () =>
    startWatch({
      start: { kind: "watch", subscribe, possibly },
      tools,
      clock,
      signal: controller.signal,
      tell: (frame) =>
        told.push(
          frame.type === "connected"
            ? `connected ${frame.servers.join(" ")}`
            : `${frame.possibly ? "?" : ""}${frame.server}:${frame.uri}`,
        ),
    });
  return { tools, clock, told, stop: () => controller.abort(), begin };
}

Deno.test("startWatch: exact URIs and globs of their server, templates not; updates are reported", async () => {
  const { tools, told, begin, stop } = open(["docs:mem://a", "docs:mem://in/*"], [
    resource("docs", "mem://in/1"),
    resource("docs", "mem://in/{id}", true),
    resource("other", "mem://in/2"),
    resource("docs", "mem://out"),
  ]);
  const watch = begin();
  await settle();
  assert.deepEqual([...tools.held], ["docs:mem://a", "docs:mem://in/1"]);
  tools.tell({ kind: "resource_updated", server: "docs", uri: "mem://a", possibly: false });
  tools.tell({ kind: "tools", server: "docs" });
  assert.deepEqual(told, ["connected docs", "docs:mem://a"]);
  stop();
  assert.equal(await watch.ended, null);
  assert.equal(tools.closed, true);
});

Deno.test("startWatch: lists that change: new matches are held and reported, gone ones let go", async () => {
  const { tools, told, begin, stop } = open(["docs:mem://*"], [resource("docs", "mem://a")]);
  const watch = begin();
  await settle();
  tools.resources = [resource("docs", "mem://b"), resource("docs", "mem://c")];
  tools.refuses.add("mem://c");
  tools.tell({ kind: "resources", server: "docs" });
  tools.tell({ kind: "resources", server: "docs" });
  await settle();
  assert.deepEqual([...tools.held], ["docs:mem://b"]);
  assert.deepEqual(told, ["connected docs", "docs:mem://b"]);
  // What was refused is tried again when lists change again.
  tools.refuses.clear();
  tools.tell({ kind: "resources", server: "docs" });
  await settle();
  assert.deepEqual(told.slice(2), ["docs:mem://c"]);
  stop();
  await watch.ended;
});

Deno.test("startWatch: after a restart each watched URI is possibly changed, once", async () => {
  const { told, begin, stop } = open(["docs:mem://*"], [
    resource("docs", "mem://a"),
    resource("docs", "mem://b"),
  ], true);
  const watch = begin();
  await settle();
  assert.deepEqual(told, ["connected docs", "?docs:mem://a", "?docs:mem://b"]);
  stop();
  await watch.ended;
});

Deno.test("startWatch: a server that is not heard is told, and when it is heard again", async () => {
  const { tools, told, begin, stop } = open(["docs:mem://a", "more:mem://b"], []);
  const watch = begin();
  tools.tell({ kind: "heard", server: "more", heard: false });
  await settle();
  tools.tell({ kind: "heard", server: "more", heard: true });
  tools.tell({ kind: "heard", server: "docs", heard: false });
  tools.tell({ kind: "heard", server: "docs", heard: true });
  tools.tell({ kind: "resource_updated", server: "docs", uri: "mem://a", possibly: true });
  assert.deepEqual(told, [
    "connected docs",
    "connected docs more",
    "connected more",
    "connected docs more",
    "?docs:mem://a",
  ]);
  stop();
  await watch.ended;
});

Deno.test("startWatch: subscriptions of agents come and go; one that a glob covers stays", async () => {
  const { tools, told, begin, stop } = open(["docs:mem://in/*"], [resource("docs", "mem://in/1")]);
  const watch = begin();
  await settle();
  watch.change(["docs:mem://x", "docs:mem://in/1"], []);
  await settle();
  assert.deepEqual([...tools.held].sort(), ["docs:mem://in/1", "docs:mem://x"]);
  assert.deepEqual(told.slice(1), ["?docs:mem://x", "?docs:mem://in/1"]);
  watch.change([], ["docs:mem://x", "docs:mem://in/1"]);
  await settle();
  assert.deepEqual([...tools.held], ["docs:mem://in/1"]);
  stop();
  await watch.ended;
});

Deno.test("startWatch: what is given up while it is taken up is not held", async () => {
  const { tools, begin, stop } = open(["docs:mem://a"], []);
  const watch = begin();
  await settle();
  watch.change(["docs:mem://x"], []);
  watch.change([], ["docs:mem://x"]);
  await settle();
  assert.deepEqual([...tools.held], ["docs:mem://a"]);
  stop();
  await watch.ended;
});

Deno.test("startWatch: ends by what is final: no server, no subscription, a server gone for good", async () => {
  const failure = { server: "docs", message: "exited", stderr: "" };
  const unable = open(["docs:mem://a"], []);
  unable.tools.failure = failure;
  assert.deepEqual(await unable.begin().ended, failure);
  assert.equal(unable.tools.closed, true);

  const refused = open(["docs:mem://a"], []);
  refused.tools.refuses.add("mem://a");
  const why = await refused.begin().ended;
  assert.match(why!.message, /Cannot subscribe to mem:\/\/a: no/);
  assert.deepEqual(refused.told, []);

  const sources = ["docs:mem://a", "docs:mem://b", "docs:mem://*", "more:mem://c"];
  const several = open(sources, [resource("docs", "mem://a")]);
  for (const uri of ["mem://a", "mem://c"]) several.tools.refuses.add(uri);
  assert.deepEqual(await several.begin().ended, {
    server: "docs",
    message: "Cannot subscribe to mem://a: no; more: Cannot subscribe to mem://c: no",
    stderr: "",
  });

  const gone = open(["docs:mem://a"], []);
  const watch = gone.begin();
  await settle();
  gone.tools.tell({ kind: "server_down", failure });
  assert.deepEqual(await watch.ended, failure);
  assert.deepEqual(
    [watchResult(failure).abort, watchResult(failure).reason],
    ["mcp", "docs: exited"],
  );
  assert.equal(watchResult(null).status, "cancelled");
});

Deno.test("startWatch: a flood is told at the rate the supervisor takes, merged by URI, none lost", async () => {
  const { tools, clock, told, begin, stop } = open(["docs:mem://0"], []);
  const watch = begin();
  await settle();
  const uris = UPDATES_BURST_MAX + 100;
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < uris; i++) {
      tools.tell({ kind: "resource_updated", server: "docs", uri: `mem://${i}`, possibly: false });
    }
  }
  assert.equal(told.length, 1 + UPDATES_BURST_MAX);
  for (let i = 0; i < uris * 2; i++) clock.advance(10);
  const last = new Set(told.slice(-uris));
  assert.equal(last.size, uris, "each URI is told after its last change");
  assert.equal(clock.pending, 0);
  stop();
  await watch.ended;
});

Deno.test("splitSource: at the first colon", () => {
  assert.deepEqual(splitSource("docs:mem://a:b"), { server: "docs", uri: "mem://a:b" });
});
