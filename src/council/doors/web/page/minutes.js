// The minutes: the state of a run after some of its events, folded by the server. Each event brings a JSON merge patch
// (RFC 7396), so that any moment is a number of patches; nothing here knows what an event means. The minutes refer to
// events by number: a statement is in its event only. Times are active seconds, without pauses, as on the timeline.

const NO_EVENT = {};
const newRecord = () => Object.create(null); // a name such as __proto__ is a name like any other

/** `events` are all known events by number. */
export function newMinutes(events) {
  return {
    events, seq: 0, last: 0, seconds: 0, status: "running", usd: 0, seats: newRecord(), phases: newRecord(), steps: newRecord(), attempts: newRecord(),
    live: newRecord(), // streamed text by the key of its step
    get start() { return events.get(this.convened) || NO_EVENT; },
    get run() { return this.start.run || ""; },
    get name() { return this.start.name || ""; },
    get plan() { return this.start.plan || NO_EVENT; },
    get verdict() { return this.closed ? events.get(this.closed).verdict || NO_EVENT : null; },
  };
}

/** Apply the patch of an event. */
export function applyPatch(m, event, patch) {
  mergePatch(m, patch);
  m.seq = event.seq;
  m.last = event.at;
}

function mergePatch(target, patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete target[name];
    else if (typeof value !== "object" || Array.isArray(value)) target[name] = value;
    else mergePatch((target[name] ??= newRecord()), value);
  }
}

/** Add a piece of streamed text. `from` is its offset: after a reconnect some of it may be sent again. */
export function addText(m, { key, seat, at, from, text }) {
  if (!m.live[key]) {
    m.live[key] = { seat, pieces: [], chars: 0 };
    const attempt = listAttempts(m).findLast((one) => m.events.get(one.event).key === key);
    if (attempt) attempt.first_text ??= at;
  }
  const live = m.live[key];
  const fresh = text.slice(Math.max(0, live.chars - from));
  if (fresh) live.pieces.push(fresh);
  live.chars += fresh.length;
}

// Queries

export const listSteps = (m) => Object.values(m.steps);

const listAttempts = (m) => Object.values(m.attempts);

/** The requests with the fields of their events. */
export const attempts = (m) => listAttempts(m).map((one) => {
  const statement = m.events.get(one.statement);
  return { ...m.events.get(one.event), ...one, fault: m.events.get(one.fault), usage: statement?.usage, firstText: statement?.first_text ?? one.first_text };
});

/** Money of the requests of a seat, or of all: spent, reserved for open requests, and in doubt where there is no answer and no process waits for one. */
export function moneyOf(m, seat, isLive) {
  const sums = { spent: 0, reserved: 0, inDoubt: 0, isEstimated: false };
  for (const one of listAttempts(m)) {
    const sent = m.events.get(one.event);
    if (seat !== null && sent.seat !== seat) continue;
    sums.spent += one.usd ?? 0;
    sums.inDoubt += one.doubtful ?? 0;
    sums.isEstimated ||= Boolean(one.estimated);
    if (one.open) sums[isLive && !one.interrupted ? "reserved" : "inDoubt"] += sent.most ?? 0;
  }
  return sums;
}

/** The members with an unknown price that were asked. */
export const unpricedMembers = (m) => [...new Set(listAttempts(m).map((one) => m.events.get(one.event)).filter((sent) => sent.most === null).map((sent) => sent.member))];

const plannedNames = (m) => (m.plan.seats || []).map((seat) => seat.name);

export const plannedSeats = (m) => plannedNames(m).map((name) => m.seats[name]).filter(Boolean);

/** The seats of the plan, then helpers, then the chair. */
export function allSeats(m) {
  const planned = plannedNames(m);
  const helpers = Object.values(m.seats).filter((seat) => seat.name !== m.chair && !planned.includes(seat.name));
  return [...plannedSeats(m), ...helpers, ...(m.chair ? [m.seats[m.chair]] : [])];
}

/** The seats that have a column: those of the plan and the chair. Helpers are shown with their seat, and a chair that a complete run did not need is left out. */
export const shownSeats = (m) => allSeats(m).filter((seat) => !seat.host && (seat.model || seat.phase) && !(seat.name === m.chair && m.status === "complete" && seat.state === "waiting"));

/** The state of a seat; streamed text says that it writes. */
export function stateOf(m, seat) {
  return Object.values(m.live).some((live) => live.seat === seat.name) ? "writing" : seat.state;
}

const byPlace = (a, b) => (a.place < b.place ? -1 : 1);

/** The phases in the order in which they started; those of seats and their helpers are in seating order. */
export function phasesOf(m) {
  if (m.sorted?.seq !== m.seq) m.sorted = { seq: m.seq, phases: Object.values(m.phases).sort(byPlace) };
  return m.sorted.phases;
}

/** The phases of the whole council, without those between a seat and its helpers. */
export const rounds = (m) => phasesOf(m).filter((phase) => !phase.private);

/** The seats of a phase in seating order. */
export const seatsIn = (m, phase) => Object.keys(phase.seats || {}).map((name) => m.seats[name]).sort(byPlace);

export const statementOf = (m, phase, name) => m.events.get(phase?.seats?.[name]?.said);

export const absenceOf = (m, phase, name) => m.events.get(phase?.seats?.[name]?.absent);

/** The statements of a phase in seating order. */
export const statementsIn = (m, phase) => seatsIn(m, phase).map((seat) => statementOf(m, phase, seat.name)).filter(Boolean);

export const labelsOf = (phase, reader) => phase.labels?.[reader];

/** How many seats were asked in a phase, and how many answered. */
export function countAnswers(phase) {
  const seats = Object.values(phase.seats || {});
  return { asked: seats.filter((one) => one.asked).length, answered: seats.filter((one) => one.said).length };
}
