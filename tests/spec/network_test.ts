/** How the network is reached: proxies and trust of the user's environment hold for agents, and for nothing below them. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { hasOpenssl, makeCertificate } from "../fakes/certificate.ts";
import { chatCompletion } from "../fakes/chat_completion.ts";
import { startModelServer } from "../fakes/model_server_process.ts";
import { runProgram, withDirectory } from "./harness.ts";

/** A name that no resolver knows: only a proxy reaches it. */
const BEHIND = "http://model.invalid/v1";

for (const program of programs()) {
  const run = (
    env: (url: string) => Record<string, string>,
    args: (url: string) => string[],
    check: (facts: { code: number; stdout: string; stderr: string; requests: number }) => void,
  ) =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({ replies: [{ text: "Reached." }] });
      const { code, stdout, stderr } = await runProgram(program, {
        args: ["run", "Go", "--model", "m", "--run-dir", runs, ...args(server.url)],
        cwd: project,
        env: env(new URL(server.url).origin),
      });
      check({ code, stdout, stderr, requests: (await server.completions()).length });
    });
  const name = (text: string) => `network (${program.name}): ${text}`;

  for (const variable of ["HTTP_PROXY", "http_proxy", "ALL_PROXY"]) {
    Deno.test(name(`a model behind ${variable}`), () =>
      run(
        (origin) => ({ [variable]: origin }),
        () => ["--intelligence", BEHIND, "--allow-insecure"],
        ({ code, stdout, stderr, requests }) => {
          assert.deepEqual([code, stdout, requests], [0, "Reached.\n", 1], stderr);
        },
      ));
  }

  Deno.test(
    name("a model of this machine is asked directly, a proxy with credentials not used"),
    () =>
      run(
        () => ({ HTTP_PROXY: "http://127.0.0.1:1", HTTPS_PROXY: "http://me:hunter2@127.0.0.1:1" }),
        (url) => ["--intelligence", url],
        ({ code, stdout, stderr }) => {
          assert.deepEqual([code, stdout], [0, "Reached.\n"], stderr);
          assert.match(stderr, /HTTPS_PROXY is not used: it holds credentials/);
          assert.ok(!stderr.includes("hunter2"));
        },
      ),
  );

  Deno.test(name("hosts of NO_PROXY are asked directly"), () =>
    run(
      (origin) => ({ HTTP_PROXY: origin, no_proxy: "model.invalid" }),
      () => ["--intelligence", BEHIND, "--allow-insecure"],
      ({ code, requests }) => assert.deepEqual([code, requests], [4, 0]),
    ));

  Deno.test(name("checks are told of no proxy"), () =>
    run(
      (origin) => ({ HTTP_PROXY: origin, DENO_TLS_CA_STORE: "mozilla" }),
      (url) => ["--intelligence", url, "--check", "sh -c '! env | grep -i -e proxy -e TLS_CA'"],
      ({ code, stderr }) => assert.equal(code, 0, stderr),
    ));

  Deno.test({
    name: name("a model whose certificate the user trusts is asked, any other is not"),
    ignore: !hasOpenssl,
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        const { key, cert } = await makeCertificate(project);
        await using server = Deno.serve({
          hostname: "127.0.0.1",
          port: 0,
          key: await Deno.readTextFile(key),
          cert: await Deno.readTextFile(cert),
          onListen() {},
        }, () => chatCompletion({ text: "Reached.", calls: [] }));
        const ask = (env: Record<string, string>) =>
          runProgram(program, {
            args: [
              ...["run", "Go", "--model", "m", "--run-dir", runs],
              ...["--intelligence", `https://localhost:${server.addr.port}/v1`],
            ],
            cwd: project,
            env,
          });
        const trusted = await ask({ DENO_CERT: cert });
        assert.deepEqual([trusted.code, trusted.stdout], [0, "Reached.\n"], trusted.stderr);
        const strange = await ask({});
        assert.equal(strange.code, 4);
        assert.match(strange.stderr, /certificate/i);
      }),
  });
}
