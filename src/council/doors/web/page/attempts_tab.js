// Every request with its response. The stored bytes are loaded when a row is opened.

import { formatAttempt } from "./minutes.js";
import { el, changeDetector, setChildren } from "./dom.js";
import { money, formatState } from "./format.js";

export function attemptsTab(context) {
  const node = el("div", {});
  const isNew = changeDetector();
  let raw = null; // key#n → the stored attempt

  function update({ minutes, full }) {
    if (!isNew(minutes.run, minutes.attempts.length, minutes.seq, raw)) return;
    if (!minutes.attempts.length) return setChildren(node, el("p", {}, "No requests sent yet."));
    const open = new Set([...node.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    return setChildren(node, minutes.attempts.map((one) => attempt(minutes, full, one, open)));
  }

  function attempt(m, full, one, open) {
    const id = `${one.key}#${one.n}`;
    const outcome = one.fault ? `failed (${one.fault.kind})` : outcomeOf(m, one);
    const inside = el("div", {});
    const node = el("details", { class: "attempt", "data-key": id, open: open.has(id) },
      el("summary", {}, el("code", {}, id), el("span", { class: "soft" }, ` ${one.member}`), one.why && el("span", { class: "tag" }, formatAttempt(one)),
        el("span", { class: "end", "data-tone": one.fault ? "bad" : null }, [outcome, one.usd !== null ? money(one.usd, 4) : ""].filter(Boolean).join(" · "))), inside);
    const fill = () => node.open && !inside.firstChild && load(full, one, inside);
    node.addEventListener("toggle", fill);
    if (node.open) fill();
    return node;
  }

  async function load(m, one, inside) {
    setChildren(inside, el("p", { class: "hint" }, "…"));
    const stored = await rawOf(m.run, one);
    const asked = m.prompts.get(one.key);
    const said = [...m.phases.values()].flatMap((phase) => [...phase.said.values()]).find((said) => said.key === one.key);
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

function outcomeOf(m, one) {
  const phase = [...m.phases.values()].find((item) => item.keys.get(one.seat) === one.key);
  const state = phase?.said.get(one.seat)?.state || phase?.absent.get(one.seat)?.state;
  return state ? formatState(state) : "in progress";
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
