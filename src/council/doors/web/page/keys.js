// The keyboard: one letter each, never while somebody types.

import { button, el } from "./dom.js";

const HELP = [
  ["1 – 9", "focus a seat, again to see all"], ["f", "full width"], ["j  k", "next finding, the one before"], ["r", "replay, or pause it"],
  ["n", "new council"], ["/", "search the runs"], ["?", "this help"], ["Esc", "leave focus, full width or a dialog"],
];

export function helpDialog() {
  const dialog = el("dialog", { class: "help", "aria-label": "Keyboard" },
    el("h2", {}, "Keyboard"), el("dl", {}, HELP.map(([keys, what]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, what)])), button("Close", () => dialog.close()));
  return dialog;
}

const typing = (node) => node?.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(node?.tagName);

/** `view()` is the run that is shown, if any; `act` has what belongs to the page: help, wide, fresh, search. */
export function listen(view, act) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return leave(view(), act);
    const isSlider = document.activeElement?.type === "range";
    if ((typing(document.activeElement) && !isSlider) || document.querySelector("dialog[open]")) return;
    const done = keyed(event.key, view(), act);
    if (done) event.preventDefault();
  });
}

function leave(run, act) {
  if (document.querySelector("dialog[open]")) return;
  if (act.isWide()) act.wide(false);
  else if (run?.bench.focused) run.bench.focus("");
  else run?.map.close();
}

function keyed(key, run, act) {
  if (key === "?") return act.help(), true;
  if (key === "f") return act.wide(), true;
  if (key === "n" && act.fresh) return act.fresh(), true;
  if (key === "/" && act.search) return act.search(), true;
  if (!run) return false;
  if (/^[1-9]$/.test(key)) return run.bench.nth(Number(key)), true;
  if (key === "j" || key === "k") return run.map.step(key === "j" ? 1 : -1), true;
  if (key === "r") return run.player.toggle(), true;
  return false;
}
