// Button with the name of a seat that shows its statement.

import { button, el } from "./dom.js";

/** `phase` selects the statement (default: the last), `quote` the passage in it. */
export function chip(seat, context, { phase, quote } = {}) {
  const label = [el("span", { class: "dot", "aria-hidden": "true" }), context.shortName(seat)];
  return button(label, () => context.show(seat, phase, quote), { class: `chip ${context.tone(seat)}`, title: `Show the statement of ${seat}` });
}

export const chips = (seats, context, more) => el("span", { class: "chips" }, (seats || []).map((seat) => chip(seat, context, more)));

/** The names of seats as in a sentence: alpha, beta and gamma. */
export const chipList = (seats, context, more) => el("span", { class: "names" }, seats.map((seat, n) => [n > 0 && (n === seats.length - 1 ? " and " : ", "), chip(seat, context, more)]));
