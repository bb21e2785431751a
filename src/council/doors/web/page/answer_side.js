// Beside the answer, in sentences that open: how far to trust it, what the council changed, what it cost. A fact that the run does not support is left out.

import { bringIntoView, button, el, setChildren } from "./dom.js";
import { chip, chipList } from "./chips.js";
import { amount, count, listed, money, number } from "./format.js";
import { outcomePanel, toneOfOutcome } from "./outcome_panel.js";
import { diffNode } from "./diff.js";
import { inline } from "./markdown.js";
import { statementOf } from "./minutes.js";
import { toneOf } from "./positions.js";
import { term } from "./terms.js";

const SHOWN_REASONS = 2; // in the sentence; all are in its details

export function answerSide(context) {
  const node = el("aside", { class: "answer-side", "aria-label": "Trust, effect and cost" });

  function update({ minutes, detail }) {
    const report = detail?.report;
    const panels = [trustPanel(report?.trust, report?.decision_outcome), changedPanel(minutes, report, context), costPanel(report), outcomePanel(report, context)].filter(Boolean);
    setChildren(node, panels);
    node.hidden = !panels.length;
  }

  return { node, update };
}

/** A sentence with details to open, if there are any. */
function panel(name, label, sentence, summary, details) {
  const shown = details.filter(Boolean);
  return el("section", { class: name, role: "note", "aria-label": label }, el("p", {}, sentence),
    shown.length > 0 && el("details", { class: "more" }, el("summary", {}, summary), el("ul", { class: "plain" }, shown)));
}

// Trust

/** The level and its first reasons; open, the facts in its favour and every reason that limits it. Beside the level stands that the answer turned out wrong. */
function trustPanel(trust, outcome) {
  if (!trust?.level) return null;
  const inFavour = [...(trust.in_favour || [])];
  const limit = trust.level === "HIGH" ? inFavour.splice(-1) : []; // the last row of HIGH is its limit
  const reasons = [...trust.because, ...inFavour, ...limit];
  const told = trust.because.length ? trust.because.slice(0, SHOWN_REASONS) : [...inFavour.slice(0, 1), ...limit];
  const reason = (sign, label) => (text) => el("li", {}, el("b", { class: "reason-sign", "aria-label": label }, sign), text);
  const sentence = [el("b", {}, "Trust: ", el("span", { class: "pill", "data-tone": toneOf(trust.level) || null }, term(trust.level))),
    outcome?.label === "wrong" && [" ", el("span", { class: "pill", "data-tone": toneOfOutcome("wrong") }, "turned out wrong")], told.length > 0 && ` — ${told.join("; ")}.`];
  const rest = reasons.length - told.length;
  return panel("trust", "Trust", sentence, rest ? `Why: ${count(reasons.length, "reason")}` : "Why", reasons.length ? [...inFavour.map(reason("+", "in its favour:")), ...limit.map(reason("−", "its limit:")), ...trust.because.map(reason("−", "against it:"))] : []);
}

// What the council changed

function changedPanel(m, report, context) {
  const lines = [changedSentence(report, context), ...(report?.changed ? changedLines(m, report.changed, report, context) : [])].filter(Boolean);
  if (!lines.length) return null;
  return panel("changed", "What the council changed", lines[0], "What came from whom", lines.slice(1).map((line) => el("li", {}, line)));
}

/** Whether the council changed the answer of its strongest seat, the one whose member has the highest price for equal work. */
function changedSentence(report, context) {
  const { strongest } = report || {};
  if (!strongest?.seat) return null;
  const seat = chip(strongest.seat, context);
  if (strongest.unknown === "disagree") return ["The council gave no single verdict; its strongest seat is ", seat, "."];
  if (strongest.changed === null) return ["Whether the answer differs from that of the strongest seat, ", seat, ", was not checked."];
  return strongest.changed ? ["The council changed what its strongest seat, ", seat, ", recommended."] : ["The council kept what its strongest seat, ", seat, ", recommended."];
}

/** The facts behind it, each as a sentence. */
function changedLines(m, changed, report, context) {
  const { closest_draft: closest, agree, differ, only_one: alone } = changed;
  const counted = [agree && `agree on ${count(agree, "point")}`, differ && `differ on ${count(differ, "point")}`].filter(Boolean);
  return [
    closest && closestLine(m, closest, report, context),
    ...bySeat(changed.taken_from).map(([seat, points]) => ["From ", chip(seat, context, { quote: points[0] }), ": ", inline(points.map((point) => point.replace(/\.$/, "")).join("; ")), "."]),
    changed.shared_by?.length > 0 && [chipList(changed.shared_by, context), " recommended this from the start", changed.differed.length > 0 && ["; ", chipList(changed.differed, context), " did not"], "."],
    (counted.length > 0 || alone > 0) && [[counted.length && `The seats ${counted.join(" and ")}.`, alone && `${count(alone, "point")} came from one seat only.`].filter(Boolean).join(" "), " ", button("Show them", openMap, { class: "link" })],
  ];
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
    const dialog = el("dialog", { class: "diff-dialog", "aria-label": `The draft of ${closest.seat} and the answer`, onclose: close },
      el("header", { class: "bar" }, el("h2", {}, `From the draft of ${closest.seat} to the answer`), el("span", { class: "fill" }), button("Close", () => dialog.close(), { class: "quiet" })),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Differences" }, diffNode(draft.said, report.answer)));
    document.body.append(dialog);
    dialog.showModal();
  };
  return ["The answer shares most wording with the draft of ", chip(closest.seat, context, { phase: closest.phase }), `: ${Math.round(100 * closest.share)} %. `, draft && button("See the diff", show, { class: "link" })];
}

// Cost

/** What the run cost, or used where a price is unknown, beside the strongest seat alone. */
function costPanel(report) {
  if (!report?.cost) return null;
  const { usd, estimated, unpriced = [], cached_saving: saved } = report.cost;
  const tokens = report.tokens.in + report.tokens.out;
  const { strongest, changed, stops = [] } = report;
  if (!tokens && !usd) return null;
  const one = changed?.one_model;
  const isPriced = usd !== null && usd > 0;
  const alone = isPriced ? strongest?.usd && money(strongest.usd) : strongest?.tokens && count(strongest.tokens, "token");
  const total = isPriced ? `It cost ${amount(usd, estimated)}` : usd === null ? `The price of ${listed(unpriced) || "a member"} is unknown; the run used ${count(tokens, "token")}` : `It cost nothing and used ${count(tokens, "token")}`;
  return panel("cost-panel", "Cost", `${total}${alone ? `; the answer of ${strongest.seat} alone ${isPriced ? "cost" : "used"} ${alone}` : ""}.`, "More about the cost", [
    one && el("li", {}, `One draft of one model cost ${[...new Set([money(one.low), money(one.high)])].join(" to ")}, the council ${money(one.council)}.`),
    isPriced && el("li", {}, `${count(report.tokens.in, "token")} in, ${number(report.tokens.out)} out, ${count(report.calls.made, "request")}.`),
    saved > 0 && el("li", {}, `Prompt caches saved ${money(saved)}.`),
    ...stops.map((stop) => el("li", {}, `${count(stop.calls, "request")} ${stop.calls === 1 ? "was" : "were"} not needed${stop.saved ? `, about ${money(stop.saved)} saved` : ""}: ${stop.why}.`)),
  ]);
}
