// Markdown as nodes. markdown-it is used as a lexer only: no HTML, no images. Formulas are MathML.
// Blocks are generated one by one, so that a statement of 50,000 tokens can be built in slices.

import { el, link } from "./dom.js";
import { highlight } from "./highlight.js";
import { findMath, inlineMath, mathBlock } from "./math.js";
import { wideTable } from "./wide_table.js";
import { default as MarkdownIt } from "./vendor/markdown-it.esm.min.mjs";

const LIMITS = { items: 40, rows: 60, lines: 300, words: 6000 }; // per node; the rest continues in the next node
const MAX_LINE_CHARS = 20000; // longer lines are not parsed, to stay fast on any input
const TASK = /^\[([ xX])\]\s+/;
const CITATION = /\[(\d{1,4})\]/;
const ENDED_BY_BLANK = /^(paragraph|heading|blockquote|table)_open|^hr|^math_block/;
const MAX_FORMULAS = 100; // of one line or paragraph; the others stay source, to stay fast on any input
const MATH_BLOCKS = { $$: "$$", "\\[": "\\]" };

const inlineLexer = newLexer();
const blockLexer = newLexer();
blockLexer.core.ruler.enableOnly(["normalize", "block"]);

function newLexer() {
  const lexer = new MarkdownIt({ html: false, linkify: true, maxNesting: 20 });
  lexer.validateLink = () => true; // `link` decides which addresses become links
  lexer.linkify.set({ fuzzyLink: false, fuzzyEmail: false }).add("ftp:", null).add("//", null);
  lexer.inline.ruler.before("escape", "math", readMath);
  lexer.block.ruler.before("fence", "math_block", readMathBlock, { alt: ["paragraph", "blockquote", "list"] });
  return lexer;
}

/** Yield the nodes of a text. `top` is the level of its highest heading, which `how.highest` keeps for the next part of the text.
 * `cite(n)` may return a node for a citation such as [3]. */
export function* blocks(text, how = {}) {
  const { top = 4, cite = null } = how;
  const env = {};
  const tokens = blockLexer.parse(text, env);
  const levels = tokens.filter((token) => token.type === "heading_open").map(levelOf);
  if (levels.length) how.highest ??= Math.min(...levels);
  yield* nodes(tokens, 0, tokens.length, { top: top - (how.highest ?? 1), least: top, cite, env });
}

const levelOf = (token) => Number(token.tag[1]);

export function markdown(text, how) {
  return el("div", { class: "prose" }, [...blocks(text, how)]);
}

/** Return nodes and strings of a line of Markdown. */
export function inline(text, cite = null, env = {}) {
  const line = String(text ?? "");
  if (line.length > MAX_LINE_CHARS) return [line];
  return inlineNodes(inlineLexer.parseInline(line, env)[0].children, cite);
}

