// Evaluations: the list, and one result with its table, its plots and what can be concluded.

import { capital, count, listed, money } from "./format.js";
import { el, setChildren, svg } from "./dom.js";
import { get } from "./api.js";
import { showTab } from "./tab_state.js";
import { wideTable } from "./wide_table.js";

const LEVELS = ["HIGH", "MEDIUM", "LOW", "CONTESTED"];
const SAMPLING = "vote"; // the protocol of the arms that are no council
const HISTORY = "council.history-eval/1";
const MAX_VALUE = 320; // width of the scale of a plot

/** The list, or the evaluation with this id. */
export function evalsView(id) {
  const node = el("div", { class: "evals" }, el("p", { class: "soft", role: "status" }, "…"));
  let isClosed = false;
  showTab(id ? "Evaluation" : "Evaluations");
  get(id ? `evals/${encodeURIComponent(id)}` : "evals")
    .then((found) => isClosed || setChildren(node, !id ? listParts(found.evals) : found.schema === HISTORY ? historyParts(found) : resultParts(found)))
    .catch((error) => isClosed || setChildren(node, el("p", { class: "problem", role: "alert" }, capital(error.message))));
  return { node, close: () => (isClosed = true) };
}

function listParts(rows) {
  const hint = el("p", { class: "soft" }, "Does a council help, and by how much? Measure it on your questions with ", el("code", {}, "council eval questions.jsonl"), ".");
  return [el("h1", {}, "Evaluations"), hint, rows.length ? el("ul", { class: "plain eval-list" }, rows.map(listItem)) : el("p", {}, "There is no result yet.")];
}

function listItem(one) {
  const facts = [count(one.questions, one.dataset.startsWith("history:") ? "commit" : "question"), listed(one.arms.filter((name) => !name.startsWith("self-consistency="))), day(one.at), one.unfinished > 0 && `${one.unfinished} answers are missing`];
  return el("li", { class: "card" }, el("a", { href: `#/evals/${one.id}` }, one.dataset), el("span", { class: "soft" }, facts.filter(Boolean).join(" · ")));
}

const day = (at) => new Date(at * 1000).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });

function resultParts(result) {
  const arms = result.arms.filter((arm) => arm.accuracy.mean !== null);
  const trusted = arms.filter((arm) => arm.protocol !== SAMPLING && Object.keys(arm.trust).length > 1);
  const calibrated = arms.filter((arm) => arm.reliability.length);
  const compared = result.arms.filter((arm) => arm.blind && arm.blind.preference.mean !== null);
  return [
    el("p", {}, el("a", { href: "#/evals" }, "Evaluations")),
    el("h1", {}, result.dataset),
    el("p", { class: "soft" }, [count(result.questions, "question"), result.blind ? blindFacts(result.blind) : `equal ${result.equal}`, `seed ${result.seed}`, day(result.at), `models ${listed(result.members)}`].filter(Boolean).join(" · ")),
    el("section", { "aria-label": "What can be concluded" }, el("h2", {}, "What can be concluded"), el("ul", {}, result.conclusions.map((line) => el("li", {}, line)))),
    arms.length > 0 && plot("Share of right answers, with 95 % interval", arms.map((arm) => [armName(arm.arm, result.equal), arm.accuracy])),
    compared.length > 0 && plot(`Share of comparisons that prefer it to ${result.blind.against}, with 95 % interval`, compared.map((arm) => [arm.arm, arm.blind.preference, 0.5])),
    ...trusted.map((arm) => plot(`${arm.arm}: right by trust level`, LEVELS.filter((level) => arm.trust[level]).map((level) => [`${level} (${arm.trust[level].n})`, arm.trust[level]]))),
    ...calibrated.map((arm) => plot(`${armName(arm.arm, result.equal)}: right by share of the votes`, arm.reliability.map((row) => [`${percent(row.confidence)} (${count(row.accuracy.n, "answer")})`, row.accuracy, row.confidence]))),
    calibrated.length > 0 && el("p", { class: "soft" }, "The last plots are about trust in the votes, not about which arm is right more often. The mark is where the share of votes equals the share right."),
    result.blind ? el("section", { "aria-label": "Arms" }, el("h2", {}, "Arms"), wideTable(blindTable(result.arms))) : armTables(result),
  ];
}

