// A run in a file: the same views over the events that stand in it. Nothing is asked of anybody.

import { button, el, mark } from "./dom.js";
import { helpDialog, listen } from "./keys.js";
import { runView } from "./run.js";
import { themeButton } from "./theme.js";

const kept = JSON.parse(document.getElementById("council-run").textContent);
const help = helpDialog();
const root = document.documentElement;
const main = el("main", { id: "main", tabindex: "-1" });

const source = {
  detail: async () => kept.detail,
  report: async () => kept.markdown,
};

function follow(run, handlers) {
  for (const entry of kept.events) handlers.entry(entry);
  handlers.end();
  return () => {};
}

document.body.append(
  el("header", { class: "top" }, el("span", { class: "brand" }, "council"), el("span", { class: "fill" }), button("Keys ?", () => help.showModal(), { class: "quiet" }), themeButton()),
  el("div", { class: "house alone" }, main), help);
mark(root, "data-export", "yes");
const shown = runView(kept.detail.report.run, { source, follow, again: () => {}, canAct: false });
main.append(shown.node);

function wide(on = !root.hasAttribute("data-wide")) {
  mark(root, "data-wide", on ? "yes" : null);
}

listen(() => shown, { help: () => help.showModal(), wide, isWide: () => root.hasAttribute("data-wide") });
