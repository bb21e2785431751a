// The answer, with degradation notices above it and the supporting seats of each claim.

import { button, bringIntoView, el, flash, link, changeDetector, setChildren, webAddress } from "./dom.js";
import { chip, chips } from "./chips.js";
import { capital, short, formatState } from "./format.js";
import { answeredCount } from "./minutes.js";
import { codeOrLine, inline } from "./markdown.js";
import { rankingTable } from "./ranking_table.js";
import { term } from "./terms.js";
import { toneOf } from "./positions.js";
import { renderMarkdown } from "./render_markdown.js";

export function answerView(context) {
  const node = el("section", { class: "answer card", "aria-labelledby": "answer-title", hidden: true });
  const isNew = changeDetector();

  function update({ minutes, detail }) {
    const done = minutes.verdict !== null;
    node.hidden = !done;
    if (!done || !isNew(minutes.run, minutes.seq, detail)) return;
    setChildren(node, degradedNotes(minutes, detail), head(minutes), body(minutes, detail), trustLine(detail), ...notes(minutes.verdict.notes, context), ...rulings(minutes.verdict.details || {}, context), ...parts(minutes.verdict, context));
  }

  return { node, update };
}

/** Degradation notices, in the words of the report. */
function degradedNotes(m, detail) {
  const lines = detail?.above || (detail?.report?.degraded || []).map(sentence);
  if (!lines.length) return null;
  return el("div", { class: "degraded", role: "note", "aria-label": "Degraded" }, el("ul", { class: "plain" }, lines.map((line) => el("li", {}, line))));
}

function sentence({ seat, phase, state, reason }) {
  if (!seat) return capital(reason || state);
  return `${seat} did not answer in ${phase}: ${formatState(state)}${reason ? `: ${reason}` : ""}.`;
}

function head(m) {
  const v = m.verdict;
  const word = v.verdict || v.outcome || "";
  const asked = m.plan.seats?.length || 0;
  return el("header", { class: "answer-head" },
    el("h2", { id: "answer-title", class: word ? "verdict" : "eyebrow", "data-tone": toneOf(word) || null }, word ? term(word) : "Answer"),
    v.confidence && el("span", { class: "pill", "data-tone": toneOf(v.confidence) || null }, "confidence ", term(v.confidence)),
    asked > 0 && el("span", { class: "soft" }, `${answeredCount(m)} of ${asked} seats`));
}

function body(m, detail) {
  const text = detail?.report?.answer || m.verdict.answer || "";
  if (!text.trim()) return el("p", { class: "soft" }, m.reason ? capital(m.reason) : "No answer.");
  const sources = new Set((m.verdict.sources || []).map((one) => one.n));
  const cite = (n) => (sources.has(n) ? button(`[${n}]`, () => toSource(n), { class: "cite", "aria-label": `source ${n}` }) : null);
  const node = el("div", { class: "words" });
  renderMarkdown(node, text, { top: 3, cite });
  return node;
}

/** The trust line: the level and every reason for it. */
function trustLine(detail) {
  const trust = detail?.report?.trust;
  if (!trust) return null;
  return el("p", { class: "trust", role: "note", "aria-label": "Trust" },
    el("span", { class: "pill", "data-tone": toneOf(trust.level) || null }, "Trust: ", term(trust.level)), trust.because.length > 0 && ` ${trust.because.join("; ")}`);
}

/** The chair's notes: agreed points, contested points with their assumptions, and points of one seat. */
function notes(said, context) {
  if (!said) return [];
  const side = (one) => el("li", {}, chip(one.seat, context, { quote: one.position }), " ", inline(one.position), one.assumes && el("span", { class: "soft" }, " (assumes: ", inline(one.assumes), ")"));
  return [
    part("Where they agree", said.agreed, (one) => el("span", {}, inline(one))),
    part("Where they differ, and on which assumption", said.contested, (one) => [el("p", {}, inline(one.point)), one.sides.length > 0 && el("ul", { class: "plain sides" }, one.sides.map(side))], { open: true }),
    part("What only one saw", said.unique, (one) => [chip(one.seat, context, { quote: one.point }), el("span", {}, " ", inline(one.point))]),
  ];
}

const RULINGS = new Map([[true, ["landed", "bad"]], [false, ["dismissed", ""]], [null, ["open", "split"]]]);

/** The leading draft, the points of the triage, and the ruling on each issue of the attack. Joined issues count once. */
function rulings(details, context) {
  if (!details.leader) return [];
  const rows = details.rulings || [];
  const distinct = rows.filter((one) => !one.same_as);
  const counts = [...RULINGS].map(([landed, [word]]) => [distinct.filter((one) => one.landed === landed).length, word]).filter(([n]) => n);
  return [
    el("p", { class: "leader" }, "Leading draft: ", chip(details.leader, context, { phase: "draft" }), details.reason && el("span", { class: "soft" }, " ", inline(details.reason))),
    part("Agreed points", details.agreed, (one) => el("span", {}, inline(one))),
    part("Contested points", details.contested, (one) => el("span", {}, inline(one))),
    counts.length > 0 && el("p", { class: "soft" }, `Rulings: ${counts.map(([n, word]) => `${n} ${word}`).join(", ")}`),
    part("Rulings", rows, (one) => ruling(one), { open: true }),
  ];
}

function ruling(one) {
  const [word, tone] = RULINGS.get(one.landed ?? null);
  return [
    el("span", { class: "tag", "data-tone": tone || null }, word), severity(one.severity.toLowerCase()), el("code", {}, one.id), one.same_as && el("span", { class: "soft" }, ` same as ${one.same_as}`),
    el("span", {}, " ", one.hits && [inline(one.hits), ": "], inline(one.flaw)), one.why && el("p", { class: "soft" }, inline(one.why)),
  ];
}