/** Reviews of old commits: the bugs that each arm found, by how many judges hold a finding. */
function historyParts(result) {
  const found = result.arms.flatMap((arm) => arm.by_support.filter((row) => row.recall.mean !== null).map((row) => [`${arm.arm}: ${row.support} or more of ${arm.judges}`, row.recall, row.by_chance ?? undefined]));
  return [
    el("p", {}, el("a", { href: "#/evals" }, "Evaluations")),
    el("h1", {}, result.dataset),
    el("p", { class: "soft" }, [count(result.bugs, "bug"), count(result.controls, "control"), `fixes since ${result.since}`, `seed ${result.seed}`, day(result.at), listed(result.members)].filter(Boolean).join(" · ")),
    el("p", {}, "Every commit, with its findings and the later fix: ", el("code", {}, `${result.folder}/cases.html`)),
    el("section", { "aria-label": "What can be concluded" }, el("h2", {}, "What can be concluded"), el("ul", {}, result.conclusions.map((line) => el("li", {}, line)))),
    found.length > 0 && plot("Share of the bugs found, with 95 % interval; the mark is the share by chance", found),
    el("section", { "aria-label": "Arms" }, el("h2", {}, "Arms"), wideTable(historyTable(result.arms))),
  ];
}

function historyTable(arms) {
  const head = ["arm", "reviews", "findings each", "precision at least", "controls with findings", "with critical", "FAIL on bugs", "FAIL on controls", "against", "points", "p", "$ a review", "$ a bug found"];
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, arms.map(historyRow)));
}

function historyRow(arm) {
  const { against } = arm;
  const beside = against && against.difference.mean !== null ? [against.arm, points(against.difference.mean), pValue(against.p_value)] : ["", "", ""];
  const shares = [arm.by_support[0]?.precision.mean, arm.controls_with_findings.mean, arm.controls_with_critical.mean, arm.fail_on_bugs.mean, arm.fail_on_controls.mean].map(percent);
  const costs = [arm.usd_per_review, arm.usd_per_bug].map((usd) => (usd === null ? "" : money(usd)));
  const cells = [arm.reviews, arm.findings_per_review === null ? "" : arm.findings_per_review.toFixed(1), ...shares, ...beside, ...costs];
  return el("tr", {}, el("th", { scope: "row" }, arm.arm), cells.map((text) => el("td", {}, String(text))));
}

const percent = (share) => (share === null || share === undefined ? "" : `${Math.round(100 * share)} %`);
const pValue = (p) => (p < 0.001 ? "< .001" : p >= 0.9995 ? "> .999" : p.toFixed(3).replace("0.", "."));
const price = (usd) => (usd === null ? "no price" : money(usd));
const points = (share) => `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)}`;

/** The name of an arm for a reader: "self-consistency=triad" has the same tokens as triad. */
const armName = (name, equal) => name.replace(/^self-consistency=(.*)/, (_, council) => `self-consistency (same ${equal} as ${council})`);

const TERMS = [
  ["arm", "one way to answer all questions: a council, whose seats are taken by models, or one model"],
  ["95 %", "the true share of right answers is in it, with 95 % confidence"],
  ["seats agree", "right answers among those that all seats gave at last"],
  ["no seat", "answers that none of the seats gave; they have no votes"],
  ["votes", "how many independent votes the seats are worth, by the errors they share"],
  ["Brier, ECE", "how far the share of votes is from right or wrong, and from the share of right answers; lower is better"],
  ["points", "right answers per 100 questions more (+) or fewer (-) than the other arm, on the same questions"],
  ["p", "how often chance alone would show so large a difference"],
];

function armTables(result) {
  const compared = result.arms.flatMap((arm) => comparisonRows(arm, result.equal));
  const terms = el("dl", { class: "soft eval-terms" }, TERMS.map(([name, meaning]) => [el("dt", {}, name), el("dd", {}, meaning)]));
  return el("section", { "aria-label": "Arms" }, el("h2", {}, "Arms"), wideTable(armTable(result)), compared.length > 0 && [el("h3", {}, "Compared"), wideTable(comparisonTable(compared))], terms);
}

function armTable(result) {
  const head = ["arm", "right", "95 %", "ambiguous", "unreadable", "$ per 100", "$", "tokens", "calls", "seats agree", "no seat", "votes", "Brier", "ECE, 95 %"];
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, result.arms.map((arm) => armRow(arm, result.equal))));
}

