// The minutes: state of a run after some of its events, with the same fold as the Python minutes.
// Replay is this fold up to a moment. Times are active seconds, without pauses, as on the timeline.

const TRANSIENT = new Set(["delta", "fetch"]);

export const isTransient = (entry) => TRANSIENT.has(entry.type);

export function newMinutes() {
  return {
    run: "", name: "", folder: "", plan: {}, started: 0, status: "running", stopped: "", reason: "", seats: new Map(),
    chair: null, phases: new Map(), notes: [], prompts: new Map(), troubles: [], attempts: [], spans: [], lookups: [],
    live: new Map(), cap: null, verdict: null, calls: null, reportPath: "", seconds: 0, last: 0, seq: 0, fetching: null,
    usd: 0, estimated: false, unpriced: new Set(),
  };
}

export function applyEvent(m, entry) {
  if (entry.type === "resumed") m.last = entry.at;
  else if (!isTransient(entry)) {
    m.seconds += m.last ? Math.max(0, entry.at - m.last) : 0;
    m.last = entry.at;
  }
  m.seq = Math.max(m.seq, entry.seq || 0);
  HANDLERS[entry.type]?.(m, entry);
  return m;
}

const newSeat = (plan) => ({
  name: plan.name, role: plan.role || "", perspective: plan.perspective || "", model: plan.model || "", vendor: plan.vendor || "",
  state: "waiting", phase: "", since: 0, servedBy: "", trouble: "", reason: "", usd: 0, estimated: false, tokens: 0, read: 0,
  seconds: 0, attempts: 0, statements: 0,
});

export function seatOf(m, name) {
  if (m.chair?.name === name) return m.chair;
  if (!m.seats.has(name)) m.seats.set(name, newSeat({ name }));
  return m.seats.get(name);
}

function phaseOf(m, name) {
  if (!m.phases.has(name)) {
    m.phases.set(name, { name, from: m.seconds, to: null, asked: [], keys: new Map(), said: new Map(), absent: new Map(), labels: {} });
    if (name.includes("/")) m.phases = new Map([...m.phases].sort(comparePhases(m)));
  }
  return m.phases.get(name);
}

// Order: seats of a phase, and phases of seats, are in seating order. The order of arrival is random, and a crash changes it.

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** The place of a seat in seating order; helpers follow their seat, and the chair is last. */
function placeOf(m, name) {
  const names = (m.plan.seats || []).map((seat) => seat.name);
  if (m.chair?.name === name) return names.length + 1;
  const place = names.findIndex((host) => host === name || name.startsWith(`${host}-`));
  return place < 0 ? names.length : place;
}

const compareSeats = (m) => (a, b) => placeOf(m, a) - placeOf(m, b) || byName(a, b);

function setInOrder(m, map, name, value) {
  map.set(name, value);
  const sorted = [...map].sort(([a], [b]) => compareSeats(m)(a, b));
  if (sorted.at(-1)[0] === name) return;
  map.clear();
  for (const [seat, one] of sorted) map.set(seat, one);
}

/** Phases in the order in which they started, those of seats and their helpers in seating order. */
function comparePhases(m) {
  const started = new Map();
  [...m.phases.keys()].forEach((name, n) => {
    const parts = name.split("/");
    parts.forEach((_, at) => {
      const prefix = parts.slice(0, at + 1).join("/");
      if (!started.has(prefix)) started.set(prefix, n);
    });
  });
  const isOfSeat = (part) => placeOf(m, part) < (m.plan.seats || []).length;
  return ([one], [other]) => {
    const [a, b] = [one.split("/"), other.split("/")];
    const at = a.findIndex((part, n) => part !== b[n]);
    if (at < 0 || at >= b.length) return a.length - b.length;
    const [isSeatA, isSeatB] = [at > 0 && isOfSeat(a[at]), at > 0 && isOfSeat(b[at])];
    if (isSeatA !== isSeatB) return isSeatA ? 1 : -1;
    if (isSeatA) return compareSeats(m)(a[at], b[at]);
    return started.get(a.slice(0, at + 1).join("/")) - started.get(b.slice(0, at + 1).join("/"));
  };
}

const spanOf = (m, key) => m.spans.findLast((span) => span.key === key && span.to === null);

function beginSpan(m, event, from = m.seconds) {
  const span = { key: event.key, seat: event.seat, phase: event.phase, from, to: null, state: "asked", marks: [] };
  m.spans.push(span);
  setInOrder(m, phaseOf(m, event.phase).keys, event.seat, event.key);
  return span;
}

