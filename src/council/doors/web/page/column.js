// One seat's column: who sits there, how it is doing, and all it said.

import { BUSY, OK, clock, money, number, stateInWords, unblind } from "./words.js";
import { bringIntoView, button, el, flash, mark, say } from "./dom.js";
import { hostOf, isApart } from "./fold.js";
import { statementNode } from "./statement.js";
import { standsOf, toneOf } from "./stands.js";

const NEAR = 48; // pixels from the end that still count as reading along

export function seatColumn(name, number_, context) {
  const title = button(name, () => context.focus(name), { class: "seat-name", "aria-pressed": "false", title: "Focus this seat" });
  const parts = { who: el("p", { class: "who" }), member: el("p", { class: "member" }), verdict: el("span", { class: "stand" }) };
  const state = el("span", { class: "state" });
  const facts = el("span", { class: "facts" });
  const trouble = el("p", { class: "trouble", hidden: true });
  const body = el("div", { class: "body", tabindex: "0", role: "group", "aria-label": `What ${name} said` });
  const heading = el("h3", { id: `seat-${number_}` }, el("span", { class: "dot", "aria-hidden": "true" }), title);
  if (number_ <= 9) heading.append(el("kbd", { "aria-hidden": "true" }, String(number_)));
  const node = el("section", { class: `seat ${context.tone(name)}`, "aria-labelledby": `seat-${number_}`, "data-seat": name },
    el("header", {}, heading, parts.who, parts.member, el("p", { class: "now" }, parts.verdict, state, facts), trouble), body);
  const articles = new Map();
  let follows = true;
  let writing = false;
  body.addEventListener("scroll", () => {
    follows = body.scrollHeight - body.scrollTop - body.clientHeight < NEAR;
  }, { passive: true });

  function update(scene) {
    const { minutes } = scene;
    const seat = minutes.chair?.name === name ? minutes.chair : minutes.seats.get(name);
    tellHead(scene, seat);
    const due = turns(minutes, name);
    const keys = new Set(due.map((turn) => turn.id));
    for (const [id, one] of articles) if (!keys.has(id)) one.node.remove();
    due.forEach((turn, place) => tellTurn(scene, turn, place));
    return due.length;
  }

  function tellHead({ minutes, seconds, live }, seat) {
    if (!seat) return;
    const role = [seat.role, seat.perspective].filter(Boolean).join(" · ");
    say(parts.who, role);
    say(parts.member, seat.servedBy && seat.servedBy !== seat.model ? `${seat.model} → ${seat.servedBy}` : seat.model);
    const stands = standsOf(minutes, name);
    say(parts.verdict, stands.join(" → "));
    mark(parts.verdict, "data-tone", toneOf(stands.at(-1)));
    const busy = BUSY.has(seat.state);
    const stopped = busy && !live && minutes.status !== "running" ? "stopped" : seat.state;
    say(state, stateInWords(stopped));
    mark(node, "data-state", busy ? seat.state : OK.has(seat.state) ? "ok" : seat.state === "waiting" ? "waiting" : "absent");
    say(facts, busy ? clock(Math.max(0, seconds - seat.since)) : summary(seat));
    say(trouble, seat.trouble && !OK.has(seat.state) ? seat.trouble : "");
    trouble.hidden = !trouble.textContent;
  }

  function tellTurn({ minutes, live }, turn, place) {
    if (!articles.has(turn.id)) articles.set(turn.id, statementNode({ key: turn.id, title: turn.title, earlier: () => before(context.minutes(), turn), built: toBeginning }));
    const article = articles.get(turn.id);
    const isNew = body.children[place] !== article.node;
    if (isNew) body.insertBefore(article.node, body.children[place] || null);
    const { said, absent, key } = turn;
    if (said) article.tell(said);
    else if (absent) article.absent(absent);
    else if (minutes.live.has(key)) article.stream(minutes.live.get(key));
    else if (live || minutes.status === "running") article.pause("thinking …", "");
    else article.pause("no answer: the run stopped first", "");
    if (article.node.dataset.showing === "live") writing = true;
  }

  /** Along with what is written; after all columns have written, so that the page is laid out once. */
  function follow() {
    if (follows && writing) body.scrollTop = body.scrollHeight;
    writing = false;
  }

  /** Who read along is brought to the beginning of what is complete. */
  function toBeginning(article) {
    if (follows) body.scrollTop = article.offsetTop;
  }

  function show(phase, quote) {
    const last = [...articles.values()].filter((one) => one.node.isConnected && one.said);
    const article = last.findLast((one) => one.said.phase === phase) || last.at(-1);
    follows = false;
    bringIntoView(node, "center");
    if (!article) return flash(node);
    const place = passage(article.body, quote) || article.node;
    article.node.focus({ preventScroll: true });
    body.scrollTop = place.getBoundingClientRect().top - body.getBoundingClientRect().top + body.scrollTop - 24;
    flash(place);
  }

  return { node, update, follow, show, press: (on) => title.setAttribute("aria-pressed", String(on)) };
}

function summary(seat) {
  const speed = seat.seconds > 0 && seat.tokens ? `${number(Math.round(seat.tokens / seat.seconds))} tok/s` : "";
  const cost = seat.usd ? `${money(seat.usd)}${seat.estimated ? " est." : ""}` : "";
  const tries = seat.attempts > 1 && !seat.statements ? `${seat.attempts} tries` : "";
  return [speed, cost, tries].filter(Boolean).join(" · ");
}

/** Every turn a seat had, and those of its helpers, in order. */
function turns(m, name) {
  const found = [];
  for (const phase of m.phases.values()) {
    for (const [who, key] of phase.keys) {
      if (who !== name && hostOf(m, who) !== name) continue;
      const [said, absent] = [readable(phase, phase.said.get(who)), phase.absent.get(who)];
      found.push({ id: `${phase.name} ${who}`, key, who, phase: phase.name, said, absent, title: titleOf(m, phase.name, who, name) });
    }
  }
  return found;
}

/** A ballot speaks of labels that its reader alone was given: here they are names again. */
function readable(phase, said) {
  const labels = said && phase.labels[said.seat];
  return labels ? { ...said, said: unblind(said.said, labels) } : said;
}

function titleOf(m, phase, who, name) {
  if (!isApart(m, phase)) return phase;
  const helper = who === name ? "" : `${who.replace(`${name}-`, "")} · `;
  return `${helper}${phase.split("/").at(-1)}`;
}

/** What the same seat said in the round before, where the two can be held against each other. */
function before(m, turn) {
  let last = null;
  for (const phase of m.phases.values()) {
    if (phase.name === turn.phase) return last && isNext(last.phase, turn.phase) ? last : null;
    if (!isApart(m, phase.name) && phase.said.has(turn.who)) last = phase.said.get(turn.who);
  }
  return null;
}

const isNext = (a, b) => (/^r\d+$/.test(a) && /^r\d+$/.test(b)) || (a === "draft" && b === "improve");

/** The part of a statement that a quote most likely stands for: the one that shares most of its words. */
function passage(body, quote) {
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
