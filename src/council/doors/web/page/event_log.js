// Events of a run, and its minutes at any moment. Replay recreates streamed text from the statement and its duration, as
// `council runs replay` does.

import { addText, applyPatch, newMinutes, statementOf } from "./minutes.js";

export function newEventLog() {
  const entries = [];
  const times = []; // active seconds of each entry
  const patches = [];
  const byNumber = new Map();
  const full = newMinutes(byNumber);
  let shown = null;
  let next = 0;
  let at = 0;

  /** Add an event with its patch; return false if it is already known. */
  function add({ patch, ...entry }) {
    if (entry.type === "delta") {
      addText(full, entry);
      return true;
    }
    if (entry.seq <= full.seq) return false;
    byNumber.set(entry.seq, entry);
    applyPatch(full, entry, patch);
    entries.push(entry);
    times.push(full.seconds);
    patches.push(patch);
    return true;
  }

  /** Clear streamed text, which is sent again after a reconnect. */
  function clearStreams() {
    for (const key of Object.keys(full.live)) delete full.live[key];
  }

  /** Return the minutes at a moment; an earlier one than the last is made from the start. */
  function minutesAt(moment) {
    if (moment === null) return full;
    if (!shown || moment < at) {
      shown = newMinutes(byNumber);
      next = 0;
    }
    at = moment;
    while (next < entries.length && times[next] <= moment) {
      applyPatch(shown, entries[next], patches[next]);
      next += 1;
    }
    streamUpTo(moment);
    return shown;
  }

  function streamUpTo(moment) {
    for (const key of Object.keys(shown.live)) delete shown.live[key];
    for (const [n, step] of Object.entries(shown.steps)) {
      const later = full.steps[n];
      const said = step.end === undefined ? statementOf(full, full.phases[step.phase], step.seat) : null;
      if (said?.key !== step.key || later.end === undefined) continue;
      const start = later.faults?.at(-1)[0] ?? step.begin;
      const share = (moment - start) / Math.max(0.001, later.end - start);
      if (share > 0) shown.live[step.key] = { seat: step.seat, text: said.said.slice(0, Math.floor(share * said.said.length)) };
    }
  }

  return { entries, times, full, add, clearStreams, minutesAt };
}
