// How the decision of a run turned out, and the form that records it.

import { button, el, setText } from "./dom.js";
import { capital } from "./format.js";

export const toneOfOutcome = (label) => (label === "wrong" ? "bad" : "good");

const dateOf = (at) => new Date(at * 1000).toISOString().slice(0, 10); // as in the report

/** An outcome as one line: wrong (recorded on 2026-11-20); the right value is 43; it moved in March */
export const formatOutcome = (outcome) => [`${outcome.label} (recorded on ${dateOf(outcome.at)})`, outcome.value && `the right value is ${outcome.value}`, outcome.note].filter(Boolean).join("; ");

/** The outcome with a way to correct it, or the form; nothing where nothing can be recorded. */
export function outcomePanel(report, context) {
  const outcome = report?.decision_outcome;
  const canRecord = context.canAct && report?.status === "complete";
  if (!outcome && !canRecord) return null;
  const node = el("section", { class: "outcome", "aria-label": "How the decision turned out" });
  const showForm = () => node.replaceChildren(...outcomeForm(outcome, context));
  if (outcome) node.append(...shownOutcome(outcome, canRecord && showForm));
  else showForm();
  return node;
}

function shownOutcome(outcome, change) {
  const facts = [outcome.value && `The right value is ${outcome.value}.`, outcome.note, `Recorded on ${dateOf(outcome.at)}.`].filter(Boolean);
  return [
    el("h3", {}, `It turned out ${outcome.label}`),
    ...facts.map((fact) => el("p", { class: "soft" }, fact)),
    ...(change ? [button("Change", change, { class: "link" })] : []),
  ];
}

/** The question with two buttons, each of which records the outcome, and the note that goes with it. */
function outcomeForm(outcome, context) {
  const note = el("input", { type: "text", id: "outcome-note", maxlength: "2000", value: outcome?.note || "", placeholder: "Note (optional)", "aria-label": "Note on how it turned out" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const record = async (label) => {
    buttons.forEach((one) => (one.disabled = true));
    problem.hidden = true;
    try {
      await context.recordOutcome(label, note.value.trim());
    } catch (error) {
      setText(problem, capital(error.message));
      problem.hidden = false;
      buttons.forEach((one) => (one.disabled = false));
    }
  };
  const buttons = [button("Right", () => record("right")), button("Wrong", () => record("wrong"))];
  return [el("h3", {}, "How did it turn out?"), el("div", { class: "outcome-form" }, note, buttons), problem];
}
