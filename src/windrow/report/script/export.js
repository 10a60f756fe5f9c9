// What the reader takes away: the tasks as CSV, the run as JSON, the timeline as SVG.

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = el("a", { href: address, download: name, class: "away" });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// One field. A spreadsheet would execute what begins like a formula, so such a text gets a quote before it.
function field(value) {
  let text = value === NONE || value === null || value === undefined ? "" : String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const CSV = ["task", "kind", "state", "attempts", "job", "host", "started_at", "ran_s", "expected_s", "cpu_s", "peak_bytes",
  "memory_bytes", "cores", "nodes", "exit", "why", "log", "command"];

function csvRow(task) {
  const run = view.run, a = run.last[task], { attempts, tasks } = run;
  const tried = (read) => (a === NONE ? NONE : read());
  const seconds = (ms) => (ms === NONE ? NONE : ms / 1000);
  return [tasks.id[task], run.kind(task), run.state(task), run.times[task], tried(() => attempts.job[a]), tried(() => run.host(a)),
    tried(() => run.raw.begun_at + run.start[a] / 1000), seconds(run.ran(task)), seconds(tasks.expected_ms[task]),
    tried(() => attempts.cpu_ms[a] / 1000), tried(() => attempts.peak_bytes[a]), tasks.memory_bytes[task], tasks.cores[task],
    tasks.nodes[task], tried(() => attempts.exit[a]), tried(() => attempts.why[a] || ""), run.log(a), run.command(task)];
}

function csv(order) { return [CSV, ...order.map(csvRow)].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n"; }

// The run for programs: figures as `windrow report --json` has them, and every task.
function whole() {
  const run = view.run;
  const tasks = Array.from({ length: run.count }, (_, task) => {
    const row = csvRow(task);
    return Object.fromEntries(CSV.map((name, i) => [name, row[i] === NONE ? null : row[i]]));
  });
  return JSON.stringify({ ...run.raw.figures, schema: run.raw.schema, jobs: run.raw.jobs, tasks, provenance: run.raw.provenance }, null, 1);
}

function saveCsv(table) { save(`${view.run.raw.run}.csv`, "text/csv", csv(table.order)); }
function saveJson() { save(`${view.run.raw.run}.json`, "application/json", whole()); }
function saveSvg() { save(`${view.run.raw.run}.svg`, "image/svg+xml", parts.timeline.svg()); }
