// Position changes between rounds: verdicts as lines, and every change with its reason.

import { shortNames } from "./format.js";
import { chip } from "./chips.js";
import { el, changeDetector, setChildren, svg } from "./dom.js";
import { inline } from "./markdown.js";
import { plannedSeats, rounds, statementOf, statementsIn } from "./minutes.js";
import { term } from "./terms.js";
import { toneOf } from "./positions.js";

const SCALE = ["PASS", "WARN", "FAIL"];
const [WIDE, HIGH, LEFT, RIGHT, TOP] = [360, 34, 52, 120, 22];

export function shiftsView(context) {
  const body = el("div", {});
  const node = el("section", { class: "shifts card", "aria-labelledby": "shifts-title", hidden: true },
    el("h2", { class: "eyebrow", id: "shifts-title" }, "How positions moved"), body);
  const isNew = changeDetector();

  function update({ minutes }) {
    if (!isNew(minutes.run, minutes.seq)) return;
    const chart = slopes(minutes, context);
    const items = changes(minutes, context);
    node.hidden = !chart && !items.length;
    setChildren(body, chart, items.length > 0 && el("ul", { class: "plain" }, items));
  }

  return { node, update };
}

function slopes(m, context) {
  const phases = rounds(m).filter((phase) => statementsIn(m, phase).some((said) => SCALE.includes(said.reply?.verdict)));
  const lines = plannedSeats(m).map((seat) => ({ seat, words: phases.map((phase) => statementOf(m, phase, seat.name)?.reply?.verdict) })).filter((line) => line.words.some(Boolean));
  if (phases.length < 2 || !lines.length) return null;
  const names = shortNames(lines.map((line) => line.seat.name));
  const x = (n) => LEFT + (n * (WIDE - LEFT - RIGHT)) / (phases.length - 1);
  // Spread lines of one level, so that none hides another.
  const y = (word, n) => TOP + SCALE.indexOf(word) * HIGH + (n - (lines.length - 1) / 2) * Math.min(6, 22 / lines.length);
  const height = TOP + SCALE.length * HIGH;
  const places = spread(lines.map((line, n) => y(line.words.findLast(Boolean), n) + 4), 13);
  const summary = lines.map((line, n) => `${names[n]} ${line.words.filter(Boolean).join(" then ")}`).join("; ");
  return svg("svg", { viewBox: `0 0 ${WIDE} ${height}`, class: "slopes", role: "img", "aria-label": `Verdicts by round: ${summary}` },
    phases.map((phase, n) => svg("text", { x: x(n), y: 11, "text-anchor": "middle", class: "axis" }, phase.name)),
    SCALE.map((word, n) => [svg("text", { x: 0, y: TOP + n * HIGH + 4, class: "axis level", "data-tone": toneOf(word) }, word), svg("line", { x1: LEFT - 8, x2: WIDE - RIGHT + 8, y1: TOP + n * HIGH, y2: TOP + n * HIGH, class: "grid" })]),
    lines.map((line, n) => slope(line, n, { name: names[n], at: places[n] }, x, y, context)));
}

/** Move the positions apart so that labels do not overlap. */
function spread(places, least) {
  const moved = [...places];
  const order = places.map((_, n) => n).sort((a, b) => places[a] - places[b]);
  order.slice(1).forEach((n, before) => {
    moved[n] = Math.max(moved[n], moved[order[before]] + least);
  });
  const drift = (moved[order.at(-1)] - places[order.at(-1)]) / 2;
  return moved.map((place) => place - drift);
}

function slope(line, n, label, x, y, context) {
  const points = line.words.map((word, at) => (word ? [x(at), y(word, n)] : null)).filter(Boolean);
  const [endX] = points.at(-1);
  return svg("g", { class: context.tone(line.seat.name) },
    svg("polyline", { points: points.map((point) => point.join(",")).join(" "), class: "slope" }),
    points.map(([cx, cy]) => svg("circle", { cx, cy, r: 3.5 })),
    svg("text", { x: endX + 12, y: label.at, class: "end" }, label.name));
}

/** Position changes of the verdict. */
function changes(m, context) {
  return (m.verdict?.shifts || []).filter((one) => one.changed).map((one) =>
    el("li", {}, chip(one.seat, context, { quote: one.reason }), " ",
      el("span", { class: "moved" }, el("span", {}, one.from || "claim"), el("span", { "aria-label": "to" }, " → "), el("strong", { "data-tone": toneOf(one.to) || null }, one.to)),
      one.topic && el("span", { class: "soft" }, " on ", inline(one.topic)),
      one.weak && el("span", { class: "tag", "data-tone": "doubt" }, term("weak flip")),
      one.reason && el("p", { class: "soft" }, inline(one.reason))));
}
