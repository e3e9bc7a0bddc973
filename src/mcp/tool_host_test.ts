import assert from "node:assert/strict";
import { LIST_PAGES_MAX, TOOLS_MAX } from "../core/limits.ts";
import type { ServerFailure } from "../ports/tools.ts";
import { realServer } from "../../tests/fakes/mcp_packages.ts";
import {
  callTool,
  type HostBench,
  hostBench,
  hostileServer,
  missingTool,
  stdioServer,
} from "../../tests/fakes/tool_host.ts";

const never = new AbortController().signal;

async function withHost(bench: HostBench, act: (bench: HostBench) => Promise<void>): Promise<void> {
  try {
    await act(bench);
  } finally {
    await bench.close();
  }
}

async function connected(bench: HostBench) {
  const outcome = await bench.host.connect(never);
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.value;
}

Deno.test("createToolHost: without servers nothing is loaded and nothing offered", async () => {
  await withHost(hostBench([]), async (bench) => {
    assert.deepEqual(await connected(bench), { tools: [], resources: [] });
  });
  // In a process of its own, so that no other test has loaded the SDK before. The SDK brings zod,
  // which leaves its registry behind.
  const helper = new URL("../../tests/fakes/tool_host.ts", import.meta.url);
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const rows = [["[]", "false"], ['[hostileServer("plain")]', "true"]];
  for (const [servers, loaded] of rows) {
    const script = `
      import { hostBench, hostileServer } from "${helper}";
      const bench = hostBench(${servers});
      await bench.host.connect(new AbortController().signal);
      await bench.close();
      console.log(Object.hasOwn(globalThis, "__zod_globalRegistry"));`;
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--quiet",
        "--config",
        config,
        `data:application/typescript,${encodeURIComponent(script)}`,
      ],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).output();
    assert.equal(new TextDecoder().decode(stdout).trim(), loaded, servers);
  }
});

Deno.test("createToolHost: real servers side by side are listed, called, read and left", async () => {
  const home = await Deno.makeTempDir();
  await Deno.writeTextFile(`${home}/note.txt`, "kept");
  const bench = hostBench([
    stdioServer("every", ["node", await realServer("everything"), "stdio"]),
    stdioServer("files", ["node", await realServer("filesystem"), home]),
    stdioServer("memory", ["node", await realServer("memory")], {
      env: { MEMORY_FILE_PATH: [`${home}/memory.json`] },
    }),
  ]);
  await withHost(bench, async () => {
    const { tools, resources } = await connected(bench);
    const servers = new Set(tools.map((tool) => tool.server));
    assert.deepEqual([...servers], ["every", "files", "memory"]);
    assert.equal(new Set(tools.map((tool) => tool.wireName)).size, tools.length);
    assert.ok(tools.every((tool) => /^[A-Za-z0-9_-]{1,64}$/.test(tool.wireName)));
    assert.ok(tools.every((tool) => tool.inputSchema.type === "object"));
    assert.equal(tools.find((tool) => tool.name === "files/read_text_file")?.readOnly, true);
    assert.equal(tools.find((tool) => tool.name === "files/write_file")?.readOnly, false);
    assert.ok(resources.some((resource) => resource.server === "every" && resource.template));

    assert.deepEqual(await callTool(bench, "every/echo", { message: "hello" }), {
      ok: true,
      value: {
        parts: [{ type: "text", text: "Echo: hello" }],
        structured: null,
        isError: false,
      },
    });
    const image = await callTool(bench, "every/get-tiny-image");
    assert.ok(image.ok && image.value.parts.some((part) => part.type === "image"));
    const structured = await callTool(bench, "every/get-structured-content", {
      location: "New York",
    });
    assert.ok(structured.ok && typeof structured.value.structured?.temperature === "number");
    const read = await callTool(bench, "files/read_text_file", { path: `${home}/note.txt` });
    assert.ok(read.ok && !read.value.isError);
    assert.deepEqual(read.value.parts, [{ type: "text", text: "kept" }]);
    const outside = await callTool(bench, "files/read_text_file", { path: "/etc/hostname" });
    assert.ok(outside.ok && outside.value.isError);

    const one = resources.find((resource) => resource.server === "every" && !resource.template)!;
    const content = await bench.host.readResource(null, one.uri, never);
    assert.ok(content.ok && content.value.parts.length > 0, JSON.stringify(content));
    const missing = await bench.host.readResource("every", "demo://resource/none/1", never);
    assert.ok(!missing.ok && missing.failure.class === "protocol");
    assert.equal(bench.pids().length, 3);
    assert.equal(bench.told("mcp.connect").filter((fields) => fields.protocol).length, 3);
  });
  assert.deepEqual(bench.pids(), []);
  assert.equal(bench.told("mcp.disconnect").length, 3);
  await Deno.remove(home, { recursive: true });
});

