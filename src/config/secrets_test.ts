import assert from "node:assert/strict";
import { Vault } from "../core/secret.ts";
import { systemFiles } from "../sys/files.ts";
import {
  hasReference,
  isCredentialName,
  resolveSecretText,
  type SecretSources,
} from "./secrets.ts";

async function withSources(run: (sources: SecretSources) => void): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/token`, "from-file\n");
    await Deno.writeTextFile(`${directory}/lines`, "one\ntwo\n");
    await Deno.writeTextFile(`${directory}/empty`, "\n");
    run({
      vault: new Vault(),
      env: { TOKEN: "from-env", EMPTY: "" },
      files: systemFiles,
      absolute: (path) => `${directory}/${path}`,
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("resolveSecretText: references become holes, their values go into the vault", async () => {
  await withSources((sources) => {
    const rows: [text: string, filled: string, masked: string][] = [
      ["${env:TOKEN}", "from-env", "***"],
      ["Bearer ${env:TOKEN}", "Bearer from-env", "Bearer ***"],
      ["${file:token}", "from-file", "***"],
      ["a ${env:TOKEN} b ${file:token} c", "a from-env b from-file c", "a *** b *** c"],
      ["plain", "plain", "plain"],
      ["", "", ""],
      ["$${env:TOKEN}", "${env:TOKEN}", "${env:TOKEN}"],
      ["$TOKEN", "$TOKEN", "$TOKEN"],
    ];
    for (const [text, filled, masked] of rows) {
      const parts = resolveSecretText(text, sources);
      assert.ok(parts.ok, text);
      assert.equal(sources.vault.fill(parts.value).reveal(), filled, text);
      const shown = parts.value.map((part) => typeof part === "string" ? part : "***").join("");
      assert.equal(shown, masked, text);
      assert.doesNotMatch(JSON.stringify(parts.value), /from-/);
    }
    assert.ok(sources.vault.has("env:TOKEN"));
  });
});

Deno.test("resolveSecretText: what cannot be resolved says why", async () => {
  await withSources((sources) => {
    const rows: [text: string, message: RegExp, hint: RegExp][] = [
      ["${env:TOKNE}", /variable TOKNE is not set/, /did you mean TOKEN\?/],
      ["${env:EMPTY}", /variable EMPTY is empty/, /./],
      ["${file:none}", /there is no file none/, /^$/],
      ["${file:empty}", /is empty/, /^$/],
      ["${file:lines}", /more than one line/, /^$/],
      ["${TOKEN}", /\$\{TOKEN\} is no reference/, /\$\{env:NAME\}/],
      ["${vault:x}", /no reference/, /./],
      ["${env:}", /no reference/, /./],
      ["${env:TOKEN", /not closed/, /./],
    ];
    for (const [text, message, hint] of rows) {
      const parts = resolveSecretText(text, sources);
      assert.ok(!parts.ok, text);
      assert.match(parts.failure.message, message, text);
      assert.match(parts.failure.hint, hint, text);
    }
  });
});

Deno.test("hasReference and isCredentialName: what is, or must be, a secret", () => {
  assert.ok(hasReference("x${env:A}") && !hasReference("$${env:A}") && !hasReference("$A"));
  for (
    const name of ["API_KEY", "authorization", "X-Api-Key", "githubToken", "DB_PASSWORD", "pat"]
  ) {
    assert.ok(isCredentialName(name), name);
  }
  for (const name of ["PATH", "KEYBOARD", "monkey", "accept", "AUTHOR", "TOKENIZERS"]) {
    assert.ok(!isCredentialName(name), name);
  }
});