function endSpan(m, event) {
  const span = spanOf(m, event.key) || beginSpan(m, event, Math.max(0, m.seconds - (event.seconds || 0)));
  span.to = m.seconds;
  span.state = event.state;
  return span;
}

const HANDLERS = {
  convened(m, event) {
    Object.assign(m, { run: event.run, name: event.name, plan: event.plan || {}, folder: event.folder, started: event.at });
    m.cap = m.plan.cap ?? null;
    for (const seat of m.plan.seats || []) m.seats.set(seat.name, newSeat(seat));
    if (m.plan.chair) m.chair = newSeat(m.plan.chair);
  },
  resumed(m, event) {
    Object.assign(m, { status: "running", stopped: "", reason: "", cap: event.cap ?? m.cap });
    for (const span of m.spans) if (span.to === null) Object.assign(span, { to: m.seconds, state: "stopped" });
    for (const one of m.attempts) if (one.open) Object.assign(one, { inDoubt: true, end: one.end ?? m.seconds });
  },
  phase(m, event) {
    phaseOf(m, event.phase);
  },
  phase_ended(m, event) {
    phaseOf(m, event.phase).to = m.seconds;
  },
  asked(m, event) {
    const phase = phaseOf(m, event.phase);
    phase.absent.delete(event.seat);
    if (!phase.asked.includes(event.seat)) phase.asked.push(event.seat);
    phase.asked.sort(compareSeats(m));
    m.prompts.set(event.key, event);
    beginSpan(m, event);
    m.live.delete(event.key);
    Object.assign(seatOf(m, event.seat), { state: "asked", phase: event.phase, since: m.seconds, trouble: "", reason: "" });
  },
  attempt(m, event) {
    m.live.delete(event.key);
    m.attempts.push({ ...event, t: m.seconds, end: null, open: true, inDoubt: false, firstText: null, usage: null, fault: null, usd: null, doubtful: 0, estimated: false });
    if (event.most === null) m.unpriced.add(event.member);
    if (!event.why) return;
    seatOf(m, event.seat).trouble = formatAttempt(event);
    m.troubles.push({ ...event, t: m.seconds, text: formatAttempt(event) });
  },
  fault(m, event) {
    m.live.delete(event.key);
    const text = formatFault(event);
    spanOf(m, event.key)?.marks.push({ t: m.seconds, kind: event.kind, text });
    m.troubles.push({ ...event, t: m.seconds, text });
    seatOf(m, event.seat).trouble = text;
    const attempt = m.attempts.findLast((one) => one.key === event.key && one.n === event.n);
    if (attempt) Object.assign(attempt, { fault: event, open: false, end: attempt.end ?? m.seconds });
  },
  bill(m, event) {
    const seat = seatOf(m, event.seat);
    const attempt = m.attempts.findLast((one) => one.key === event.key && one.n === event.n);
    if (attempt) Object.assign(attempt, { open: false, end: attempt.end ?? m.seconds });
    if (event.in_doubt) {
      if (attempt) attempt.doubtful = event.usd;
      return;
    }
    seat.usd += event.usd;
    m.usd += event.usd;
    seat.estimated ||= event.estimated;
    m.estimated ||= event.estimated;
    if (attempt) Object.assign(attempt, { usd: event.usd, estimated: event.estimated });
  },
  delta(m, event) {
    if (!m.live.has(event.key)) {
      m.live.set(event.key, { seat: event.seat, pieces: [], chars: 0 });
      const attempt = m.attempts.findLast((one) => one.key === event.key);
      if (attempt) attempt.firstText ??= event.at;
    }
    const live = m.live.get(event.key);
    // `from` is the offset of the piece: after a reconnect some of it may be sent again.
    const known = event.from === undefined ? 0 : Math.max(0, live.chars - event.from);
    const text = known ? event.text.slice(known) : event.text;
    if (text) live.pieces.push(text);
    live.chars += text.length;
    seatOf(m, event.seat).state = "writing";
  },
  statement(m, event) {
    m.live.delete(event.key);
    endAttempts(m, event);
    const span = endSpan(m, event);
    setInOrder(m, phaseOf(m, event.phase).said, event.seat, { ...event, t: m.seconds, from: span.from });
    const seat = seatOf(m, event.seat);
    Object.assign(seat, { state: event.state, phase: event.phase, servedBy: event.served_by, reason: "", trouble: "" });
    addUsage(seat, event);
    seat.statements += 1;
  },
  absence(m, event) {
    m.live.delete(event.key);
    endAttempts(m, event);
    endSpan(m, event);
    setInOrder(m, phaseOf(m, event.phase).absent, event.seat, { ...event, t: m.seconds });
    const seat = seatOf(m, event.seat);
    Object.assign(seat, { state: event.state, phase: event.phase, reason: event.reason });
    addUsage(seat, event);
  },
  lookup(m, event) {
    m.lookups.push({ ...event, t: m.seconds });
  },
  note(m, event) {
    m.notes.push({ ...event, t: m.seconds });
  },
  labels(m, event) {
    phaseOf(m, event.phase).labels[event.reader] = event.labels;
  },
  fetch(m, event) {
    m.fetching = event.done < event.total ? event : null;
  },
  closed(m, event) {
    const { status, stopped, reason, verdict, calls } = event;
    Object.assign(m, { status, stopped, reason, verdict: verdict || {}, calls, reportPath: event.report_path, fetching: null });
  },
};

