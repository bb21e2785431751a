// The open block of a streamed text: lines of text, with an open code block or table drawn as such. New text is added to what
// is there, in leaves of a few thousand characters and tables of a few rows, so that a piece needs only a small layout.

import { el, setText } from "./dom.js";
import { parseTable } from "./markdown.js";
import { wideTable } from "./wide_table.js";

const LEAF_CHARS = 3000; // characters before a new leaf starts at the next line
const MAX_LEAF_CHARS = 8000; // … or at the next word if there is no line break
const MAX_HELD_CHARS = 1000; // a longer line is text at once
const TABLE_ROWS = 60; // of one table; the rest continues in the next
const OPENING = /^(\s*(?:[-*+]\s+|\d+[.)]\s+)?)(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`\n]*\n$/; // a line that opens a code block
const MAY_OPEN = /^\s*(?:(?:[-*+]|\d{1,9}[.)]?)\s*)?(?:`{0,2}|~{0,2}|`{3,}[^`\n]*|~{3,}[^\n]*)$/; // its beginning
const ROW = /^ {0,3}\|/; // a line that may be one of a table
const DIVIDER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n$/;
const NO_DIVIDER = /[^\s|:-]/;
const CELL_END = /(?<!\\)\|/;

export function openText() {
  const node = el("div", { class: "open-text" });
  let block = null; // the writer of the last lines: text, code or a table
  let line = ""; // the last line, while it is not known what it is
  let isPlain = false; // whether the last line is known to belong to the block
  let head = ""; // a complete line that may be the head of a table

  /** Add text; `isMarkdown` tells whether it may have code and tables. */
  function append(text, isMarkdown = true) {
    if (!isMarkdown) return textWriter().write(text);
    for (let at = 0; at < text.length; ) {
      const end = text.indexOf("\n", at) + 1 || text.length;
      addPiece(text.slice(at, end));
      at = end;
    }
  }

  function addPiece(piece) {
    const isComplete = piece.endsWith("\n");
    if (isPlain) {
      block.write(piece);
      isPlain = !isComplete;
      return;
    }
    line += piece;
    if (isComplete) return endLine();
    if (head && NO_DIVIDER.test(piece)) flushHead();
    if (!head && !(block || NO_BLOCK).holds(line)) startPlain();
  }

  /** The line is more of the block, however it ends. */
  function startPlain() {
    (block || textWriter()).begin(line);
    [line, isPlain] = ["", true];
  }

  function endLine() {
    const whole = line;
    line = "";
    if (head) return endHead(whole);
    if (block?.addLine) {
      const belongs = block.addLine(whole);
      if (!belongs || block.isOver) block = null;
      if (belongs) return;
    }
    const opening = OPENING.exec(whole);
    if (opening) open(opening);
    else if (ROW.test(whole)) head = whole;
    else if (block || whole.trim()) textWriter().begin(whole);
  }

  function open(opening) {
    if (opening[1].trim()) textWriter().begin(opening[1]); // the mark of a list
    block = add(codeBlock(opening));
  }

  /** The line after a possible head of a table. */
  function endHead(whole) {
    const table = DIVIDER.test(whole) ? tableBlock(head + whole) : null;
    if (table) [block, head] = [add(table), ""];
    else {
      flushHead();
      line = whole;
      endLine();
    }
  }

  /** The line that was held is no head of a table. */
  function flushHead() {
    textWriter().begin(head);
    head = "";
  }

  const textWriter = () => (block?.isText ? block : (block = add(textBlock())));

  function add(made) {
    node.append(made.node);
    return made;
  }

  function clear() {
    node.replaceChildren();
    [block, line, isPlain, head] = [null, "", false, ""];
  }

  return { node, append, clear };
}

// Writers. `begin` gets a line or its beginning, `write` more of it. `holds` tells whether a line that is not complete may turn
// out to be something else. `addLine`, of code and tables, tells whether a line belongs to them.

const NO_BLOCK = { holds: (line) => line.length < MAX_HELD_CHARS && (MAY_OPEN.test(line) || ROW.test(line)) };

function textBlock() {
  const node = el("div", { class: "open-lines" });
  const write = leaves(node);
  return { isText: true, node, begin: write, write, holds: NO_BLOCK.holds };
}

function codeBlock([, before, fence, language]) {
  const code = el("code", {});
  const write = leaves(code);
  const closing = new RegExp(`^\\s*${fence[0]}{${fence.length},}\\s*$`);
  const indent = new RegExp(`^ {0,${before.length}}`);
  const begin = (line) => write(line.replace(indent, ""));
  return {
    node: el("pre", { class: "open-code", tabindex: "0", "data-language": language || null }, code),
    isOver: false,
    begin,
    write,
    holds: (line) => line.length < MAX_HELD_CHARS && (!line.trim() || closing.test(`${line}${fence}`)),
    addLine(line) {
      this.isOver = closing.test(line);
      if (!this.isOver) begin(line);
      return true;
    },
  };
}

/** An open table; null if the two lines are none. Its last, incomplete row is shown as plain text in cells. */
function tableBlock(lines) {
  const found = parseTable(lines);
  if (!found) return null;
  const node = el("div", { class: "prose" });
  const last = el("tr", {}, [...found.head.children].map((one) => el("td", { "data-align": one.dataset.align })));
  let body = null;
  newTable(false);

  function newTable(isContinued) {
    body = el("tbody", {});
    node.append(wideTable(el("table", {}, el("thead", { hidden: isContinued }, isContinued ? found.head.cloneNode(true) : found.head), body)));
  }

  return {
    node,
    holds(line) {
      const cells = line.slice(0, MAX_HELD_CHARS).replace(/^\s*\|?/, "").split(CELL_END);
      for (const [n, cell] of [...last.children].entries()) setText(cell, (cells[n] || "").trim());
      if (ROW.test(line) && last.parentNode !== body) body.append(last);
      return true;
    },
    addLine(line) {
      last.remove();
      const row = line.includes("|") ? parseTable(lines + line)?.rows[0] : null;
      if (!row) return false;
      if (body.children.length >= TABLE_ROWS) newTable(true);
      body.append(row);
      return true;
    },
  };
}

/** Return a function that adds text to a node, in leaves. */
function leaves(into) {
  let leaf = null;
  return (text) => {
    let rest = text;
    while (rest) {
      if (!leaf) {
        leaf = { text: document.createTextNode(""), length: 0 };
        into.append(el("div", { class: "leaf" }, leaf.text));
      }
      const cut = findBreak(rest, leaf.length);
      const part = cut < 0 ? rest : rest.slice(0, cut);
      leaf.text.appendData(part);
      leaf.length += part.length;
      rest = cut < 0 ? "" : rest.slice(cut);
      if (cut >= 0) leaf = null;
    }
  };
}

function findBreak(text, had) {
  if (had + text.length <= LEAF_CHARS) return -1;
  const line = text.indexOf("\n", Math.max(0, LEAF_CHARS - had));
  if (line >= 0 && had + line < MAX_LEAF_CHARS) return line + 1;
  if (had + text.length <= MAX_LEAF_CHARS) return -1;
  const space = text.indexOf(" ", Math.max(0, MAX_LEAF_CHARS - had));
  return space >= 0 ? space + 1 : Math.max(1, MAX_LEAF_CHARS - had);
}
