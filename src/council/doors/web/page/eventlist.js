// Every event of the run. Only the rows that can be seen exist, so that thousands cost nothing.

import { el, mark, memory, refill } from "./dom.js";
import { clock, short } from "./words.js";

const HIGH = 30; // pixels of a row, as in the stylesheet
const MORE = 8; // rows drawn above and below what is seen

export function eventsTab(context) {
  const tall = el("div", { class: "tall", role: "presentation" });
  const list = el("div", { class: "events", tabindex: "0", role: "listbox", "aria-label": "Events" }, tall);
  const detail = el("pre", { tabindex: "0", class: "event-detail", "aria-label": "The chosen event" }, "Choose an event to see all of it.");
  const node = el("div", { class: "event-view" }, list, detail);
  const isNew = memory();
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

  function update({ record, at }) {
    const most = at === null ? record.entries.length : record.times.findLastIndex((time) => time <= at) + 1;
    if (!isNew(record, most)) return;
    entries = record.entries.slice(0, most);
    times = record.times;
    tall.style.setProperty("height", `${entries.length * HIGH}px`);
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / HIGH) - MORE);
    const last = Math.min(entries.length, Math.ceil((list.scrollTop + (list.clientHeight || 400)) / HIGH) + MORE);
    refill(tall, entries.slice(first, last).map((entry, n) => row(entry, first + n)));
    mark(list, "aria-activedescendant", chosen >= first && chosen < last ? `event-${chosen}` : null);
  }

  function row(entry, n) {
    return el("div", { class: "event", role: "option", id: `event-${n}`, "aria-selected": String(n === chosen), "aria-setsize": entries.length, "aria-posinset": n + 1, style: { top: `${n * HIGH}px` }, onclick: () => choose(n) },
      el("span", { class: "n" }, String(entry.seq)), el("span", { class: "n" }, clock(times[n])), el("b", {}, entry.type), el("span", {}, about(entry)));
  }

  function choose(n) {
    chosen = n;
    detail.textContent = JSON.stringify(entries[n], null, 2);
    const top = n * HIGH;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HIGH > list.scrollTop + list.clientHeight) list.scrollTop = top + HIGH - list.clientHeight;
    draw();
  }

  return { node, update };
}

const ABOUT = {
  convened: (e) => e.plan?.question,
  asked: (e) => `${e.key} → ${e.member}`,
  attempt: (e) => `${e.key} try ${e.n} ${e.why}`,
  fault: (e) => `${e.key} ${e.kind}: ${e.detail}`,
  bill: (e) => `${e.key} $${e.usd}`,
  statement: (e) => `${e.key} ${e.said}`,
  absence: (e) => `${e.key} ${e.state}: ${e.reason}`,
  lookup: (e) => `${e.what} (${e.found} found)`,
  note: (e) => `${e.what}: ${e.why}`,
  labels: (e) => `${e.phase} ${e.reader}`,
  verdict: (e) => `${e.seat} ${e.verdict} ${e.confidence}`,
  closed: (e) => `${e.status} ${e.stopped} ${e.reason}`,
};

const about = (entry) => short(ABOUT[entry.type]?.(entry) ?? entry.phase ?? "", 160);
