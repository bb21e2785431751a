// Cost by seat and phase.

import { el, changeDetector, setChildren } from "./dom.js";
import { allSeats, isPrivatePhase } from "./minutes.js";
import { money, number } from "./format.js";

export function moneyTab(context) {
  const node = el("div", {});
  const isNew = changeDetector();

  function update({ minutes }) {
    if (isNew(minutes.run, minutes.seq)) setChildren(node, table(minutes, context), sums(minutes));
  }

  return { node, update };
}

/** Sum the bills by seat and by the phase at the start of each key. */
function table(m, context) {
  const phases = [...new Set([...m.phases.keys()].map((phase) => (isPrivatePhase(m, phase) ? phase.split("/")[0] : phase)))];
  const seats = allSeats(m);
  const paid = (seat, phase) => m.attempts.filter((one) => one.seat === seat && one.usd !== null && (!phase || one.key.split("/")[0] === phase)).reduce((sum, one) => sum + one.usd, 0);
  const any = m.attempts.some((one) => one.usd);
  if (!any) return el("p", {}, m.unpriced.size ? "The prices of these members are unknown." : "Nothing was billed.");
  const cell = (usd) => el("td", { class: "figure" }, usd ? money(usd, 4) : "–");
  return el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Cost by seat and phase" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Seat"), phases.map((phase) => el("th", { scope: "col", class: "figure" }, phase)), el("th", { scope: "col", class: "figure" }, "Tokens in / out"), el("th", { scope: "col", class: "figure" }, "Total"))),
    el("tbody", {}, seats.map((seat) => el("tr", {}, el("th", { scope: "row", class: context.tone(seat.name) }, el("span", { class: "dot", "aria-hidden": "true" }), seat.name), phases.map((phase) => cell(paid(seat.name, phase))), el("td", { class: "figure" }, `${number(seat.read)} / ${number(seat.tokens)}`), cell(paid(seat.name))))),
    el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "Total"), phases.map((phase) => cell(seats.reduce((sum, seat) => sum + paid(seat.name, phase), 0))), el("td", {}), cell(m.usd)))));
}

function sums(m) {
  const plan = m.plan.cost;
  const estimate = plan ? `Estimate: low ${money(plan.low)}, expected ${money(plan.expected)}, worst ${money(plan.worst)}.` : "";
  const cap = m.cap !== null ? ` Cap: ${money(m.cap)}.` : "";
  const estimated = m.estimated ? " Part of it is estimated, because the provider reported no usage." : "";
  const unknown = m.unpriced.size ? ` Unknown price: ${[...m.unpriced].join(", ")}.` : "";
  return el("p", { class: "soft" }, `${estimate}${cap}${estimated}${unknown}`);
}
