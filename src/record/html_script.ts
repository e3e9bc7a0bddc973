/**
 * The behaviour of the HTML report. It makes elements only by DOM calls and text only by
 * `textContent`: nothing of a record is ever parsed as markup. Rows are drawn as they come into
 * view, so that their number does not matter.
 */

/** Contents of the page's script element. */
export const SCRIPT = String.raw`
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const { rows, agents, spans, chunk } = data;
  const A = 0, STEP = 1, TS = 2, ACTIONS = 3, OBSERVED = 4, VERDICT = 5, DELTA = 6, IDLE = 7,
    IN = 8, OUT = 9, CACHED = 10, MODEL = 11, TOOLS = 12, COST = 13, FIRST = 14, HASH = 15, NOTE = 16;
  const ROW = 26;
  let shown = rows.map((_, i) => i);
  let active = -1;
  let view = { from: data.from, to: Math.max(data.to, data.from + 1) };

  const count = (n) => Math.round(n).toLocaleString("en");
  const elapsed = (ms) => ms < 1000 ? Math.round(ms) + "ms" : ms < 100000
    ? (ms / 1000).toFixed(1) + "s" : Math.floor(ms / 60000) + "m" + String(Math.round(ms / 1000) % 60).padStart(2, "0") + "s";
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const name = (row) => (row[A] === 0 ? "" : "agent " + agents[row[A]].path + " ") + "step " + row[STEP];

  // The table.
  const body = $("body");
  const space = $("space");
  const drawn = new Map();
  const cells = (row) => [
    ["", "\u00a0".repeat(2 * (agents[row[A]].path.split(".").length - 1)) + agents[row[A]].path],
    ["n", row[STEP]], ["", row[ACTIONS]], ["", row[OBSERVED]],
    ["v-" + row[VERDICT], row[VERDICT]], ["n", row[DELTA]], ["n", row[IDLE]],
    ["n", count(row[IN] + row[OUT])], ["n", count(row[CACHED])],
    ["n", elapsed(row[MODEL])], ["n", elapsed(row[TOOLS])],
  ];
  const makeRow = (place) => {
    const index = shown[place];
    const row = rows[index];
    const element = make("div", "row");
    element.id = "row-" + index;
    element.setAttribute("role", "row");
    element.setAttribute("aria-rowindex", place + 2);
    element.style.transform = "translateY(" + place * ROW + "px)";
    for (const [kind, text] of cells(row)) {
      const cell = make("span", kind, text);
      cell.setAttribute("role", "gridcell");
      element.append(cell);
    }
    if (row[FIRST]) {
      const cell = element.children[4];
      cell.classList.add("first");
      cell.textContent = "\u25b8 " + row[VERDICT];
      cell.title = "the first iteration without new evidence";
      cell.setAttribute("aria-label", row[VERDICT] + ", the first iteration without new evidence");
    }
    element.addEventListener("click", () => { activate(place); open(); });
    return element;
  };
  const draw = () => {
    const from = Math.max(0, Math.floor(body.scrollTop / ROW) - 6);
    const to = Math.min(shown.length, Math.ceil((body.scrollTop + body.clientHeight) / ROW) + 6);
    for (const [place, element] of drawn) {
      if (place < from || place >= to) { element.remove(); drawn.delete(place); }
    }
    for (let place = from; place < to; place++) {
      let element = drawn.get(place);
      if (!element) {
        element = makeRow(place);
        drawn.set(place, element);
        space.append(element);
      }
      element.classList.toggle("active", place === active);
      element.setAttribute("aria-selected", place === active);
    }
    const now = drawn.get(active);
    if (now) body.setAttribute("aria-activedescendant", now.id);
    else body.removeAttribute("aria-activedescendant");
  };
  const activate = (place) => {
    if (shown.length === 0) return;
    active = Math.min(Math.max(0, place), shown.length - 1);
    const top = active * ROW;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + ROW > body.scrollTop + body.clientHeight) body.scrollTop = top + ROW - body.clientHeight;
    draw();
    redrawSoon();
    if (!$("detail").hidden) open();
  };
  const page = () => Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
  body.addEventListener("keydown", (event) => {
    const moves = {
      ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page(), PageUp: active - page(),
      Home: 0, End: shown.length - 1,
    };
    if (event.key in moves && !event.ctrlKey && !event.metaKey && !event.altKey) activate(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") { if (active >= 0) { open(); $("close").focus(); } }
    else return;
    event.preventDefault();
  });
  body.addEventListener("focus", () => { if (active < 0) activate(0); });
  body.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });

  // One iteration in full. Contents are parsed in pieces, when they are first wanted.
  const parsed = new Map();
  const contentOf = (index) => {
    const part = Math.floor(index / chunk);
    if (!parsed.has(part)) parsed.set(part, JSON.parse($("content-" + part).textContent));
    return parsed.get(part)[index % chunk];
  };
  const open = () => {
    const index = shown[active];
    const row = rows[index];
    const list = make("dl");
    const fact = (term, value) => list.append(make("dt", "", term), make("dd", "", value));
    fact("verdict", row[VERDICT] + (row[FIRST] ? " (the first without new evidence)" : ""));
    fact("began", new Date(row[TS]).toISOString());
    fact("new evidence", row[DELTA] + ", idle " + row[IDLE]);
    fact("tokens", count(row[IN]) + " in (" + count(row[CACHED]) + " cached), " + count(row[OUT]) + " out");
    if (row[COST] !== null) fact("cost", "$" + row[COST]);
    fact("time", "model " + elapsed(row[MODEL]) + ", tools " + elapsed(row[TOOLS]));
    fact("context hash", row[HASH]);
    const parts = [list];
    for (const { title, text } of contentOf(index)) {
      parts.push(make("h3", "", title), make("pre", "", text));
    }
    if (row[NOTE]) parts.push(make("h3", "", "Note of the harness"), make("pre", "", row[NOTE]));
    $("detail-title").textContent = name(row)[0].toUpperCase() + name(row).slice(1);
    $("detail-body").replaceChildren(...parts);
    $("detail").hidden = false;
    $("work").classList.add("open");
    $("detail").scrollTop = 0;
    draw();
  };
  const close = () => {
    $("detail").hidden = true;
    $("work").classList.remove("open");
    body.focus();
    draw();
  };
  $("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("detail").hidden) close();
    const typing = /^(INPUT|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) { $("filter").focus(); event.preventDefault(); }
  });

  // Pictures.
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const prepare = (canvas, height) => {
    const width = canvas.parentElement.clientWidth;
    const ratio = devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.max(1, width * ratio);
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    return { pen, width, height };
  };
  const bars = (id, layers) => {
    const { pen, width, height } = prepare($(id), 74);
    const top = 14;
    let most = 0;
    for (const index of shown) {
      let sum = 0;
      for (const [value] of layers) sum += value(rows[index]);
      most = Math.max(most, sum);
    }
    const step = width / Math.max(1, shown.length);
    // Where there are more iterations than pixels, a column shows the largest of those it stands for.
    const each = Math.max(1, Math.ceil(1 / step));
    for (let place = 0; place < shown.length; place += each) {
      let base = height;
      for (const [value, paint] of layers) {
        let largest = 0;
        for (const index of shown.slice(place, place + each)) largest = Math.max(largest, value(rows[index]));
        const size = most === 0 ? 0 : largest / most * (height - top);
        pen.fillStyle = paint;
        pen.fillRect(place * step, base - size, step > 3 ? step - 1 : Math.max(step * each, 1), size);
        base -= size;
      }
    }
    if (active >= 0) {
      pen.fillStyle = colour("--accent");
      pen.fillRect(active * step, 0, Math.max(step, 2), 3);
    }
    pen.fillStyle = colour("--faint");
    pen.font = "11px system-ui, sans-serif";
    pen.fillText("max " + count(most), 4, 11);
    return most;
  };
  const plot = () => {
    const tokens = bars("tokens", [
      [(row) => row[CACHED], colour("--cached")],
      [(row) => Math.max(0, row[IN] - row[CACHED]), colour("--model")],
      [(row) => row[OUT], colour("--tool")],
    ]);
    const deltas = bars("deltas", [[(row) => row[DELTA], colour("--good")]]);
    const none = shown.filter((index) => rows[index][DELTA] === 0).length;
    $("tokens").setAttribute("aria-label", "Tokens of each of " + shown.length + " iterations, at most " + count(tokens));
    $("deltas").setAttribute("aria-label", "New evidence of each of " + shown.length + " iterations, at most " + count(deltas) + "; " + none + " iterations brought none");
  };
  for (const id of ["tokens", "deltas"]) {
    $(id).addEventListener("click", (event) => {
      const box = $(id).getBoundingClientRect();
      activate(Math.floor((event.clientX - box.left) / box.width * shown.length));
      open();
    });
  }
  const LANE = 20;
  const paints = ["--model", "--tool", "--summary"];
  const lanes = () => {
    const { pen, width, height } = prepare($("lanes"), Math.max(1, agents.length) * LANE + 16);
    const scale = width / (view.to - view.from);
    const x = (ms) => (ms - view.from) * scale;
    if (active >= 0) {
      const row = rows[shown[active]];
      pen.fillStyle = colour("--accent-back");
      pen.fillRect(x(row[TS]), 0, Math.max(2, (row[MODEL] + row[TOOLS]) * scale), height - 14);
    }
    const paint = paints.map(colour);
    for (const [agent, kind, start, end] of spans) {
      const left = x(start);
      const right = x(end);
      if (right < 0 || left > width) continue;
      pen.fillStyle = paint[kind];
      pen.fillRect(left, agent * LANE + (kind === 1 ? 10 : 3), Math.max(right - left, 1), kind === 1 ? 6 : 6);
    }
    pen.fillStyle = colour("--faint");
    pen.font = "11px system-ui, sans-serif";
    if (agents.length > 1) agents.forEach((agent, i) => pen.fillText(agent.path, 3, i * LANE + 13));
    pen.fillText("+" + elapsed(view.from - data.from), 3, height - 4);
    const last = "+" + elapsed(view.to - data.from);
    pen.fillText(last, width - pen.measureText(last).width - 3, height - 4);
  };
  $("lanes").addEventListener("click", (event) => {
    const box = $("lanes").getBoundingClientRect();
    const at = view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
    const agent = Math.floor((event.clientY - box.top) / LANE);
    let best = -1;
    shown.forEach((index, place) => {
      if (rows[index][A] === agent && rows[index][TS] <= at) best = place;
    });
    if (best >= 0) { activate(best); open(); }
  });
  const zoom = (factor, shift) => {
    const whole = { from: data.from, to: Math.max(data.to, data.from + 1) };
    if (factor === 0) view = whole;
    else {
      const size = Math.min((view.to - view.from) * factor, whole.to - whole.from);
      const middle = active >= 0 && factor < 1 ? rows[shown[active]][TS] : (view.from + view.to) / 2;
      const from = Math.min(Math.max(whole.from, middle - size / 2 + shift * size), whole.to - size);
      view = { from, to: from + Math.max(1, size) };
    }
    lanes();
  };
  $("zoom-in").addEventListener("click", () => zoom(0.5, 0));
  $("zoom-out").addEventListener("click", () => zoom(2, 0));
  $("zoom-all").addEventListener("click", () => zoom(0, 0));
  $("earlier").addEventListener("click", () => zoom(1, -0.5));
  $("later").addEventListener("click", () => zoom(1, 0.5));

  let waiting = false;
  const redrawSoon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); plot(); lanes(); });
  };

  // Filter.
  const texts = rows.map((row) => [row[ACTIONS], row[OBSERVED], row[VERDICT], "step " + row[STEP], row[NOTE] || ""].join(" ").toLowerCase());
  const filter = () => {
    const wanted = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = $("verdict").value;
    const agent = $("agent").value;
    const before = active >= 0 ? shown[active] : -1;
    shown = [];
    rows.forEach((row, index) => {
      if (verdict === "stuck" ? row[DELTA] !== 0 : verdict && row[VERDICT] !== verdict) return;
      if (agent && row[A] !== Number(agent)) return;
      if (wanted.every((word) => texts[index].includes(word))) shown.push(index);
    });
    active = shown.indexOf(before);
    for (const element of drawn.values()) element.remove();
    drawn.clear();
    space.style.height = shown.length * ROW + "px";
    body.setAttribute("aria-rowcount", shown.length + 1);
    $("count").textContent = shown.length + " of " + rows.length + " iterations";
    body.scrollTop = active >= 0 ? Math.max(0, active * ROW - 60) : 0;
    draw();
    redrawSoon();
  };
  const option = (value, text) => { const o = make("option", "", text); o.value = value; return o; };
  for (const verdict of [...new Set(rows.map((row) => row[VERDICT]))].sort()) $("verdict").append(option(verdict, verdict));
  agents.forEach((agent, i) => $("agent").append(option(i, agent.path)));
  $("agent").hidden = agents.length < 2;
  for (const id of ["filter", "verdict", "agent"]) $(id).addEventListener("input", filter);
  $("first").addEventListener("click", () => {
    const place = shown.findIndex((index) => rows[index][FIRST]);
    if (place >= 0) { activate(place); open(); }
  });
  $("first").disabled = !rows.some((row) => row[FIRST]);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawSoon);
  new ResizeObserver(redrawSoon).observe(body);
  filter();
  document.documentElement.dataset.ready = "1";
})();
`;
