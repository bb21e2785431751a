// Disagreement as sentences: who says what on each point on which the seats differ.

import { capital, count } from "./format.js";
import { chipList } from "./chips.js";
import { el } from "./dom.js";
import { inline } from "./markdown.js";

const TOLD_BY = ["disagreements", "tensions", "answers"]; // sections of an answer that tell the disagreement themselves
const SHOWN_SIDES = 8; // the points after those are behind a line that opens
const LATER = { CONCEDE: "later conceded", NUANCE: "later qualified it", MAINTAIN: "kept it after reading the others" };

/** The points on which seats differ, in the order of the run, each with its sides; empty if a section of the answer tells them. */
export function listDifferences(verdict, sections = []) {
  if (sections.some((one) => TOLD_BY.includes(one.name))) return [];
  if (verdict.differences?.length) return verdict.differences;
  if (verdict.details?.opinions) return []; // of a review the verdict of each judge is shown
  return (verdict.disagreements || []).map(differenceOf);
}

/** A disagreement of a run that has no differences, with its sides. */
function differenceOf({ issue, positions = [] }) {
  const sides = new Map();
  for (const { seat, stance, verdict, position, claim, why, assumes, round2 } of positions) {
    const word = stance || verdict || position || "";
    const text = [word, claim || (word ? why : claim || why)].filter((part, n, all) => part && all.indexOf(part) === n).join(": ");
    const key = `${text}|${assumes || ""}|${round2 || ""}`;
    if (!sides.has(key)) sides.set(key, { seats: [], position: text, assumes: assumes || "", later: LATER[round2] || "" });
    sides.get(key).seats.push(seat);
  }
  return { point: issue || "", sides: [...sides.values()] };
}

/** The section "Where they differ"; null without differences. */
export function differencesSection(differences, context) {
  if (!differences.length) return null;
  const shown = countShown(differences);
  const list = (points) => el("ul", { class: "plain" }, points.map((one) => el("li", {}, sentences(one, context))));
  const rest = differences.slice(shown);
  return el("section", { class: "differences", "aria-labelledby": "differences-title" },
    el("h3", { id: "differences-title" }, "Where they differ"), list(differences.slice(0, shown)),
    rest.length > 0 && el("details", { class: "more" }, el("summary", {}, count(rest.length, "more point")), list(rest)));
}

/** How many points have at most as many sides together as are shown at once; at least one. */
function countShown(differences) {
  let sides = 0;
  const over = differences.findIndex((one) => (sides += Math.max(1, one.sides.length)) > SHOWN_SIDES);
  return over < 0 ? differences.length : Math.max(1, over);
}

function sentences({ point, sides }, context) {
  const told = sides.filter((side) => side.position);
  return [
    point && el("p", { class: "point" }, inline(capital(point))),
    told.map((side) => el("p", { class: "stand" }, chipList(side.seats, context, { quote: side.position }), ": ", inline(endSentence(side)))),
  ];
}

function endSentence({ position, assumes, later }) {
  const text = [position.trim().replace(/[.。]$/, ""), assumes && `assuming ${assumes.trim().replace(/[.。]$/, "")}`, later].filter(Boolean).join(", ");
  return /[?!？！]$/.test(text) ? text : `${text}.`;
}
