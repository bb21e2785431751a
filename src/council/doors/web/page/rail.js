// The history: unfinished runs first, filters, search, and what was spent today.

import { ago, money, short } from "./words.js";
import { button, el, mark, refill, say } from "./dom.js";
import { get, query, server } from "./api.js";
import { toneOf } from "./stands.js";

const priceOf = (run) => (run.cost ? el("span", {}, money(run.cost?.usd ?? run.cost)) : null);
const DAYS = 14; // whose spending is drawn
const OFTEN = 8000; // milliseconds between two looks while the page is seen
const FILTERS = {
  task: ["ask", "validate", "brainstorm", "research"],
  verdict: ["PASS", "WARN", "FAIL", "DISAGREE"],
  protocol: [],
};

/** A bar for each of the last days, and the same in words. */
function perDay(days) {
  const spent = new Map(days.map((one) => [one.day, one.usd ?? 0]));
  if (!spent.size) return null;
  const shown = Array.from({ length: DAYS }, (_, n) => new Date(Date.now() - (DAYS - 1 - n) * 864e5).toISOString().slice(0, 10));
  const most = Math.max(1e-9, ...shown.map((day) => spent.get(day) || 0));
  const words = shown.filter((day) => spent.get(day)).map((day) => `${day} ${money(spent.get(day))}`).join(", ") || "nothing";
  return el("div", { class: "days", role: "img", "aria-label": `Spent per day: ${words}` }, shown.map((day) => el("i", { title: `${day}: ${money(spent.get(day) || 0)}`, style: { "--part": ((spent.get(day) || 0) / most).toFixed(3) } })));
}

export function railView({ open, opened }) {
  const list = el("ul", { class: "plain history" });
  const empty = el("p", { class: "soft", hidden: true });
  const search = el("input", { type: "search", placeholder: "Search questions", "aria-label": "Search questions", oninput: soon });
  const selects = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, choice(name, FILTERS[name])]));
  const spend = el("div", { class: "spend" });
  const more = button("Older runs", older, { class: "quiet", hidden: true });
  const node = el("nav", { class: "rail", "aria-label": "Runs", id: "rail" },
    el("a", { class: "button primary new", href: "#/new" }, "New council"),
    el("div", { class: "filters" }, search, el("div", { class: "selects" }, Object.values(selects))),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Past runs" }, list, empty, more), spend);
  let timer = 0;
  let shown = [];
  let wait = 0;
  let looking = false;
  let once = false;

  function choice(name, options) {
    return el("select", { "aria-label": `Filter by ${name}`, onchange: () => load() }, el("option", { value: "" }, name), options.map((one) => el("option", { value: one }, one)));
  }

  function protocols(names) {
    for (const name of names) selects.protocol.append(el("option", { value: name }, name));
  }

  function soon() {
    clearTimeout(wait);
    wait = setTimeout(() => load(), 200);
  }

  const asked = (more = {}) => query({ ...Object.fromEntries(Object.entries(selects).map(([name, select]) => [name, select.value])), q: search.value.trim(), limit: 50, ...more });

  /** One look at a time: who asks meanwhile is answered by one more look after it. */
  async function load() {
    if (looking) return void (once = true);
    [looking, once] = [true, false];
    await look();
    looking = false;
    if (once) load();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const { runs, more: rest } = await get(`runs${asked()}`);
      shown = runs;
      more.hidden = !rest;
      draw();
      await tellSpend();
    } catch (error) {
      say(empty, error.message);
      empty.hidden = false;
    }
    timer = setTimeout(() => (document.hidden ? soonAgain() : load()), OFTEN);
  }

  const soonAgain = () => (timer = setTimeout(() => (document.hidden ? soonAgain() : load()), OFTEN));

  async function older() {
    const { runs, more: rest } = await get(`runs${asked({ before: shown.at(-1)?.id })}`);
    const known = new Set(shown.map((run) => run.id));
    shown = [...shown, ...runs.filter((run) => !known.has(run.id))];
    more.hidden = !rest || !runs.length;
    draw();
  }

  async function tellSpend() {
    const told = await get(`spend?since=${DAYS}d`);
    refill(spend, el("span", {}, "Spent today"), el("b", {}, money(told.today?.usd ?? 0)), perDay(told.days || []));
  }

  function draw() {
    const focus = document.activeElement?.dataset?.run;
    refill(list, shown.map(row));
    empty.hidden = shown.length > 0;
    if (!shown.length) say(empty, search.value || Object.values(selects).some((one) => one.value) ? "No run fits." : "No runs yet.");
    if (focus) list.querySelector(`a[data-run="${CSS.escape(focus)}"]`)?.focus();
  }

  function row(run) {
    const word = run.verdict || run.outcome || "";
    const state = run.running ? "running" : run.status === "complete" ? word || "complete" : run.status === "running" ? "stopped" : run.status;
    const tone = run.running ? "live" : toneOf(state) || (state === "complete" ? "good" : state === "queued" ? "live" : "doubt");
    const unfinished = run.unfinished && !run.running && run.status !== "queued";
    return el("li", { class: "past" },
      el("a", { href: `#/run/${encodeURIComponent(run.id)}`, "data-run": run.id, "aria-current": run.id === opened() ? "page" : null },
        el("span", { class: "q" }, short(run.question || run.name, 90)),
        el("span", { class: "about" }, el("span", { class: "state", "data-tone": tone }, state), el("span", {}, run.protocol), el("span", {}, ago(run.created)), priceOf(run))),
      unfinished && button("Resume", async (event) => {
        event.currentTarget.disabled = true;
        await server.resume(run.id).catch(() => {});
        open(run.id, true);
        load();
      }, { class: "quiet", "aria-label": `Resume ${short(run.question, 40)}` }));
  }

  function here() {
    for (const link of list.querySelectorAll("a")) mark(link, "aria-current", link.dataset.run === opened() ? "page" : null);
  }

  return { node, load, here, protocols };
}
