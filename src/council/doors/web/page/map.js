// The disagreement map: what was found or claimed, by who holds it, who is against it and who says nothing. A row opens.

import { button, el, mark, memory, refill } from "./dom.js";
import { briefly, capital } from "./words.js";
import { chip } from "./chips.js";
import { mapRows } from "./stands.js";
import { planned } from "./fold.js";

const STANDS = ["agrees", "opposes", "qualifies", "silent", "absent"];
const WORDS = { agrees: "agrees", opposes: "opposes", qualifies: "qualifies", silent: "says nothing", absent: "absent" };

export function mapView(context) {
  const body = el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Disagreement map" });
  const note = el("p", { class: "hint" });
  const node = el("section", { class: "map card", "aria-labelledby": "map-title", hidden: true },
    el("h2", { class: "eyebrow", id: "map-title" }, "Disagreement map"), body, legend(), note);
  const isNew = memory();
  let rows = [];
  let opened = -1;

  function update({ minutes }) {
    if (!isNew(minutes.run, minutes.seq, minutes.verdict)) return;
    rows = mapRows(minutes);
    node.hidden = !rows.length;
    note.textContent = minutes.verdict ? "" : "So far, not yet weighed by the rules.";
    draw(minutes);
  }

  function draw(minutes) {
    const held = body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
    const names = planned(minutes).filter(Boolean).map((seat) => seat.name);
    const heads = briefly(names);
    refill(body, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Finding or topic"), names.map((name, n) => el("th", { scope: "col", class: `who ${context.tone(name)}`, title: name }, el("span", {}, heads[n]))), el("th", { scope: "col" }, "Standing"))),
      el("tbody", {}, rows.map((row) => rowNodes(row, names)))));
    if (held !== null) body.querySelector(`button[data-row="${held}"]`)?.focus();
  }

  function rowNodes(row, names) {
    const isOpen = row.id === opened;
    const title = button(row.title, () => open(row.id === opened ? -1 : row.id), { class: "row-title", "data-row": row.id, "aria-expanded": String(isOpen) });
    return [
      el("tr", { "data-tone": row.tone || null, class: isOpen ? "open" : null },
        el("th", { scope: "row" }, row.severity && el("span", { class: "severity", "data-severity": row.severity, title: row.severity }, el("span", { class: "away" }, row.severity)), title),
        names.map((name) => cell(row, name)), el("td", { class: "standing" }, row.status)),
      isOpen && el("tr", { class: "detail" }, el("td", { colspan: names.length + 2 }, detail(row, names))),
    ];
  }

  function cell(row, name) {
    const { stand, why } = row.cells.get(name) || { stand: "silent" };
    const said = `${name} ${WORDS[stand]}`;
    return el("td", { class: `cell ${stand} ${context.tone(name)}`, title: why ? `${said}: ${why}` : said },
      el("i", { class: "sign", "aria-hidden": "true" }), el("span", { class: "away" }, WORDS[stand]));
  }

  function detail(row, names) {
    const { finding } = row;
    const facts = finding ? [["Where", finding.location], ["Fix", finding.fix], ["Why", finding.why], ["Rests on", finding.ref]] : [["Correction", row.correction]];
    const holders = names.filter((name) => ["agrees", "opposes", "qualifies"].includes(row.cells.get(name)?.stand));
    return [
      el("p", { class: "lead" }, row.about),
      el("dl", {}, facts.filter(([, said]) => said && !/^No (fix|root cause|reference)/.test(said)).map(([name, said]) => [el("dt", {}, name), el("dd", {}, said)])),
      (row.sides || []).map((side) => el("p", { class: "stance" }, chip(side.seat, context, { quote: side.claim || side.why }), " ", capital([side.stance || side.verdict || side.position, side.claim || side.why].filter(Boolean).join(": ")))),
      finding?.disputed && names.filter((name) => row.cells.get(name)?.stand === "opposes").map((name) => el("p", { class: "stance" }, chip(name, context, { quote: row.cells.get(name).why }), " ", row.cells.get(name).why)),
      el("p", { class: "chips" }, "In their words: ", holders.map((name) => chip(name, context, { quote: row.quote }))),
    ];
  }

  function open(id) {
    opened = id;
    draw(context.minutes());
    body.querySelector(`button[data-row="${id}"]`)?.focus();
  }

  /** j and k: the next finding, the one before. */
  function step(by) {
    if (!rows.length) return;
    open(Math.max(0, Math.min(rows.length - 1, opened < 0 ? (by > 0 ? 0 : rows.length - 1) : opened + by)));
    mark(node, "data-used", "yes");
    body.querySelector("tr.open")?.scrollIntoView({ block: "nearest" });
  }

  return { node, update, step, close: () => opened >= 0 && open(-1), get rows() { return rows; } };
}

const legend = () =>
  el("p", { class: "legend" }, STANDS.map((stand) => el("span", { class: stand }, el("i", { class: "sign", "aria-hidden": "true" }), WORDS[stand])));
