// Numbers and times as people read them, the same as in the rest of Windrow; and elements of the page.

const NONE = -1;
const MINUTE = 60, HOUR = 3600, DAY = 86400;

// A number with so many decimals; exact halves go to the even digit, as in Python.
function fixed(value, digits) {
  const halves = value * 2 ** (digits + 1);
  if (Number.isInteger(halves) && halves % 2 !== 0) {
    const scaled = value * 10 ** digits, low = Math.floor(scaled);
    return ((low % 2 === 0 ? low : low + 1) / 10 ** digits).toFixed(digits);
  }
  return value.toFixed(digits);
}

// A duration in milliseconds: `45 s`, `12.3 min`, `3.4 h`, `5.6 d`.
function span(ms) {
  const s = ms / 1000, size = Math.abs(s);
  if (size < 1) return `${Number(fixed(s, 2))} s`;
  if (size < 2 * MINUTE) return `${fixed(s, 0)} s`;
  if (size < 2 * HOUR) return `${fixed(s / MINUTE, 1)} min`;
  if (size < 2 * DAY) return `${fixed(s / HOUR, 1)} h`;
  return `${fixed(s / DAY, 1)} d`;
}

// What writes all durations of a column in the unit that suits the longest of them.
function spansUpTo(longest) {
  const [name, unit_s] = longest < 2 * MINUTE * 1000 ? ["s", 1] : longest < 2 * HOUR * 1000 ? ["min", MINUTE]
    : longest < 10 * DAY * 1000 ? ["h", HOUR] : ["d", DAY];
  if (unit_s === 1) return span;
  return (ms) => (ms > 0 && ms < 50 * unit_s ? `< 0.1 ${name}` : `${fixed(ms / 1000 / unit_s, 1)} ${name}`);
}

function bytes(size) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
  return `${size >= 100 || unit === 0 ? size.toFixed(0) : size.toPrecision(3)} ${units[unit]}`;
}

const counted = (n) => n.toLocaleString("en-US");
const two = (n) => String(n).padStart(2, "0");

// A time of day where the reader is, with the date and, for whole runs of days, without seconds.
function clock(at_ms, withDate) {
  const t = new Date(at_ms);
  const day = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  const time = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return withDate ? `${day} ${time}` : time;
}

// An element. Children that are strings become text; nothing is ever read as markup.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

// A button that copies a text, and says so.
function copier(text, words) {
  const button = el("button", { type: "button", class: "small", title: text }, words || "copy");
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); } catch { selected(text); }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = words || "copy"; }, 1200);
  });
  return button;
}

// Copying where a page may not use the clipboard: an old way that needs a selection.
function selected(text) {
  const area = el("textarea", { class: "away", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
