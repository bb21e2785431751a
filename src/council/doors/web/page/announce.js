// What a screen reader is told of its own accord: phases, absences, the end. Never the words as they stream.

import { el, say } from "./dom.js";
import { stateInWords } from "./words.js";

export function announcer() {
  const node = el("p", { class: "away", role: "status", "aria-live": "polite" });

  /** What is loaded at once is history: each sentence takes the place of the last, so only the newest is read out. */
  function hear(entry, minutes) {
    const words = TOLD[entry.type]?.(entry, minutes);
    if (words) say(node, words);
  }

  return { node, hear };
}

const TOLD = {
  phase: (entry) => `Phase ${entry.phase} has begun.`,
  phase_ended: (entry, m) => {
    const phase = m.phases.get(entry.phase);
    return `Phase ${entry.phase} is over: ${phase.said.size} of ${phase.asked.length} seats heard.`;
  },
  absence: (entry) => `${entry.seat} is absent in ${entry.phase}: ${stateInWords(entry.state)}.`,
  closed: (entry) => {
    const word = entry.verdict?.verdict || entry.verdict?.outcome;
    return `The run is ${entry.status}${word ? `: ${word}` : ""}.`;
  },
};