const BAD_STARTS: [what: string, bench: () => HostBench, message: RegExp, stderr: RegExp][] = [
  [
    "a command that exits at once",
    () => hostBench([hostileServer("dies-at-once")]),
    /ended with exit code 3 before it was ready/,
    /no licence found/,
  ],
  [
    "a command that never answers initialize",
    () => hostBench([hostileServer("never-initializes", { startTimeoutMs: 1_000 })]),
    /did not answer initialize within 1s/,
    /waiting for a database/,
  ],
  [
    "a command that does not exist",
    () => hostBench([stdioServer("nowhere", ["/nowhere/at/all"])]),
    /does not exist/,
    /^$/,
  ],
  [
    "a server that refuses initialize",
    () => hostBench([hostileServer("rejects-initialize")]),
    /not today/,
    /^$/,
  ],
  [
    "a server that dies while it is listed",
    () => hostBench([hostileServer("dies-while-listed")]),
    /ended with exit code 9 while it was listed/,
    /^$/,
  ],
  [
    "a server that lists nonsense",
    () => hostBench([hostileServer("lists-nonsense")]),
    /cannot list: the server's list of tools is malformed/,
    /^$/,
  ],
];

for (const [what, makeBench, message, stderr] of BAD_STARTS) {
  Deno.test(`createToolHost: ${what} fails the start and says why`, async () => {
    await withHost(makeBench(), async (bench) => {
      const outcome = await bench.host.connect(never);
      assert.ok(!outcome.ok);
      const failure: ServerFailure = outcome.failure;
      assert.match(failure.message, /^Cannot start \w+: /);
      assert.match(failure.message, message);
      assert.match(failure.stderr, stderr);
      const told = bench.told("mcp.connect.fail");
      assert.equal(told.length, 1);
      assert.equal(told[0]?.required, true);
    });
  });
}

Deno.test("createToolHost: an optional server that does not start costs an event, not the run", async () => {
  const bench = hostBench([
    hostileServer("dies-at-once", { name: "broken", required: false }),
    hostileServer("plain", { name: "sound" }),
  ]);
  await withHost(bench, async () => {
    const { tools } = await connected(bench);
    assert.deepEqual(new Set(tools.map((tool) => tool.server)), new Set(["sound"]));
    assert.equal(bench.told("mcp.connect.fail")[0]?.server, "broken");
    const outcome = await callTool(bench, "broken/act");
    assert.ok(!outcome.ok && outcome.failure.class === "not_sent");
    assert.match(
      outcome.failure.message,
      /server broken is down: Cannot start broken: it ended with exit code 3/,
    );
  });
});

Deno.test("createToolHost: one required server that fails stops the others at once", async () => {
  const bench = hostBench([
    hostileServer("never-initializes", { name: "slow", startTimeoutMs: 120_000 }),
    hostileServer("dies-at-once", { name: "broken" }),
  ]);
  await withHost(bench, async () => {
    const outcome = await bench.host.connect(never);
    assert.ok(!outcome.ok && outcome.failure.server === "broken");
    assert.equal(bench.told("mcp.connect.fail").length, 1);
  });
});

Deno.test("createToolHost: a start that is cancelled ends, with nothing left running", async () => {
  const bench = hostBench([hostileServer("never-initializes", { startTimeoutMs: 120_000 })]);
  await withHost(bench, async () => {
    const stop = new AbortController();
    const starting = bench.host.connect(stop.signal);
    while (bench.told("mcp.connect").length === 0) await new Promise((go) => setTimeout(go, 5));
    stop.abort();
    const outcome = await starting;
    assert.ok(!outcome.ok);
  });
  assert.deepEqual(bench.pids(), []);
});

