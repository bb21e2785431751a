// The plan of the composer: protocol and why, seats with their members, calls, material and price.

import { el } from "./dom.js";
import { count, money, number } from "./format.js";

/** Label of the Run button: the most that the run can cost. */
export function runLabel(plan, cap) {
  if (!plan.cost) return plan.unpriced?.length ? "Run · price unknown" : "Run";
  const worst = Math.min(plan.cost.worst, cap ?? Infinity, plan.cap ?? Infinity);
  return worst > 0 ? `Run · at most ${money(worst)}` : "Run · free";
}

export const seatsOf = (plan) => [...plan.seats, ...(plan.chair ? [plan.chair] : [])];

export function planNodes(plan, isChosen) {
  const packet = plan.packet?.files?.length ? `${count(plan.packet.files.length, "file")}, about ${number(plan.packet.tokens)} tokens` : "";
  const attached = plan.attachments?.length ? count(plan.attachments.length, "image or PDF", "images and PDFs") : "";
  const calls = `${plan.calls.min === plan.calls.max ? plan.calls.max : `${plan.calls.min} to ${plan.calls.max}`} calls`;
  const skipped = plan.packet?.skipped?.length ? el("details", { class: "soft" }, el("summary", {}, `${number(plan.packet.skipped.length)} left out`), el("ul", {}, plan.packet.skipped.map((one) => el("li", {}, `${one.path}: ${one.why}`)))) : null;
  return [
    el("p", { class: "lead" }, el("b", {}, plan.protocol), !isChosen && el("span", { class: "soft" }, ` ${plan.why}`)),
    el("ul", { class: "plain seats" }, seatsOf(plan).map((seat, n) => el("li", { class: seat === plan.chair ? "chair" : `s${(n % 9) + 1}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), el("span", { class: "soft" }, seat.model)))),
    el("p", { class: "soft" }, [calls, packet, attached, costText(plan)].filter(Boolean).join(" · ")), skipped,
    (plan.trusted || []).map((line) => el("p", {}, `Trusted settings of the project: ${line}`)),
    [...new Set([...(plan.notices || []), ...(plan.warnings || [])])].map((line) => el("p", { class: "notice" }, line)),
  ];
}

function costText({ cost, unpriced }) {
  if (!cost) return `price unknown: ${(unpriced || []).join(", ")}`;
  return cost.worst > 0 ? `low ${money(cost.low)} · expected ${money(cost.expected)} · worst ${money(cost.worst)}` : "free";
}
