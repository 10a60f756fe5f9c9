// The run over time: rows of jobs, nodes or kinds, with zoom, pan, search, folds, and a map of the whole.

const AXIS = 26, MAP_HIGH = 40, TRACK_HIGH = 54, LEAST_SPAN_MS = 10;
const PAINTS = { kind: "kind", state: "outcome", late: "slower or faster than expected" };
const ROWS = { jobs: "jobs", nodes: "nodes", kinds: "kinds" };

// Round steps of time for an axis, in ms.
const STEPS = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5,
  108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 2592e6, 7776e6, 31536e6];

function ticks(t0, t1, most) {
  const step = STEPS.find((one) => (t1 - t0) / one <= most) || STEPS[STEPS.length - 1];
  const found = [];
  for (let at = Math.ceil(t0 / step) * step; at <= t1; at += step) found.push(at);
  return { step, found };
}

// What a tick is called: since the beginning of the run, in units that fit the step.
function tickName(at, step) {
  if (at === 0) return "0";
  if (step < 1000) return `${Number((at / 1000).toFixed(2))} s`;
  const s = Math.round(at / 1000), sign = s < 0 ? "-" : "+", size = Math.abs(s);
  if (size < 60) return `${sign}${size} s`;
  const days = Math.floor(size / DAY), rest = size % DAY;
  const h = Math.floor(rest / HOUR), m = Math.floor((rest % HOUR) / MINUTE);
  if (step >= DAY * 1000) return `${sign}${days} d`;
  if (days) return `${sign}${days} d ${two(h)}:${two(m)}`;
  if (step >= MINUTE * 1000) return h ? `${sign}${h}:${two(m)} h` : `${sign}${m} min`;
  return h ? `${sign}${h}:${two(m)}:${two(size % 60)}` : `${sign}${m}:${two(size % 60)} min`;
}

class Timeline {
  constructor() {
    this.folder = null;
    this.build();
    view.listeners.push((what) => this.hear(what));
  }

  build() {
    const button = (words, hint, act) => el("button", { type: "button", title: hint, "aria-label": hint, onclick: act }, words);
    const pick = (name, options, label) => {
      const made = el("select", { "aria-label": label, onchange: () => { view[name] = made.value; this.layOut(); } },
        Object.entries(options).map(([value, words]) => el("option", { value }, words)));
      this[`${name}Pick`] = made;
      return el("label", {}, label, " ", made);
    };
    this.find = el("input", { type: "search", placeholder: "find tasks", "aria-label": "find tasks on the timeline" });
    this.find.addEventListener("input", () => { view.query = this.find.value; changed("filter"); });
    this.canvas = el("canvas", { class: "rows", role: "img" });
    this.inner = el("div", { class: "inner" }, this.canvas);
    this.scroller = el("div", { class: "scroller", tabindex: "0", role: "group",
      "aria-label": "timeline; W and S zoom, A and D move, 0 shows all, arrows scroll" }, this.inner);
    this.tracks = el("canvas", { class: "tracks", role: "img", "aria-label": "nodes held and used, and the queue of others, over time" });
    this.map = el("canvas", { class: "map", role: "img", "aria-label": "the whole run; drag to move" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.legend = el("ul", { class: "legend" });
    this.foldAll = button("fold", "fold or unfold all jobs", () => this.fold());
    this.root = el("div", { class: "timeline" },
      el("div", { class: "tools" }, pick("rows", ROWS, "rows"), pick("paint", PAINTS, "colour"), this.find, this.foldAll,
        el("span", { class: "group" },
          button("−", "zoom out (S)", () => this.zoom(1.6)), button("+", "zoom in (W)", () => this.zoom(1 / 1.6)),
          button("←", "earlier (A)", () => this.pan(-0.25)), button("→", "later (D)", () => this.pan(0.25)),
          button("all", "the whole run (0)", () => this.whole()))),
      this.legend, this.scroller, this.tracks, this.map, this.tip);
    this.listen();
  }

  listen() {
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.drop(event));
    this.canvas.addEventListener("pointercancel", () => { this.held = null; });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.5, this.at(event.offsetX)));
    const jump = (event) => { if (event.buttons) this.jump(event.offsetX); };
    this.map.addEventListener("pointerdown", (event) => { this.map.setPointerCapture(event.pointerId); jump(event); });
    this.map.addEventListener("pointermove", jump);
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  // Show a run; what the reader looks at stays as it is, and follows the end if it was in sight.
  show() {
    const run = view.run;
    const many = run.raw.jobs.length;
    const hasHosts = run.raw.jobs.some((job) => job.hosts);
    [...this.rowsPick.options].forEach((option) => { option.disabled = option.value === "nodes" && !hasHosts; });
    if (!hasHosts && view.rows === "nodes") view.rows = "jobs";
    if (!this.wasShown && many > 150 && !view.isRecalled) view.rows = "kinds";
    if (!this.wasShown && many > 40) view.folded = new Set(run.raw.jobs.map((job) => `job ${job.job}`));
    this.wasShown = true;
    this.overview = null;
    this.curves = nodeCurves(run);
    this.layOut();
  }

