import assert from "node:assert/strict";
import { type Documents, judge } from "./check.ts";

const documents: Documents = {
  readme: "# x\n\n## Set-up\n\n```sh\nnpx a\nnpx b\n```\n\n## Exit codes\n\n| code | of |\n" +
    "| --- | --- |\n| 0 | done |\n| 130, 143 | cancelled |\n",
  architecture:
    "| folder | what |\n| --- | --- |\n| `src/core` | pure |\n| `src/sys` | effects |\n",
};

const good =
  "# x\n\n## a\nnpx a\n## b\nnpx b\n## c\n0, 130 and 143\n## d\nsrc/core src/sys\n## e\n";

Deno.test("judge: finds nothing missing in a true summary, and names what is missing", () => {
  const rows: [summary: string, missing: string[]][] = [
    [good, []],
    [good.replace("npx b", ""), ["npx b"]],
    [good.replace("143", "14"), ["143"]],
    [good.replace("src/sys", "src/nowhere"), ["src/sys", "no src/nowhere"]],
    [good.replace("# x\n", "x\n"), ["a first line `# …`"]],
    [good.replace("## e\n", ""), ["1 headings"]],
    [good + "\n".repeat(120), ["12 lines less"]],
  ];
  for (const [summary, missing] of rows) {
    assert.deepEqual(judge(summary, documents).flatMap((point) => point.missing), missing, summary);
  }
});

Deno.test("judge: reads this repository's own documents", () => {
  const root = new URL("../../", import.meta.url);
  const points = judge("", {
    readme: Deno.readTextFileSync(new URL("README.md", root)),
    architecture: Deno.readTextFileSync(new URL("ARCHITECTURE.md", root)),
  });
  const missing = new Map(points.map((point) => [point.name, point.missing]));
  assert.deepEqual(missing.get("the set-up commands of README.md")?.length, 2);
  assert.deepEqual(
    missing.get("the exit codes of README.md"),
    ["0", "1", "2", "3", "4", "5", "6", "7", "124", "130", "143"],
  );
  assert.ok(missing.get("the folders of ARCHITECTURE.md")!.includes("src/agent"));
});