/** Return a line of Markdown as text, without marks. A mark whose partner was cut off is removed too. */
export const plainLine = (text) => el("span", {}, inline(text)).textContent.replace(/\*\*|`/g, "");

/** Return the length of the part of a streamed text whose blocks are complete, and whether it ends inside a list: of a list over
 * `longList` characters, complete items count too. */
export function completedLength(text, longList) {
  const end = text.lastIndexOf("\n") + 1;
  const whole = /^\p{L}{2}/u.test(text.slice(end, end + 4)) ? text : text.slice(0, end); // the kind of an incomplete line is unknown, unless it is prose
  const tokens = blockLexer.parse(whole, {}).filter((token) => token.map && token.nesting >= 0);
  const last = tokens.findLast((token) => token.level === 0);
  if (!last) return [0, false];
  if (whole.length === end && ENDED_BY_BLANK.test(last.type) && /\n[ \t]*\n$/.test(whole)) return [end, false];
  const isLong = last.type.endsWith("list_open") && whole.length - lineStart(whole, last.map[0]) > longList;
  const item = isLong ? tokens.findLast((token) => token.type === "list_item_open" && token.level === 1) : last;
  return [lineStart(whole, item.map[0]), item.map[0] > last.map[0]];
}

function lineStart(text, line) {
  let at = 0;
  for (let n = 0; n < line; n += 1) at = text.indexOf("\n", at) + 1;
  return at;
}

// Blocks

function endOf(tokens, at) {
  if (tokens[at].nesting !== 1) return at + 1;
  let end = at + 1;
  while (!(tokens[end].nesting === -1 && tokens[end].level === tokens[at].level)) end += 1;
  return end + 1;
}

function* nodes(tokens, from, to, how) {
  for (let at = from; at < to; ) {
    const end = endOf(tokens, at);
    yield* (BLOCKS[tokens[at].type] || plain)(tokens, at, end, how);
    at = end;
  }
}

const BLOCKS = {
  paragraph_open: paragraph,
  heading_open: (tokens, at, end, { top, least, cite, env }) => [el(`h${Math.min(6, Math.max(least, top + levelOf(tokens[at])))}`, {}, inline(tokens[at + 1].content, cite, env))],
  bullet_list_open: list,
  ordered_list_open: list,
  blockquote_open: (tokens, at, end, how) => [el("blockquote", {}, [...nodes(tokens, at + 1, end - 1, how)])],
  table_open: table,
  fence: (tokens, at) => codeBlock(tokens[at].content, tokens[at].info.trim().split(/\s/)[0]),
  code_block: (tokens, at) => codeBlock(tokens[at].content, ""),
  math_block: (tokens, at) => [mathBlock(tokens[at].content)],
  hr: () => [el("hr")],
};

const plain = (tokens, at) => (tokens[at].content ? [el("p", {}, tokens[at].content)] : []);

/** A paragraph of a tight list has no element of its own. */
function* paragraph(tokens, at, end, { cite, env }) {
  const text = tokens[at + 1].content;
  if (tokens[at].hidden) yield* inline(text, cite, env);
  else for (const piece of pieces(text)) yield el("p", {}, inline(piece, cite, env));
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

function chunks(all, most) {
  const parts = [];
  for (let n = 0; n < all.length; n += most) parts.push(all.slice(n, n + most));
  return parts.length ? parts : [[]];
}

function codeBlock(text, language) {
  return chunks(text.replace(/\n$/, "").split("\n"), LIMITS.lines).map((part) =>
    el("pre", { tabindex: "0", "data-language": /^[\w+#.-]+$/.test(language) ? language : null }, el("code", {}, highlight(part.join("\n"), language)))); // it scrolls sideways, so it must be focusable
}

function list(tokens, at, end, how) {
  const ordered = tokens[at].type === "ordered_list_open";
  const first = ordered ? Number(tokens[at].attrGet("start") ?? 1) : 1;
  const items = [];
  for (let from = at + 1; from < end - 1; from = endOf(tokens, from)) items.push(listItem(tokens, from, endOf(tokens, from), how));
  return chunks(items, LIMITS.items).map((part, n) => {
    const start = first + n * LIMITS.items;
    return el(ordered ? "ol" : "ul", ordered && start !== 1 ? { start } : {}, part);
  });
}

function listItem(tokens, at, end, how) {
  const text = tokens[at + 2]?.type === "inline" ? tokens[at + 2] : null;
  const task = text?.content.match(TASK);
  if (!task) return el("li", {}, [...nodes(tokens, at + 1, end - 1, how)]);
  text.content = text.content.slice(task[0].length);
  const isDone = task[1] !== " ";
  return el("li", { class: "task" }, el("input", { type: "checkbox", checked: isDone, disabled: true, "aria-label": isDone ? "done" : "not done" }), [...nodes(tokens, at + 1, end - 1, how)]);
}

function table(tokens, at, end, { cite, env }) {
  const { head, rows } = tableRows(tokens.slice(at, end), cite, env);
  return chunks(rows, LIMITS.rows).map((part, n) => wideTable(el("table", {}, el("thead", { hidden: n > 0 }, n ? head.cloneNode(true) : head), el("tbody", {}, part))));
}

/** Return the rows of a text that is a table and nothing else, as {head, rows}, or null. */
export function parseTable(text) {
  const env = {};
  const tokens = blockLexer.parse(text, env);
  return tokens[0]?.type === "table_open" && tokens.at(-1).type === "table_close" ? tableRows(tokens, null, env) : null;
}

function tableRows(tokens, cite, env) {
  const rows = [];
  for (const token of tokens) {
    if (token.type === "tr_open") rows.push([]);
    else if (token.type === "th_open" || token.type === "td_open") rows.at(-1).push({ align: /right|center/.exec(token.attrGet("style"))?.[0] || null, text: "" });
    else if (token.type === "inline") rows.at(-1).at(-1).text = token.content;
  }
  const cell = (tag, { align, text }) => el(tag, { scope: tag === "th" ? "col" : null, "data-align": align }, inline(text, cite, env));
  const [head, ...body] = rows;
  return { head: el("tr", {}, head.map((one) => cell("th", one))), rows: body.map((row) => el("tr", {}, row.map((one) => cell("td", one)))) };
}

// Lines

const WRAPPERS = {
  strong_open: (token, inside) => el("strong", {}, inside),
  em_open: (token, inside) => el("em", {}, inside),
  s_open: (token, inside) => el("s", {}, inside),
  link_open: (token, inside) => link(token.attrGet("href"), inside),
};
const LEAVES = {
  text: (token, cite) => (cite ? withCitations(token.content, cite) : token.content),
  code_inline: (token) => el("code", {}, token.content),
  math: (token) => inlineMath(token.content),
  softbreak: () => "\n",
  hardbreak: () => el("br"),
  image: (token) => link(token.attrGet("src"), token.content || "image"), // never loaded
};

function inlineNodes(tokens, cite) {
  const open = [{ inside: [] }];
  let formulas = 0;
  for (const token of tokens) {
    if (token.type === "math" && (formulas += 1) > MAX_FORMULAS) open.at(-1).inside.push(token.content);
    else if (token.nesting === 1) open.push({ token, inside: [] });
    else if (token.nesting === -1) {
      const { token: start, inside } = open.pop();
      open.at(-1).inside.push(WRAPPERS[start.type]?.(start, inside) ?? inside);
    } else open.at(-1).inside.push(LEAVES[token.type]?.(token, cite) ?? token.content);
  }
  return open[0].inside.flat(9);
}

const withCitations = (text, cite) => text.split(CITATION).map((part, n) => (n % 2 ? cite(Number(part)) || `[${part}]` : part));

// Formulas: their source is not parsed as Markdown

function readMath(state, silent) {
  const found = findMath(state.src, state.pos);
  if (!found) return false;
  if (!silent) state.push("math", "", 0).content = found;
  state.pos += found.length;
  return true;
}

function readMathBlock(state, startLine, endLine, silent) {
  const lineAt = (line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trim();
  const first = lineAt(startLine);
  const close = MATH_BLOCKS[first.slice(0, 2)];
  if (!close || state.sCount[startLine] - state.blkIndent >= 4) return false;
  let line = startLine;
  if (first.indexOf(close, 2) < 0) do line += 1; while (line < endLine && lineAt(line) && !lineAt(line).endsWith(close));
  if (line >= endLine || !lineAt(line).endsWith(close)) return false;
  if (silent) return true;
  const token = state.push("math_block", "", 0);
  token.content = state.getLines(startLine, line + 1, state.blkIndent, false);
  token.map = [startLine, line + 1];
  state.line = line + 1;
  return true;
}
