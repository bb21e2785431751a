// Every request as a waterfall: when it was sent, its first text, its end, tokens and cost. The stored bytes are loaded when a row is opened.

import { el, changeDetector, setChildren } from "./dom.js";
import { amount, formatSeconds, formatState, formatTrouble, money, number, OK, short } from "./format.js";
import { absenceOf, attempts, statementOf } from "./minutes.js";

export function attemptsTab(context) {
  const node = el("div", { class: "waterfall" });
  const isNew = changeDetector();
  let raw = null; // key#n → the stored attempt

  function update({ minutes, full, end }) {
    const sent = attempts(minutes);
    const open = sent.some((one) => one.end === undefined);
    if (!isNew(minutes.run, sent.length, minutes.seq, raw, open ? Math.floor(end) : 0)) return;
    if (!sent.length) return setChildren(node, el("p", {}, "No requests sent yet."));
    const opened = new Set([...node.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    const focused = document.activeElement?.closest?.(".attempt")?.dataset.key;
    const total = Math.max(0.001, minutes.seconds, open ? end : 0);
    setChildren(node, el("p", { class: "legend hint" }, el("span", { class: "key", "data-part": "wait" }, "until the first text"), el("span", { class: "key", "data-part": "text" }, "until the end"), el("span", { class: "key", "data-part": "failed" }, "failed")),
      sent.map((one) => attempt(minutes, full, one, opened, total)));
    if (focused) node.querySelector(`[data-key="${CSS.escape(focused)}"] summary`)?.focus();
  }

  function attempt(m, full, one, open, total) {
    const id = `${one.key}#${one.n}`;
    const outcome = one.fault ? `failed (${one.fault.kind}): ${short(one.fault.detail, 80)}` : outcomeOf(m, one);
    const inside = el("div", {});
    const node = el("details", { class: `attempt ${context.tone(one.seat)}`, "data-key": id, open: open.has(id) },
      el("summary", {}, el("span", { class: "who" }, el("code", {}, id), el("span", { class: "soft" }, ` ${one.member}`)), lane(one, total),
        el("span", { class: "figure" }, figures(one).join(" · ")), one.why && el("span", { class: "tag" }, formatTrouble(one)),
        outcome && el("span", { class: "end", "data-tone": one.fault ? "bad" : null }, outcome)), inside);
    const fill = () => node.open && !inside.firstChild && load(full, one, inside);
    node.addEventListener("toggle", fill);
    if (node.open) fill();
    return node;
  }

  async function load(m, one, inside) {
    setChildren(inside, el("p", { class: "hint" }, "…"));
    const stored = await rawOf(m.run, one);
    const ofStep = [...m.events.values()].filter((event) => event.key === one.key);
    const asked = ofStep.findLast((event) => event.type === "asked");
    const said = ofStep.findLast((event) => event.type === "statement");
    setChildren(inside,
      one.fault && el("p", { class: "problem" }, `${one.fault.kind}: ${one.fault.detail}`),
      piece("Request", stored?.request ?? (asked?.messages || []).map((message) => `${message.role}:\n${message.content}`).join("\n\n")),
      piece("Answer", stored?.result ?? (!one.fault && said ? said.reply ?? said.said : null)));
  }

  async function rawOf(run, one) {
    if (!context.source.attempts) return null;
    try {
      raw ||= new Map((await context.source.attempts(run)).map((stored) => [`${stored.key}#${stored.n}`, stored]));
      if (!raw.get(`${one.key}#${one.n}`)?.result) raw = new Map((await context.source.attempts(run)).map((stored) => [`${stored.key}#${stored.n}`, stored]));
      return raw.get(`${one.key}#${one.n}`);
    } catch {
      return null; // fall back to the events
    }
  }

  return { node, update };
}

/** Seconds until the first text, and until the end; null if unknown. */
function times(one) {
  const first = (one.firstText ?? 0) < one.at ? null : one.firstText - one.at;
  return { first, whole: one.end === undefined ? null : Math.max(0, one.end - one.begin) };
}

function lane(one, total) {
  const { first, whole } = times(one);
  const end = whole ?? total - one.begin;
  const style = { "--from": (one.begin / total).toFixed(4), "--part": (end / total).toFixed(4), "--first": (Math.min(first ?? end, end) / Math.max(end, 0.001)).toFixed(4) };
  return el("span", { class: "lane", "aria-hidden": "true" }, el("i", { style, "data-fault": one.fault ? "yes" : null, "data-open": one.end === undefined ? "yes" : null }));
}

function figures(one) {
  const { first, whole } = times(one);
  return [
    first !== null && `first text ${formatSeconds(first)}`, whole !== null && formatSeconds(whole),
    one.usage && `${number(one.usage.in)} in, ${number(one.usage.out)} out`, one.usd !== undefined && amount(one.usd, one.estimated, 4), one.doubtful > 0 && `at most ${money(one.doubtful, 4)} in doubt`, one.open && one.interrupted && "in doubt",
  ].filter(Boolean);
}

function outcomeOf(m, one) {
  const phase = Object.values(m.phases).find((item) => item.seats?.[one.seat]?.key === one.key);
  const state = (statementOf(m, phase, one.seat) || absenceOf(m, phase, one.seat))?.state;
  if (OK.has(state)) return ""; // its figures say that it answered
  return state ? formatState(state) : one.interrupted ? "no answer was stored" : m.status === "running" ? "in progress" : "no answer";
}

function piece(title, value) {
  if (value === null || value === undefined || value === "") return null;
  return el("section", {}, el("h4", {}, title), el("pre", { tabindex: "0" }, readable(value)));
}

/** Indent JSON, given as text or as an object. */
function readable(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
