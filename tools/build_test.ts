import assert from "node:assert/strict";
import { bundle, importMap } from "./build.ts";

Deno.test("bundle: keeps each entry where it stands, and shares what they share", async () => {
  const root = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${root}/src/agent`, { recursive: true });
    await Deno.mkdir(`${root}/src/core`);
    const shared = "export const shared = (): string => 'shared words';\n";
    await Deno.writeTextFile(`${root}/src/core/a.ts`, shared);
    await Deno.writeTextFile(
      `${root}/main.ts`,
      `import { shared } from "./src/core/a.ts";\nconsole.log(shared(), import.meta.url);\n`,
    );
    await Deno.writeTextFile(
      `${root}/src/agent/worker.ts`,
      `import { shared } from "../core/a.ts";\nconsole.log(shared(), import.meta.url);\n`,
    );
    const made = `${root}/made`;
    const files = await bundle(root, made);
    const chunks = files.filter((file) => file.startsWith("chunk-"));
    assert.deepEqual([...chunks, "main.js", "src/agent/worker.js"], files);
    assert.equal(chunks.length, 1, "what both use is there once");
    for (const entry of ["main.js", "src/agent/worker.js"]) {
      const { stdout } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-config", "--no-prompt", `${made}/${entry}`],
        stdin: "null",
      }).output();
      const text = new TextDecoder().decode(stdout);
      assert.ok(text.startsWith("shared words file://"), text);
      assert.ok(text.trimEnd().endsWith(`/made/${entry}`), "a module knows its own place");
    }

    await Deno.writeTextFile(`${root}/main.ts`, `import "./nowhere.ts";\n`);
    await assert.rejects(bundle(root, made), /nowhere/);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("importMap: what is of the program leads to itself, all else on the disk to nowhere", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  try {
    const outside = `file://${root}/outside.js`;
    await Deno.writeTextFile(`${root}/outside.js`, "export const secret = 'secret';\n");
    await Deno.mkdir(`${root}/program/src`, { recursive: true });
    await Deno.writeTextFile(`${root}/program/src/own.js`, "export const own = 'own';\n");
    await Deno.writeTextFile(
      `${root}/program/main.js`,
      "const at = (path) => String(path);\n" +
        'console.log((await import(at("./src/own.js"))).own);\n' +
        `await import(at(${
          JSON.stringify(outside)
        })).catch((error) => console.log(error.message));\n`,
    );
    await Deno.writeTextFile(
      `${root}/program/deno.json`,
      JSON.stringify({ imports: importMap(["src/own.js"]) }),
    );
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-read", `${root}/program/main.js`],
      stdin: "null",
    }).output();
    const [own, refused] = new TextDecoder().decode(stdout).split("\n");
    assert.equal(own, "own");
    assert.match(refused!, /agentd-refuses:\//);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
