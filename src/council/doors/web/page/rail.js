// The list of runs: unfinished first, then by day, with filters in the address, search, rename, delete, compare and spending.

import { ago, amount, capital, money, short } from "./format.js";
import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { get, query, server } from "./api.js";
import { toneOfOutcome } from "./outcome_panel.js";
import { DAYS, dayOf, formatDay, isDay, parametersOf, readFilters, RESULTS, spendChart, writeFilters } from "./run_filters.js";
import { toneOf } from "./positions.js";

const PAGE_RUNS = 50;
const MAX_RUNS = 500; // of one request
const POLL_MS = 8000; // milliseconds between polls while the page is visible
const MAX_TITLE_CHARS = 200;
const timeOf = (at) => new Date(at * 1000).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const isUnfinished = (run) => run.unfinished && run.status !== "failed"; // as the server sorts the list

/** `counted` is told whether there are no runs at all. */
export function railView({ open, opened, compare, counted, removed }) {
  const list = el("div", { class: "history" });
  const empty = el("p", { class: "soft", hidden: true });
  const search = el("input", { type: "search", placeholder: "Search questions", "aria-label": "Search questions", oninput: debouncedLoad });
  const selects = { task: choice("task", ["ask", "validate", "brainstorm", "research"]), result: choice("result", RESULTS), protocol: choice("protocol", []) };
  const day = el("input", { type: "date", onchange: filter });
  const clear = button("Clear filters", clearFilters, { class: "quiet", hidden: true });
  const spend = el("div", { class: "spend" });
  const more = button("Older runs", older, { class: "quiet", hidden: true });
  const dialog = el("dialog", { class: "run-dialog", onclose: () => setChildren(dialog) });
  const chosen = []; // runs to compare, at most two
  const tray = el("div", { class: "tray", role: "status", hidden: true });
  const filterBar = el("div", { class: "filters", hidden: true }, search, el("div", { class: "selects" }, Object.values(selects)), el("div", { class: "bar" }, el("label", { class: "soft" }, "Day ", day), clear));
  const node = el("nav", { class: "rail", "aria-label": "Runs", id: "rail" },
    el("a", { class: "button primary new", href: "#/new" }, "New council"),
    filterBar,
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Past runs" }, list, empty, more), tray, spend, dialog);
  let timer = 0;
  let shown = [];
  let loaded = ""; // the query of the shown runs
  let wait = 0;
  let isLoading = false;
  let loadAgain = false;
  let expanded = ""; // run whose actions are shown

  function choice(name, options) {
    const items = (names) => names.map((one) => el("option", { value: one }, one));
    return el("select", { "aria-label": `Filter by ${name}`, onchange: filter }, el("option", { value: "" }, name),
      Array.isArray(options) ? items(options) : Object.entries(options).map(([group, names]) => el("optgroup", { label: group }, items(names))));
  }

  function protocols(names) {
    for (const name of names) selects.protocol.append(el("option", { value: name }, name));
    showFilters();
  }

  // Filters

  const filters = () => ({ q: search.value.trim(), ...Object.fromEntries(Object.entries(selects).map(([name, select]) => [name, select.value])), day: day.value });

  function showFilters() {
    const given = readFilters();
    search.value = given.q;
    day.value = isDay(given.day) ? given.day : "";
    for (const [name, select] of Object.entries(selects)) select.value = [...select.options].some((one) => one.value === given[name]) ? given[name] : "";
    clear.hidden = !Object.values(filters()).some(Boolean);
  }

  function filter() {
    writeFilters(filters());
    clear.hidden = !Object.values(filters()).some(Boolean);
    load();
  }

  function clearFilters() {
    for (const field of [search, day, ...Object.values(selects)]) field.value = "";
    filter();
    search.focus();
  }

  function chooseDay(value) {
    day.value = day.value === value ? "" : value;
    filter();
  }

  function debouncedLoad() {
    clearTimeout(wait);
    wait = setTimeout(filter, 200);
  }

  // Loading

  const buildQuery = (more = {}) => query({ ...parametersOf(filters()), limit: PAGE_RUNS, ...more });

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
      const wanted = buildQuery();
      const limit = wanted === loaded ? Math.min(MAX_RUNS, Math.max(PAGE_RUNS, shown.length)) : PAGE_RUNS; // older runs stay
      const { runs, more: rest } = await get(`runs${buildQuery({ limit })}`);
      [shown, loaded] = [runs, wanted];
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
    const { usd = 0, reserved = 0, in_doubt: inDoubt = 0, day: today } = spending.today || {};
    const saved = spending.total?.saved || 0;
    const estimated = (spending.days || []).find((one) => one.day === today)?.estimated || 0;
    setChildren(spend, el("span", {}, "Spent today"), el("b", {}, amount(usd - reserved - inDoubt, estimated > 1e-9)), inDoubt > 0 && el("span", { class: "soft" }, `at most ${money(inDoubt)} more in doubt`), reserved > 0 && el("span", { class: "soft" }, `and ${money(reserved)} reserved`), saved > 0 && el("span", { class: "soft" }, `stops saved about ${money(saved)} in ${DAYS} days`), spendChart(spending.days || [], chooseDay));
  }

  // Drawing

  function draw() {
    const focus = focusOf(document.activeElement);
    setChildren(list, groups(shown).map(([title, runs]) => el("section", { class: "day", "aria-label": title }, el("h2", { class: "eyebrow" }, title), el("ul", { class: "plain" }, runs.map(row)))));
    const isFiltered = Object.values(filters()).some(Boolean);
    empty.hidden = shown.length > 0;
    if (!shown.length) setText(empty, isFiltered ? "No matching runs." : "No runs yet.");
    filterBar.hidden = !shown.length && !isFiltered;
    counted(filterBar.hidden);
    if (focus) list.querySelector(focus)?.focus();
  }

  /** Unfinished runs, then one group for each day. */
  function groups(runs) {
    const found = new Map();
    for (const run of runs) {
      const title = isUnfinished(run) ? "Unfinished" : formatDay(dayOf(new Date(run.created * 1000)));
      found.set(title, [...(found.get(title) || []), run]);
    }
    return [...found];
  }

  /** Selector of the focused part of a row, so that a new list keeps the focus. */
  function focusOf(active) {
    const item = active?.closest?.(".run-item");
    if (!item) return "";
    const part = active.dataset.act ? `[data-act="${active.dataset.act}"]` : "a";
    return `.run-item[data-id="${CSS.escape(item.dataset.id)}"] ${part}`;
  }

  const nameOf = (run) => run.title || run.question || run.name;

  function row(run) {
    const word = run.verdict || run.outcome || "";
    const state = run.running ? "running" : run.status === "complete" ? word || "complete" : run.status === "running" ? "stopped" : run.status;
    const tone = run.running ? "live" : toneOf(state) || (state === "complete" ? "good" : state === "queued" ? "live" : "doubt");
    const unfinished = run.unfinished && !run.running && run.status !== "queued";
    const isOpen = expanded === run.id;
    const name = short(nameOf(run), 40);
    return el("li", { class: "run-item", "data-id": run.id, "data-chosen": chosen.includes(run.id) ? "yes" : null },
      el("a", { href: `#/run/${encodeURIComponent(run.id)}`, "data-run": run.id, "aria-current": run.id === opened() ? "page" : null, title: run.title ? run.question : null, onkeydown: (event) => onKey(event, run) },
        el("span", { class: "q" }, short(nameOf(run), 90)),
        el("span", { class: "about" }, el("span", { class: "state", "data-tone": tone }, state), run.decision_outcome && el("span", { class: "state", "data-tone": toneOfOutcome(run.decision_outcome) }, `turned out ${run.decision_outcome}`), el("span", {}, run.protocol), el("span", {}, isUnfinished(run) ? ago(run.created) : timeOf(run.created)), run.cost ? el("span", {}, amount(run.cost, run.estimated)) : null)),
      button("⋯", () => ((expanded = isOpen ? "" : run.id), draw()), { class: "quiet dots", "data-act": "more", "aria-expanded": String(isOpen), "aria-label": `Actions for ${name}` }),
      unfinished && button("Resume", async (event) => {
        event.currentTarget.disabled = true;
        await server.resume(run.id).catch(() => {});
        open(run.id, true);
        load();
      }, { class: "quiet resume", "data-act": "resume", "aria-label": `Resume ${short(run.question, 40)}` }),
      isOpen && el("div", { class: "row-actions" },
        button(chosen.includes(run.id) ? "Do not compare" : "Compare", () => toggleCompare(run.id), { class: "quiet", "data-act": "compare" }),
        button("Rename", () => askTitle(run), { class: "quiet", "data-act": "rename" }),
        button("Delete", () => askDelete(run), { class: "quiet", "data-act": "delete", disabled: run.running })));
  }

  function onKey(event, run) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = { c: () => toggleCompare(run.id), e: () => askTitle(run), Delete: () => !run.running && askDelete(run) }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  // Actions of one run

  /** Choose a run to compare; the second one opens the comparison. */
  function toggleCompare(run) {
    const at = chosen.indexOf(run);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push(run);
    if (chosen.length === 2) compare(...chosen.splice(0));
    const first = shown.find((one) => one.id === chosen[0]);
    tray.hidden = !chosen.length;
    setChildren(tray, chosen.length > 0 && [el("span", {}, `Compare “${short(first ? nameOf(first) : chosen[0], 40)}” with another run: choose Compare there, or press c.`), button("Cancel", () => toggleCompare(chosen[0]), { class: "quiet" })]);
    draw();
  }

  function askTitle(run) {
    const title = el("input", { type: "text", id: "run-title", maxlength: String(MAX_TITLE_CHARS), value: run.title || short(nameOf(run), MAX_TITLE_CHARS) });
    ask("Rename this run", [el("div", { class: "field" }, el("label", { for: "run-title" }, "Title"), title, el("span", { class: "hint" }, "Empty: show the question again."))], "Rename", "primary", () => server.rename(run.id, title.value.trim() === (run.question || "").trim() ? "" : title.value));
    title.select();
  }

  function askDelete(run) {
    ask("Delete this run?", [el("p", {}, `“${short(nameOf(run), 160)}”`), el("p", { class: "soft" }, "Its answers, requests and report are removed. What it cost stays in the totals. This cannot be undone.")], "Delete", "danger", async () => {
      await server.remove(run.id);
      shown = shown.filter((one) => one.id !== run.id);
      if (chosen.includes(run.id)) toggleCompare(run.id);
      removed(run.id);
    });
  }

  /** Show a dialog with one action, and the problem if the action fails. */
  function ask(title, content, label, kind, act) {
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const submit = async (event) => {
      event.preventDefault();
      try {
        await act();
      } catch (error) {
        setText(problem, capital(error.message));
        problem.hidden = false;
        return;
      }
      dialog.close();
      expanded = "";
      load();
    };
    setChildren(dialog, el("form", { onsubmit: submit }, el("h2", {}, title), content, problem, el("div", { class: "bar" }, button(label, null, { type: "submit", class: kind }), button("Cancel", () => dialog.close()))));
    dialog.showModal();
  }

  function markCurrent() {
    for (const link of list.querySelectorAll("a")) setAttr(link, "aria-current", link.dataset.run === opened() ? "page" : null);
  }

  showFilters();
  return { node, load, markCurrent, protocols };
}
