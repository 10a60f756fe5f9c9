// All tasks in a table of which only the rows in sight exist, so that any number of them is as fast as twenty.

const ROW = 28, SHOWN = 18;

class Tasks {
  constructor() {
    this.columns = this.madeColumns();
    this.build();
    view.listeners.push((what) => this.hear(what));
  }

  // Each column: a name, what is shown, and by what it is sorted.
  madeColumns() {
    const at = (task) => view.run.last[task];
    const number = (read, write) => ({ of: read, show: (task) => { const v = read(task); return v === NONE || v === null ? "–" : write(v); } });
    const timed = (read, before) => {
      let run = null, write = span;
      return number(read, (v) => {
        if (run !== view.run) {
          run = view.run;
          write = spansUpTo(run.tasks.id.reduce((most, _, task) => Math.max(most, read(task)), 0));
        }
        return before + write(v);
      });
    };
    const tried = (read) => (task) => (at(task) === NONE ? NONE : read(at(task)));
    const columns = [
      { name: "task", wide: 170, of: (task) => view.run.tasks.id[task], show: (task) => link(task) },
      { name: "kind", wide: 110, of: (task) => view.run.kind(task) },
      { name: "state", wide: 92, of: (task) => view.run.state(task), show: (task) => badge(view.run.state(task)) },
      { name: "tries", wide: 52, ...number((task) => view.run.times[task], String) },
      { name: "job", wide: 60, ...number((task) => (at(task) === NONE ? view.run.tasks.job[task] : view.run.attempts.job[at(task)]), String) },
      { name: "node", wide: 110, of: (task) => (at(task) === NONE ? "" : view.run.host(at(task))) },
      { name: "started", wide: 84, ...timed(tried((a) => view.run.start[a]), "+") },
      { name: "ran", wide: 76, ...timed(tried((a) => view.run.attempts.ran_ms[a]), "") },
      { name: "expected", wide: 88, ...timed((task) => view.run.tasks.expected_ms[task], "") },
      { name: "CPU", wide: 58, real: true, ...number((task) => view.run.cpuShare(task), (v) => `${Math.round(100 * v)} %`) },
      { name: "memory", wide: 84, real: true, ...number(tried((a) => view.run.attempts.peak_bytes[a] || NONE), bytes) },
      { name: "requested", wide: 94, ...number((task) => view.run.tasks.memory_bytes[task] || NONE, bytes) },
      { name: "exit", wide: 48, real: true, ...number(tried((a) => view.run.attempts.exit[a]), String) },
      { name: "log", wide: 130, real: true, of: (task) => view.run.log(at(task)), show: (task) => this.logCell(task) },
      { name: "command", wide: 420, real: true, of: (task) => view.run.command(task), show: (task) => el("code", {}, view.run.command(task)) },
    ];
    return columns;
  }

  logCell(task) {
    const path = view.run.log(view.run.last[task]);
    if (!path) return "–";
    const name = path.slice(path.lastIndexOf("/out/") + 1);
    return served.isServed ? link(task) : el("a", { href: `file://${encodeURI(path)}`, title: path }, name);
  }

