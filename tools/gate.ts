/**
 * The whole gate, as `deno task test` runs it: every step to its end, one after the other, then one
 * line `N passed, N failed`. A step that is no test run counts as one test. Names of steps as
 * arguments run only those.
 */

import { ENTRIES } from "./build.ts";

/** What a step or several came to. */
export interface Tally {
  passed: number;
  failed: number;
  ignored: number;
}

interface Step {
  name: string;
  args: string[];
  /** Its own numbers are in deno test's summary. */
  counted?: boolean;
}

/** A clean run takes two thirds of it on two cores. */
const STEP_MS_MAX = 13 * 60_000;

/** What the tests themselves need; the narrowest that lets them start and signal real processes. */
const TEST_FLAGS = [
  "--no-prompt",
  "--allow-read",
  "--allow-write",
  "--allow-net",
  "--allow-env",
  "--allow-run",
  "--allow-sys",
];

const binary = `dist/agentd${Deno.build.os === "windows" ? ".exe" : ""}`;

/** Test files at once: most of them wait for processes most of the time, and some judge by time. */
const TEST_JOBS = Math.ceil(1.5 * navigator.hardwareConcurrency);

const STEPS: Step[] = [
  { name: "fmt", args: ["fmt", "--check"] },
  { name: "lint", args: ["lint"] },
  { name: "types", args: ["check"] },
  { name: "docs", args: ["doc", "--lint", "mod.ts"] },
  { name: "build", args: ["task", "build"] },
  {
    name: "tests",
    counted: true,
    args: [
      "test",
      ...TEST_FLAGS,
      "--parallel",
      "--coverage=coverage",
      "--coverage-raw-data-only",
      "--clean",
      "src",
      "tools",
      "examples",
      "tests",
    ],
  },
  {
    name: "coverage",
    args: [
      "coverage",
      "--include=/src/",
      `--exclude=_test\\.ts$|/(${ENTRIES.map((entry) => entry.replace(".", "\\.")).join("|")})$`,
      "coverage",
    ],
  },
];

const SUMMARY =
  /^(?:ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?: \(\d+ steps?\))?(?: \| (\d+) ignored)?/gm;

/** Adds up the summaries that deno test printed; undefined if there is none. */
export function sumSummaries(output: string): Tally | undefined {
  const tally: Tally = { passed: 0, failed: 0, ignored: 0 };
  let found = false;
  for (const [, passed, failed, ignored] of output.matchAll(SUMMARY)) {
    found = true;
    tally.passed += Number(passed);
    tally.failed += Number(failed);
    tally.ignored += Number(ignored ?? 0);
  }
  return found ? tally : undefined;
}

async function runStep(step: Step, root: string): Promise<Tally> {
  console.log(`\n── ${step.name}: deno ${step.args.join(" ")}`);
  const startedMs = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: step.args,
    cwd: root,
    // The black-box tests run on the source always and on this program too.
    env: { NO_COLOR: "1", DENO_JOBS: `${TEST_JOBS}`, AGENTD_BINARY: `${root}/${binary}` },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill("SIGKILL");
  }, STEP_MS_MAX);
  const [output] = await Promise.all([
    pass(child.stdout, Deno.stdout),
    pass(child.stderr, Deno.stderr),
  ]);
  const { success } = await child.status;
  clearTimeout(timer);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  const end = timedOut ? `ended after ${STEP_MS_MAX / 60_000} minutes` : success ? "ok" : "failed";
  console.log(`── ${step.name}: ${end} in ${seconds} s`);
  const counts = step.counted ? sumSummaries(output) : undefined;
  if (counts === undefined) return { passed: success ? 1 : 0, failed: success ? 0 : 1, ignored: 0 };
  // A run that failed without a failed test (a module that does not load, say) is still a failure.
  if (!success && counts.failed === 0) counts.failed = 1;
  return counts;
}

/** Passes a stream on as it comes; its whole text in the end. */
async function pass(
  from: ReadableStream<Uint8Array>,
  to: { writeSync(bytes: Uint8Array): number },
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of from) {
    for (let rest = chunk; rest.length > 0;) rest = rest.subarray(to.writeSync(rest));
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

if (import.meta.main) {
  const root = await Deno.realPath(`${import.meta.dirname}/..`);
  const unknown = Deno.args.filter((name) => !STEPS.some((step) => step.name === name));
  if (unknown.length > 0) {
    console.error(
      `Cannot run ${unknown.join(", ")}: the steps are ${
        STEPS.map((step) => step.name).join(", ")
      }.`,
    );
    Deno.exit(2);
  }
  const total: Tally = { passed: 0, failed: 0, ignored: 0 };
  const broken: string[] = [];
  for (const step of STEPS) {
    if (Deno.args.length > 0 && !Deno.args.includes(step.name)) continue;
    const tally = await runStep(step, root);
    total.passed += tally.passed;
    total.failed += tally.failed;
    total.ignored += tally.ignored;
    if (tally.failed > 0) broken.push(step.name);
  }
  console.log("");
  if (broken.length > 0) console.log(`Failed: ${broken.join(", ")}.`);
  if (total.ignored > 0) console.log(`Ignored on this system: ${total.ignored}.`);
  console.log(`${total.passed} passed, ${total.failed} failed`);
  Deno.exit(total.failed === 0 ? 0 : 1);
}
