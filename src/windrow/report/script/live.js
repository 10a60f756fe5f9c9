// Starts the page, and keeps one about an active run up to date: from its server, or by loading it again.

const parts = { timeline: null, tasks: null };

async function show() {
  const data = document.getElementById("data");
  if (!data || !data.textContent.trim()) return;
  const isFirst = !view.run;
  const wasAtEnd = isFirst || view.t1 >= view.run.until - 1;
  view.run = new Run(await unpacked(data.textContent));
  view.matches = null;
  if (isFirst) {
    [view.t0, view.t1] = [view.run.from, view.run.until];
    recall();
    parts.timeline = new Timeline();
    parts.tasks = new Tasks();
  } else if (wasAtEnd) view.t1 = view.run.until;
  mount();
  parts.timeline.show();
  parts.tasks.show();
  followHash();
}

// Puts what the script makes where the page has room for it, in place of what it has without scripts.
function mount() {
  document.documentElement.classList.add("scripted");
  for (const [name, part] of Object.entries(parts)) {
    const place = document.getElementById(`place-${name}`);
    if (place) place.replaceChildren(part.root);
  }
}

// A page on disk is written again by `windrow report --follow`: look at it again after a while.
function again(every_ms) {
  setTimeout(() => {
    const isBusy = document.hidden || (document.activeElement && document.activeElement.matches("input, select"));
    if (isBusy) { again(every_ms); return; }
    remember();
    location.reload();
  }, every_ms);
}

function shadows() {
  for (const box of document.querySelectorAll(".scroll")) {
    const tell = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    box.addEventListener("scroll", tell, { passive: true });
    if (box.scrollWidth > box.clientWidth + 2) box.tabIndex = 0;
    tell();
  }
  for (const button of document.querySelectorAll("code.copy")) {
    if (!button.dataset.done) { button.dataset.done = "1"; button.after(" ", copier(button.textContent)); }
  }
}

async function start() {
  window.addEventListener("hashchange", () => { if (view.run) followHash(); });
  window.addEventListener("resize", shadows);
  if (served.isServed) { await enter(); return; }
  await show();
  shadows();
  const every = Number(document.body.dataset.every || 0);
  if (every && !served.isServed && view.run && view.run.raw.is_active) again(every * 1000);
}

start();
