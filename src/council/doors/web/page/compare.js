// Two runs side by side: question, result, trust, cost and the answers with their differences.

import { amount, capital, clock, count, listed, short } from "./format.js";
import { button, el, setChildren, setText } from "./dom.js";
import { formatOutcome } from "./outcome_panel.js";
import { markChanges } from "./diff.js";
import { renderMarkdown } from "./render_markdown.js";
import { showTab } from "./tab_state.js";
import { toneOf } from "./positions.js";

/** `source` provides the details of a run. */
export function compareView(runs, { source, swap }) {
  const title = el("h1", {}, "Two runs");
  const share = el("p", { class: "soft", role: "status" }, "…");
  const sides = el("div", { class: "sides-by-side" });
  const node = el("div", { class: "compare" }, el("header", { class: "bar" }, title, el("span", { class: "fill" }), button("Swap sides", swap)), share, sides);
  let isClosed = false;
  showTab("Two runs");

  async function load() {
    const found = await Promise.all(runs.map((run) => source.detail(run).catch((error) => ({ run, error }))));
    if (isClosed) return;
    const questions = new Set(found.map((one) => one.report?.question));
    if (questions.size === 1 && !questions.has(undefined)) setText(title, short([...questions][0], 200));
    const answers = found.map((one, n) => ({ node: el("div", { class: "words" }), text: one.report?.answer || "", n }));
    setChildren(sides, found.map((one, n) => (one.error ? problem(one) : side(one, answers[n].node, questions.size > 1))));
    await Promise.all(answers.map(({ node: into, text }) => new Promise((done) => (text.trim() ? renderMarkdown(into, text, { top: 3 }, done) : done(setChildren(into, el("p", { class: "soft" }, "No answer yet.")))))));
    if (isClosed) return;
    const both = answers.every(({ text }) => text.trim());
    const same = both ? markChanges(answers[0].node, answers[1].node) : 0;
    setText(share, !both ? "" : same === 100 ? "The answers are the same." : `The answers share ${same} % of their text${same < 15 ? ", so their differences are not marked" : "; what only one of them has is marked"}.`);
  }

  load();
  return { node, close: () => (isClosed = true) };
}

const problem = ({ run, error }) => el("article", { class: "card" }, el("h2", {}, run), el("p", { class: "problem", role: "alert" }, capital(error.message)));

function side(detail, answer, hasOwnQuestion) {
  const { report, plan } = detail;
  const word = report.verdict || report.outcome || "";
  const link = el("a", { href: `#/run/${encodeURIComponent(detail.run)}` }, hasOwnQuestion ? short(report.question, 200) : `${plan.protocol} · ${detail.run}`);
  const seats = plan.seats || [];
  const members = [...new Set(seats.map((seat) => seat.model))];
  const facts = [
    ["Protocol", [report.protocol, report.task !== "ask" ? report.task : ""].filter(Boolean).join(", ")],
    ["Members", `${listed(members)} (${count(seats.length, "seat")})`],
    ["Cost", report.cost?.usd === null ? `unknown price: ${(report.cost.unpriced || []).join(", ")}` : amount(report.cost?.usd, report.cost?.estimated)],
    ["Time", clock(report.seconds || 0)],
    ["Trust", report.trust?.level ? [report.trust.level, (report.trust.because || []).join("; ")].filter(Boolean).join(": ") : ""],
    ["Turned out", report.decision_outcome ? formatOutcome(report.decision_outcome) : ""],
    ["Notices", (detail.above || []).join(" ")],
  ];
  return el("article", { class: "card", "data-run": detail.run, "aria-label": `Run ${detail.run}` },
    el("h2", {}, link),
    el("p", { class: "line" }, el("span", { class: "pill", "data-tone": toneOf(word) || toneOf(report.status) || null }, word || report.status || detail.status)),
    el("dl", {}, facts.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])), answer);
}
