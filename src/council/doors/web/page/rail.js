// The list of runs: unfinished first, with filters, search and spending.

import { ago, money, short } from "./format.js";
import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { get, query, server } from "./api.js";
import { toneOf } from "./positions.js";

const priceOf = (run) => (run.cost ? el("span", {}, money(run.cost?.usd ?? run.cost)) : null);
const DAYS = 14; // days in the spending chart
const PAGE_RUNS = 50;
const MAX_RUNS = 500; // of one request
const POLL_MS = 8000; // milliseconds between polls while the page is visible
const FILTERS = {
  task: ["ask", "validate", "brainstorm", "research"],
  verdict: ["PASS", "WARN", "FAIL", "DISAGREE"],
  protocol: [],
};

/** Draw a bar for each of the last days. */
function spendChart(days) {
  const spent = new Map(days.map((one) => [one.day, one.usd ?? 0]));
  if (!spent.size) return null;
  const shown = Array.from({ length: DAYS }, (_, n) => new Date(Date.now() - (DAYS - 1 - n) * 864e5).toISOString().slice(0, 10));
  const most = Math.max(1e-9, ...shown.map((day) => spent.get(day) || 0));
  const summary = shown.filter((day) => spent.get(day)).map((day) => `${day} ${money(spent.get(day))}`).join(", ") || "nothing";
  return el("div", { class: "days", role: "img", "aria-label": `Spent per day: ${summary}` }, shown.map((day) => el("i", { title: `${day}: ${money(spent.get(day) || 0)}`, style: { "--part": ((spent.get(day) || 0) / most).toFixed(3) } })));
}

export function railView({ open, opened }) {
  const list = el("ul", { class: "plain history" });
  const empty = el("p", { class: "soft", hidden: true });
  const search = el("input", { type: "search", placeholder: "Search questions", "aria-label": "Search questions", oninput: debouncedLoad });
  const selects = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, choice(name, FILTERS[name])]));
  const spend = el("div", { class: "spend" });
  const more = button("Older runs", older, { class: "quiet", hidden: true });
  const node = el("nav", { class: "rail", "aria-label": "Runs", id: "rail" },
    el("a", { class: "button primary new", href: "#/new" }, "New council"),
    el("div", { class: "filters" }, search, el("div", { class: "selects" }, Object.values(selects))),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Past runs" }, list, empty, more), spend);
  let timer = 0;
  let shown = [];
  let loaded = ""; // the query of the shown runs
  let wait = 0;
  let isLoading = false;
  let loadAgain = false;

  function choice(name, options) {
    return el("select", { "aria-label": `Filter by ${name}`, onchange: () => load() }, el("option", { value: "" }, name), options.map((one) => el("option", { value: one }, one)));
  }

  function protocols(names) {
    for (const name of names) selects.protocol.append(el("option", { value: name }, name));
  }

  function debouncedLoad() {
    clearTimeout(wait);
    wait = setTimeout(() => load(), 200);
  }

  const buildQuery = (more = {}) => query({ ...Object.fromEntries(Object.entries(selects).map(([name, select]) => [name, select.value])), q: search.value.trim(), limit: PAGE_RUNS, ...more });

  /** Load the runs, one request at a time; a call during a request causes one more. */
  async function load() {
    if (isLoading) return void (loadAgain = true);
    [isLoading, loadAgain] = [true, false];
    await fetchRuns();
    isLoading = false;
    if (loadAgain) load();
  }

  async function fetchRuns() {
    clearTimeout(timer);
    try {
      const filter = buildQuery();
      const limit = filter === loaded ? Math.min(MAX_RUNS, Math.max(PAGE_RUNS, shown.length)) : PAGE_RUNS; // older runs stay
      const { runs, more: rest } = await get(`runs${buildQuery({ limit })}`);
      [shown, loaded] = [runs, filter];
      more.hidden = !rest;
      draw();
      await updateSpend();
    } catch (error) {
      setText(empty, error.status ? error.message : ""); // the banner reports a server that cannot be reached
      empty.hidden = !error.status;
    }
    timer = setTimeout(() => (document.hidden ? pollLater() : load()), POLL_MS);
  }

  const pollLater = () => (timer = setTimeout(() => (document.hidden ? pollLater() : load()), POLL_MS));

  async function older() {
    const { runs, more: rest } = await get(`runs${buildQuery({ before: shown.at(-1)?.id })}`);
    const known = new Set(shown.map((run) => run.id));
    shown = [...shown, ...runs.filter((run) => !known.has(run.id))];
    more.hidden = !rest || !runs.length;
    draw();
  }

  async function updateSpend() {
    const spending = await get(`spend?since=${DAYS}d`);
    const { usd = 0, reserved = 0 } = spending.today || {};
    setChildren(spend, el("span", {}, "Spent today"), el("b", {}, money(usd - reserved)), reserved > 0 && el("span", { class: "soft" }, `and ${money(reserved)} reserved`), spendChart(spending.days || []));
  }

  function draw() {
    const focus = document.activeElement?.dataset?.run;
    setChildren(list, shown.map(row));
    empty.hidden = shown.length > 0;
    if (!shown.length) setText(empty, search.value || Object.values(selects).some((one) => one.value) ? "No matching runs." : "No runs yet.");
    if (focus) list.querySelector(`a[data-run="${CSS.escape(focus)}"]`)?.focus();
  }

  function row(run) {
    const word = run.verdict || run.outcome || "";
    const state = run.running ? "running" : run.status === "complete" ? word || "complete" : run.status === "running" ? "stopped" : run.status;
    const tone = run.running ? "live" : toneOf(state) || (state === "complete" ? "good" : state === "queued" ? "live" : "doubt");
    const unfinished = run.unfinished && !run.running && run.status !== "queued";
    return el("li", { class: "run-item" },
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

  function markCurrent() {
    for (const link of list.querySelectorAll("a")) setAttr(link, "aria-current", link.dataset.run === opened() ? "page" : null);
  }

  return { node, load, markCurrent, protocols };
}