  hear(what) {
    if (what === "filter" && this.find.value !== view.query) this.find.value = view.query;
    if (what === "task") this.reveal();
    this.draw();
  }

  layOut() {
    this.rowsPick.value = view.rows;
    this.paintPick.value = view.paint;
    this.made = madeRows(view.run, view.rows, view.folded);
    this.foldAll.hidden = view.rows !== "jobs" || !this.made.rows.some((row) => row.canFold);
    this.scroller.style.height = `${Math.min(460, this.made.height) + AXIS}px`;
    this.inner.style.height = `${this.made.height + AXIS}px`;
    this.tellLegend();
    this.draw();
  }

  fold() {
    const rows = this.made.rows.filter((row) => row.canFold);
    const isAll = rows.every((row) => row.isFolded);
    for (const row of rows) if (isAll) view.folded.delete(row.key); else view.folded.add(row.key);
    this.layOut();
  }

  get gutter() { return this.width < 600 ? 62 : 96; }
  get width() { return Math.max(240, this.scroller.clientWidth); }
  x(at) { return this.gutter + (at - view.t0) / (view.t1 - view.t0) * (this.width - this.gutter); }
  at(x) { return view.t0 + (x - this.gutter) / (this.width - this.gutter) * (view.t1 - view.t0); }

  look(t0, t1) {
    const run = view.run, long = Math.min(Math.max(LEAST_SPAN_MS, t1 - t0), run.until - run.from);
    view.t0 = Math.min(Math.max(run.from, t0), run.until - long);
    view.t1 = view.t0 + long;
    this.draw();
  }

  whole() { this.look(view.run.from, view.run.until); }
  pan(part) { const by = part * (view.t1 - view.t0); this.look(view.t0 + by, view.t1 + by); }

  zoom(factor, around) {
    const at = around === undefined ? (view.t0 + view.t1) / 2 : around;
    this.look(at - (at - view.t0) * factor, at + (view.t1 - at) * factor);
  }

