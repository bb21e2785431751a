// Column of one seat: member, state and statements.

import { BUSY, OK, clock, money, number, formatState, formatTrouble, replaceLabels } from "./format.js";
import { bringIntoView, button, changeDetector, el, flash, setAttr, setText } from "./dom.js";
import { absenceOf, labelsOf, phasesOf, seatsIn, stateOf, statementOf } from "./minutes.js";
import { statementNode, summarize } from "./statement.js";
import { positionsOf, toneOf } from "./positions.js";

const TOUCH_MS = 3000; // milliseconds in which scrolling is that of the reader: a wheel or a finger scrolls on for a while
const FOLLOW_PX = 48; // pixels from the end within which the column scrolls along

export function seatColumn(name, number_, context) {
  const title = button(name, () => context.focus(name), { class: "seat-name", "aria-pressed": "false", title: "Focus this seat" });
  const parts = { who: el("p", { class: "who" }), member: el("p", { class: "member" }), verdict: el("span", { class: "position" }) };
  const state = el("span", { class: "state" });
  const facts = el("span", { class: "facts" });
  const trouble = el("p", { class: "trouble", hidden: true });
  const brief = el("p", { class: "brief" }); // in a list
  const body = el("div", { class: "body", tabindex: "0", role: "group", "aria-label": `Statements of ${name}` });
  const jump = button("Jump to live", () => (setFollows(true), (touched = -Infinity), (body.scrollTop = body.scrollHeight)), { class: "jump", hidden: true });
  const heading = el("h3", { id: `seat-${number_}` }, el("span", { class: "dot", "aria-hidden": "true" }), title);
  if (number_ <= 9) heading.append(el("kbd", { "aria-hidden": "true" }, String(number_)));
  const node = el("section", { class: `seat ${context.tone(name)}`, "aria-labelledby": `seat-${number_}`, "data-seat": name },
    el("header", {}, heading, parts.who, parts.member, el("p", { class: "now" }, parts.verdict, state, facts), brief, trouble), body, jump);
  const articles = new Map();
  const isNewBrief = changeDetector();
  let isOpen = true; // a closed column of a list builds no statements
  let last = null;
  let follows = true;
  let writing = false;
  let touched = -Infinity; // when the reader last used the column; other scrolling is by the browser or this module
  for (const type of ["wheel", "touchmove", "keydown", "pointerdown"]) body.addEventListener(type, () => (touched = performance.now()), { passive: true });
  body.addEventListener("scroll", () => {
    if (performance.now() - touched < TOUCH_MS) setFollows(body.scrollHeight - body.scrollTop - body.clientHeight < FOLLOW_PX);
  }, { passive: true });

  function setFollows(on) {
    follows = on;
    if (on) jump.hidden = true;
  }

  function update(scene) {
    const { minutes } = scene;
    const seat = minutes.seats[name];
    last = scene;
    updateHead(scene, seat);
    updateBrief(minutes, seat);
    return isOpen ? updateTurns(scene) : 0;
  }

  /** `expanded` is null outside of a list. */
  function setOpen(expanded) {
    isOpen = expanded !== false;
    setAttr(node, "data-open", expanded === true ? "yes" : null);
    setAttr(title, "aria-expanded", expanded === null ? null : String(expanded));
    title.title = expanded === null ? "Focus this seat" : "Show its statements";
    if (isOpen && last) updateTurns(last);
  }

  function updateBrief(minutes, seat) {
    const said = lastStatement(minutes, name);
    if (isNewBrief(said?.seq, seat?.reason, minutes.verdict)) setText(brief, said ? summarize(said.said) : minutes.verdict ? "" : seat?.reason || "");
  }

  function updateTurns(scene) {
    const { minutes } = scene;
    const turns = listTurns(minutes, name);
    const keys = new Set(turns.map((turn) => turn.id));
    for (const [id, one] of articles) if (!keys.has(id)) one.node.remove();
    turns.forEach((turn, place) => updateTurn(scene, turn, place, place < turns.length - 1));
    return turns.length;
  }

  function updateHead({ minutes, seconds, live }, seat) {
    if (!seat) return;
    setText(parts.who, seat.perspective || seat.role);
    setAttr(parts.who, "title", [seat.role && `Role: ${seat.role}`, seat.perspective && `perspective: ${seat.perspective}`].filter(Boolean).join(", "));
    setText(parts.member, !seat.model ? seat.served_by : seat.served_by && seat.served_by !== seat.model ? `${seat.model} → ${seat.served_by}` : seat.model);
    const positions = positionsOf(minutes, name);
    setText(parts.verdict, positions.join(" → "));
    setAttr(parts.verdict, "data-tone", toneOf(positions.at(-1)));
    const now = stateOf(minutes, seat);
    const busy = BUSY.has(now);
    const isOver = !live && minutes.status !== "running" && minutes.status !== "queued";
    setText(state, formatState(!isOver ? now : busy ? "stopped" : now === "waiting" ? "not_asked" : now));
    const isBusy = busy && !isOver;
    setAttr(node, "data-state", isBusy ? now : OK.has(now) ? "ok" : busy || now === "waiting" ? "waiting" : "absent");
    setText(facts, isBusy ? clock(Math.max(0, seconds - seat.begin)) : summary(seat));
    setText(trouble, seat.trouble && !minutes.verdict ? formatTrouble(minutes.events.get(seat.trouble)) : ""); // after the end, what is missing stands above the answer
    trouble.hidden = !trouble.textContent;
  }

  function updateTurn({ minutes, live }, turn, place, isOlder) {
    if (!articles.has(turn.id)) articles.set(turn.id, statementNode({ key: turn.id, title: turn.title, earlier: () => previousStatement(context.minutes(), turn), built: scrollToStart }));
    const article = articles.get(turn.id);
    const isNew = body.children[place] !== article.node;
    if (isNew) body.insertBefore(article.node, body.children[place] || null);
    const { said, absent, key } = turn;
    if (said) article.showStatement(said, isOlder);
    else if (absent) article.showAbsence(absent, Boolean(minutes.verdict));
    else if (minutes.live[key]) article.stream(minutes.live[key]);
    else if (live || minutes.status === "running") article.showMessage("thinking …", "");
    else article.showMessage("no answer: the run stopped", "");
    if (article.node.dataset.showing === "live") writing = true;
  }

  /** Scroll to the end of streamed text; called after all columns are updated, for a single layout. */
  function follow() {
    if (follows && writing) body.scrollTop = body.scrollHeight;
    if (jump.hidden === (writing && !follows)) jump.hidden = !jump.hidden;
    writing = false;
  }

  /** Scroll to the start of a statement that has completed. */
  function scrollToStart(article) {
    if (follows) body.scrollTop = article.offsetTop;
  }

  function show(phase, quote) {
    const last = [...articles.values()].filter((one) => one.node.isConnected && one.said);
    const article = last.findLast((one) => one.said.phase === phase) || last.at(-1);
    setFollows(false);
    bringIntoView(node, "center");
    if (!article) return flash(node);
    article.open();
    const place = findPassage(article.body, quote) || article.node;
    article.node.focus({ preventScroll: true });
    body.scrollTop = place.getBoundingClientRect().top - body.getBoundingClientRect().top + body.scrollTop - 24;
    flash(place);
  }

  return { node, update, follow, show, setOpen, press: (on) => title.setAttribute("aria-pressed", String(on)) };
}