const LISTS: [behaviour: string, tools: number, cut: string | undefined][] = [
  ["four-pages-loud", 4, undefined],
  ["cursor-circle", 2, "list_cursor"],
  ["cursor-endless", LIST_PAGES_MAX, "list_pages"],
  ["too-many", TOOLS_MAX, "list_items"],
  ["no-tools", 0, undefined],
];

for (const [behaviour, count, cut] of LISTS) {
  Deno.test(`createToolHost: the list of a server that does ${behaviour} has ${count} tools`, async () => {
    await withHost(hostBench([hostileServer(behaviour)]), async (bench) => {
      const { tools } = await connected(bench);
      assert.equal(tools.length, count);
      assert.equal(bench.told("limit.exceeded")[0]?.limit, cut);
    });
  });
}

Deno.test("createToolHost: metadata is bounded and cleaned, what is no tool is left out and told", async () => {
  await withHost(hostBench([hostileServer("bad-metadata")]), async (bench) => {
    const { tools } = await connected(bench);
    assert.deepEqual(tools.map((tool) => tool.remoteName), ["good", "long", "wordy-schema"]);
    assert.equal(tools[0]?.description, "cleaned up");
    assert.equal(tools[1]?.description.length, 4_000);
    const properties = tools[2]?.inputSchema.properties as Record<string, unknown>;
    assert.deepEqual(properties.description, { type: "string" });
    assert.deepEqual(properties.p7, {});
    const told = bench.told("mcp.tool.changed").map((fields) => [fields.tool, fields.why]);
    assert.deepEqual(told, [
      ["no-schema", "its input schema is no object schema"],
      ["string-schema", "its input schema is no object schema"],
      ["good", "it is listed twice"],
      ["huge-schema", "its input schema is over 65536 bytes"],
      ["badname", "its name is too long or unprintable"],
      ["", "it has no name"],
    ]);
  });
});

Deno.test("createToolHost: no tool takes a self tool's name or another's", async () => {
  const bench = hostBench([hostileServer("shadows", { name: "one" })]);
  await withHost(bench, async () => {
    const { tools } = await connected(bench);
    const names = tools.map((tool) => tool.wireName);
    assert.equal(names[0], "one__a_b_" + names[0]?.slice(-8));
    assert.equal(names[1], "one__a_b");
    assert.match(names[2]!, /^one__n{50}_[0-9a-f]{8}$/);
    assert.equal(names[3], "one__task_refuse");
    const result = await callTool(bench, "one/a.b");
    assert.ok(result.ok);
  });
});

Deno.test("createToolHost: grants and rules decide what is offered, and how", async () => {
  const bench = hostBench([hostileServer("plain")], {
    tools: { grant: ["hostile", "!hostile/crash-look"] },
    rules: [
      { glob: "*", readOnly: false, timeoutMs: 5_000 },
      { glob: "hostile/*", grant: false, poll: true },
      { glob: "hostile/act", grant: true, readOnly: true },
      { glob: "hostile/look", grant: true, idempotent: true },
    ],
  });
  await withHost(bench, async () => {
    const { tools } = await connected(bench);
    const shown = tools.map(({ name, readOnly, idempotent, poll }) => ({
      name,
      readOnly,
      idempotent,
      poll,
    }));
    assert.deepEqual(shown, [
      { name: "hostile/act", readOnly: true, idempotent: false, poll: true },
      { name: "hostile/look", readOnly: false, idempotent: true, poll: true },
    ]);
    const refused = await callTool(bench, "hostile/crash");
    assert.ok(!refused.ok && refused.failure.class === "not_sent");
  });
});

Deno.test("createToolHost: ten thousand announced changes are one change", async () => {
  await withHost(hostBench([hostileServer("floods-changes")]), async (bench) => {
    await connected(bench);
    const result = await callTool(bench, "hostile/act");
    assert.ok(result.ok, JSON.stringify(result));
    assert.deepEqual(bench.changes, [{ kind: "tools", server: "hostile" }]);
    // What is announced and cannot be listed costs no later call its time.
    const later = await callTool(bench, "hostile/act");
    assert.ok(later.ok);
    assert.equal((await bench.host.list(never)).tools.length, 5);
  });
});