  build() {
    this.find = el("input", { type: "search", id: "find-task", placeholder: "name, kind, host, command …", "aria-label": "search all tasks" });
    this.find.addEventListener("input", () => { view.query = this.find.value; changed("filter"); });
    this.find.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.order.length) openTask(this.order[0]);
    });
    this.statePick = el("select", { "aria-label": "state" });
    this.kindPick = el("select", { "aria-label": "kind" });
    this.statePick.addEventListener("change", () => { view.state = this.statePick.value; changed("filter"); });
    this.kindPick.addEventListener("change", () => { view.kind = this.kindPick.value; changed("filter"); });
    this.total = el("span", { class: "note", role: "status" });
    this.head = el("div", { class: "head", role: "row" });
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.scroller = el("div", { class: "table", role: "table", tabindex: "0", "aria-label": "all tasks" }, this.head, this.body);
    this.scroller.addEventListener("scroll", () => this.fill());
    const make = (words, hint, act) => el("button", { type: "button", title: hint, onclick: act }, words);
    this.root = el("div", { class: "tasks" },
      el("div", { class: "tools" }, this.find, this.statePick, this.kindPick, this.total, el("span", { class: "group" },
        make("CSV", "the tasks that are listed, for spreadsheets", () => saveCsv(this)),
        make("JSON", "the whole run, for programs", saveJson),
        make("SVG", "the timeline as it is drawn", saveSvg))),
      this.scroller);
    new ResizeObserver(() => this.fill()).observe(this.scroller);
  }

  show() {
    const run = view.run;
    this.shown = this.columns.filter((column) => !(column.real && run.raw.is_simulated));
    if (!run.tasks.memory_bytes.some(Boolean)) this.shown = this.shown.filter((column) => column.name !== "requested");
    this.wide = this.shown.reduce((sum, column) => sum + column.wide, 0);
    const total = new Map();
    for (let task = 0; task < run.count; task += 1) total.set(run.state(task), (total.get(run.state(task)) || 0) + 1);
    const options = (pick, all, names) => {
      pick.replaceChildren(el("option", { value: "" }, all), ...names.map(([value, words]) => el("option", { value }, words)));
    };
    options(this.statePick, "all states", [...total].map(([state, n]) => [state, `${state} (${counted(n)})`]));
    options(this.kindPick, "all kinds", run.raw.kinds.map((name) => [name || "task", name || "task"]));
    this.kindPick.hidden = run.raw.kinds.length < 2;
    this.heads();
    this.hear("filter");
  }

  heads() {
    this.head.style.width = `${this.wide}px`;
    this.head.replaceChildren(...this.shown.map((column) => {
      const isBy = view.sort === column.name;
      const sign = isBy ? (view.isDown ? " ▾" : " ▴") : "";
      const button = el("button", { type: "button", onclick: () => this.sortBy(column.name) }, column.name + sign);
      const cell = el("div", { role: "columnheader", "aria-sort": isBy ? (view.isDown ? "descending" : "ascending") : "none" }, button);
      cell.style.width = `${column.wide}px`;
      return cell;
    }));
  }

  sortBy(name) {
    if (view.sort !== name) { view.sort = name; view.isDown = ["ran", "CPU", "memory", "tries"].includes(name); }
    else if (view.isDown === ["ran", "CPU", "memory", "tries"].includes(name)) view.isDown = !view.isDown;
    else { view.sort = ""; view.isDown = false; }
    this.heads();
    this.hear("sort");
  }

  hear(what) {
    if (what === "task") { this.fill(); return; }
    if (this.find.value !== view.query) this.find.value = view.query;
    this.statePick.value = view.state;
    this.kindPick.value = view.kind;
    this.order = this.ordered();
    const run = view.run;
    this.total.textContent = this.order.length === run.count
      ? `${counted(run.count)} ${run.count === 1 ? "task" : "tasks"}` : `${counted(this.order.length)} of ${counted(run.count)} tasks`;
    const height = this.order.length * ROW;
    this.body.style.height = `${height}px`;
    this.body.style.width = `${this.wide}px`;
    this.scroller.style.height = `${Math.min(height, SHOWN * ROW) + ROW + 22}px`;
    this.scroller.setAttribute("aria-rowcount", String(this.order.length));
    if (what === "filter") this.scroller.scrollTop = 0;
    this.fill();
  }

  // Tasks that failed stand first until the reader sorts otherwise.
  ordered() {
    const kept = matching(), found = [];
    for (let task = 0; task < view.run.count; task += 1) if (!kept || kept[task]) found.push(task);
    const column = this.columns.find((one) => one.name === view.sort);
    if (!column) {
      const rank = { failed: 0, running: 1 };
      const of = (task) => rank[view.run.state(task)] ?? 2;
      return found.sort((a, b) => of(a) - of(b) || a - b);
    }
    const values = new Map(found.map((task) => [task, column.of(task)]));
    const sign = view.isDown ? -1 : 1;
    const compare = (a, b) => (typeof a === "string" ? collator.compare(a, b) : a - b);
    return found.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      if ((x === NONE) !== (y === NONE)) return x === NONE ? 1 : -1; // what is not known stands last
      return sign * compare(x, y) || a - b;
    });
  }

  fill() {
    if (!this.order || !this.root.isConnected) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 4);
    const last = Math.min(this.order.length, first + SHOWN + 12);
    const rows = [];
    for (let i = first; i < last; i += 1) rows.push(this.row(this.order[i], i));
    this.body.replaceChildren(...rows);
    this.scroller.classList.toggle("more", this.scroller.scrollLeft + this.scroller.clientWidth < this.wide - 2);
  }

  row(task, i) {
    const made = el("div", { class: `line${task === view.task ? " chosen" : ""}`, role: "row", "aria-rowindex": String(i + 1) });
    made.style.top = `${i * ROW}px`;
    made.addEventListener("click", (event) => { if (!event.target.closest("a")) openTask(task); });
    for (const column of this.shown) {
      const cell = el("div", { role: "cell" }, column.show ? column.show(task) : String(column.of(task)));
      cell.style.width = `${column.wide}px`;
      if (!column.show) cell.title = String(column.of(task));
      made.append(cell);
    }
    return made;
  }
}

const collator = new Intl.Collator("en", { numeric: true });