/** Results of earlier versions know nothing of unanimous and new answers. */
function armRow(arm, equal) {
  const { accuracy, unanimous } = arm;
  const hundred = arm.usd === null || !arm.answered ? price(null) : money((100 * arm.usd) / arm.answered);
  const agreed = unanimous?.n ? `${percent(unanimous.mean)} of ${unanimous.n}` : "";
  const cells = [percent(accuracy.mean), accuracy.mean === null ? "" : `${percent(accuracy.low)} to ${percent(accuracy.high)}`, arm.ambiguous ?? "", arm.unreadable ?? "", hundred, price(arm.usd), arm.tokens.toLocaleString("en"), arm.calls.toLocaleString("en"), agreed, arm.new_answers || "", arm.effective_votes ?? "", arm.brier === null ? "" : arm.brier.toFixed(3), calibration(arm.calibration)];
  return el("tr", {}, el("th", { scope: "row" }, armName(arm.arm, equal)), cells.map((text) => el("td", {}, String(text))));
}

/** The comparison with one answer of one model first, which decides, then that of equal use. */
function comparisonRows(arm, equal) {
  const found = new Map([arm.against_single, arm.against].filter(Boolean).map((one) => [one.arm, one]));
  return [...found.values()].filter((one) => one.difference.mean !== null).map((one) => {
    const { mean, low, high } = one.difference;
    return [armName(arm.arm, equal), armName(one.arm, equal), points(mean), `${points(low)} to ${points(high)}`, pValue(one.p_value), one.wrong_to_right, one.right_to_wrong, one.decided ? "decided" : "not decided"];
  });
}

function comparisonTable(rows) {
  const head = ["arm", "against", "points", "95 %", "p", "only it right", "only other right", "decided"];
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, name), cells.map((text) => el("td", {}, String(text)))))));
}

/** The calibration error with its interval. Results of earlier versions have none. */
function calibration(found) {
  if (!found) return "";
  return found.ece === null ? "too few" : `${found.ece.toFixed(3)} (${found.low.toFixed(3)} to ${found.high.toFixed(3)})`;
}

const blindFacts = (blind) => (blind.judges.length ? `judges ${listed(blind.judges)}` : "no comparison");

function blindTable(arms) {
  const head = ["arm", "against", "preferred", "95 %", "p", "won", "tie", "lost", "inconsistent", "absent", "judges agree", "score", "words", "equal length", "tokens", "calls", "$"];
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, arms.map(blindRow)));
}

function blindRow(arm) {
  const used = [arm.tokens.toLocaleString("en"), arm.calls.toLocaleString("en"), price(arm.usd)];
  const cells = arm.blind ? [...blindCells(arm.blind), ...used] : [...Array(13).fill(""), ...used];
  return el("tr", {}, el("th", { scope: "row" }, arm.arm), cells.map((text) => el("td", {}, String(text))));
}

function blindCells(one) {
  const { preference, equal_length: even } = one;
  const span = preference.mean === null ? "" : `${percent(preference.low)} to ${percent(preference.high)}`;
  const same = `${even.preference ? percent(even.preference.mean) : "too few"} (${even.n})`;
  return [one.against, percent(preference.mean), span, pValue(one.p_value), one.won, one.ties, one.lost, one.inconsistent, one.absent, percent(one.agreement), both(one.score, one.base_score, 1), both(one.words, one.base_words, 0), same];
}

const both = (mine, base, digits) => (mine === null || base === null ? "" : `${mine.toFixed(digits)} : ${base.toFixed(digits)}`);

/** A row for each interval: a line from its low to its high end, and a dot at the mean. `even` is the place of a share that is as often right as it says. */
function plot(title, rows) {
  const told = rows.map(([name, one]) => `${name}: ${percent(one.mean)}, ${percent(one.low)} to ${percent(one.high)}`).join("; ");
  return el("section", { class: "eval-plot", role: "img", "aria-label": `${title}. ${told}` }, el("h2", {}, title), el("div", {}, rows.map(([name, one, even]) => [el("span", {}, name), track(one, even), el("b", {}, percent(one.mean))])));
}

function track(one, even) {
  const x = (share) => (share * MAX_VALUE).toFixed(1);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => svg("line", { x1: x(share), x2: x(share), y1: 2, y2: 18 }));
  return svg("svg", { viewBox: `-6 0 ${MAX_VALUE + 12} 20`, preserveAspectRatio: "none", "aria-hidden": "true" }, ticks, even === undefined ? [] : svg("line", { x1: x(even), x2: x(even), y1: 3, y2: 17, class: "eval-even" }), svg("line", { x1: x(one.low), x2: x(one.high), y1: 10, y2: 10, class: "eval-span" }), svg("line", { x1: x(one.mean), x2: x(one.mean), y1: 5, y2: 15, class: "eval-mean" }));
}
