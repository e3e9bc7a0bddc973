/**
 * The demo's `--check`: compares out/summary.md with the documents it speaks of. It exits 0 if every
 * point holds; else it names each point that does not. Run it with `--allow-read` for these files.
 */

const SUMMARY = "out/summary.md";
const LINES_MAX = 120;

/** The texts that the summary is compared with, by file name. */
export interface Documents {
  readme: string;
  architecture: string;
}

/** One point of the comparison; `missing` is empty where it holds. */
export interface Point {
  name: string;
  missing: string[];
}

/** The text below the heading `## title`, as far as the next heading of its kind. */
function section(text: string, title: string): string {
  const start = text.indexOf(`\n## ${title}\n`);
  if (start === -1) throw new Error(`Cannot find the heading "${title}" in README.md.`);
  const end = text.indexOf("\n## ", start + 1);
  return text.slice(start, end === -1 ? undefined : end);
}

/** Every point, each with what the summary lacks of it. */
export function judge(summary: string, documents: Documents): Point[] {
  const headings = [...summary.matchAll(/^## (.+)$/gm)];
  const commands = [...section(documents.readme, "Set-up").matchAll(/^npx .+$/gm)];
  const codes = [...section(documents.readme, "Exit codes").matchAll(/^\| ([\d, ]+?) +\|/gm)]
    .flatMap((row) => row[1]!.split(/, */));
  const folders = [...documents.architecture.matchAll(/^\| `(src\/\w+)` /gm)].map((row) => row[1]!);
  const numbers = new Set(summary.match(/\b\d+\b/g) ?? []);
  const lines = summary.split("\n").length;
  return [
    { name: "a title", missing: /^# .+/.test(summary) ? [] : ["a first line `# …`"] },
    {
      name: "five parts",
      missing: headings.length >= 5 ? [] : [`${5 - headings.length} headings`],
    },
    { name: "short", missing: lines <= LINES_MAX ? [] : [`${lines - LINES_MAX} lines less`] },
    {
      name: "the set-up commands of README.md",
      missing: commands.map(([command]) => command).filter((command) => !summary.includes(command)),
    },
    {
      name: "the exit codes of README.md",
      missing: codes.filter((code) => !numbers.has(code)),
    },
    {
      name: "the folders of ARCHITECTURE.md",
      missing: folders.filter((folder) => !summary.includes(folder)),
    },
    {
      name: "only folders that exist",
      missing: [...new Set(summary.match(/\bsrc\/\w+/g) ?? [])]
        .filter((folder) => !folders.includes(folder)).map((folder) => `no ${folder}`),
    },
  ];
}

if (import.meta.main) {
  const points = judge(Deno.readTextFileSync(SUMMARY), {
    readme: Deno.readTextFileSync("README.md"),
    architecture: Deno.readTextFileSync("ARCHITECTURE.md"),
  });
  const failing = points.filter((point) => point.missing.length > 0);
  for (const point of failing) {
    console.log(`${SUMMARY} lacks, of ${point.name}: ${point.missing.join(", ")}`);
  }
  console.log(`PROGRESS ${points.length - failing.length}/${points.length}`);
  if (failing.length > 0) Deno.exit(1);
}
