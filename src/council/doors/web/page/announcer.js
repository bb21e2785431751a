// Live region for screen readers: phases, absences and the end, but not streamed text.

import { el, setText } from "./dom.js";
import { formatState } from "./format.js";
import { countAnswers } from "./minutes.js";

export function announcer() {
  const node = el("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });

  /** Announce an event. Each message replaces the last, so that only the newest of a loaded history is read out. */
  function onEvent(entry, minutes) {
    const message = MESSAGES[entry.type]?.(entry, minutes);
    if (message) setText(node, message);
  }

  return { node, onEvent };
}

const MESSAGES = {
  phase: (entry) => `Phase ${entry.phase} started.`,
  phase_ended: (entry, m) => {
    const { asked, answered } = countAnswers(m.phases[entry.phase]);
    return `Phase ${entry.phase} ended: ${answered} of ${asked} seats answered.`;
  },
  absence: (entry) => `${entry.seat} is absent in ${entry.phase}: ${formatState(entry.state)}.`,
  closed: (entry) => {
    const word = entry.verdict?.verdict || entry.verdict?.outcome;
    return `The run is ${entry.status}${word ? `: ${word}` : ""}.`;
  },
};
