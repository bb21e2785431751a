// Positions of the seats by round, and the rows of the disagreement map as the server sent them.

import { rounds, statementOf } from "./minutes.js";

const TONES = {
  PASS: "good", SURVIVED: "good", STAND: "good", for: "good", HIGH: "good",
  WARN: "doubt", MODIFIED: "doubt", conditional: "doubt", undecided: "doubt", MEDIUM: "doubt", incomplete: "doubt",
  FAIL: "bad", OVERTURNED: "bad", REJECTED: "bad", against: "bad", LOW: "bad", failed: "bad",
  DISAGREE: "split", CONTESTED: "split",
};
export const toneOf = (word) => TONES[word] || "";

const wordOf = (reply) => (typeof reply?.verdict === "string" ? reply.verdict : typeof reply?.stance === "string" ? reply.stance : "");

/** Return the positions of a seat without repeats: WARN → FAIL. */
export function positionsOf(m, name) {
  const words = rounds(m).map((phase) => wordOf(statementOf(m, phase, name)?.reply)).filter(Boolean);
  return words.filter((word, n) => word !== words[n - 1]);
}

const NO_ROWS = [];

/** Return the rows of a moment: the last of the history that covers no later event. */
export function rowsAt(history, seq) {
  return history.findLast((one) => one.seq <= seq)?.rows || NO_ROWS;
}

export const toneOfRow = (row) => (row.status === "disputed" ? "split" : row.landed ? "bad" : "");
