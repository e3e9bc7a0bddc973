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

/** Servers that answer each path with a status; what they were asked. */
async function withServers(
  statuses: number[],
  use: (ports: number[], asked: string[]) => Promise<void>,
): Promise<void> {
  const asked: string[] = [];
  const servers = statuses.map((status) =>
    Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      asked.push(new URL(request.url).pathname);
      return new Response("{}", { status });
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

Deno.test("findModel: nothing there is said, with what to set", async () => {
  const ports = [closedPort(), closedPort()];
  const { urls, said } = await find(ports.map((port) => endpoint(port, true)));
  assert.equal(urls, null);
  assert.match(said, /^agentd: no model found: no key is set, and nothing answers at http:/);
  assert.ok(said.includes(`127.0.0.1:${ports[1]}/v1; nothing was started\n`));
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
