// Entry point of an exported file: the same views over the embedded events, without any request.

import { button, el, setAttr } from "./dom.js";
import { helpDialog, bindKeys } from "./keyboard.js";
import { runView } from "./run_view.js";
import { themeButton } from "./theme.js";

const data = JSON.parse(document.getElementById("council-run").textContent);
const help = helpDialog();
const root = document.documentElement;
const main = el("main", { id: "main", tabindex: "-1" });

const source = {
  detail: async () => data.detail,
  positions: async () => data.detail.positions || [],
  report: async () => data.markdown,
};

function follow(run, handlers) {
  for (const entry of data.events) handlers.entry(entry);
  handlers.end();
  return () => {};
}

document.body.append(
  el("header", { class: "top" }, el("span", { class: "brand" }, "council"), el("span", { class: "fill" }), button("Keys ?", () => help.showModal(), { class: "quiet" }), themeButton()),
  el("div", { class: "layout alone" }, main), help);
setAttr(root, "data-export", "yes");
const shown = runView(data.detail.report.run, { source, follow, reconnect: () => {}, canAct: false });
main.append(shown.node);

function wide(on = !root.hasAttribute("data-wide")) {
  setAttr(root, "data-wide", on ? "yes" : null);
}

bindKeys(() => shown, { help: () => help.showModal(), wide, isWide: () => root.hasAttribute("data-wide") });
