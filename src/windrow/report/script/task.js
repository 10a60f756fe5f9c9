// One task: all that is known of it, at an address of its own (`#task=ID`).

const panel = {
  root: null,
  before: null,
};

function openTask(task) { location.hash = `task=${encodeURIComponent(view.run.tasks.id[task])}`; }

function closeTask() {
  history.pushState(null, "", location.pathname + location.search);
  followHash();
}

// Show what the address names.
function followHash() {
  const id = new URLSearchParams(location.hash.slice(1)).get("task") || "";
  const task = id ? view.run.find(id) : NONE;
  view.task = task;
  showTask(task, id);
  changed("task");
}

function showTask(task, id) {
  if (!panel.root) {
    panel.root = el("aside", { class: "task-panel", tabindex: "-1", role: "dialog", "aria-label": "one task", hidden: true });
    panel.root.addEventListener("keydown", (event) => { if (event.key === "Escape") closeTask(); });
    document.body.append(panel.root);
  }
  const wasOpen = !panel.root.hidden;
  panel.root.hidden = !id;
  if (!id) {
    if (wasOpen && panel.before && panel.before.isConnected) panel.before.focus();
    return;
  }
  if (!wasOpen) panel.before = document.activeElement;
  const close = el("button", { type: "button", class: "close", "aria-label": "close", onclick: closeTask }, "×");
  if (task === NONE) {
    panel.root.replaceChildren(close, el("h3", {}, id), el("p", {}, "This run has no task of this name."));
  } else panel.root.replaceChildren(close, ...taskParts(task));
  if (!wasOpen) panel.root.focus({ preventScroll: true });
}

function link(task) {
  const id = view.run.tasks.id[task];
  return el("a", { href: `#task=${encodeURIComponent(id)}` }, id);
}

function pair(name, ...value) { return [el("dt", {}, name), el("dd", {}, ...value)]; }

function taskParts(task) {
  const run = view.run, a = run.last[task], state = run.state(task);
  const parts = [el("h3", {}, run.tasks.id[task]), el("p", {}, badge(state), " ", run.kind(task)),
    el("p", { class: "row" }, copier(run.tasks.id[task], "copy name"), copier(location.href, "copy link"))];
  if (a !== NONE && run.attempts.why[a] && state !== "finished") parts.push(el("p", { class: "why" }, run.attempts.why[a]));
  if (run.tasks.made_by[task]) parts.push(el("p", {}, `Added to the run by ${run.tasks.made_by[task]}.`));
  if (run.tasks.kept[task]) parts.push(el("p", {}, `Kept from ${run.tasks.kept[task]}, where it finished.`));
  parts.push(...commandParts(task));
  for (const attempt of run.tryList(task).reverse()) parts.push(...attemptParts(task, attempt));
  parts.push(el("dl", {}, pair("needs", needs(task)), pair("expected", span(run.tasks.expected_ms[task])),
    pair("level", String(run.tasks.level[task])), ...neighbours(task)));
  parts.push(...retryButton(task, state), ...commandsFor(task, state));
  return parts;
}

function badge(state) { return el("span", { class: `state s-${state}` }, state); }

function commandParts(task) {
  const command = view.run.command(task);
  if (!command) return [];
  const folder = view.run.tasks.folders[view.run.tasks.folder[task]] || "";
  return [el("h4", {}, "command ", copier(command)), el("pre", {}, command), el("p", { class: "note" }, `in ${folder}`)];
}

function needs(task) {
  const { cores, nodes, memory_bytes: memory } = view.run.tasks;
  const parts = [nodes[task] ? `${nodes[task]} whole ${nodes[task] === 1 ? "node" : "nodes"}` : `${cores[task]} ${cores[task] === 1 ? "core" : "cores"}`];
  if (memory[task]) parts.push(`${bytes(memory[task])} of memory`);
  return parts.join(", ");
}

function attemptParts(task, a) {
  const run = view.run, { attempts } = run, log = run.log(a);
  const facts = [];
  const zero = run.raw.begun_at * 1000;
  const since = `+${span(run.start[a])}`;
  facts.push(pair("started", run.raw.is_simulated ? since : `${clock(zero + run.start[a], true)} (${since})`));
  facts.push(pair("ran", `${span(attempts.ran_ms[a])}, expected ${span(run.tasks.expected_ms[task])}`));
  facts.push(pair("where", `job ${attempts.job[a]}, ${run.host(a)}`));
  if (attempts.exit[a] !== NONE) facts.push(pair("exit code", String(attempts.exit[a])));
  if (attempts.signal[a]) facts.push(pair("signal", String(attempts.signal[a])));
  if (!run.raw.is_simulated && attempts.cpu_ms[a]) {
    facts.push(pair("CPU time", `${attempts.cpu_ms[a] < 10 ? "less than 0.01 s" : span(attempts.cpu_ms[a])}, ${Math.round(100 * attempts.cpu_ms[a] / Math.max(1, attempts.ran_ms[a]))} % of one core`));
  }
  if (attempts.peak_bytes[a]) {
    const asked = run.tasks.memory_bytes[task];
    facts.push(pair("peak memory", bytes(attempts.peak_bytes[a]) + (asked ? ` of ${bytes(asked)} requested` : "")));
  }
  if (log) facts.push(pair("log", el("code", {}, log), " ", copier(log), " ", logButton(a)));
  else if (!run.raw.is_simulated) facts.push(pair("log", "it printed nothing"));
  const tail = attempts.tail[a];
  return [el("h4", {}, `attempt ${attempts.number[a]}: ${run.outcome(a)}`), el("dl", {}, ...facts.flat()),
    ...(attempts.why[a] && a !== run.last[task] ? [el("p", { class: "note" }, attempts.why[a])] : []),
    ...(tail ? [el("p", { class: "note" }, "last lines:"), el("pre", {}, tail)] : [])];
}

// On `windrow serve` the log itself can be read; a page on disk only says where it is.
function logButton(a) {
  if (!served.isServed) return null;
  const shown = el("pre", { hidden: true });
  const button = el("button", { type: "button", class: "small" }, "show");
  button.addEventListener("click", async () => {
    const answer = await served.ask(`${served.page}/log/${view.run.attempts.task[a]}.${view.run.attempts.number[a]}`);
    shown.textContent = await answer.text();
    shown.hidden = false;
  });
  return el("span", {}, button, shown);
}

const MOST_NEIGHBOURS = 24;

function neighbours(task) {
  const run = view.run;
  if (!run.raw.parents) return [];
  const listed = (tasks) => {
    const links = tasks.slice(0, MOST_NEIGHBOURS).flatMap((one, i) => [i ? ", " : "", link(one)]);
    if (tasks.length > MOST_NEIGHBOURS) links.push(` and ${counted(tasks.length - MOST_NEIGHBOURS)} more`);
    return links.length ? links : ["nothing"];
  };
  return [...pair("waits for", ...listed(run.raw.parents[task])), ...pair("needed by", ...listed(run.children(task)))];
}

function quoted(word) { return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`; }

function commandsFor(task, state) {
  if (view.run.raw.is_simulated) return [];
  const id = quoted(view.run.tasks.id[task]), of = `--run ${quoted(view.run.raw.run)}`;
  const lines = [`windrow explain ${id} ${of}`, `windrow logs ${id} ${of}`];
  if (state === "failed" || state === "finished") lines.push(`windrow retry ${id} ${of}`);
  return [el("h4", {}, "to type"), ...lines.map((line) => el("p", { class: "row" }, el("code", {}, line), copier(line)))];
}
