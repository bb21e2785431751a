// Positions of the seats by round, and the rows of the disagreement map. The page only arranges the results of the rules.

import { plannedSeats, rounds } from "./minutes.js";
import { short } from "./format.js";

const TONES = {
  PASS: "good", SURVIVED: "good", STAND: "good", for: "good", HIGH: "good",
  WARN: "doubt", MODIFIED: "doubt", conditional: "doubt", undecided: "doubt", MEDIUM: "doubt", incomplete: "doubt",
  FAIL: "bad", OVERTURNED: "bad", REJECTED: "bad", against: "bad", LOW: "bad", failed: "bad",
  DISAGREE: "split", CONTESTED: "split",
};
export const toneOf = (word) => TONES[word] || "";

const wordOf = (reply) => (typeof reply?.verdict === "string" ? reply.verdict : typeof reply?.stance === "string" ? reply.stance : "");

/** Return the positions of a seat without repeats: WARN → FAIL. */
export function positionsOf(m, name) {
  const words = rounds(m).map((phase) => wordOf(phase.said.get(name)?.reply)).filter(Boolean);
  return words.filter((word, n) => word !== words[n - 1]);
}

/** Return rows {id, title, about, cells: Map(seat → {position, why}), status, tone, quote, finding}. */
export function mapRows(m) {
  const v = m.verdict;
  const rows = v ? [...findingRows(m, v), ...disputeRows(m, v), ...attackRows(m), ...claimRows(m, v)] : provisionalRows(m);
  return rows.map((row, n) => ({ ...row, id: n }));
}

const seatsOf = (m) => plannedSeats(m).filter(Boolean).map((seat) => seat.name);

const cellsOf = (m, position) => new Map(seatsOf(m).map((name) => [name, m.seats.get(name).statements ? position(name) : { position: "absent" }]));

// Findings of judges

function findingRows(m, v) {
  const notes = v.details?.notes || {};
  return (v.findings || []).map((finding) => {
    const challenged = finding.disputed ? challengers(notes, finding) : new Map();
    const cells = cellsOf(m, (name) =>
      finding.found_by?.includes(name) ? { position: "agrees", why: "found it" }
        : challenged.has(name) ? { position: "opposes", why: challenged.get(name) } : { position: "silent" });
    const by = finding.found_by?.length || 0;
    const status = finding.disputed ? "disputed" : by === finding.of ? "agreed" : `${by} of ${finding.of}`;
    return {
      title: place(finding.location) || short(finding.description, 40), about: finding.description, cells, status, finding,
      tone: finding.disputed ? "split" : "", severity: finding.severity, quote: finding.description,
    };
  });
}

const place = (location) => String(location || "").split("/").at(-1);

function challengers(notes, finding) {
  const found = new Map();
  for (const [name, note] of Object.entries(notes)) {
    for (const one of note.challenges || []) {
      const aimed = finding.found_by?.includes(one.target_judge);
      if (aimed && isSimilar(one.claim, finding)) found.set(name, one.response);
    }
  }
  return found;
}

function isSimilar(claim, finding) {
  const file = place(finding.location).split(":")[0];
  if (file && claim.includes(file)) return true;
  const words = new Set(finding.description.toLowerCase().match(/\w{4,}/g) || []);
  const shared = (claim.toLowerCase().match(/\w{4,}/g) || []).filter((word) => words.has(word)).length;
  return shared * 2 >= words.size;
}

// Topics of a general council, ballots of a ranking, verdicts that differ

const STANCES = { yes: "agrees", no: "opposes", supports: "agrees", for: "agrees", PASS: "agrees", first: "agrees", opposes: "opposes", against: "opposes", FAIL: "opposes", last: "opposes" };

function disputeRows(m, v) {
  const disputes = (v.disagreements || []).filter((one) => one.positions?.length);
  return disputes.map((one) => {
    const at = new Map(one.positions.map((side) => [side.seat, side]));
    const cells = cellsOf(m, (name) => (at.has(name) ? sideOf(at.get(name)) : { position: "silent" }));
    return { title: short(one.topic || one.issue, 44), about: one.issue, cells, status: "disputed", tone: "split", sides: one.positions, quote: one.issue };
  });
}

function sideOf(side) {
  const word = side.stance || side.verdict || side.position || "";
  const why = [word, side.round2 && `then ${side.round2}`, side.claim || side.why].filter(Boolean).join(": ");
  return { position: STANCES[word] || (word ? "qualifies" : "agrees"), why };
}

function claimRows(m, v) {
  const disputed = new Set((v.disagreements || []).map((one) => one.topic));
  return (v.claims || []).filter((one) => !disputed.has(one.topic)).map((one) => {
    const cells = cellsOf(m, (name) =>
      one.against?.includes(name) ? { position: "opposes", why: "against it" }
        : one.conceded?.includes(name) ? { position: "qualifies", why: "conceded" }
          : one.by?.includes(name) || one.agrees?.includes(name) ? { position: "agrees", why: one.claim } : { position: "silent" });
    return { title: short(one.topic || one.claim, 44), about: one.claim, cells, status: one.status, tone: one.status === "contradicted" ? "split" : "", claim: one, quote: one.claim };
  });
}

// Points of an attack, as the chair ruled on them

function attackRows(m) {
  const attack = m.phases.get("attack");
  if (!attack) return [];
  const details = m.verdict?.details || {};
  const leader = details.leader || m.phases.get("triage")?.said.get("chair")?.reply?.leader;
  const points = details.rulings || (m.phases.get("verdict")?.said.get("chair")?.reply?.points || []).map((one) => ({ ...one, id: one.issue }));
  return [...attack.said].flatMap(([name, said]) =>
    (said.reply?.issues || []).map((issue, n) => {
      const point = points.find((one) => one.id === `${name}-${n + 1}` && typeof one.landed === "boolean");
      const cells = cellsOf(m, (seat) => (seat === name ? { position: "opposes", why: issue.flaw } : seat === leader ? { position: "agrees", why: "its draft" } : { position: "silent" }));
      const status = point ? (point.landed ? "landed" : "dismissed") : "open";
      return { title: short(issue.hits || issue.flaw, 44), about: issue.flaw, cells, status, tone: point?.landed ? "bad" : "", severity: issue.severity.toLowerCase(), sides: point && [{ seat: "chair", why: point.why }], quote: issue.flaw, correction: issue.correction };
    }));
}

// Provisional rows of a running council, before the rules have run

function provisionalRows(m) {
  const found = new Map();
  const add = (key, title, about, seat, cell, more) => {
    if (!found.has(key)) found.set(key, { title, about, bySeat: new Map(), quote: about, ...more });
    found.get(key).bySeat.set(seat, cell);
  };
  for (const phase of rounds(m)) {
    for (const [seat, said] of phase.said) {
      for (const one of said.reply?.findings || []) {
        if (one?.description) add(one.location || one.description, place(one.location) || short(one.description, 40), one.description, seat, { position: "agrees", why: "found it" }, { severity: one.severity });
      }
      for (const one of said.reply?.claims || []) {
        const about = one?.question || one?.topic;
        if (about) add(about.toLowerCase(), short(about, 44), one.text, seat, { position: STANCES[one.answer || one.stance] || "qualifies", why: one.text });
      }
    }
  }
  const rows = [...found.values()].map(({ bySeat, ...row }) => ({
    ...row, cells: cellsOf(m, (name) => bySeat.get(name) || { position: "silent" }), status: `${bySeat.size} of ${seatsOf(m).length}`, tone: "",
  }));
  return [...rows, ...attackRows(m)];
}
