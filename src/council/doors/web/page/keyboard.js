// Keyboard shortcuts. Ignored while the user types.

import { button, el } from "./dom.js";

const HELP = [
  ["1 – 9", "focus a seat; again to show all"], ["v", "next view of the seats"], ["f", "full width"], ["j  k", "next / previous finding"], ["r", "play or pause the replay"],
  ["n", "new council"], ["/", "search runs"], ["c  e  Del", "on a run of the list: compare, rename, delete"], ["?", "this help"], ["Esc", "close the dialog, full width or focus"],
];

export function helpDialog() {
  const dialog = el("dialog", { class: "help", "aria-label": "Keyboard" },
    el("h2", {}, "Keyboard"), el("dl", {}, HELP.map(([keys, action]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, action)])), button("Close", () => dialog.close()));
  return dialog;
}

const isTyping = (node) => node?.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(node?.tagName);

/** `view()` returns the shown run, if any; `act` has the actions of the page: help, wide, fresh, search. */
export function bindKeys(view, act) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return handleEscape(view(), act);
    const isSlider = document.activeElement?.type === "range";
    if ((isTyping(document.activeElement) && !isSlider) || document.querySelector("dialog[open]")) return;
    const handled = handleKey(event.key, view(), act);
    if (handled) event.preventDefault();
  });
}

function handleEscape(run, act) {
  if (document.querySelector("dialog[open]")) return;
  if (act.isWide()) act.wide(false);
  else if (run?.seats.focused) run.seats.focus("");
  else run?.map.close();
}

function handleKey(key, run, act) {
  if (key === "?") return act.help(), true;
  if (key === "f") return act.wide(), true;
  if (key === "n" && act.fresh) return act.fresh(), true;
  if (key === "/" && act.search) return act.search(), true;
  if (!run) return false;
  if (/^[1-9]$/.test(key)) return run.seats.nth(Number(key)), true;
  if (key === "v") return run.seats.nextMode(), true;
  if (key === "j" || key === "k") return run.map.step(key === "j" ? 1 : -1), true;
  if (key === "r") return run.player.toggle(), true;
  return false;
}