  jump(x) {
    const run = view.run, half = (view.t1 - view.t0) / 2;
    const at = run.from + (x - this.gutter) / (this.width - this.gutter) * (run.until - run.from);
    this.look(at - half, at + half);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.002), this.at(event.offsetX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.width);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = { w: () => this.zoom(1 / 1.6), s: () => this.zoom(1.6), a: () => this.pan(-0.25), d: () => this.pan(0.25),
      0: () => this.whole(), "+": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
      arrowleft: () => this.pan(-0.1), arrowright: () => this.pan(0.1) };
    const act = acts[event.key.toLowerCase()];
    if (act) { event.preventDefault(); act(); }
  }

  // Dragging moves; a click that does not move picks.
  grab(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { x: event.offsetX, y: event.clientY, t0: view.t0, t1: view.t1, top: this.scroller.scrollTop, moved: false };
  }

  move(event) {
    if (!this.held) { this.hint(event); return; }
    const dx = event.offsetX - this.held.x, dy = event.clientY - this.held.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) this.held.moved = true;
    if (!this.held.moved) return;
    const by = -dx / (this.width - this.gutter) * (this.held.t1 - this.held.t0);
    if (event.pointerType !== "touch") this.scroller.scrollTop = this.held.top - dy;
    this.look(this.held.t0 + by, this.held.t1 + by);
  }

  drop(event) {
    const held = this.held;
    this.held = null;
    if (!held || held.moved) return;
    const { row, bar } = this.under(event);
    if (bar !== undefined) openTask(view.run.attempts.task[bar]);
    else if (row && row.canFold && event.offsetX < this.gutter) {
      if (row.isFolded) view.folded.delete(row.key); else view.folded.add(row.key);
      this.layOut();
    } else if (row && row.kind !== undefined && event.offsetX < this.gutter) {
      view.kind = view.kind === row.label ? "" : row.label;
      changed("filter");
    }
  }

  // The row and the bar under the pointer.
  under(event) {
    const y = event.offsetY - AXIS + this.scroller.scrollTop;
    const row = this.made.rows.find((one) => y >= one.top && y < one.top + one.height);
    if (!row || event.offsetY < AXIS || event.offsetX < this.gutter) return { row };
    const at = this.at(event.offsetX), near = 3 * (view.t1 - view.t0) / this.width;
    if (!row.latest) return { row, at };
    for (let i = firstUntil(row, at - near); i < row.bars.length; i += 1) {
      const a = row.bars[i];
      if (view.run.start[a] > at + near) break;
      const place = this.place(row, a);
      if (view.run.end[a] >= at - near && (row.isFolded || (y >= row.top + place.y && y <= row.top + place.y + place.h))) {
        return { row, bar: a, at };
      }
    }
    return { row, at };
  }

  place(row, a) {
    if (row.isFolded) return { y: 2, h: row.height - 4 };
    const nodes = row.nodes > 1 ? view.run.nodesOf(a) : [0];
    const slots = nodes.length > 1 ? 1 : row.slots[a] || 1;
    const high = row.each * nodes.length / slots;
    return { y: Math.min(...nodes) * row.each + (nodes.length > 1 ? 0 : row.slot[a] || 0) * high, h: high };
  }

  hint(event) {
    const { row, bar, at } = this.under(event);
    const lines = bar !== undefined ? this.barWords(bar) : row ? this.rowWords(row, at) : [];
    this.tip.hidden = !lines.length;
    this.canvas.style.cursor = bar !== undefined ? "pointer" : "grab";
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((line, i) => el(i ? "div" : "strong", {}, line)));
    const box = this.root.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y + 18}px`;
  }

  barWords(a) {
    const run = view.run, task = run.attempts.task[a];
    const lines = [run.tasks.id[task],
      `${run.kind(task)}: ${run.outcome(a)} after ${span(run.attempts.ran_ms[a])}, expected ${span(run.tasks.expected_ms[task])}`,
      `job ${run.attempts.job[a]} on ${run.host(a)}, attempt ${run.attempts.number[a]}`];
    if (run.attempts.why[a]) lines.push(run.attempts.why[a]);
    return lines;
  }

  rowWords(row, at) {
    const job = row.jobs.find((one) => at >= one.submitted_ms && (one.ended_ms === NONE || at <= one.ended_ms)) || row.jobs[0];
    if (row.kind !== undefined) return [row.label, `at most ${row.most} at a time`];
    if (!job) return [row.label];
    const lines = [`job ${job.job}${job.id ? ` (id ${job.id})` : ""}: ${job.state}`,
      `${counted(job.tasks)} ${job.tasks === 1 ? "task" : "tasks"} on ${job.nodes} ${job.nodes === 1 ? "node" : "nodes"}${job.site ? ` at ${job.site}` : ""}`];
    if (job.submitted_ms !== NONE) {
      const until = job.started_ms !== NONE ? job.started_ms : job.ended_ms !== NONE ? job.ended_ms : view.run.raw.until_ms;
      lines.push(`waited ${span(Math.max(0, until - job.submitted_ms))}`);
    }
    for (const [source, when] of job.predicted || []) {
      const miss = job.started_ms === NONE ? "" : `, it started ${span(Math.abs(job.started_ms - when))} ${job.started_ms > when ? "later" : "earlier"}`;
      lines.push(`${source}: start at ${tickName(when, 1000)}${miss}`);
    }
    if (job.ran_ms !== NONE) lines.push(`ran ${span(job.ran_ms)}, planned ${span(job.run_ms)}`);
    if (job.note) lines.push(job.note);
    return lines;
  }

  // Bring the chosen task into sight.
  reveal() {
    const a = view.task === NONE ? NONE : view.run.last[view.task];
    if (a === NONE || !this.made) return;
    const row = this.made.rows.find((one) => one.bars.includes(a));
    if (row && (row.top < this.scroller.scrollTop || row.top + row.height > this.scroller.scrollTop + this.scroller.clientHeight - AXIS)) {
      this.scroller.scrollTop = Math.max(0, row.top - 60);
    }
    const start = view.run.start[a], end = view.run.end[a], long = view.t1 - view.t0;
    if (end < view.t0 || start > view.t1) this.look((start + end - long) / 2, (start + end + long) / 2);
  }

  barColour(a, c) {
    const run = view.run, task = run.attempts.task[a];
    if (view.paint === "state") {
      const of = { finished: c.good, running: c.series[0], failed: c.bad, lost: c.series[1], superseded: c.series[7], kept: c.series[5] };
      return of[run.outcome(a)] || c.soft;
    }
    if (view.paint === "late") {
      const part = run.tasks.expected_ms[task] ? run.attempts.ran_ms[a] / run.tasks.expected_ms[task] : 1;
      return part > 2 ? c.bad : part > 1.25 ? c.series[1] : part < 0.8 ? c.series[0] : c.series[7];
    }
    return c.series[run.colour(task)];
  }

  tellLegend() {
    const c = colours();
    let items = [];
    if (view.rows === "kinds" || view.paint === "kind") {
      const seen = new Map();
      view.run.raw.kinds.forEach((name, i) => {
        const colour = view.run.raw.colours[i];
        seen.set(colour, seen.has(colour) && colour === 7 ? "others" : name || "tasks");
      });
      items = [...seen].map(([colour, name]) => [c.series[colour], name]);
    } else if (view.paint === "state") {
      items = [[c.good, "finished"], [c.series[0], "running"], [c.bad, "failed"], [c.series[1], "lost"], [c.series[7], "superseded"]];
    } else {
      items = [[c.series[0], "faster than 0.8 of expected"], [c.series[7], "as expected"], [c.series[1], "over 1.25 times"], [c.bad, "over twice"]];
    }
    const key = (name, colour, words) => {
      const made = el("i", { class: `swatch ${name}` });
      if (colour) made.style.background = colour;
      return el("li", {}, made, words);
    };
    const marks = view.rows === "kinds" ? [] : [
      key("waits", "", "waits in the queue"), key("holds", "", "nodes held, idle"), key("vain", "", "failed or lost"),
      ...(view.run.raw.jobs.some((job) => job.predicted) ? [key("said", "", "predicted start: earliest to latest; line: the one used")] : [])];
    this.legend.replaceChildren(...items.map(([colour, name]) => key("", colour, name)), ...marks);
  }

  draw() {
    if (!this.made || this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.drawNow(); });
  }

  drawNow() {
    if (!this.root.isConnected) return;
    const high = this.scroller.clientHeight;
    this.drawRows(new CanvasPen(this.canvas, this.width, high), high, this.scroller.scrollTop);
    this.drawTracks();
    this.drawMap();
    const shown = `${span(view.t1 - view.t0)} of ${span(view.run.until - view.run.from)}, ${this.made.rows.length} rows`;
    this.canvas.setAttribute("aria-label", `timeline: ${shown}`);
  }

  drawRows(pen, high, scrolled) {
    const c = colours(), { step, found } = ticks(view.t0, view.t1, Math.max(3, (this.width - this.gutter) / 110));
    const left = this.gutter, wide = this.width - left;
    for (const at of found) pen.line(c.rule, [[this.x(at), AXIS - 4], [this.x(at), high]]);
    const kept = matching();
    pen.within(0, AXIS, this.width, high - AXIS, () => {
      for (const row of this.made.rows) {
        const y = AXIS + row.top - scrolled;
        if (y + row.height < AXIS || y > high) continue;
        pen.within(left, y - 1, wide, row.height + 2, () => this.drawRow(pen, c, row, y, kept));
        this.drawLabel(pen, c, row, y);
      }
    });
    pen.box(c.ground, 0, 0, this.width, AXIS - 1);
    pen.line(c.soft, [[left, AXIS - 0.5], [this.width, AXIS - 0.5]]);
    for (const at of found) {
      const x = this.x(at);
      if (x < this.width - 24) pen.text(c.soft, tickName(at, step), Math.max(x, left + 4), AXIS / 2, x < left + 24 ? "left" : "center");
    }
    const zero = view.run.raw.begun_at * 1000;
    const first = view.run.raw.is_simulated ? "since start" : clock(zero, false);
    pen.text(c.soft, first, 4, AXIS / 2);
  }

  drawLabel(pen, c, row, y) {
    const fold = row.canFold ? (row.isFolded ? "▸ " : "▾ ") : "";
    const most = this.gutter < 90 ? 8 : 13;
    const words = fold + (row.label.length > most ? `${row.label.slice(0, most - 1)}…` : row.label);
    const middle = y + Math.min(row.height / 2, 14);
    pen.text(row.isBad || row.hasFailed ? c.bad : c.soft, words, 4, middle, "left", row.isBad || row.hasFailed ? "600" : "");
  }

  drawRow(pen, c, row, y, kept) {
    if (row.kind !== undefined) { this.drawKind(pen, c, row, y); return; }
    for (const job of row.jobs) this.drawJob(pen, c, row, job, y);
    const run = view.run, lastX = {};
    for (let i = firstUntil(row, view.t0); i < row.bars.length; i += 1) {
      const a = row.bars[i];
      if (run.start[a] > view.t1) break;
      if (run.end[a] < view.t0) continue;
      const place = this.place(row, a), x = this.x(run.start[a]), w = Math.max(1, this.x(run.end[a]) - x);
      const isOff = kept && !kept[run.attempts.task[a]];
      const lane = `${place.y} ${isOff}`;
      if (x + w <= lastX[lane] && !run.isInVain(a)) continue; // no wider than what is drawn there already
      lastX[lane] = x + w;
      const seam = place.h > 5 ? 1 : 0, gap = w > 4 ? 0.5 : 0;
      this.drawBar(pen, c, a, x, y + place.y + seam / 2, w - gap, place.h - seam, isOff);
    }
  }

  drawBar(pen, c, a, x, y, w, h, isOff) {
    const run = view.run, isVain = run.isInVain(a), colour = this.barColour(a, c);
    pen.box(colour, x, y, w, h, isOff ? 0.12 : isVain ? 0.35 : 1);
    if (isOff) return;
    if (isVain) {
      pen.box(c.bad, x, y, Math.max(1.5, Math.min(3, w)), h);
      if (w > 5) pen.line(c.bad, [[x, y + h], [x + w, y]], 1.4);
    }
    if (run.attempts.task[a] === view.task) {
      pen.line(c.ink, [[x - 1, y - 1], [x + w + 1, y - 1], [x + w + 1, y + h + 1], [x - 1, y + h + 1], [x - 1, y - 1]], 2);
    } else if (w > 46 && h > 11 && !isVain) {
      const name = run.tasks.id[run.attempts.task[a]];
      const most = Math.floor((w - 8) / 7);
      pen.text(c.ground, name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name, x + 4, y + h / 2);
    }
  }

  drawJob(pen, c, row, job, y) {
    const run = view.run, h = row.height;
    if (job.submitted_ms === NONE) return;
    const until = job.ended_ms === NONE ? run.raw.until_ms : job.ended_ms;
    const started = job.started_ms === NONE ? until : job.started_ms;
    if (view.rows === "jobs") {
      const x = this.x(job.submitted_ms);
      pen.box(c.wait, x, y + h / 2 - Math.min(4, h / 2), Math.max(1, this.x(started) - x), Math.min(8, h));
      this.drawPrediction(pen, c, job, y, h);
    }
    if (job.started_ms === NONE) return;
    const x = this.x(job.started_ms), w = Math.max(1, this.x(job.started_ms + Math.max(0, job.ran_ms)) - x);
    pen.box(c.idle, x, y, w, h);
    pen.line(c.soft, [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]], 0.7);
  }

  drawPrediction(pen, c, job, y, h) {
    if (!job.predicted) return;
    const times = job.predicted.map((one) => one[1]);
    const low = this.x(Math.min(...times)), high = this.x(Math.max(...times));
    pen.box(c.series[4], low - 1, y, Math.max(2, high - low), h, 0.28);
    for (const [, when, used] of job.predicted) {
      if (used) pen.line(c.series[4], [[this.x(when), y - 1], [this.x(when), y + h + 1]], 2);
    }
  }

  drawKind(pen, c, row, y) {
    const base = y + row.height - 2, scale = (row.height - 8) / Math.max(1, row.most);
    this.curve(pen, c.series[view.run.raw.colours[row.kind]], row.steps, base, scale, view.kind && view.kind !== row.label ? 0.2 : 0.85);
    pen.line(c.rule, [[this.gutter, base], [this.width, base]]);
    pen.text(c.soft, `${row.most} at most`, this.width - 6, y + 8, "right");
  }

  // The area under a step function, in no more points than pixels.
  curve(pen, colour, steps, base, scale, alpha) {
    const points = [];
    let value = 0, x = this.gutter, high = 0;
    const right = this.width;
    for (const [at, next] of steps) {
      const now = Math.min(right, Math.max(this.gutter, this.x(at)));
      if (now > x + 0.5) {
        points.push([x, base - high * scale], [now, base - high * scale]);
        x = now;
        high = next;
      } else high = Math.max(high, next, at < view.t0 ? 0 : value);
      if (at < view.t0) high = next;
      value = next;
      if (now >= right) break;
    }
    if (x < right) points.push([x, base - value * scale], [right, base - value * scale]);
    if (points.length) pen.area(colour, [[points[0][0], base], ...points, [points[points.length - 1][0], base]], alpha);
  }

  drawTracks() {
    const around = view.run.raw.background, many = around ? 3 : 1;
    const pen = new CanvasPen(this.tracks, this.width, many * TRACK_HIGH);
    this.drawCurves(pen, colours(), 0);
  }

  drawCurves(pen, c, top) {
    const around = view.run.raw.background;
    const peak = (steps) => steps.reduce((most, one) => Math.max(most, one[1]), 0);
    const pairs = (curve) => curve[0].map((at, i) => [at, curve[1][i]]);
    const track = (i, words, most, curves) => {
      const base = top + (i + 1) * TRACK_HIGH - 6, scale = (TRACK_HIGH - 22) / Math.max(1e-9, most);
      const within = (steps) => steps.map(([at, value]) => [at, Math.min(most, value)]);
      for (const [colour, steps, alpha] of curves) this.curve(pen, colour, within(steps), base, scale, alpha);
      pen.line(c.rule, [[this.gutter, base], [this.width, base]]);
      pen.text(c.soft, words, this.gutter + 4, top + i * TRACK_HIGH + 9);
    };
    const held = peak(this.curves.held);
    track(0, `nodes of this run: held (grey, at most ${counted(held)}) and used (green)`, held,
      [[c.soft, this.curves.held, 0.35], [c.good, this.curves.used, 0.8]]);
    if (!around) return;
    track(1, `busy nodes of ${counted(around.nodes)}: of others (blue), with this run's (orange)`, around.nodes,
      [[c.series[1], pairs(around.busy), 0.8], [c.ground, pairs(around.others), 1], [c.series[0], pairs(around.others), 0.6]]);
    const queue = pairs(around.waiting), most = peak(queue);
    const words = most ? `other jobs waiting, at most ${counted(most)}` : "no other job waited";
    track(2, words, Math.max(1, most), [[c.series[7], queue, 0.7]]);
  }

  drawMap() {
    const pen = new CanvasPen(this.map, this.width, MAP_HIGH), c = colours(), run = view.run;
    const kept = [view.t0, view.t1];
    [view.t0, view.t1] = [run.from, run.until];
    const most = this.curves.used.reduce((high, one) => Math.max(high, one[1]), 0);
    this.curve(pen, c.series[7], this.curves.used, MAP_HIGH - 3, (MAP_HIGH - 8) / Math.max(1e-9, most), 0.7);
    const [a, b] = [this.x(kept[0]), this.x(kept[1])];
    [view.t0, view.t1] = kept;
    pen.box(c.ground, this.gutter, 0, a - this.gutter, MAP_HIGH, 0.65);
    pen.box(c.ground, b, 0, this.width - b, MAP_HIGH, 0.65);
    pen.line(c.series[0], [[a, 1], [Math.max(b, a + 2), 1], [Math.max(b, a + 2), MAP_HIGH - 1], [a, MAP_HIGH - 1], [a, 1]], 1.5);
    pen.text(c.soft, "whole run", 4, MAP_HIGH / 2);
  }

  // The picture as it is, with all its rows, as SVG.
  svg() {
    const high = Math.min(this.made.height, 20000) + AXIS, tracks = (view.run.raw.background ? 3 : 1) * TRACK_HIGH;
    const pen = new SvgPen(this.width, high + tracks, colours().ground);
    this.drawRows(pen, high, 0);
    this.drawCurves(pen, colours(), high);
    return new XMLSerializer().serializeToString(pen.root);
  }
}