/** End the open requests of a step; the last one has its tokens and the time of its first text. */
function endAttempts(m, event) {
  for (const one of m.attempts) if (one.key === event.key && one.open) Object.assign(one, { open: false, end: one.end ?? m.seconds });
  const last = m.attempts.findLast((one) => one.key === event.key);
  if (last && event.type === "statement") Object.assign(last, { usage: event.usage, firstText: event.first_text ?? last.firstText });
}

function addUsage(seat, event) {
  seat.tokens += event.usage?.out || 0;
  seat.read += event.usage?.in || 0;
  seat.attempts += event.attempts || 0;
  seat.seconds += event.seconds || 0;
}

export function formatFault(event) {
  const next = event.wait === null || event.wait === undefined ? "" : `, next attempt in ${event.wait < 10 ? event.wait.toFixed(1) : Math.round(event.wait)} s`;
  return `${event.member} failed (${event.kind}): ${event.detail}${next}`;
}

export function formatAttempt(event) {
  const [kind, rest] = [event.why.split(":")[0], event.why.split(":").slice(1).join(":").trim()];
  if (kind === "fallback") return `fallback to ${event.member}: ${rest}`;
  if (kind === "retry") return `try ${event.n} with ${event.member}: ${rest}`;
  return `try ${event.n} with ${event.member}: ${event.why}`;
}

// Queries

/** Money of the requests of a seat, or of all: spent, reserved for open requests, and in doubt where there is no answer and no process waits for one. */
export function moneyOf(m, seat, isLive) {
  const sums = { spent: 0, reserved: 0, inDoubt: 0, isEstimated: false };
  for (const one of m.attempts) {
    if (seat !== null && one.seat !== seat) continue;
    sums.spent += one.usd ?? 0;
    sums.inDoubt += one.doubtful;
    sums.isEstimated ||= one.estimated;
    if (one.open) sums[isLive && !one.inDoubt ? "reserved" : "inDoubt"] += one.most ?? 0;
  }
  return sums;
}

export const allSeats = (m) => [...m.seats.values(), ...(m.chair ? [m.chair] : [])];

/** The seats that have a column: those of the plan and the chair. Helpers are shown with their seat, and a chair that a complete run did not need is left out. */
export const shownSeats = (m) => allSeats(m).filter((seat) => !parentSeat(m, seat.name) && (seat.model || seat.phase) && !(seat === m.chair && m.status === "complete" && seat.state === "waiting"));

export const plannedSeats = (m) => (m.plan.seats || []).map((seat) => m.seats.get(seat.name));

/** Return the seat a helper belongs to: judge-1 for judge-1-explorer-2; "" for a seat of the plan. */
export function parentSeat(m, name) {
  const names = (m.plan.seats || []).map((seat) => seat.name);
  return names.includes(name) || m.chair?.name === name ? "" : names.find((host) => name.startsWith(`${host}-`)) || "";
}

/** Whether a phase is only between a seat and its helpers: judge/judge-1/questions. */
export const isPrivatePhase = (m, phase) => phase.split("/").slice(1).some((part) => m.seats.has(part));

export const rounds = (m) => [...m.phases.values()].filter((phase) => !isPrivatePhase(m, phase.name));

export const statements = (m) => [...m.phases.values()].flatMap((phase) => [...phase.said.values()]);

/** Statements of a seat, in order. */
export const statementsOf = (m, name) => statements(m).filter((said) => said.seat === name);

export const answeredCount = (m) => plannedSeats(m).filter((seat) => seat && seat.statements).length;
