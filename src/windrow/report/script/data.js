// The run as the page has it: columns (report/run/columns.py), made ready to be asked.

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Run {
  constructor(raw) {
    this.raw = raw;
    this.tasks = raw.tasks;
    this.attempts = raw.attempts;
    this.count = raw.tasks.id.length;
    this.tries = raw.attempts.task.length;
    this.jobs = new Map(raw.jobs.map((job) => [job.job, job]));
    this.start = new Float64Array(this.tries);
    this.end = new Float64Array(this.tries);
    this.last = new Int32Array(this.count).fill(NONE);
    this.times = new Int32Array(this.count);
    const finished = raw.attempt_states.indexOf("finished");
    let at = 0;
    for (let a = 0; a < this.tries; a += 1) {
      at += raw.attempts.start_ms[a];
      this.start[a] = at;
      this.end[a] = at + raw.attempts.ran_ms[a];
      const task = raw.attempts.task[a], before = this.last[task];
      this.times[task] += 1;
      if (before === NONE || this.attempts.outcome[before] !== finished) this.last[task] = a;
    }
    this.from = Math.min(0, raw.background ? raw.background.begin_ms : 0);
    this.until = Math.max(1000, raw.until_ms, raw.background ? raw.background.end_ms : 0);
    this.number = null;
  }

  // The task of this id, or NONE.
  find(id) {
    if (!this.number) this.number = new Map(this.tasks.id.map((name, i) => [name, i]));
    return this.number.has(id) ? this.number.get(id) : NONE;
  }

  kind(task) { return this.raw.kinds[this.tasks.kind[task]] || "task"; }
  colour(task) { return this.raw.colours[this.tasks.kind[task]]; }
  state(task) { return this.raw.task_states[this.tasks.state[task]]; }
  outcome(a) { return this.raw.attempt_states[this.attempts.outcome[a]]; }
  isInVain(a) { return ["failed", "lost", "superseded"].includes(this.outcome(a)); }
  nodesOf(a) { return this.attempts.more_nodes[a] || [this.attempts.node[a]]; }

  host(a) {
    const job = this.jobs.get(this.attempts.job[a]);
    const hosts = (job && job.hosts) || [];
    return this.nodesOf(a).map((n) => hosts[n] || `node ${n}`).join(", ");
  }

  command(task) {
    const { templates, of, filled } = this.tasks.commands;
    if (!of.length || of[task] === undefined) return "";
    let gap = 0;
    return templates[of[task]].map((word) => (word === null ? filled[task][gap++] : word)).join("");
  }

  log(a) {
    if (a === NONE || !this.attempts.has_log[a]) return "";
    return `${this.raw.out}/${this.attempts.task[a]}.${this.attempts.number[a]}`;
  }

  tryList(task) {
    const found = [];
    for (let a = 0; a < this.tries; a += 1) if (this.attempts.task[a] === task) found.push(a);
    return found;
  }

  ran(task) { const a = this.last[task]; return a === NONE ? NONE : this.attempts.ran_ms[a]; }

  // CPU time by the core time that the task asked for; NONE if it was not measured.
  cpuShare(task) {
    const a = this.last[task];
    if (this.raw.is_simulated || a === NONE || !this.attempts.ran_ms[a]) return NONE;
    const nodes = this.tasks.nodes[task] ? this.nodesOf(a).length : 0;
    const cores = nodes ? nodes * this.raw.cores : Math.min(this.tasks.cores[task], this.raw.cores);
    return this.attempts.cpu_ms[a] / (this.attempts.ran_ms[a] * Math.max(1, cores));
  }

  children(task) {
    if (!this.raw.parents) return null;
    const found = [];
    this.raw.parents.forEach((parents, child) => { if (parents.includes(task)) found.push(child); });
    return found;
  }
}
