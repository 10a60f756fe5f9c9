// The rows of the timeline: which bars lie in which row, and how high it is. No drawing, no page.

const ROW_GAP = 5, NODE_HIGH = 18, NODE_LOW = 3, FOLDED = 13, KIND_HIGH = 40, ALL_HIGH = 420;

function madeRows(run, how, folded) {
  const rows = { jobs: jobRows, nodes: nodeRows, kinds: kindRows }[how](run, folded);
  let top = ROW_GAP;
  for (const row of rows) {
    row.top = top;
    top += row.height + ROW_GAP;
  }
  return { rows, height: top };
}

// Bars of one row, ready to be searched: sorted by start, with the latest end up to each.
function searchable(row, run) {
  let latest = -Infinity;
  row.latest = row.bars.map((a) => { latest = Math.max(latest, run.end[a]); return latest; });
  return row;
}

function firstUntil(row, at) {
  let low = 0, high = row.latest.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.latest[middle] < at) low = middle + 1; else high = middle;
  }
  return low;
}

// Gives each bar of a group a slot beside those that run at the same time; how many there are.
function slotted(run, bars, slot) {
  const free = [];
  for (const a of bars) {
    let at = free.findIndex((end) => end <= run.start[a] + 0.5);
    if (at < 0) at = free.length;
    free[at] = run.end[a];
    slot[a] = at;
  }
  return Math.max(1, free.length);
}

// How high a row may be: few rows share what fits on a screen, many are as high as is legible.
function budget(rows) { return Math.min(168, Math.max(54, ALL_HIGH / Math.max(1, rows) - ROW_GAP)); }

// Rows made of nodes: each node has as many slots as tasks ran at once on it.
function placed(run, groups, row, most_high) {
  const high = groups.size ? row.nodes : 1;
  let most = 1;
  for (const bars of groups.values()) {
    const slots = slotted(run, bars, row.slot);
    most = Math.max(most, slots);
    for (const a of bars) row.slots[a] = slots;
  }
  const each = Math.min(NODE_HIGH * most, Math.max(NODE_LOW, most_high / high));
  row.each = each;
  row.height = Math.max(FOLDED, each * high);
  return row;
}

function emptyRow(key, label, nodes) {
  return { key, label, nodes, bars: [], slot: {}, slots: {}, jobs: [], isFolded: false, height: FOLDED };
}

function jobRows(run, folded) {
  const rows = [];
  const of = new Map();
  for (const job of run.raw.jobs) {
    const row = emptyRow(`job ${job.job}`, `${job.site || "job"} ${job.job}`, job.nodes);
    row.jobs = [job];
    row.isBad = ["killed", "rejected"].includes(job.state);
    rows.push(row);
    of.set(job.job, row);
  }
  const groups = new Map(rows.map((row) => [row, new Map()]));
  for (let a = 0; a < run.tries; a += 1) {
    const row = of.get(run.attempts.job[a]);
    if (!row) continue;
    row.bars.push(a);
    row.hasFailed = row.hasFailed || run.outcome(a) === "failed";
    const of_node = groups.get(row), node = run.attempts.node[a];
    if (!of_node.has(node)) of_node.set(node, []);
    of_node.get(node).push(a);
  }
  return rows.map((row) => {
    searchable(placed(run, groups.get(row), row, budget(rows.length)), run);
    row.canFold = row.height > FOLDED;
    row.isFolded = row.canFold && folded.has(row.key);
    if (row.isFolded) row.height = FOLDED;
    return row;
  });
}

function nodeRows(run) {
  const of = new Map();
  for (const job of run.raw.jobs) {
    for (let n = 0; n < job.nodes; n += 1) {
      const name = (job.hosts || [])[n] || `node ${n}`;
      if (!of.has(name)) of.set(name, emptyRow(name, name, 1));
      of.get(name).jobs.push(job);
    }
  }
  for (let a = 0; a < run.tries; a += 1) {
    const hosts = (run.jobs.get(run.attempts.job[a]) || {}).hosts || [];
    for (const n of new Set(run.nodesOf(a).map((i) => hosts[i] || `node ${i}`))) {
      if (of.has(n)) of.get(n).bars.push(a);
    }
  }
  const rows = [...of.values()].sort((a, b) => a.key.localeCompare(b.key, "en", { numeric: true }));
  return rows.map((row) => searchable(placed(run, new Map([[0, row.bars]]), row, budget(rows.length)), run));
}

// A row for each kind, in which stands how many of its tasks run at each time.
function kindRows(run) {
  const rows = run.raw.kinds.map((name, i) => {
    const row = emptyRow(`kind ${name}`, name || "task", 1);
    row.height = KIND_HIGH;
    row.kind = i;
    row.changes = [];
    return row;
  });
  for (let a = 0; a < run.tries; a += 1) {
    rows[run.tasks.kind[run.attempts.task[a]]].changes.push([run.start[a], 1], [run.end[a], -1]);
  }
  for (const row of rows) {
    row.steps = summed(row.changes);
    row.most = row.steps.reduce((most, step) => Math.max(most, step[1]), 0);
  }
  return rows;
}

// A step function from changes: pairs of a time and the value from then on.
function summed(changes) {
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps = [];
  let value = 0;
  for (const [at, by] of changes) {
    value += by;
    if (steps.length && steps[steps.length - 1][0] === at) steps[steps.length - 1][1] = value;
    else steps.push([at, value]);
  }
  return steps;
}

// Nodes that jobs hold, and those that tasks use, over time.
function nodeCurves(run) {
  const held = [], used = [];
  for (const job of run.raw.jobs) {
    if (job.started_ms === NONE || job.taken_by !== undefined) continue;
    held.push([job.started_ms, job.nodes], [job.started_ms + Math.max(0, job.ran_ms), -job.nodes]);
  }
  for (let a = 0; a < run.tries; a += 1) {
    if (run.isInVain(a)) continue;
    const task = run.attempts.task[a];
    const part = run.tasks.nodes[task]
      ? run.nodesOf(a).length
      : Math.min(run.tasks.cores[task], run.raw.cores) / Math.max(1, run.raw.cores);
    used.push([run.start[a], part], [run.end[a], -part]);
  }
  return { held: summed(held), used: summed(used) };
}
