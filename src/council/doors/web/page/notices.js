// What is missing from an answer: each cause once, what to change, and one button.

import { button, el, setText } from "./dom.js";
import { capital, formatState } from "./format.js";
import { inline } from "./markdown.js";
import { phasesOf } from "./minutes.js";

const BY_KEY = "failed(auth)"; // state of a seat whose key or login was refused

/** The notices above an answer, in the words of the server; null if nothing is missing. */
export function noticesPanel(m, detail, context) {
  const lines = detail?.above || detail?.report?.degraded?.map(sentence) || (m.reason ? [`${capital(m.reason)}.`] : []);
  const action = context.canAct && m.status !== "complete" ? resumeButton(m, context) : null;
  if (!lines.length && !action) return null;
  return el("div", { class: "notices", role: "note", "aria-label": "What is missing", "data-tone": m.status === "failed" ? "bad" : "doubt" },
    el("ul", { class: "plain" }, lines.map((line) => el("li", {}, inline(line))), isKeyRefused(m) && context.openSetup && el("li", {}, setupLine(m, context))), action);
}

function sentence({ seat, phase, state, reason }) {
  if (!seat) return capital(reason || state);
  return `${seat} did not answer in ${phase === "answer" ? "the answer phase" : phase}: ${formatState(state)}${reason ? `: ${reason}` : ""}.`;
}

const setupLine = (m, context) => ["Set the key under ", button("Setup", context.openSetup, { class: "link" }), m.status === "complete" ? " for the next run." : ", then try again."];

const isKeyRefused = (m) => phasesOf(m).some((phase) => Object.values(phase.seats || {}).some((one) => m.events.get(one.absent)?.state === BY_KEY));

/** The button that continues a run, or asks again in one that failed. */
function resumeButton(m, context) {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const resume = button(m.status === "failed" ? "Retry" : "Resume", async () => {
    resume.disabled = true;
    problem.hidden = true;
    try {
      await context.resume();
    } catch (error) {
      setText(problem, capital(error.message));
      problem.hidden = false;
    } finally {
      resume.disabled = false;
    }
  }, { class: "primary" });
  return el("div", { class: "notice-action" }, resume, problem);
}
