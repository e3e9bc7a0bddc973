import assert from "node:assert/strict";
import { sampleClock, writeSampleRun } from "../../tests/fakes/sample_run.ts";
import { systemClock } from "../sys/clock.ts";
import { systemFiles } from "../sys/files.ts";
import { systemLock } from "../sys/lock.ts";
import { htmlCommand } from "./html.ts";

const HOSTILE =
  "</script><script>window.owned=1</script><img src=x onerror=window.owned=1> <!-- \u2028";
const VERDICTS = ["advanced", "advanced", "advanced", "repeated", "failed"] as const;
const CHROMIUM = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
].find(exists);

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** Writes a run of two agents with so many iterations, and its report; gives the page. */
async function withReport(
  iterations: number,
  run: (page: string, directory: string) => void | Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "agentd-html-" });
  try {
    const directory = `${root}/run`;
    writeSampleRun({
      directory,
      instruction: HOSTILE,
      clock: sampleClock(),
      turns: Array.from({ length: iterations }, (_, i) => ({
        verdict: VERDICTS[i % 5]!,
        delta: i % 5 === 3 ? 0 : 1,
        idle: i % 5 === 3 ? 1 : 0,
        tool: i % 2 === 0 ? "fs/read" : "web/get",
        text: `${HOSTILE} ${i}`,
        arguments: { path: HOSTILE },
      })),
      end: { status: "stalled", reason: `idle: ${HOSTILE}` },
    });
    writeSampleRun({
      directory: `${directory}/agents/0.1`,
      path: "0.1",
      clock: sampleClock(Date.UTC(2026, 0, 31, 12, 0, 2)),
      turns: [{ verdict: "answered", delta: 1, text: "x".repeat(10_000) }],
      end: {},
    });
    const before = Deno.readTextFileSync(`${directory}/record.jsonl`);
    const place = { id: "R1", directory, record: `${directory}/record.jsonl` };
    const deps = { files: systemFiles, clock: systemClock, lock: systemLock };
    Deno.writeTextFileSync(`${root}/report.html`, "an older report");
    const output = await htmlCommand(deps, place, `${root}/report.html`);
    assert.deepEqual(output, { exitCode: 0, stdout: "", stderr: "" });
    assert.equal(Deno.readTextFileSync(`${directory}/record.jsonl`), before);
    await run(Deno.readTextFileSync(`${root}/report.html`), root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("htmlCommand: one page that names nothing outside itself, hostile text is only text", () =>
  withReport(120, (page) => {
    assert.ok(page.startsWith("<!DOCTYPE html>"));
    assert.match(
      page,
      /content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-/,
    );
    const markup = page.replace(/<script type="application\/json".*?<\/script>/gs, "");
    assert.ok(
      !/\b(?:src|href)=["'a-z]|@import|url\(/i.test(markup.replaceAll("&lt;img src=x", "")),
    );
    assert.equal(page.match(/<script/g)!.length, page.match(/<\/script>/g)!.length);
    // The data, three pieces of contents, the script: nothing that a record brought.
    assert.equal(page.match(/<script/g)!.length, 5);
    assert.doesNotMatch(page, /<img/);
    const data = /<script type="application\/json" id="content-0">(.*?)<\/script>/s.exec(page)![1]!;
    assert.equal(JSON.parse(data)[0][0].text, `${HOSTILE} 0`);
  }));

Deno.test("htmlCommand: long contents are cut and say where the rest is", () =>
  withReport(1, (page) => {
    assert.match(page, /x{4000}\\n… 6,000 more characters: line \d+ of the record/);
    assert.doesNotMatch(page, /x{4001}/);
  }));

Deno.test("htmlCommand: a place that cannot be written is one line, exit 2", async () => {
  const directory = await Deno.makeTempDir();
  try {
    writeSampleRun({ directory, turns: [], end: null });
    const place = { id: "R1", directory, record: `${directory}/record.jsonl` };
    const deps = { files: systemFiles, clock: systemClock, lock: systemLock };
    const output = await htmlCommand(deps, place, `${directory}/none/report.html`);
    assert.equal(output.exitCode, 2);
    assert.match(output.stderr, /^agentd: Cannot write .*report\.html: .*\n$/);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

const ATTEMPTS_MAX = 8;

/** Runs in the page, with its nonce; leaves what it found in the document's title. */
const DRIVER = `
const found = {};
const body = document.getElementById("body");
const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const rows = () => [...document.querySelectorAll("#body .row")];
const cell = (row, n) => row.children[n].textContent;
const current = () => document.getElementById(body.getAttribute("aria-activedescendant"));
const frame = () => new Promise((resolve) => {
  let isDrawn = false;
  requestAnimationFrame(() => isDrawn = true);
  setTimeout(() => { found.late ||= !isDrawn; resolve(); }, 60);
});
(async () => {
  await frame();
  found.ready = document.documentElement.dataset.ready;
  found.drawn = rows().length;
  found.rowcount = body.getAttribute("aria-rowcount");
  body.focus();
  found.focused = document.activeElement.id;
  press(body, "ArrowDown");
  found.second = cell(current(), 1) + " " + cell(current(), 0);
  press(body, "End");
  await frame();
  found.last = cell(current(), 1);
  found.drawnAtEnd = rows().length;
  press(body, "Enter");
  found.detail = document.getElementById("detail-title").textContent;
  found.content = document.querySelector("#detail-body pre").textContent;
  found.closeFocused = document.activeElement.id;
  press(document, "Escape");
  found.closed = document.getElementById("detail").hidden && document.activeElement.id === "body";
  const filter = document.getElementById("filter");
  filter.value = "web/get failed";
  filter.dispatchEvent(new Event("input"));
  await frame();
  found.filtered = document.getElementById("count").textContent;
  found.onlyMatches = rows().every((row) => cell(row, 2) === "web/get" && cell(row, 4) === "failed");
  filter.value = "";
  const verdict = document.getElementById("verdict");
  verdict.value = "stuck";
  verdict.dispatchEvent(new Event("input"));
  found.stuck = document.getElementById("count").textContent;
  document.getElementById("first").click();
  found.first = document.getElementById("detail-title").textContent;
  await frame();
  found.label = document.getElementById("deltas").getAttribute("aria-label");
  const pixels = (id) => {
    const canvas = document.getElementById(id);
    return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((x) => x > 0);
  };
  found.painted = ["lanes", "tokens", "deltas"].every(pixels);
  const luminance = (rgb) => rgb.map((x) => x / 255).map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const rgb = (name) => {
    const probe = document.createElement("i");
    probe.style.color = "var(" + name + ")";
    document.body.append(probe);
    return getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(rgb(a)), luminance(rgb(b))].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  found.back = rgb("--back").join(",");
  found.contrast = Math.min(...["--text", "--faint", "--good", "--bad", "--warn", "--accent"]
    .flatMap((name) => ["--back", "--raised", "--accent-back"].map((back) => contrast(name, back))));
  found.owned = window.owned === undefined;
  found.outside = performance.getEntriesByType("resource").length;
  document.title = JSON.stringify(found);
})().catch((error) => document.title = String(error));
`;

/** The page's time is not the machine's: on a busy one it outruns the frames, and all begins anew. */
async function drive(
  page: string,
  directory: string,
  dark: boolean,
): Promise<Record<string, unknown>> {
  for (let attempt = 1;; attempt++) {
    const found = await driveOnce(page, directory, dark);
    if (found.late !== true || attempt === ATTEMPTS_MAX) return found;
    await Deno.remove(`${directory}/profile-${dark}`, { recursive: true }).catch(() => {});
  }
}

async function driveOnce(
  page: string,
  directory: string,
  dark: boolean,
): Promise<Record<string, unknown>> {
  const nonce = /nonce-([0-9a-f]+)/.exec(page)![1];
  const file = `${directory}/driven-${dark}.html`;
  Deno.writeTextFileSync(
    file,
    page.replace("</body>", `<script nonce="${nonce}">${DRIVER}</script></body>`),
  );
  const { stdout } = await new Deno.Command(CHROMIUM!, {
    args: [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      `--user-data-dir=${directory}/profile-${dark}`,
      `--blink-settings=preferredColorScheme=${dark ? 0 : 1}`,
      "--window-size=1300,900",
      "--virtual-time-budget=20000",
      "--dump-dom",
      `file://${file}`,
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).output();
  const title = /<title>(.*?)<\/title>/s.exec(new TextDecoder().decode(stdout))?.[1] ?? "no page";
  return JSON.parse(title.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"));
}

Deno.test("the report in Chromium: 2,000 iterations, by keyboard, filtered, in both modes", {
  ignore: CHROMIUM === undefined,
}, () =>
  withReport(2000, async (page, directory) => {
    const found = await drive(page, directory, false);
    assert.equal(found.ready, "1");
    assert.ok(Number(found.drawn) > 5 && Number(found.drawn) < 80, `${found.drawn} rows drawn`);
    assert.ok(Number(found.drawnAtEnd) < 80);
    assert.equal(found.rowcount, "2002");
    assert.equal(found.focused, "body");
    assert.equal(found.second, "2 0");
    assert.equal(found.last, "2000");
    assert.equal(found.detail, "Step 2000");
    assert.equal(found.content, `${HOSTILE} 1999`);
    assert.equal(found.closeFocused, "close");
    assert.equal(found.closed, true);
    assert.equal(found.filtered, "200 of 2001 iterations");
    assert.equal(found.onlyMatches, true);
    assert.equal(found.stuck, "400 of 2001 iterations");
    assert.equal(found.first, "Step 4");
    assert.match(String(found.label), /400 iterations brought none/);
    assert.equal(found.painted, true);
    assert.equal(found.owned, true);
    assert.equal(found.outside, 0);
    assert.equal(found.back, "255,255,255");
    assert.ok(Number(found.contrast) >= 4.5, `contrast ${found.contrast}`);
    const dark = await drive(page, directory, true);
    assert.equal(dark.back, "20,23,28");
    assert.ok(Number(dark.contrast) >= 4.5, `contrast ${dark.contrast}`);
    assert.equal(dark.painted, true);
  }));
