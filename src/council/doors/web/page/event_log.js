// Events of a run, and its minutes at any moment. Replay recreates streamed text from the statement and its duration, as
// `council replay` does.

import { applyEvent, isTransient, newMinutes } from "./minutes.js";

export function newEventLog() {
  const entries = [];
  const times = []; // active seconds of each entry
  const full = newMinutes();
  let shown = null;
  let next = 0;
  let at = 0;

  /** Add an event; return false if it is already known. */
  function add(entry) {
    if (isTransient(entry)) {
      applyEvent(full, entry);
      return true;
    }
    if (entry.seq <= full.seq) return false;
    applyEvent(full, entry);
    entries.push(entry);
    times.push(full.seconds);
    return true;
  }

  /** Clear streamed text, which is sent again after a reconnect. */
  function clearStreams() {
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
      applyEvent(shown, entries[next]);
      next += 1;
    }
    streamUpTo(moment);
    return shown;
  }

  function streamUpTo(moment) {
    shown.live.clear();
    shown.spans.forEach((span, n) => {
      const later = full.spans[n];
      const said = later && span.to === null ? full.phases.get(span.phase)?.said.get(span.seat) : null;
      if (!said || said.key !== span.key || later.to === null) return;
      const start = later.marks.at(-1)?.t ?? span.from;
      const share = (moment - start) / Math.max(0.001, later.to - start);
      if (share <= 0) return;
      shown.live.set(span.key, { seat: span.seat, text: said.said.slice(0, Math.floor(share * said.said.length)) });
      const seat = shown.chair?.name === span.seat ? shown.chair : shown.seats.get(span.seat);
      if (seat) seat.state = "writing";
    });
  }

  return { entries, times, full, add, clearStreams, minutesAt };
}
