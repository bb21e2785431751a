// The answer card: degradation notices, the decision, what can be done with it, trust and effect beside it, and its parts below.

import { el, changeDetector, rebuild, button } from "./dom.js";
import { answerParts, sectionParts, toSource } from "./answer_parts.js";
import { answerSide } from "./answer_side.js";
import { capital, formatState } from "./format.js";
import { addCopyButtons } from "./copy.js";
import { answerToolbar } from "./answer_toolbar.js";
import { inline } from "./markdown.js";
import { toneOf } from "./positions.js";
import { renderMarkdown } from "./render_markdown.js";
import { term } from "./terms.js";

export function answerView(context) {
  const node = el("section", { class: "answer card", "aria-labelledby": "answer-title", hidden: true });
  const toolbar = answerToolbar(context);
  const side = answerSide(context);
  const isNew = changeDetector();

  function update(scene) {
    const { minutes, detail, rows } = scene;
    const done = minutes.verdict !== null;
    node.hidden = !done;
    if (!done) return;
    toolbar.update(scene);
    if (!isNew(minutes.run, minutes.seq, detail, rows)) return;
    side.update(scene);
    rebuild(node, degradedNotes(detail),
      el("div", { class: "answer-grid" }, el("div", { class: "answer-main" }, head(minutes), body(minutes, detail), tail(detail), toolbar.node, sectionParts(minutes, detail), isReview(minutes) && answerParts(minutes, detail, rows, context)), side.node),
      !isReview(minutes) && answerParts(minutes, detail, rows, context));
  }

  return { node, update };
}

/** Degradation notices, in the words of the report. */
function degradedNotes(detail) {
  const lines = detail?.above || (detail?.report?.degraded || []).map(sentence);
  if (!lines.length) return null;
  return el("div", { class: "degraded", role: "note", "aria-label": "Degraded" }, el("ul", { class: "plain" }, lines.map((line) => el("li", {}, inline(line)))));
}

function sentence({ seat, phase, state, reason }) {
  if (!seat) return capital(reason || state);
  return `${seat} did not answer in ${phase === "answer" ? "the answer phase" : phase}: ${formatState(state)}${reason ? `: ${reason}` : ""}.`;
}

function head(m) {
  const v = m.verdict;
  const word = v.verdict || v.outcome || "";
  return el("header", { class: "answer-head" },
    el("h2", { id: "answer-title", class: word ? "verdict" : "eyebrow", "data-tone": toneOf(word) || null }, word ? term(word) : "Answer"),
    m.needed > 0 && el("span", { class: "soft" }, `${m.answered} of ${m.needed} seats`));
}

/** The decision; the other sections of the answer follow in its parts. */
function body(m, detail) {
  const text = decisionOf(detail) || detail?.report?.answer || m.verdict.answer || "";
  if (!text.trim()) return el("p", { class: "soft" }, m.reason ? capital(m.reason) : "No answer.");
  const sources = new Set((m.verdict.sources || []).map((one) => one.n));
  const cite = (n) => (sources.has(n) ? button(`[${n}]`, () => toSource(n), { class: "cite", "aria-label": `source ${n}` }) : null);
  const node = el("div", { class: "words" });
  renderMarkdown(node, text, { top: 3, cite }, () => addCopyButtons(node));
  return node;
}

/** The lines after the answer: the outcome and who differs. Trust stands beside it. */
function tail(detail) {
  const lines = (detail?.report?.tail || []).slice(0, -1);
  return lines.length ? el("div", { class: "tail" }, lines.map((line) => el("p", {}, inline(line)))) : null;
}

const isReview = (m) => Boolean(m.verdict.details?.opinions); // its findings are the answer, so they stand beside trust

const decisionOf = (detail) => detail?.report?.sections?.find((one) => one.name === "decision")?.text || "";
