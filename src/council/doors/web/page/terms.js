// Terms with an explanation in place: a button that opens a short note beside it.

import { button, el } from "./dom.js";

const TERMS = {
  SURVIVED: "The leading draft withstood the attack: no issue made the chair change what it recommends.",
  MODIFIED: "The attack raised valid objections, and the chair changed the leading draft. Its main recommendation stands.",
  OVERTURNED: "A fatal or major objection was valid: the answer is not that of the leading draft.",
  PASS: "Every judge whose vote counts said PASS.",
  WARN: "The judges found problems, and none that fails the review.",
  FAIL: "A judge said FAIL, or the rule that was chosen decided so.",
  DISAGREE: "The judges of one vendor said PASS and those of another FAIL. Council does not break the tie: read both reasons.",
  HIGH: "Computed from the run: all seats answered, they agree, and nothing severe is open.",
  MEDIUM: "Computed from the run: at least one reason limits the trust, such as a changed answer, one vendor, or an absent seat.",
  LOW: "Computed from the run: too few seats answered, or no two of them share the recommendation.",
  CONTESTED: "The seats still disagree, or an issue that could overturn the answer is open. Decide only after reading both sides.",
  "weak flip": "The seat changed its position and named no evidence, only the others' opinion. It counts less.",
  "one vendor": "Only seats of one vendor saw this. Models of one vendor often make the same mistakes, so check it.",
  disputed: "A seat argued against this finding, or the seats hold opposite positions.",
};
let made = 0;

/** Return a word as a button with its explanation, or as text if there is none. */
export function term(word, label = word) {
  if (!Object.hasOwn(TERMS, word)) return label;
  const id = `term-${(made += 1)}`;
  return [button(label, () => {}, { class: "term", popovertarget: id }), el("span", { class: "note", id, popover: "auto", role: "note" }, TERMS[word])];
}
