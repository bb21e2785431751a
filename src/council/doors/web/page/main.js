// The page of `council serve`: history on the left, one run or the start form on the right.

import { connect, reconnect, watch } from "./stream.js";
import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { compareView } from "./compare.js";
import { evalsView } from "./evals.js";
import { connection, get, server, signIn } from "./api.js";
import { helpDialog, bindKeys } from "./keyboard.js";
import { railView } from "./rail.js";
import { runView } from "./run_view.js";
import { setupDialog } from "./setup_dialog.js";
import { showTab } from "./tab_state.js";
import { startView } from "./composer.js";
import { themeButton } from "./theme.js";

const main = el("main", { id: "main", tabindex: "-1" });
const help = helpDialog();
const root = document.documentElement;
const rail = railView({ open, opened: () => route().run, compare: openComparison, counted: (isEmpty) => ((hasNoRuns = isEmpty), form?.showExamples(isEmpty)), removed: (run) => route().run === run && (location.hash = "#/new") });
const banner = el("p", { class: "banner", role: "status", hidden: true });
const BANNERS = {
  down: "The server cannot be reached: is `council serve` still running? What is shown stays, and the page reconnects by itself.",
  "signed-out": "This page is signed out: open the address that `council serve` printed. What is shown stays.",
};
const COMPARE = "#compare="; // of the address of a comparison: #compare=A,B
let shown = null;
let form = null; // the composer whose question was not started yet
let booted = false;
let hasNoRuns = false;
let protocols = [];
let people = {};
let options = {};
let setup = {};
const setupForm = setupDialog(afterSetup);

const toggle = button("Runs", () => showRail(!root.hasAttribute("data-rail")), { class: "quiet menu", "aria-controls": "rail" });
document.body.append(
  el("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
  el("header", { class: "top" }, toggle, el("a", { class: "brand", href: "#/new" }, "council"), el("span", { class: "fill" }), el("a", { class: "quiet", href: "#/evals", title: "Evaluations of councils" }, "Evals"), button("Keys ?", () => help.showModal(), { class: "quiet" }), themeButton()), banner,
  el("div", { class: "layout" }, rail.node, main), help, setupForm.node);

rail.node.addEventListener("click", ({ target }) => target.closest("a") && showRail(false));

function showRail(on) {
  setAttr(root, "data-rail", on ? "open" : null);
  toggle.setAttribute("aria-expanded", String(on));
}

/** Decode a part of the address; a wrong one stays as it is, and names no run. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  if (location.hash.startsWith(COMPARE)) return { where: "compare", run: "", runs: location.hash.slice(COMPARE.length).split(",").map(decode) };
  const [, where, run] = location.hash.split("/");
  return { where: where || "new", run: where === "run" ? decode(run || "") : "", id: decode(run || "") };
}

function open(run, fresh = false) {
  if (fresh && route().run === run) return go();
  location.hash = `#/run/${encodeURIComponent(run)}`;
}

function openComparison(...runs) {
  location.hash = `${COMPARE}${runs.map(encodeURIComponent).join(",")}`;
}

function go() {
  shown?.close?.();
  showRail(false);
  const { run, runs, where, id } = route();
  if (runs?.length === 2) {
    shown = compareView(runs, { source: server, swap: () => openComparison(...runs.toReversed()) });
  } else if (run) {
    shown = runView(run, { source: server, follow: watch, reconnect, canAct: true, openRun: (id) => (open(id), rail.load()), openSetup: setup.refused ? null : () => setupForm.open("key"), notify: rail.load, now: connection.now });
  } else if (where === "evals") {
    shown = evalsView(id);
  } else {
    form ||= startView({ protocols, people, options, setup, openSetup: setupForm.open, onStart: (id) => ((form = null), open(id), rail.load()) });
    form.showExamples(hasNoRuns);
    shown = form; // its files and options stay while runs are looked at
    showTab("");
  }
  setChildren(main, shown.node);
  rail.markCurrent();
}

function wide(on = !root.hasAttribute("data-wide")) {
  setAttr(root, "data-wide", on ? "yes" : null);
}

connection.listen((state) => {
  banner.hidden = state === "up";
  setText(banner, BANNERS[state] || "");
  if (state !== "up") return;
  if (!booted) return boot();
  rail.load();
  reconnect();
});

async function loadChoices() {
  [protocols, people, options, setup] = await Promise.all([get("protocols"), get("members"), get("options"), get("setup")]);
  setupForm.show(setup);
}

/** Show the composer with what was set up, and with its draft. */
async function afterSetup() {
  await loadChoices();
  const isShown = shown === form;
  form = null;
  if (isShown) go();
}

async function boot() {
  try {
    await loadChoices();
  } catch (error) {
    setChildren(main, el("p", { class: "problem big", role: "alert" }, error.message));
    return;
  }
  booted = true;
  rail.protocols(protocols.map((one) => one.name));
  rail.load();
  connect();
  addEventListener("hashchange", go);
  bindKeys(() => (shown?.seats ? shown : null), {
    help: () => help.showModal(), wide, isWide: () => root.hasAttribute("data-wide"), fresh: () => (location.hash = "#/new"),
    search: () => rail.node.querySelector("input").focus(),
  });
  go();
}

signIn().then(boot);
