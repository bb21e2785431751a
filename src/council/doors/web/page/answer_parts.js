// Parts of an answer below its decision. Each thing occurs once: a thing that a section of the answer says is not repeated as a list.

import { bringIntoView, button, el, flash, link, webAddress } from "./dom.js";
import { chip, chipList, chips } from "./chips.js";
import { capital, short } from "./format.js";
import { rankingTable } from "./ranking_table.js";
import { codeOrLine } from "./code_text.js";
import { inline, markdown } from "./markdown.js";
import { listDifferences } from "./differences.js";
import { renderMarkdown } from "./render_markdown.js";
import { term } from "./terms.js";

export function answerParts(m, detail, rows, context) {
  const v = m.verdict;
  const sections = detail?.report?.sections || [];
  const told = new Set(sections.map((one) => one.name));
  return [...checkParts(v.check, context), ...(told.has("answers") ? [] : notes(v.notes, context)), ...attack(v, rows, context), ...lists(v, told, context)];
}

export function toSource(n) {
  const row = document.getElementById(`source-${n}`);
  if (!row) return;
  row.closest("details")?.setAttribute("open", "");
  bringIntoView(row, "center");
  flash(row);
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

// Sections of the answer

const OPEN_SECTIONS = new Set(["next_steps", "disagreements", "changes"]);
const SHOWN_ELSEWHERE = new Set(["decision", "models"]); // above, and in the columns of the seats

/** The sections of the answer after its decision. */
export function sectionParts(m, detail) {
  const v = m.verdict;
  return (detail?.report?.sections || []).filter((one) => !SHOWN_ELSEWHERE.has(one.name) && !(one.name === "sources" && v.sources?.length)).map((one) => {
    const text = el("div", { class: "section-text" });
    renderMarkdown(text, one.text, { top: 4 });
    return el("details", { class: "part", "data-section": one.name, open: OPEN_SECTIONS.has(one.name) }, el("summary", {}, el("h3", {}, one.title)), text);
  });
}

/** The chair's notes: agreed points, and points of one seat. The contested ones are told as differences. */
function notes(said, context) {
  if (!said) return [];
  return [
    part("Where they agree", said.agreed, (one) => el("span", {}, inline(one))),
    part("What only one seat saw", said.unique, (one) => [chip(one.seat, context, { quote: one.point }), el("span", {}, " ", inline(one.point))]),
  ];
}

// The attack on the leading draft

const RULINGS = { landed: ["bad", "The chair accepted it"], dismissed: ["", "The chair rejected it"], open: ["split", "The chair did not rule on it"] };

/** The leading draft, the points of the triage, and the ruling on each objection. A point that several seats raised is one row. */
function attack(v, rows, context) {
  const details = v.details || {};
  if (!details.leader) return [];
  const points = rows.filter((row) => row.kind === "point");
  return [
    el("p", { class: "leader" }, "The answer started from the draft of ", chip(details.leader, context, { phase: "draft" }), ".", details.reason && el("span", { class: "soft" }, " ", inline(details.reason))),
    part("Points on which the drafts agreed", details.agreed, (one) => el("span", {}, inline(one))),
    v.differences?.length ? null : part("Points on which the drafts differed", details.contested, (one) => el("span", {}, inline(one))),
    part("Objections to it", points, (row) => objection(row, context), { open: true }),
  ];
}

/** beta and gamma objected (major): the lag was not measured. The chair accepted it: it is so. */
function objection(row, context) {
  const [tone, words] = RULINGS[row.status] || ["", capital(row.status)];
  return [
    el("p", {}, chipList(row.disputed_by, context, { phase: "attack", quote: row.text }), ` objected${row.severity ? ` (${row.severity})` : ""}: `, row.topic !== row.text && [el("q", {}, inline(row.topic)), " "], inline(row.text)),
    el("p", { class: "ruling" }, el("b", { "data-tone": tone || null }, words), row.ruling ? [": ", inline(row.ruling)] : "."),
  ];
}

// The check of the finished text

const ERROR_TONES = { corrected: "", right: "", dismissed: "split", open: "bad" };
const ATTACK_STATES = { true: "right", false: "dismissed", null: "open" };

/** Who checked the text, and each error that they found. */
function checkParts(check, context) {
  if (!check?.readers.length) return [];
  const phase = (one) => (one.check > 1 ? "check-again" : "check");
  return [
    el("p", { class: "hint counts" }, "Checked by ", chips(check.readers, context, { phase: "check" }), !check.errors.length && " · no error found", check.checks > 1 && " · the corrected text was read again"),
    part("Errors that the check found", check.errors, (one) => foundError(one, context, { phase: phase(one) }), { open: check.errors.some((one) => one.state === "open") }),
  ];
}

function foundError(one, context, { phase, author }) {
  return [
    el("span", { class: "tag", "data-tone": ERROR_TONES[one.state] || null }, one.state), severity(one.severity.toLowerCase()), one.check > 1 && el("span", { class: "tag" }, "second check"), chip(one.id.replace(/-\d+$/, ""), context, { phase, quote: one.flaw }),
    author && el("span", { class: "soft" }, " on the draft of ", chip(author, context, { phase: "draft", quote: one.hits })),
    el("p", {}, one.hits && [el("q", {}, inline(one.hits)), ": "], inline(one.flaw)),
    one.correction && el("p", { class: "soft" }, "Correction: ", inline(one.correction)),
    one.why && el("p", { class: "soft" }, "Ruling: ", inline(one.why)),
  ];
}

// Lists of the verdict

function lists(v, told, context) {
  const opinions = v.details?.opinions;
  const isToldAsDifference = listDifferences(v).some((one) => one.sides.length);
  return [
    ...(opinions ? [] : findingParts(v.findings, context)),
    part("Judges", opinions, (one) => opinion(one, context)),
    part("Withdrawn findings", v.details?.withdrawn, (one) => [chip(one.seat, context, { quote: one.finding }), severity(one.severity), el("span", {}, " ", inline(one.finding), " "), el("span", { class: "soft" }, inline(one.why))]),
    v.details?.table && v.details?.ballots && el("section", { class: "part" }, el("h3", {}, "Ranking"), rankingTable(v.details, context)),
    part("Errors in the drafts", v.details?.attacks, (one) => foundError({ ...one, state: ATTACK_STATES[one.landed] }, context, { phase: "attack", author: one.author }), { open: false }),
    part("Agreed", (v.consensus || []).filter((one) => one.claim), (one) => [el("span", {}, inline(one.topic || one.claim)), chips(one.seats, context, { quote: one.claim })]),
    !opinions && !told.has("disagreements") && !isToldAsDifference && part("Dissent", v.dissent, (one) => [chip(one.seat, context, { quote: one.text }), one.position && el("strong", {}, ` ${one.position}`), !v.details?.rulings?.length && el("span", { class: "soft" }, " ", inline(short(one.text, 400)))], { open: true }),
    part("Claims and their sources", v.claims, (one) => claim(one, context), { open: false }),
    part("Found by one vendor only", v.insights, (one) => [one.severity && severity(one.severity), el("span", {}, inline(one.finding || String(one))), one.family && el("span", { class: "tag" }, term("one vendor", one.family))], { open: false }),
    part("Not known", v.blind_spots, (one) => [one.seat && chip(one.seat, context, { quote: one.text }), el("span", {}, " ", inline(one.text || one))]),
    part("Sources", v.sources, source, { open: false }),
  ];
}

const severity = (word) => el("span", { class: "severity", "data-severity": word }, word);

function opinion(one, context) {
  return [
    chip(one.seat, context, { quote: one.key_insight }), " ", el("b", {}, one.verdict), el("span", { class: "soft" }, ` ${one.confidence}`),
    el("p", {}, inline(one.key_insight)), one.recommendation && el("p", { class: "soft" }, el("b", {}, "Advice: "), inline(one.recommendation)),
  ];
}

// What the judges of a group said in other words; equal words are not repeated.
function judgeWords(one, context) {
  const said = one.by_judge || [];
  const others = said.filter((row) => row.supports || row.description !== one.description || row.severity !== one.severity);
  if (said.length < 2 || !others.length) return null;
  const list = el("ul", { class: "plain sides" }, others.map((row) => el("li", {}, chip(row.seat, context, { quote: row.description || one.description }), " ",
    row.supports ? "supports it" : [severity(row.severity), row.location && el("code", {}, row.location), el("span", {}, " ", inline(row.description))])));
  return others.length > 3 ? el("details", { class: "more" }, el("summary", {}, `In the words of ${others.length} judges`), list) : list;
}

const holders = (one) => one.held_by?.length ? one.held_by : one.found_by || [];
const isShared = (one) => holders(one).length > 1;

/** The findings of a review, below its verdict. */
export const findingsParts = (v, context) => findingParts(v.findings, context);

/** Return the findings in lists: those that several judges hold come first. */
function findingParts(findings, context) {
  const row = (one) => finding(one, context, findings);
  if (!findings?.some((one) => one.of > 1)) return [part("Findings", findings, row, { open: true })];
  return [
    part("Findings that several judges hold", findings.filter(isShared), row, { open: true }),
    part("Findings of one judge", findings.filter((one) => !isShared(one)), row, { open: true }),
  ];
}

const suffix = (one) => /\.([a-z][a-z0-9]{0,4})(?::|$)/.exec(one.path || one.location || "")?.[1] || "";

function fix(one) {
  const hasFix = one.fix && !one.fix.startsWith("No fix");
  const isBlock = hasFix && one.fix.trim().includes("\n");
  const advice = isBlock && one.recommendation && one.recommendation !== one.fix && el("p", { class: "advice" }, el("b", {}, "Fix: "), inline(one.recommendation));
  if (isBlock) return [advice || el("p", { class: "advice" }, el("b", {}, "Fix:")), el("div", { class: "fix" }, codeOrLine(one.fix, suffix(one)))];
  return hasFix && el("p", { class: "advice" }, el("b", {}, "Fix: "), codeOrLine(one.fix));
}

// Judges that hold a finding of another judge, and who joined the findings of the group.
function heldBy(one, context) {
  const others = holders(one).filter((seat) => !(one.found_by || []).includes(seat));
  return [others.length > 0 && el("p", { class: "by" }, "also held by", chips(others, context, { quote: one.description })),
    one.grouped_by === "clerk" && isShared(one) && el("p", { class: "by" }, "grouped by the clerk")];
}

function near(one, findings) {
  const named = (id) => { const place = findings.find((other) => other.id === id)?.location; return place ? `${id} (${place})` : id; };
  return one.possibly_same?.length > 0 && el("p", { class: "soft" }, `Possibly the same as ${one.possibly_same.map(named).join(", ")}`);
}

function finding(one, context, findings) {
  return el("div", { class: "finding" },
    el("div", {},
      el("p", {}, severity(one.severity), one.location && el("code", {}, one.location), one.location_note && el("span", { class: "tag", "data-tone": "doubt" }, one.location_note), one.disputed_by?.length > 0 && [el("span", { class: "tag", "data-tone": "split" }, term("disputed"), " by"), chips(one.disputed_by, context)]),
      one.defect && isShared(one) && el("p", {}, el("b", {}, inline(one.defect))),
      el("div", { class: "told" }, markdown(one.description)),
      fix(one),
      judgeWords(one, context), heldBy(one, context), near(one, findings)),
    el("p", { class: "by" }, `${holders(one).length} of ${one.of}`, chips(one.found_by, context, { quote: one.description })));
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
