import assert from "node:assert/strict";
import { checkUrl, isLoopback } from "./url.ts";

Deno.test("checkUrl: what may be contacted, without the slash at its end", () => {
  const rows: [text: string, insecure: boolean, url: string][] = [
    ["https://gateway.example/v1", false, "https://gateway.example/v1"],
    ["https://gateway.example/v1///", false, "https://gateway.example/v1"],
    ["http://127.0.0.1:11434/v1", false, "http://127.0.0.1:11434/v1"],
    ["http://localhost:1234", false, "http://localhost:1234"],
    ["http://[::1]:80/v1", false, "http://[::1]/v1"],
    ["http://api.localhost/v1", false, "http://api.localhost/v1"],
    ["http://10.0.0.1/v1", true, "http://10.0.0.1/v1"],
    ["HTTPS://Host.Example/v1?a=b", false, "https://host.example/v1?a=b"],
    ["https://h/v1?api-version=2&key=", false, "https://h/v1?api-version=2&key="],
  ];
  for (const [text, insecure, url] of rows) {
    assert.deepEqual(checkUrl(text, insecure), { ok: true, value: url }, text);
  }
});

Deno.test("checkUrl: what may not, with its credentials hidden", () => {
  const rows: [text: string, message: RegExp, hint: RegExp][] = [
    [
      "http://10.0.0.1/v1",
      /not encrypted and not on this machine/,
      /https:\/\/, or --allow-insecure/,
    ],
    ["http://127.0.0.1.evil.example/", /not encrypted/, /./],
    ["http://localhost.evil.example/", /not encrypted/, /./],
    ["https://user:pa55word@host/v1", /has credentials in it/, /\$\{env:NAME\}/],
    ["https://user@host/v1", /has credentials in it/, /./],
    [
      "https://host/v1?key=pa55word",
      /"https:\/\/host\/v1\?key=\*\*\*" has credentials/,
      /\$\{env:NAME\}/,
    ],
    ["https://host/mcp?a=b&exaApiKey=pa55word&c=d", /\?a=b&exaApiKey=\*\*\*&c=d/, /./],
    ["https://host/v1?access_token=pa55word#x", /has credentials in it/, /./],
    ["ftp://host/v1", /neither http/, /^$/],
    ["gateway.example/v1", /is no URL/, /write https:\/\/gateway.example\/v1/],
    ["gateway.example:8443/v1", /is no URL/, /^write https:\/\/gateway.example:8443\/v1$/],
    ["127.0.0.1:11434/v1", /is no URL/, /^write http:\/\/127.0.0.1:11434\/v1$/],
    ["LocalHost:1234/v1", /is no URL/, /^write http:\/\/LocalHost:1234\/v1$/],
    ["localhost", /is no URL/, /^write http:\/\/localhost$/],
    ["[::1]:8080/v1", /is no URL/, /^write http:\/\/\[::1\]:8080\/v1$/],
    ["https://", /is no URL/, /./],
    ["https://host/v1#x", /fragment/, /leave out/],
  ];
  for (const [text, message, hint] of rows) {
    const checked = checkUrl(text, false);
    assert.ok(!checked.ok, text);
    assert.match(checked.failure.message, message);
    assert.match(checked.failure.hint, hint);
    assert.doesNotMatch(JSON.stringify(checked), /pa55word/);
  }
});

Deno.test("isLoopback: only names and addresses of this machine", () => {
  for (const host of ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"]) {
    assert.ok(isLoopback(host), host);
  }
  for (const host of ["localhostx", "128.0.0.1", "127.0.0.1.com", "[::2]", "0.0.0.0"]) {
    assert.ok(!isLoopback(host), host);
  }
});