function toSource(n) {
  const row = document.getElementById(`source-${n}`);
  if (!row) return;
  row.closest("details")?.setAttribute("open", "");
  bringIntoView(row, "center");
  flash(row);
}

// Its parts

function parts(v, context) {
  return [
    part("Findings", v.findings, (one) => finding(one, context), { open: true }),
    part("Judges", v.details?.opinions, (one) => opinion(one, context), { open: true }),
    part("Withdrawn findings", v.details?.withdrawn, (one) => [chip(one.seat, context, { quote: one.finding }), severity(one.severity), el("span", {}, " ", inline(one.finding), " "), el("span", { class: "soft" }, inline(one.why))]),
    v.details?.table && v.details?.ballots && el("section", { class: "part" }, el("h3", {}, "Ranking"), rankingTable(v.details, context)),
    part("Agreed", (v.consensus || []).filter((one) => one.claim), (one) => [el("span", {}, inline(one.claim)), chips(one.seats, context, { quote: one.claim })]),
    part("Disagreements", v.disagreements, (one) => dispute(one, context)),
    part("Dissent", v.dissent, (one) => [chip(one.seat, context, { quote: one.text }), one.position && el("strong", {}, ` ${one.position}`), el("span", { class: "soft" }, " ", inline(short(one.text, 400)))], { open: true }),
    part("Claims", v.claims, (one) => claim(one, context)),
    part("Found by one vendor only", v.insights, (one) => [one.severity && severity(one.severity), el("span", {}, inline(one.finding || String(one))), one.family && el("span", { class: "tag" }, term("one vendor", one.family))], { open: false }),
    part("Not known", v.blind_spots, (one) => [one.seat && chip(one.seat, context, { quote: one.text }), el("span", {}, " ", inline(one.text || one))]),
    part("Sources", v.sources, source, { open: false }),
  ];
}

function part(title, items, row, { open } = {}) {
  if (!items?.length) return null;
  const listed = el("ul", { class: "plain rows" }, items.map((one) => {
    const node = el("li", {}, row(one));
    if (one.n && title === "Sources") node.id = `source-${one.n}`;
    return node;
  }));
  return el("details", { class: "part", open: open ?? items.length <= 3 }, el("summary", {}, el("h3", {}, title), el("span", { class: "count" }, String(items.length))), listed);
}

const severity = (word) => el("span", { class: "severity", "data-severity": word }, word);

function opinion(one, context) {
  return [
    chip(one.seat, context, { quote: one.key_insight }), " ", el("b", {}, one.verdict), el("span", { class: "soft" }, ` ${one.confidence}`),
    el("p", {}, inline(one.key_insight)), one.recommendation && el("p", { class: "soft" }, el("b", {}, "Advice: "), inline(one.recommendation)),
  ];
}

// What each judge of a group said, if there are several.
function judgeWords(one, context) {
  const said = one.by_judge || [];
  if (said.length < 2) return null;
  return el("ul", { class: "plain sides" }, said.map((row) => el("li", {}, chip(row.seat, context, { quote: row.description || one.description }), " ",
    row.supports ? "supports it" : [severity(row.severity), row.location && el("code", {}, row.location), el("span", {}, " ", inline(row.description))])));
}

function finding(one, context) {
  return el("div", { class: "finding" },
    el("div", {},
      el("p", {}, severity(one.severity), one.location && el("code", {}, one.location), one.location_note && el("span", { class: "tag", "data-tone": "doubt" }, one.location_note), one.disputed && el("span", { class: "tag", "data-tone": "split" }, term("disputed")), el("span", {}, " ", inline(one.description))),
      one.fix && !one.fix.startsWith("No fix") && el("p", { class: "soft" }, el("b", {}, "Fix: "), codeOrLine(one.fix)),
      judgeWords(one, context),
      one.possibly_same?.length > 0 && el("p", { class: "soft" }, `Possibly the same as ${one.possibly_same.join(", ")}`)),
    el("p", { class: "by" }, `${one.found_by?.length || 0} of ${one.of}`, chips(one.found_by, context, { quote: one.description })));
}

function dispute(one, context) {
  const sides = (one.positions || []).map((side) =>
    el("li", {}, chip(side.seat, context, { quote: side.claim || side.why }), " ", el("b", {}, side.stance || side.verdict || side.position || ""), " ", inline(side.claim || side.why || ""), side.round2 && el("span", { class: "tag" }, `then ${side.round2}`)));
  return [el("p", {}, inline(capital(one.issue || ""))), sides.length > 0 && el("ul", { class: "plain sides" }, sides)];
}

function claim(one, context) {
  return [
    el("span", { class: "tag", "data-tone": { supported: "good", contradicted: "bad", qualified: "doubt" }[one.status] || null }, one.status),
    el("span", {}, " ", inline(one.claim)), (one.sources || []).map((n) => button(`[${n}]`, () => toSource(n), { class: "cite", "aria-label": `source ${n}` })),
    el("p", { class: "by" }, "supported by", chips(one.by, context, { quote: one.claim }), one.against?.length > 0 && [" opposed by", chips(one.against, context, { quote: one.topic })]),
  ];
}

function source(one) {
  const title = one.title || one.url;
  return [
    el("span", { class: "n" }, `[${one.n}]`), webAddress(one.url) ? link(one.url, title) : el("span", {}, title, one.url && one.url !== title && el("span", { class: "soft" }, ` ${one.url}`)),
    one.snippet && el("p", { class: "soft" }, short(one.snippet, 300)),
    el("p", { class: "by" }, one.cited ? "cited in the answer" : "not cited in the answer", one.cited_by?.length ? `, used by ${one.cited_by.join(", ")}` : ""),
  ];
}
