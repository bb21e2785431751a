// Beside the answer: how far to trust it and why, and what the council changed. A fact that the run does not support is left out.

import { bringIntoView, button, el, setChildren } from "./dom.js";
import { chip, chips } from "./chips.js";
import { money } from "./format.js";
import { outcomePanel, toneOfOutcome } from "./outcome_panel.js";
import { diffNode } from "./diff.js";
import { inline } from "./markdown.js";
import { statementOf } from "./minutes.js";
import { toneOf } from "./positions.js";
import { term } from "./terms.js";

export function answerSide(context) {
  const node = el("aside", { class: "answer-side", "aria-label": "Trust and effect of the council" });

  function update({ minutes, detail }) {
    const report = detail?.report;
    const panels = [trustPanel(report?.trust, report?.decision_outcome), outcomePanel(report, context), changedPanel(minutes, report, context)].filter(Boolean);
    setChildren(node, panels);
    node.hidden = !panels.length;
  }

  return { node, update };
}

/** The level, the facts in its favour and every reason that limits it. Beside the level stands that the answer turned out wrong. */
function trustPanel(trust, outcome) {
  if (!trust?.level) return null;
  const inFavour = [...(trust.in_favour || [])];
  const limit = trust.level === "HIGH" ? inFavour.splice(-1) : []; // the last row of HIGH is its limit
  const reason = (sign, label) => (text) => el("li", {}, el("b", { class: "reason-sign", "aria-label": label }, sign), text);
  return el("section", { class: "trust", role: "note", "aria-label": "Trust" },
    el("h3", {}, "Trust: ", el("span", { class: "pill", "data-tone": toneOf(trust.level) || null }, term(trust.level)), outcome?.label === "wrong" && [" ", el("span", { class: "pill", "data-tone": toneOfOutcome("wrong") }, "turned out wrong")]),
    el("ul", { class: "plain reasons" }, inFavour.map(reason("+", "in its favour:")), limit.map(reason("−", "its limit:")), trust.because.map(reason("−", "against it:"))));
}

function changedPanel(m, report, context) {
  const changed = report?.changed;
  const lines = changed ? changedLines(m, changed, report, context) : [];
  if (report?.strongest?.seat) lines.unshift(strongestLine(report.strongest, report, context));
  return lines.length ? el("section", { class: "changed", "aria-label": "What the council changed" }, el("h3", {}, "What the council changed"), el("ul", { class: "plain" }, lines)) : null;
}

function changedLines(m, changed, report, context) {
  const { closest_draft: closest, one_model: one } = changed;
  const counts = [[changed.agree, "agree"], [changed.differ, "differ"], [changed.only_one, "only one saw"]].filter(([n]) => n);
  return [
    closest && closestLine(m, closest, report, context),
    ...bySeat(changed.taken_from).map(([seat, points]) => el("li", {}, "from ", chip(seat, context, { quote: points[0] }), " ", inline(points.map((point) => point.replace(/\.$/, "")).join("; ")))),
    changed.shared_by?.length > 0 && el("li", {}, "shared by", chips(changed.shared_by, context), changed.differed.length > 0 && [" differed:", chips(changed.differed, context)]),
    one && el("li", { title: "One draft of one model, and the whole council" }, "one model ", el("b", {}, [...new Set([money(one.low), money(one.high)])].join(" to ")), " → council ", el("b", {}, money(one.council))),
    counts.length > 0 && el("li", {}, counts.map(([n, word]) => `${word} ${n}`).join(" · "), " ", button("open", openMap, { class: "link" })),
  ].filter(Boolean);
}

const EFFECTS = new Map([[true, "the council changed its recommendation"], [false, "the council kept its recommendation"], [null, "not assessed whether the council changed its recommendation"]]);

/** Whether the council changed the answer of its strongest seat, and what that answer cost or used. */
function strongestLine(found, report, context) {
  const { usd } = report.cost, tokens = report.tokens.in + report.tokens.out;
  const use = found.usd && usd ? `${money(found.usd)} → ${money(usd)}` : `${found.tokens.toLocaleString("en")} → ${tokens.toLocaleString("en")} tokens`;
  return el("li", { title: "The seat whose member has the highest price for equal work" }, "strongest seat: ", chip(found.seat, context), ` ${found.unknown === "disagree" ? "the council gave no single verdict" : EFFECTS.get(found.changed)}, ${use}`);
}

function bySeat(points) {
  const found = new Map();
  for (const { seat, point } of points) found.set(seat, [...(found.get(seat) || []), point]);
  return [...found];
}

function openMap() {
  const place = document.querySelector(".map:not([hidden])") || document.querySelector(".answer .part");
  if (place) bringIntoView(place, "start");
}

/** The closest draft, with a dialog that shows its differences to the answer. */
function closestLine(m, closest, report, context) {
  const draft = statementOf(m, m.phases[closest.phase], closest.seat);
  const show = () => {
    const close = () => dialog.remove();
    const dialog = el("dialog", { class: "diff-dialog", onclose: close, "aria-label": "Closest draft against the answer" },
      el("header", { class: "bar" }, el("h2", {}, `Draft of ${closest.seat} → answer`), el("span", { class: "fill" }), el("span", { class: "hint" }, el("del", {}, "only in the draft"), " ", el("ins", {}, "only in the answer")), button("Close", () => dialog.close(), { class: "quiet" })),
      el("div", { class: "scroll", tabindex: "0" }, diffNode(draft.said, report.answer)));
    document.body.append(dialog);
    dialog.showModal();
  };
  return el("li", { title: "The draft whose wording the answer shares most; named only from 30 % on" }, "closest draft: ", chip(closest.seat, context, { phase: closest.phase }), ` ${Math.round(100 * closest.share)} % of the wording `, draft && button("see the diff", show, { class: "link" }));
}
