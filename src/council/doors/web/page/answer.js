// The answer card: what is missing, the decision, where the seats differ, trust and effect beside it, and the other parts below.

import { el, changeDetector, rebuild, button } from "./dom.js";
import { answerParts, findingsParts, sectionParts, toSource } from "./answer_parts.js";
import { answerSide } from "./answer_side.js";
import { capital } from "./format.js";
import { addCopyButtons } from "./copy.js";
import { answerToolbar } from "./answer_toolbar.js";
import { differencesSection, listDifferences } from "./differences.js";
import { inline } from "./markdown.js";
import { noticesPanel } from "./notices.js";
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
    const text = answerText(minutes, detail);
    const differences = listDifferences(minutes.verdict, detail?.report?.sections);
    const notices = noticesPanel(minutes, detail, context);
    if (text) side.update(scene);
    const review = isReview(minutes);
    const parts = answerParts(minutes, detail, rows, context);
    const main = [text && head(minutes, text), body(minutes, text, notices), review && findingsParts(minutes.verdict, context), text && tail(minutes, detail, differences),
      differencesSection(differences, context), toolbar.node, sectionParts(minutes, detail), review && parts];
    rebuild(node, !text && head(minutes, text), notices, el("div", { class: "answer-grid" }, el("div", { class: "answer-main" }, main), text && side.node), !review && parts);
  }

  return { node, update };
}

const answerText = (m, detail) => (decisionOf(detail) || detail?.report?.answer || m.verdict.answer || "").trim();

function head(m, text) {
  const v = m.verdict;
  const word = v.verdict || v.outcome || "";
  return el("header", { class: "answer-head" },
    el("h2", { id: "answer-title", class: word ? "verdict" : "eyebrow", "data-tone": toneOf(word) || null }, word ? term(word) : text ? "Answer" : "No answer"),
    m.needed > 0 && el("span", { class: "soft" }, `${m.answered} of ${m.needed} seats answered`));
}

/** The decision; the other sections of the answer follow in its parts. The cause of a missing answer stands above it. */
function body(m, text, notices) {
  if (!text) return notices ? null : el("p", { class: "soft" }, m.reason ? capital(m.reason) : "No answer.");
  const sources = new Set((m.verdict.sources || []).map((one) => one.n));
  const cite = (n) => (sources.has(n) ? button(`[${n}]`, () => toSource(n), { class: "cite", "aria-label": `source ${n}` }) : null);
  const node = el("div", { class: "words" });
  renderMarkdown(node, text, { top: 3, cite }, () => addCopyButtons(node));
  return node;
}

/** The outcome, and who agrees. Trust stands beside it, and the differences have sentences of their own. */
function tail(m, detail, differences) {
  const { tail: all = [], trust } = detail?.report || {};
  const hasDifferLine = m.status === "complete" && m.verdict.differences?.length > 0; // the last line before trust
  const isTold = hasDifferLine && differences.length > 0 && !trust?.facts?.some((fact) => fact.kind === "all_hold");
  const lines = all.slice(0, isTold ? -2 : -1);
  return lines.length ? el("div", { class: "tail" }, lines.map((line) => el("p", {}, inline(line)))) : null;
}

const isReview = (m) => Boolean(m.verdict.details?.opinions); // its findings are the answer, so they stand beside trust

const decisionOf = (detail) => detail?.report?.sections?.find((one) => one.name === "decision")?.text || "";
