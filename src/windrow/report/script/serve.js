// A page that `windrow serve` hands out. What is asked of the server carries a token, in a header: it came behind the # of
// the address, which no server, proxy or log sees. A page of another site cannot send this header.

const TOKEN = "windrow-token";

const served = {
  isServed: location.protocol === "http:",
  token: "",
  mayControl: false,
  tag: "",
  get page() { return `/page${location.pathname.replace(/\/$/, "")}`; },
  async ask(what, options = {}) {
    const headers = { ...(options.headers || {}), "X-Windrow-Token": served.token };
    return fetch(what, { ...options, headers, cache: "no-store" });
  },
};

// Takes the token out of the address, so that nobody copies it with a link, and shows the page.
async function enter() {
  const words = new URLSearchParams(location.hash.slice(1));
  served.token = words.get("token") || sessionStorage.getItem(TOKEN) || "";
  if (words.get("token")) {
    sessionStorage.setItem(TOKEN, served.token);
    words.delete("token");
    const rest = [...words].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
    history.replaceState(null, "", location.pathname + (rest ? `#${rest}` : ""));
  }
  await refresh();
}

async function refresh() {
  let every = 2;
  try {
    const answer = await served.ask(served.page, { headers: served.tag ? { "If-None-Match": served.tag } : {} });
    if (answer.status === 200) {
      served.tag = answer.headers.get("ETag") || "";
      served.mayControl = answer.headers.get("X-Windrow-Control") === "yes";
      await adopt(await answer.text());
    } else if (answer.status !== 304) { closedDoor(await answer.text()); return; }
    every = Number(document.body.dataset.every || 0);
    silence("");
  } catch {
    silence("The server does not answer; what you see is how things stood.");
  }
  if (every) setTimeout(refresh, every * 1000);
}

function silence(words) {
  let line = document.getElementById("silence");
  if (!line && words) {
    line = el("p", { id: "silence", class: "note", role: "status" });
    document.querySelector("main").before(line);
  }
  if (line) line.textContent = words;
}

function closedDoor(words) {
  document.querySelector("h1").textContent = "Not open";
  document.querySelector("main").replaceChildren(el("p", { class: "door" }, words.trim()),
    el("p", { class: "note door" }, "Open the address that windrow serve printed, with all that stands behind the #."));
}

// Takes in the page as it is now; parts that say the same as before stay as they are, open folds included.
async function adopt(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  document.title = fresh.title;
  document.body.dataset.every = fresh.body.dataset.every || "0";
  document.querySelector("h1").textContent = fresh.querySelector("h1").textContent;
  document.querySelectorAll("p.lead").forEach((old) => old.remove());
  const lead = fresh.querySelector("p.lead"), main = document.querySelector("main");
  if (lead) main.before(document.adoptNode(lead));
  const before = new Map([...main.children].map((part) => [part.dataset.said, part]));
  main.replaceChildren(...[...fresh.querySelector("main").children].map((part) => {
    const said = part.outerHTML;
    if (before.has(said)) return before.get(said);
    const made = document.adoptNode(part);
    made.dataset.said = said;
    return made;
  }));
  document.getElementById("data").textContent = fresh.getElementById("data").textContent;
  await show();
  shadows();
  await controls();
}

// What may be done, if the server was started with --control. Each asks before it does anything.
async function controls() {
  if (!served.mayControl) return;
  const main = document.querySelector("main");
  let bar = document.getElementById("controls");
  if (!bar) {
    bar = el("div", { id: "controls" }, el("div", { class: "controls" }), el("p", { class: "said", role: "status" }));
  }
  main.before(bar);
  const buttons = bar.firstChild;
  if (view.run) {
    const { run, state, is_active: isActive } = view.run.raw;
    if (buttons.dataset.of !== state) {
      buttons.dataset.of = state;
      buttons.replaceChildren(...(isActive ? [doer("cancel", { run }, `Cancel ${run}`)] : []),
        ...(!isActive && state !== "complete" ? [doer("resume", { run }, `Resume ${run}`)] : []));
    }
  } else if (!buttons.childElementCount) {
    const answer = await served.ask("/files");
    const { files } = await answer.json();
    const pick = el("select", { "aria-label": "workflow to start" }, files.map((file) => el("option", { value: file }, file)));
    if (files.length) buttons.append(pick, doer("start", () => ({ file: pick.value }), "Start"));
  }
}

function doer(what, about, words) {
  const button = el("button", { type: "button" }, words);
  button.addEventListener("click", async () => {
    if (button.dataset.sure !== "yes") {
      button.dataset.sure = "yes";
      button.textContent = `${words}: sure?`;
      setTimeout(() => { button.dataset.sure = ""; button.textContent = words; }, 4000);
      return;
    }
    button.disabled = true;
    const body = JSON.stringify(typeof about === "function" ? about() : about);
    const answer = await served.ask(`/do/${what}`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
    document.querySelector("#controls .said").textContent = (await answer.text()).trim();
    button.disabled = false;
    button.dataset.sure = "";
    button.textContent = words;
  });
  return button;
}

function retryButton(task, state) {
  if (!served.mayControl || !["failed", "finished"].includes(state)) return [];
  const id = view.run.tasks.id[task];
  return [el("p", { class: "row" }, doer("retry", { run: view.run.raw.run, task: id }, `Run ${id} again`))];
}
