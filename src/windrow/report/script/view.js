// What the reader looks at: one state that all parts of the page share, kept when the page is made anew.

const view = {
  run: null,
  query: "", state: "", kind: "",
  task: NONE,
  t0: 0, t1: 1,
  rows: "jobs", paint: "kind",
  folded: new Set(),
  sort: "", isDown: false,
  listeners: [],
  matches: null,
  isRecalled: false,
};

function changed(what) {
  if (what === "filter") view.matches = null;
  for (const listener of view.listeners) listener(what);
}

// The tasks that the filters leave, as a column of 0 and 1; null if they leave all.
function matching() {
  const run = view.run;
  if (!view.query && !view.state && !view.kind) return null;
  if (view.matches) return view.matches;
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = new Uint8Array(run.count);
  for (let task = 0; task < run.count; task += 1) {
    if (view.state && run.state(task) !== view.state) continue;
    if (view.kind && run.kind(task) !== view.kind) continue;
    kept[task] = Number(!words.length || words.every((word) => says(run, task, word)));
  }
  view.matches = kept;
  return kept;
}

// Whether a word stands in what a task is called, is, was, or executes.
function says(run, task, word) {
  if (run.tasks.id[task].toLowerCase().includes(word)) return true;
  if (run.kind(task).toLowerCase().includes(word) || run.state(task) === word) return true;
  if (run.command(task).toLowerCase().includes(word)) return true;
  const a = run.last[task];
  if (a === NONE) return false;
  if ((run.attempts.why[a] || "").toLowerCase().includes(word)) return true;
  return run.host(a).toLowerCase() === word;
}

// What is to be seen again after the page was loaded anew, as far as it is about this run.
const KEPT = ["query", "state", "kind", "rows", "paint", "sort", "isDown"];

function remember() {
  const kept = Object.fromEntries(KEPT.map((name) => [name, view[name]]));
  const atEnd = view.t1 >= view.run.until;
  Object.assign(kept, { run: view.run.raw.run, t0: view.t0, t1: atEnd ? null : view.t1, y: window.scrollY });
  try { sessionStorage.setItem("windrow", JSON.stringify(kept)); } catch { /* private windows have none */ }
}

function recall() {
  let kept = null;
  try { kept = JSON.parse(sessionStorage.getItem("windrow")); } catch { /* nothing is kept then */ }
  if (!kept || kept.run !== view.run.raw.run) return;
  view.isRecalled = true;
  for (const name of KEPT) if (kept[name] !== undefined) view[name] = kept[name];
  if (Number.isFinite(kept.t0)) view.t0 = kept.t0;
  if (Number.isFinite(kept.t1) && kept.t1 !== null) view.t1 = kept.t1;
  if (kept.y) requestAnimationFrame(() => window.scrollTo(0, kept.y));
}
