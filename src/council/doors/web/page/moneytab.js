// What was paid, to whom, for what: by seat and phase, and every attempt that has a bill.

import { el, memory, refill } from "./dom.js";
import { everyone, isApart } from "./fold.js";
import { money, number } from "./words.js";

export function moneyTab(context) {
  const node = el("div", {});
  const isNew = memory();

  function update({ minutes }) {
    if (isNew(minutes.run, minutes.seq)) refill(node, table(minutes, context), sums(minutes));
  }

  return { node, update };
}

/** Each attempt's bill under its seat and the phase its key begins with. */
function table(m, context) {
  const phases = [...new Set([...m.phases.keys()].map((phase) => (isApart(m, phase) ? phase.split("/")[0] : phase)))];
  const seats = everyone(m);
  const paid = (seat, phase) => m.attempts.filter((one) => one.seat === seat && one.usd !== null && (!phase || one.key.split("/")[0] === phase)).reduce((sum, one) => sum + one.usd, 0);
  const any = m.attempts.some((one) => one.usd);
  if (!any) return el("p", {}, m.unpriced.size ? "Nobody knows what these members charge." : "Nothing was billed.");
  const cell = (usd) => el("td", { class: "figure" }, usd ? money(usd, 4) : "–");
  return el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Money by seat and phase" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Seat"), phases.map((phase) => el("th", { scope: "col", class: "figure" }, phase)), el("th", { scope: "col", class: "figure" }, "Tokens in / out"), el("th", { scope: "col", class: "figure" }, "In all"))),
    el("tbody", {}, seats.map((seat) => el("tr", {}, el("th", { scope: "row", class: context.tone(seat.name) }, el("span", { class: "dot", "aria-hidden": "true" }), seat.name), phases.map((phase) => cell(paid(seat.name, phase))), el("td", { class: "figure" }, `${number(seat.read)} / ${number(seat.tokens)}`), cell(paid(seat.name))))),
    el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "In all"), phases.map((phase) => cell(seats.reduce((sum, seat) => sum + paid(seat.name, phase), 0))), el("td", {}), cell(m.usd)))));
}

function sums(m) {
  const plan = m.plan.cost;
  const foreseen = plan ? `Foreseen: low ${money(plan.low)}, expected ${money(plan.expected)}, worst ${money(plan.worst)}.` : "";
  const cap = m.cap !== null ? ` Cap: ${money(m.cap)}.` : "";
  const estimated = m.estimated ? " A part is estimated: the provider did not say what it used." : "";
  const unknown = m.unpriced.size ? ` Of unknown price: ${[...m.unpriced].join(", ")}.` : "";
  return el("p", { class: "soft" }, `${foreseen}${cap}${estimated}${unknown}`);
}
