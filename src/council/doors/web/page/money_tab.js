// Cost by seat: foreseen, spent, reserved and in doubt as bars, then by phase as a table.

import { el, changeDetector, setChildren } from "./dom.js";
import { allSeats, attempts, moneyOf, phasesOf, unpricedMembers } from "./minutes.js";
import { amount, money, number } from "./format.js";

const PARTS = [["spent", "spent"], ["reserved", "reserved for open requests"], ["inDoubt", "in doubt: sent, but no answer was stored"]];

export function moneyTab(context) {
  const node = el("div", { class: "money-tab" });
  const isNew = changeDetector();

  function update({ minutes, live }) {
    if (isNew(minutes.run, minutes.seq, live)) setChildren(node, bars(minutes, live, context), table(minutes, context), sums(minutes, live));
  }

  return { node, update };
}

/** One row for each seat of the plan; the requests of its helpers count for it. */
function bars(m, live, context) {
  const rows = allSeats(m).filter((seat) => !seat.host).map((seat) => {
    const names = [seat.name, ...allSeats(m).filter((one) => one.host === seat.name).map((one) => one.name)];
    const sum = { foreseen: 0, spent: 0, reserved: 0, inDoubt: 0, isEstimated: false };
    for (const name of names) {
      const one = moneyOf(m, name, live);
      sum.foreseen += m.plan.cost?.seats?.[name] || 0;
      for (const [part] of PARTS) sum[part] += one[part];
      sum.isEstimated ||= one.isEstimated;
    }
    return { name: seat.name, ...sum };
  });
  const most = Math.max(...rows.map((row) => Math.max(row.foreseen, row.spent + row.reserved + row.inDoubt)));
  if (!(most > 0)) return null;
  const used = PARTS.filter(([part]) => rows.some((row) => row[part] > 0));
  const isForeseen = rows.some((row) => row.foreseen > 0);
  return el("figure", { class: "money-bars", "aria-label": "Cost of each seat" },
    el("p", { class: "legend hint" }, isForeseen && el("span", { class: "key", "data-part": "foreseen" }, "foreseen"), used.map(([part, label]) => el("span", { class: "key", "data-part": part }, label))),
    el("ul", { class: "plain" }, rows.map((row) => bar(row, most, context))));
}

function bar(row, most, context) {
  const part = (usd) => (usd / most).toFixed(4);
  const said = [
    row.spent > 0 || !row.reserved ? `${amount(row.spent, row.isEstimated)} spent` : "",
    row.foreseen > 0 && `${money(row.foreseen)} foreseen`, row.reserved > 0 && `${money(row.reserved)} reserved`, row.inDoubt > 0 && `${amount(row.inDoubt, true)} in doubt`,
  ].filter(Boolean).join(" · ");
  return el("li", { class: context.tone(row.name), "data-seat": row.name },
    el("b", {}, el("span", { class: "dot", "aria-hidden": "true" }), row.name),
    el("span", { class: "track", "aria-hidden": "true" }, PARTS.map(([name]) => row[name] > 0 && el("i", { "data-part": name, style: { "--part": part(row[name]) } })), row.foreseen > 0 && el("i", { "data-part": "foreseen", style: { "--part": part(row.foreseen) } })),
    el("span", { class: "figure" }, said));
}

/** Sum the bills by seat and by the phase at the start of each key. */
function table(m, context) {
  const phases = [...new Set(phasesOf(m).map((phase) => (phase.private ? phase.name.split("/")[0] : phase.name)))];
  const seats = allSeats(m);
  const billed = attempts(m).filter((one) => one.usd !== undefined);
  const paid = (seat, phase) => {
    const bills = billed.filter((one) => (seat === null || one.seat === seat) && (!phase || one.key.split("/")[0] === phase));
    return { usd: bills.reduce((sum, one) => sum + one.usd, 0), isEstimated: bills.some((one) => one.estimated) };
  };
  if (!billed.some((one) => one.usd)) return el("p", {}, unpricedMembers(m).length ? "The prices of these members are unknown." : "Nothing was billed.");
  const cell = ({ usd, isEstimated }) => el("td", { class: "figure" }, usd ? amount(usd, isEstimated, 4) : "–");
  return el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Cost by seat and phase" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Seat"), phases.map((phase) => el("th", { scope: "col", class: "figure" }, phase)), el("th", { scope: "col", class: "figure" }, "Tokens in / out"), el("th", { scope: "col", class: "figure" }, "Total"))),
    el("tbody", {}, seats.map((seat) => el("tr", {}, el("th", { scope: "row", class: context.tone(seat.name) }, el("span", { class: "dot", "aria-hidden": "true" }), seat.name), phases.map((phase) => cell(paid(seat.name, phase))), el("td", { class: "figure" }, `${number(seat.read)} / ${number(seat.written)}`), cell(paid(seat.name))))),
    el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "Total"), phases.map((phase) => cell(paid(null, phase))), el("td", {}), cell(paid(null))))));
}

function doubtReason(failed, live) {
  if (failed) return `${number(failed)} ${failed === 1 ? "request has" : "requests have"} no answer and may have been billed`;
  return `${live ? "an earlier process" : "the run"} stopped before these answers were stored`;
}

function sums(m, live) {
  const plan = m.plan.cost;
  const { inDoubt } = moneyOf(m, null, live);
  const failed = attempts(m).filter((one) => one.doubtful > 0).length;
  const unpriced = unpricedMembers(m);
  const lines = [
    plan ? `Estimate: low ${money(plan.low)}, expected ${money(plan.expected)}, worst ${money(plan.worst)}.` : "",
    m.cap !== undefined ? `Cap: ${money(m.cap)}.` : "",
    m.estimated ? "Amounts with “est.” are estimates, because the provider reported no usage." : "",
    inDoubt ? `${money(inDoubt)} at most is in doubt, beside what was spent: ${doubtReason(failed, live)}.` : "",
    unpriced.length ? `Unknown price: ${unpriced.join(", ")}.` : "",
  ];
  return el("p", { class: "soft" }, lines.filter(Boolean).join(" "));
}
