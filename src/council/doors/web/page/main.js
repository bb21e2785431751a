// The page of `council serve`: history on the left, one run or the start form on the right.

import { again, begin, watch } from "./stream.js";
import { button, el, mark, refill, say } from "./dom.js";
import { get, server, signIn } from "./api.js";
import { helpDialog, listen } from "./keys.js";
import { railView } from "./rail.js";
import { runView } from "./run.js";
import { startView } from "./start.js";
import { themeButton } from "./theme.js";

const main = el("main", { id: "main", tabindex: "-1" });
const help = helpDialog();
const root = document.documentElement;
const rail = railView({ open, opened: () => route().run });
const source = { ...server, share: (run) => server.reportAddress(run, "html") };
let shown = null;
let protocols = [];
let people = {};

const toggle = button("Runs", () => aside(!root.hasAttribute("data-rail")), { class: "quiet menu", "aria-controls": "rail" });
document.body.append(
  el("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "To the content"),
  el("header", { class: "top" }, toggle, el("a", { class: "brand", href: "#/new" }, "council"), el("span", { class: "fill" }), button("Keys ?", () => help.showModal(), { class: "quiet" }), themeButton()),
  el("div", { class: "house" }, rail.node, main), help);

rail.node.addEventListener("click", ({ target }) => target.closest("a") && aside(false));

function aside(on) {
  mark(root, "data-rail", on ? "open" : null);
  toggle.setAttribute("aria-expanded", String(on));
}

function route() {
  const [, where, run] = location.hash.split("/");
  return { where: where || "new", run: where === "run" ? decodeURIComponent(run || "") : "" };
}

function open(run, fresh = false) {
  if (fresh && route().run === run) return go();
  location.hash = `#/run/${encodeURIComponent(run)}`;
}

function go() {
  shown?.close?.();
  aside(false);
  const { run } = route();
  if (run) {
    shown = runView(run, { source, follow: watch, again, canAct: true, notify: rail.load });
  } else {
    shown = startView({ protocols, people, begun: (id) => (open(id), rail.load()) });
    document.title = "council";
  }
  refill(main, shown.node);
  rail.here();
}

function wide(on = !root.hasAttribute("data-wide")) {
  mark(root, "data-wide", on ? "yes" : null);
}

async function boot() {
  try {
    await signIn();
    [protocols, people] = await Promise.all([get("protocols"), get("members")]);
  } catch (error) {
    refill(main, el("p", { class: "problem big", role: "alert" }, error.message));
    return;
  }
  rail.protocols(protocols.map((one) => one.name));
  rail.load();
  begin();
  addEventListener("hashchange", go);
  listen(() => (shown?.bench ? shown : null), {
    help: () => help.showModal(), wide, isWide: () => root.hasAttribute("data-wide"), fresh: () => (location.hash = "#/new"),
    search: () => rail.node.querySelector("input").focus(),
  });
  go();
}

boot();
