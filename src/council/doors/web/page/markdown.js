// Small Markdown renderer that builds nodes: headings, lists, tables, code, quotes, emphasis, links. No HTML, no images.
// Blocks are generated one by one, so that a statement of 50,000 tokens can be built in slices.

import { el } from "./dom.js";
import { inline } from "./markdown_inline.js";

const MAX_DEPTH = 5; // nesting of lists and quotes
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const LIMITS = { items: 40, rows: 60, lines: 300, words: 6000 }; // per node; the rest continues in the next node

/** Yield the nodes of a text. `top` is the level of its highest heading. */
export function* blocks(text, { top = 4, cite = null } = {}) {
  yield* read(text.replace(/\r\n?/g, "\n").split("\n"), { top, cite, depth: 0 });
}

export function markdown(text, how) {
  return el("div", { class: "prose" }, [...blocks(text, how)]);
}

function* read(lines, how) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [nodes, next] = block(lines, at, how);
    yield* nodes;
    at = next;
  }
}

function block(lines, at, how) {
  const line = lines[at];
  if (FENCE.test(line)) return codeBlock(lines, at);
  if (/^ {0,3}#{1,6}\s/.test(line)) return [[heading(line, how)], at + 1];
  if (RULE.test(line)) return [[el("hr")], at + 1];
  if (how.depth < MAX_DEPTH && /^ {0,3}>/.test(line)) return quote(lines, at, how);
  if (how.depth < MAX_DEPTH && ITEM.test(line)) return list(lines, at, how);
  if (isTable(lines, at)) return table(lines, at, how);
  return paragraph(lines, at, how);
}

function heading(line, { top, cite }) {
  const marks = line.trim().match(/^#+/)[0].length;
  const text = line.trim().slice(marks).trim().replace(/ #{1,6}$/, "");
  return el(`h${Math.min(6, top + marks - 1)}`, {}, inline(text, cite));
}

function codeBlock(lines, at) {
  const [, mark, language] = lines[at].match(FENCE);
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(mark) && !lines[end].trim().slice(mark.length).replaceAll(mark[0], ""))) end += 1;
  const inside = lines.slice(at + 1, end);
  const parts = chunks(inside, LIMITS.lines);
  return [parts.map((part) => pre(part, language)), end + 1];
}

// It scrolls sideways, so it must be focusable.
const pre = (part, language) => el("pre", { tabindex: "0", "data-language": language || null }, el("code", {}, part.join("\n")));

function chunks(all, most) {
  const parts = [];
  for (let n = 0; n < all.length; n += most) parts.push(all.slice(n, n + most));
  return parts.length ? parts : [[]];
}

function quote(lines, at, how) {
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [[el("blockquote", {}, [...read(inside, { ...how, depth: how.depth + 1 })])], end];
}

// Lists

function list(lines, at, how) {
  const [, lead, mark] = lines[at].match(ITEM);
  const ordered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = lines[end].match(ITEM);
    if (!found || found[1].length < lead.length || /\d/.test(found[2]) !== ordered) break;
    const [inside, next] = item(lines, end, found);
    items.push(inside);
    end = next;
  }
  const first = ordered ? Number.parseInt(mark, 10) : 1;
  return [chunks(items, LIMITS.items).map((part, n) => listNode(part, ordered, first + n * LIMITS.items, how)), end];
}

function item(lines, at, found) {
  const deep = found[1].length + found[2].length + 1;
  const inside = [found[3]];
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end];
    const indent = line.search(/\S/);
    if (indent < 0) {
      const next = lines[end + 1];
      if (next === undefined || next.search(/\S/) < Math.min(deep, found[1].length + 2)) break;
    } else if (indent <= found[1].length && (ITEM.test(line) || !lines[end - 1].trim())) break;
    else if (indent <= found[1].length && startsBlock(lines, end)) break;
    inside.push(line.slice(Math.min(Math.max(indent, 0), deep)));
    end += 1;
  }
  while (end < lines.length && !lines[end].trim() && ITEM.test(lines[end + 1] || "")) end += 1;
  return [inside, end];
}

function listNode(items, ordered, start, how) {
  const attributes = ordered && start !== 1 ? { start } : {};
  return el(ordered ? "ol" : "ul", attributes, items.map((inside) => el("li", {}, itemNodes(inside, how))));
}

/** Unwrap a leading paragraph of an item, for a tight list. */
function itemNodes(inside, how) {
  const nodes = [...read(inside, { ...how, depth: how.depth + 1 })];
  return nodes[0]?.tagName === "P" ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes;
}

// Tables

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function isTable(lines, at) {
  const [head, rule] = [lines[at], lines[at + 1]];
  if (!head.includes("|") || !rule || !rule.includes("-") || rule.length > 2000) return false;
  return cells(rule).every((cell) => /^:?-+:?$/.test(cell)) && cells(rule).length === cells(head).length;
}

function table(lines, at, { cite }) {
  const head = cells(lines[at]);
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  const rows = lines.slice(at + 2, end).map(cells);
  const tables = chunks(rows, LIMITS.rows).map((part, n) =>
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "a table" },
      el("table", {}, el("thead", { hidden: n > 0 }, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, inline(cell, cite))))),
        el("tbody", {}, part.map((row) => el("tr", {}, head.map((_, n) => el("td", {}, inline(row[n] || "", cite)))))))));
  return [tables, end];
}

// Paragraphs

function startsBlock(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || /^ {0,3}#{1,6}\s/.test(line) || /^ {0,3}>/.test(line) || RULE.test(line) || ITEM.test(line) || isTable(lines, at);
}

function paragraph(lines, at, { cite }) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return [pieces(text).map((piece) => el("p", {}, inline(piece, cite))), end];
}

/** Split a very long paragraph at spaces, to keep layout fast. */
function pieces(text) {
  const found = [];
  let at = 0;
  while (text.length - at > LIMITS.words) {
    const space = text.lastIndexOf(" ", at + LIMITS.words);
    const end = space > at ? space : at + LIMITS.words;
    found.push(text.slice(at, end));
    at = end;
  }
  return [...found, text.slice(at)];
}