function summary(seat) {
  const speed = seat.seconds > 0 && seat.written ? `${number(Math.round(seat.written / seat.seconds))} tok/s` : "";
  const cost = seat.usd ? `${money(seat.usd)}${seat.estimated ? " est." : ""}` : "";
  const tries = seat.attempts > 1 && !seat.statements ? `${seat.attempts} attempts` : "";
  return [speed, cost, tries].filter(Boolean).join(" · ");
}

/** Return the phases; what a seat does inside a phase, such as look-ups, comes before its statement of that phase. */
function orderPhases(m) {
  const all = phasesOf(m);
  const inner = all.filter((one) => one.private);
  if (!inner.length) return all;
  return all.filter((one) => !inner.includes(one)).flatMap((outer) => [...inner.filter((one) => one.name.split("/")[0] === outer.name), outer]);
}

function lastStatement(m, name) {
  const phase = orderPhases(m).findLast((one) => statementOf(m, one, name));
  return phase && withSeatNames(phase, statementOf(m, phase, name));
}

/** Return the turns of a seat and its helpers, in order. */
function listTurns(m, name) {
  const found = [];
  for (const phase of orderPhases(m)) {
    for (const { name: who, host } of seatsIn(m, phase)) {
      if (who !== name && host !== name) continue;
      const [said, absent] = [withSeatNames(phase, statementOf(m, phase, who)), absenceOf(m, phase, who)];
      found.push({ id: `${phase.name} ${who}`, key: phase.seats[who].key, who, phase: phase.name, said, absent, title: titleOf(phase, who, name) });
    }
  }
  return found;
}

/** Replace the blind labels of a ballot by seat names. */
function withSeatNames(phase, said) {
  const labels = said && labelsOf(phase, said.seat);
  return labels ? { ...said, said: replaceLabels(said.said, labels) } : said;
}

function titleOf(phase, who, name) {
  if (!phase.private) return phase.name;
  const helper = who === name ? "" : `${who.replace(`${name}-`, "")} · `;
  return `${helper}${phase.name.split("/").at(-1)}`;
}

/** Return the last earlier statement of the same seat with which this one can be compared. */
function previousStatement(m, turn) {
  let last = null;
  for (const phase of phasesOf(m)) {
    if (phase.name === turn.phase) return last;
    if (isEarlier(phase.name, turn.phase)) last = statementOf(m, phase, turn.who) ?? last;
  }
  return null;
}

// Phases in which a seat writes a text again, and the phases of the text before.
const EARLIER = { improve: ["draft"], rewrite: ["draft"], "rewrite-again": ["rewrite"] };

const isEarlier = (a, b) => (/^r\d+$/.test(a) && /^r\d+$/.test(b)) || Boolean(EARLIER[b]?.includes(a));

/** Find the part of a statement that shares most words with a quote. */
function findPassage(body, quote) {
  const wanted = new Set(wordsIn(quote));
  if (!wanted.size) return null;
  let best = null;
  let most = 0.45;
  for (const part of body.querySelectorAll("p, li, h4, h5, h6, td")) {
    const words = new Set(wordsIn(part.textContent));
    const shared = [...wanted].filter((word) => words.has(word)).length / wanted.size;
    if (shared > most) [best, most] = [part, shared];
  }
  return best;
}

const wordsIn = (text) => String(text || "").toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || [];
