// A run's events as they came in, and the minutes at any moment of it. Replay makes the pieces of an answer anew, from its
// text and the time it took, as `council replay` does.

import { hear, isPassing, newMinutes } from "./fold.js";

export function newRecord() {
  const entries = [];
  const times = []; // seconds at work when each of them happened
  const full = newMinutes();
  let shown = null;
  let next = 0;
  let at = 0;

  /** Take an event down; false for one that is known already. */
  function take(entry) {
    if (isPassing(entry)) {
      hear(full, entry);
      return true;
    }
    if (entry.seq <= full.seq) return false;
    hear(full, entry);
    entries.push(entry);
    times.push(full.seconds);
    return true;
  }

  /** What was streaming is sent again from its beginning after a new connection. */
  function hush() {
    full.live.clear();
  }

  function minutesAt(moment) {
    if (moment === null) return full;
    if (!shown || moment < at) {
      shown = newMinutes();
      next = 0;
    }
    at = moment;
    while (next < entries.length && times[next] <= moment) {
      hear(shown, entries[next]);
      next += 1;
    }
    writeOn(moment);
    return shown;
  }

  function writeOn(moment) {
    shown.live.clear();
    shown.spans.forEach((span, n) => {
      const later = full.spans[n];
      const said = later && span.to === null ? full.phases.get(span.phase)?.said.get(span.seat) : null;
      if (!said || said.key !== span.key || later.to === null) return;
      const began = later.marks.at(-1)?.t ?? span.from;
      const share = (moment - began) / Math.max(0.001, later.to - began);
      if (share <= 0) return;
      shown.live.set(span.key, { seat: span.seat, text: said.said.slice(0, Math.floor(share * said.said.length)) });
      const seat = shown.chair?.name === span.seat ? shown.chair : shown.seats.get(span.seat);
      if (seat) seat.state = "writing";
    });
  }

  return { entries, times, full, take, hush, minutesAt };
}
