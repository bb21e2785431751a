// Table of a ranking, with its ballots.

import { chip } from "./chips.js";
import { el } from "./dom.js";

const figure = (value, digits = 2) => (value === null || value === undefined ? "none" : Number(Number(value).toFixed(digits)).toString());

export function rankingTable(details, context) {
  const rows = details.table || [];
  const heads = ["Place", "Answer of", "Mean rank", "Won", "Ballots", "First places"];
  const most = Math.max(1, ...rows.map((row) => row.borda || 0));
  return [
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Ranking" },
      el("table", { class: "ranking" }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, rows.map((row) => el("tr", { class: row.seat === details.winner ? "winner" : null },
          el("td", {}, figure(row.place, 0)), el("th", { scope: "row" }, chip(row.seat, context, { phase: "answer" })), el("td", {}, figure(row.mean_rank)),
          el("td", {}, el("span", { class: "won", style: { "--part": String((row.borda || 0) / most) } }, figure((row.borda || 0) * 100, 0), " %")),
          el("td", {}, String(row.ballots)), el("td", {}, String(row.firsts))))))),
    el("details", { class: "more" }, el("summary", {}, "Ballots"), el("ul", { class: "plain rows" }, Object.entries(details.ballots || {}).map(([reader, ballot]) => ballotRow(reader, ballot, context)))),
  ];
}

function ballotRow(reader, ballot, context) {
  return el("li", {}, chip(reader, context, { phase: "rank" }), el("ol", {}, ballot.order.map((one) => el("li", {}, el("b", {}, one.seat), one.why && el("span", { class: "soft" }, `: ${one.why}`)))),
    ballot.dispute && el("p", { class: "soft" }, ballot.dispute));
}
