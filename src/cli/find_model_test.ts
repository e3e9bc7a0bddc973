import assert from "node:assert/strict";
import type { TerminalPort } from "../ports/terminal.ts";
import { systemClock } from "../sys/clock.ts";
import { systemHttp } from "../sys/http.ts";
import type { Endpoint, ModelSettings } from "../wire/payload.ts";
import { findModel, type ModelPorts } from "./find_model.ts";

const endpoint = (port: number, probe: boolean): Endpoint => ({
  url: `http://127.0.0.1:${port}/v1`,
  kind: "http",
  dialect: "openai",
  token: null,
  headers: {},
  probe,
  recording: null,
});

const LISTING = '{"object":"list","data":[{"id":"m"}]}';

/** Servers that answer each path with a status, or with a page; what they were asked. */
async function withServers(
  answers: (number | string)[],
  use: (ports: number[], asked: string[]) => Promise<void>,
): Promise<void> {
  const asked: string[] = [];
  const servers = answers.map((answer) =>
    Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      asked.push(new URL(request.url).pathname);
      return typeof answer === "string"
        ? new Response(answer)
        : new Response(LISTING, { status: answer });
    })
  );
  try {
    await use(servers.map((server) => server.addr.port), asked);
  } finally {
    await Promise.all(servers.map((server) => server.shutdown()));
  }
}

/** A port of this machine where nobody listens. */
function closedPort(): number {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const { port } = listener.addr;
  listener.close();
  return port;
}

async function find(endpoints: Endpoint[]): Promise<{ urls: string[] | null; said: string }> {
  let said = "";
  const terminal: TerminalPort = {
    stdoutIsTerminal: false,
    stderrIsTerminal: false,
    columns: null,
    writeOut: () => "written",
    writeError: (text) => {
      said += text;
      return true;
    },
    queueOut: () => true,
    settleError: () => Promise.resolve(true),
    settle: () => Promise.resolve(true),
    readIn: () => Promise.resolve({ ok: true, value: "" }),
  };
  const ports: ModelPorts = { clock: systemClock, http: systemHttp, terminal };
  const found = await findModel(ports, { model: { endpoints } as ModelSettings });
  return { urls: found && found.model.endpoints.map((each) => each.url), said };
}

Deno.test("findModel: of what was only hoped for, what lists its models is left", async () => {
  await withServers([200, 404, 200], async ([good, other, second], asked) => {
    const { urls, said } = await find(
      [closedPort(), other!, good!, second!].map((port) => endpoint(port, true)),
    );
    assert.deepEqual(urls, [good, second].map((port) => `http://127.0.0.1:${port}/v1`));
    assert.equal(said, "");
    assert.deepEqual(asked, ["/v1/models", "/v1/models", "/v1/models"]);
  });
});

Deno.test("findModel: what answers, but lists no model, is none", async () => {
  const pages = [
    "<html>A page of somebody's own</html>",
    "{}",
    "[]",
    '{"object":"list","data":null}',
    '{"data":[]}',
    '{"data":[{"id":""}]}',
    '{"models":[{"name":"m"}]}',
    "",
  ];
  await withServers(pages, async (ports) => {
    const { urls, said } = await find(ports.map((port) => endpoint(port, true)));
    assert.deepEqual(urls, [`http://127.0.0.1:${ports[6]}/v1`]);
    assert.equal(said, "");
    const none = await find([endpoint(ports[0]!, true)]);
    assert.equal(none.urls, null);
    assert.match(none.said, /nothing answers at \S+ with a model; nothing was started/);
  });
});

Deno.test("findModel: nothing there is said, with what to set", async () => {
  const ports = [closedPort(), closedPort()];
  const { urls, said } = await find(ports.map((port) => endpoint(port, true)));
  assert.equal(urls, null);
  assert.match(said, /^agentd: no model found: no key is set, and nothing answers at http:/);
  assert.ok(said.includes(`127.0.0.1:${ports[1]}/v1 with a model; nothing was started\n`));
  assert.match(
    said,
    /OPENAI_API_KEY.*ANTHROPIC_API_KEY.*--intelligence URL.*AGENT_INTELLIGENCE_TOKEN/,
  );
});

Deno.test("findModel: an endpoint that was configured is taken as it is, and nobody is asked", async () => {
  await withServers([200], async ([port], asked) => {
    const given = [endpoint(port!, true), endpoint(closedPort(), false)];
    const { urls } = await find(given);
    assert.deepEqual(urls, given.map((each) => each.url));
    assert.deepEqual(asked, []);
  });
});
