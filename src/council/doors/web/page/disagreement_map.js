// Disagreement map: findings or topics by seat, with expandable rows.

import { button, el, setAttr, changeDetector, setChildren } from "./dom.js";
import { BUSY, formatRowStatus, shortNames, short } from "./format.js";
import { chip } from "./chips.js";
import { codeOrLine } from "./code_text.js";
import { inline, plainLine } from "./markdown.js";
import { toneOfRow } from "./positions.js";
import { plannedSeats } from "./minutes.js";

const POSITIONS = ["agrees", "opposes", "qualifies", "silent", "absent"];
const HELD = new Set(["agrees", "opposes", "qualifies"]);
const SIGNS = { agrees: "holds it", opposes: "opposes it", qualifies: "in part", silent: "says nothing", absent: "absent" };
const MEANINGS = { agrees: "holds it", opposes: "opposes it", qualifies: "holds it with a condition, in part, or no longer", silent: "says nothing about it", absent: "did not answer" };

export function mapView(context) {
  const body = el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Disagreement map" });
  const note = el("p", { class: "hint" });
  const node = el("section", { class: "map card", "aria-labelledby": "map-title", hidden: true },
    el("h2", { class: "eyebrow", id: "map-title" }, "Disagreement map"), body, legend(), note);
  const isNew = changeDetector();
  let rows = [];
  let opened = -1;

  function update({ minutes, rows: sent }) {
    if (!isNew(minutes.run, sent, minutes.verdict)) return;
    rows = sent.map((row, id) => ({ ...row, id, cells: new Map(row.seats.map((one) => [one.seat, one])) }));
    node.hidden = !rows.length;
    note.textContent = minutes.verdict ? "" : "Preliminary: the rules have not run yet.";
    draw(minutes);
  }

  function draw(minutes) {
    const focused = body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
    const names = plannedSeats(minutes).map((seat) => seat.name);
    const heads = shortNames(names);
    setChildren(body, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Finding or topic"), names.map((name, n) => el("th", { scope: "col", class: `who ${context.tone(name)}`, title: name }, el("span", {}, heads[n].split(/(?<=[-_])/).map((part) => [part, el("wbr")])))), el("th", { scope: "col" }, "Status"))),
      el("tbody", {}, rows.map((row) => rowNodes(row, names, minutes)))));
    if (focused !== null) body.querySelector(`button[data-row="${focused}"]`)?.focus();
  }

  function rowNodes(row, names, minutes) {
    const isOpen = row.id === opened;
    const title = button(plainLine(short(row.topic, 60)), () => open(row.id === opened ? -1 : row.id), { class: "row-title", "data-row": row.id, "aria-expanded": String(isOpen) });
    return [
      el("tr", { "data-tone": toneOfRow(row) || null, class: isOpen ? "open" : null },
        el("th", { scope: "row" }, row.severity && el("span", { class: "severity", "data-severity": row.severity, title: row.severity }, el("span", { class: "visually-hidden" }, row.severity)), title),
        names.map((name) => cell(row, name, isExpected(minutes, name))), el("td", { class: "status" }, formatRowStatus(row.status))),
      isOpen && el("tr", { class: "detail" }, el("td", { colspan: names.length + 2 }, detail(row, names))),
    ];
  }

  function cell(row, name, expected) {
    const { position: sent, why } = row.cells.get(name) || { position: "silent" };
    const position = sent === "absent" && expected ? "pending" : sent;
    const label = `${name} ${position === "pending" ? "has not answered yet" : position}`;
    return el("td", { class: `cell ${position} ${context.tone(name)}`, title: why ? `${label}: ${plainLine(why)}` : label },
      el("i", { class: "sign", "aria-hidden": "true" }), el("span", { class: "visually-hidden" }, position === "pending" ? "not yet" : position));
  }

  function detail(row, names) {
    const facts = [["Where", row.location], ["Fix", row.fix], ["Why", row.why], ["Reference", row.ref], ["Correction", row.correction], ["Ruling", row.ruling && `${formatRowStatus(row.status)}: ${row.ruling}`]];
    const held = names.map((name) => row.cells.get(name)).filter((one) => HELD.has(one?.position));
    return [
      el("p", { class: "lead" }, inline(row.text)),
      el("dl", {}, facts.filter(([, text]) => text && !/^No (fix|root cause|reference)/.test(text)).map(([name, text]) => [el("dt", {}, name), el("dd", {}, codeOrLine(text))])),
      el("ul", { class: "plain" }, held.map((one) => el("li", { class: "stance" }, chip(one.seat, context, { quote: row.kind === "finding" && one.position === "agrees" ? row.text : one.why || row.text }), " ", el("b", {}, one.position), one.why && one.why !== row.text && [": ", inline(one.why)]))),
    ];
  }

  function open(id) {
    opened = id;
    draw(context.minutes());
    body.querySelector(`button[data-row="${id}"]`)?.focus();
  }

  /** Open the next or previous row (keys j and k). */
  function step(by) {
    if (!rows.length) return;
    open(Math.max(0, Math.min(rows.length - 1, opened < 0 ? (by > 0 ? 0 : rows.length - 1) : opened + by)));
    setAttr(node, "data-used", "yes");
    body.querySelector("tr.open")?.scrollIntoView({ block: "nearest" });
  }

  return { node, update, step, close: () => opened >= 0 && open(-1), get rows() { return rows; } };
}

/** Whether the answer of a seat is still to come. */
const isExpected = (m, name) => !m.verdict && (BUSY.has(m.seats[name].state) || m.seats[name].state === "waiting");

const legend = () =>
  el("p", { class: "legend" }, POSITIONS.map((position) => el("span", { class: position, title: MEANINGS[position] }, el("i", { class: "sign", "aria-hidden": "true" }), SIGNS[position])));
