// A seat's name as a small button that leads to its words.

import { button, el } from "./dom.js";

/** `quote` is looked for in the statement, `phase` says which one; else the last. */
export function chip(seat, context, { phase, quote } = {}) {
  const label = [el("span", { class: "dot", "aria-hidden": "true" }), context.brief(seat)];
  return button(label, () => context.show(seat, phase, quote), { class: `chip ${context.tone(seat)}`, title: `Show what ${seat} said` });
}

export const chips = (seats, context, more) => el("span", { class: "chips" }, (seats || []).map((seat) => chip(seat, context, more)));
