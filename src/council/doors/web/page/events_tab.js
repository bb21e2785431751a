// List of all events. Only visible rows are rendered, so that thousands of events stay fast.

import { el, setAttr, changeDetector, setChildren } from "./dom.js";
import { clock, short } from "./format.js";

const ROW_HEIGHT = 30; // row height in pixels, as in the stylesheet
const EXTRA_ROWS = 8; // extra rows above and below the visible ones

export function eventsTab(context) {
  const tall = el("div", { class: "tall", role: "presentation" });
  const list = el("div", { class: "events", tabindex: "0", role: "listbox", "aria-label": "Events" }, tall);
  const detail = el("pre", { tabindex: "0", class: "event-detail", "aria-label": "Selected event" }, "Select an event to see its details.");
  const node = el("div", { class: "event-view" }, list, detail);
  const isNew = changeDetector();
  let entries = [];
  let times = [];
  let chosen = -1;
  list.addEventListener("scroll", draw, { passive: true });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !entries.length) return;
    event.preventDefault();
    choose(Math.max(0, Math.min(entries.length - 1, chosen + step)));
  });

  function update({ log, at }) {
    const most = at === null ? log.entries.length : log.times.findLastIndex((time) => time <= at) + 1;
    if (!isNew(log, most)) return;
    entries = log.entries.slice(0, most);
    times = log.times;
    tall.style.setProperty("height", `${entries.length * ROW_HEIGHT}px`);
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW_HEIGHT) - EXTRA_ROWS);
    const last = Math.min(entries.length, Math.ceil((list.scrollTop + (list.clientHeight || 400)) / ROW_HEIGHT) + EXTRA_ROWS);
    setChildren(tall, entries.slice(first, last).map((entry, n) => row(entry, first + n)));
    setAttr(list, "aria-activedescendant", chosen >= first && chosen < last ? `event-${chosen}` : null);
  }

  function row(entry, n) {
    return el("div", { class: "event", role: "option", id: `event-${n}`, "aria-selected": String(n === chosen), "aria-setsize": entries.length, "aria-posinset": n + 1, style: { top: `${n * ROW_HEIGHT}px` }, onclick: () => choose(n) },
      el("span", { class: "n" }, String(entry.seq)), el("span", { class: "n" }, clock(times[n])), el("b", {}, entry.type), el("span", {}, summary(entry)));
  }

  function choose(n) {
    chosen = n;
    detail.textContent = JSON.stringify(entries[n], null, 2);
    const top = n * ROW_HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW_HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_HEIGHT - list.clientHeight;
    draw();
  }

  return { node, update };
}

/** Format the look-up of a seat or an explorer; return any other text unchanged. */
function formatLookup(what) {
  try {
    const { files, names, patterns } = JSON.parse(what);
    return [...files.map((one) => (one.to ? `${one.path}:${one.from}-${one.to}` : one.path)), ...names, ...patterns.map((one) => `"${one}"`)].join(", ");
  } catch {
    return what;
  }
}

const SUMMARIES = {
  convened: (e) => e.plan?.question,
  asked: (e) => `${e.key} → ${e.member}`,
  attempt: (e) => `${e.key} attempt ${e.n} ${e.why}`,
  fault: (e) => `${e.key} ${e.kind}: ${e.detail}`,
  bill: (e) => `${e.key} $${e.usd}`,
  statement: (e) => `${e.key} ${e.said}`,
  absence: (e) => `${e.key} ${e.state}: ${e.reason}`,
  lookup: (e) => `${[e.seat, formatLookup(e.what)].filter(Boolean).join(" ")} (${e.found || !e.why ? `${e.found} found` : e.why})`,
  note: (e) => `${e.what}: ${e.why}`,
  labels: (e) => `${e.phase} ${e.reader}`,
  verdict: (e) => `${e.seat} ${e.verdict} ${e.confidence}`,
  closed: (e) => `${e.status} ${e.stopped} ${e.reason}`,
};

const summary = (entry) => short(SUMMARIES[entry.type]?.(entry) ?? entry.phase ?? "", 160);
