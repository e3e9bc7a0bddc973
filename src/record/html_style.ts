/** The look of the HTML report. Colours are variables, so that the page follows the system's mode. */

/** Contents of the page's style element. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --back: #ffffff; --raised: #f4f5f7; --line: #d5d9e0; --text: #1b1f27; --faint: #59616f;
  --accent: #0b57b7; --accent-back: #dde9fb; --model: #3b6fd4; --tool: #b0620a; --summary: #7a4fbf;
  --cached: #9db8ec; --good: #176a33; --bad: #b3261e; --warn: #8a5a00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171c; --raised: #1d2128; --line: #363c47; --text: #e7eaf0; --faint: #a3abb9;
    --accent: #8ab8ff; --accent-back: #22344f; --model: #7ba4f5; --tool: #e0a052; --summary: #b79af0;
    --cached: #3d588f; --good: #6fce8c; --bad: #ff8a80; --warn: #ecc06a;
  }
}
* { box-sizing: border-box; }
html, body { height: 100%; }
body {
  margin: 0; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif; display: flex; flex-direction: column;
}
header { padding: 14px 20px 10px; border-bottom: 1px solid var(--line); }
h1 { font-size: 18px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 13px; margin: 0 0 4px; }
p { margin: 2px 0; }
.faint { color: var(--faint); }
.status { font-weight: 600; }
.totals { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 6px 0 0; padding: 0; list-style: none; }
.totals b { font-variant-numeric: tabular-nums; }
main { flex: 1; min-height: 0; display: flex; flex-direction: column; padding: 10px 20px 14px; gap: 10px; }
.plots { display: grid; grid-template-columns: 1fr 1fr; gap: 12px; }
figure { margin: 0; min-width: 0; }
canvas { display: block; width: 100%; background: var(--raised); border: 1px solid var(--line); border-radius: 4px; }
.lanes { max-height: 168px; overflow-y: auto; }
.tools { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-bottom: 4px; }
.key { display: inline-flex; align-items: center; gap: 5px; }
.key i { width: 11px; height: 11px; border-radius: 2px; display: inline-block; }
.spring { flex: 1; }
button, input, select {
  font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line);
  border-radius: 4px; padding: 3px 9px;
}
button { cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.work { flex: 1; min-height: 220px; display: grid; grid-template-columns: minmax(0, 1fr); gap: 12px; }
.work.open { grid-template-columns: minmax(0, 3fr) minmax(280px, 2fr); }
.table { display: flex; flex-direction: column; min-height: 0; border: 1px solid var(--line); border-radius: 4px; overflow-x: auto; }
.row {
  display: grid; align-items: center; height: 26px; padding: 0 8px; gap: 10px; min-width: 860px;
  grid-template-columns: 74px 46px minmax(120px, 2fr) minmax(110px, 1.4fr) 84px 44px 40px 74px 74px 68px 68px;
  font-variant-numeric: tabular-nums; white-space: nowrap;
}
.row > * { overflow: hidden; text-overflow: ellipsis; }
.row .n { text-align: right; }
.head { background: var(--raised); border-bottom: 1px solid var(--line); font-weight: 600; font-size: 12px; }
.body { flex: 1; min-height: 120px; overflow-y: auto; overflow-x: hidden; position: relative; min-width: 860px; }
.body .row { position: absolute; left: 0; right: 0; cursor: pointer; border-bottom: 1px solid color-mix(in srgb, var(--line) 45%, transparent); }
.body .row:hover { background: var(--raised); }
.body .row.active { background: var(--accent-back); box-shadow: inset 3px 0 0 var(--accent); }
.v-advanced, .v-answered { color: var(--good); }
.v-failed, .v-unknown { color: var(--bad); }
.v-repeated, .v-refused, .v-invalid { color: var(--warn); }
.first { font-weight: 700; }
aside { border: 1px solid var(--line); border-radius: 4px; overflow: auto; padding: 10px 12px; min-height: 0; }
aside header { padding: 0 0 6px; border: 0; display: flex; align-items: start; gap: 8px; }
aside header h2 { flex: 1; font-size: 14px; }
aside h3 { font-size: 12px; margin: 12px 0 3px; color: var(--faint); }
dl { display: grid; grid-template-columns: auto 1fr; gap: 1px 12px; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
pre {
  margin: 0; padding: 7px 9px; background: var(--raised); border-radius: 4px; overflow-x: auto;
  font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
}
@media (max-width: 900px) {
  body { height: auto; } main { padding: 10px; }
  .plots { grid-template-columns: 1fr; }
  .work.open { grid-template-columns: minmax(0, 1fr); grid-template-rows: 320px auto; }
  .body { height: 60vh; flex: none; }
}
@media (prefers-reduced-motion: no-preference) { .row { transition: background-color 80ms; } }
@media print { .lanes, .body { max-height: none; } }
`;