Deno.test("createToolHost: changes of lists are told once until they are listed anew", async () => {
  await withHost(hostBench([hostileServer("changes-list")]), async (bench) => {
    const { resources } = await connected(bench);
    assert.deepEqual(resources.map((resource) => resource.uri), [
      "mem://one",
      "file:///etc/passwd",
    ]);
    assert.equal(resources[0]?.description, "The first");
    assert.ok((await callTool(bench, "hostile/act")).ok);
    await bench.change((change) => change.kind === "resources");
    assert.deepEqual(bench.changes, [
      { kind: "tools", server: "hostile" },
      { kind: "resources", server: "hostile" },
    ]);
    await bench.host.list(never);
    assert.ok((await callTool(bench, "hostile/act")).ok);
    await bench.change(() => bench.changes.length === 4);
  });
});

for (const pin of [true, false]) {
  Deno.test(`createToolHost: a description that changes is told and ${pin ? "refuses the tool" : "accepted"}, pins ${pin ? "on" : "off"}`, async () => {
    const counter = await Deno.makeTempFile({ dir: await cacheFolder() });
    await Deno.remove(counter);
    const server = hostileServer("changes-description");
    server.args.push(counter);
    const bench = hostBench([server], { tools: { pin } });
    await withHost(bench, async () => {
      const before = await connected(bench);
      const act = before.tools.find((tool) => tool.remoteName === "act")!;
      assert.equal(act.description, "Version 1.");
      const lost = await callTool(bench, "hostile/crash");
      assert.ok(!lost.ok && lost.failure.class === "lost", JSON.stringify(lost));
      await bench.change((change) => change.kind === "tools");
      const after = await bench.host.list(never);
      const told = bench.told("mcp.tool.changed");
      assert.deepEqual(told, [
        { server: "hostile", tool: "act", change: "metadata", refused: pin },
      ]);
      const outcome = await callTool(bench, "hostile/act");
      if (pin) {
        assert.deepEqual(after.tools.map((tool) => tool.remoteName), ["crash"]);
        assert.ok(!outcome.ok && outcome.failure.class === "not_sent");
        assert.match(outcome.failure.message, /has changed since the run began/);
      } else {
        assert.equal(after.tools[0]?.description, "Version 2.");
        assert.ok(outcome.ok);
      }
    });
    await Deno.remove(counter);
  });
}

Deno.test("createToolHost: resources are read from the server that lists them, and from no file", async () => {
  await withHost(hostBench([hostileServer("watched")]), async (bench) => {
    await connected(bench);
    const read = await bench.host.readResource(null, "file:///etc/passwd", never);
    assert.ok(read.ok);
    assert.deepEqual(read.value.parts, [
      { type: "text", text: "content of file:///etc/passwd" },
    ]);
    const only = await bench.host.readResource(null, "mem://unlisted", never);
    assert.ok(only.ok, "the only server with resources is asked for what nobody lists");
    for (const [server, uri] of [["none", "mem://one"], [null, "a\nb"], [null, ""]] as const) {
      const refused = await bench.host.readResource(server, uri, never);
      assert.ok(!refused.ok && refused.failure.class === "not_sent");
    }
  });
});

Deno.test("createToolHost: a call after the end is not sent", async () => {
  const bench = hostBench([hostileServer("plain")]);
  const { tools } = await connected(bench);
  assert.ok(tools.length > 0);
  await bench.close();
  const outcome = await bench.host.call({
    tool: missingTool("hostile/act"),
    arguments: {},
    key: "k",
    traceparent: "t",
  }, never);
  assert.ok(!outcome.ok && outcome.failure.class === "not_sent");
  await bench.host.close();
});

async function cacheFolder(): Promise<string> {
  const folder = new URL("../../.cache/", import.meta.url).pathname;
  await Deno.mkdir(folder, { recursive: true });
  return folder;
}
