// Streamed text. Completed Markdown blocks are rendered; the last, open block is text, with open code and tables drawn as
// such. Streamed JSON is shown as plain lines.

import { blocks, completedLength } from "./markdown.js";
import { el, setAttr } from "./dom.js";
import { jsonToText } from "./json_text.js";
import { openText } from "./open_text.js";
import { leafWriter } from "./render_markdown.js";
import { runInSlices } from "./scheduler.js";

const LONG_LIST_CHARS = 400; // characters from which the complete items of an open list are rendered
const LONG_CHARS = 2000; // a longer open block is searched less often
const MAX_LEXED_CHARS = 40000; // characters that are searched for complete blocks at once
const REFERENCE = /^ {0,3}\[[^\]\n]+\]:/m; // a definition changes links before it
const GROWTH = 1.25; // factor by which a long open block has to grow before it is searched again

/** `only` names the fields of streamed JSON to show; without it every field is shown. */
export function liveText({ top = 5, only = null } = {}) {
  const rendered = el("div", { class: "prose" });
  const open = openText();
  const node = el("div", { class: "live-text" }, rendered, open.node);
  let isTyped = null; // whether the text is JSON; null until its first characters are known
  let held = ""; // text before that
  let convert = null;
  let source = "";
  let tail = ""; // its open part
  let length = 0;
  let given = 0; // length of the text that `show` got last
  let pieces = null;
  let written = 0; // how many of the pieces are shown
  let hasSplitList = false;
  let nextSearch = 0;
  let how = { top };
  let writeLeaf = leafWriter(rendered);
  let cancel = null;

  /** Show the pieces of a stream, or the partial text of a replay. */
  function update(from) {
    if (from.text !== undefined) return show(from.text);
    if (pieces !== from.pieces) clear(); // another attempt
    pieces = from.pieces;
    for (; written < pieces.length; written += 1) write(pieces[written]);
  }

  function write(piece) {
    held += piece;
    if (isTyped === null) start();
    if (isTyped === null) return;
    append(convert ? convert(held) : held);
    held = "";
  }

  /** A typed reply is JSON, perhaps in a code fence. */
  function start() {
    const head = held.trimStart();
    if (/^(`{0,2}|```\w*\s*)$|^(```\w*\s*)?\{\s*$/.test(head)) return;
    isTyped = /^(```\w*\s*)?\{\s*["}]/.test(head);
    convert = isTyped ? jsonToText(only) : null;
    setAttr(node, "data-typed", isTyped && !only ? "yes" : null);
  }

  function append(text) {
    const rest = length ? text : text.trimStart();
    if (!rest) return;
    length += rest.length;
    open.append(rest, !(isTyped && !only));
    if (isTyped && !only) return;
    tail += rest;
    source += rest;
    const startsLine = tail.lastIndexOf("\n") >= Math.max(0, tail.length - rest.length - 3);
    if (!cancel && startsLine && tail.length >= nextSearch) cancel = runInSlices(renderBlocks(), () => (cancel = null));
  }

  /** Replace completed blocks of the open text by nodes. */
  function* renderBlocks() {
    for (;;) {
      const [end, isInList] = completedLength(tail.slice(0, MAX_LEXED_CHARS), LONG_LIST_CHARS);
      hasSplitList ||= isInList;
      nextSearch = end || tail.length < LONG_CHARS ? 0 : tail.length * GROWTH;
      if (!end) return;
      yield;
      yield* moveToRendered(end);
    }
  }

  function* moveToRendered(end) {
    const built = [];
    for (const block of blocks(tail.slice(0, end), how)) {
      built.push(block);
      yield;
    }
    built.forEach(writeLeaf);
    tail = tail.slice(end);
    open.clear();
    open.append(tail);
  }

  function* renderRest() {
    yield* renderBlocks();
    yield* moveToRendered(tail.length);
  }

  /** Render the rest of a complete text. Return a function that cancels it, or null if it has to be rendered as a whole. */
  function finish(text, done) {
    if (isTyped !== false || hasSplitList || source.trim() !== text.trim() || REFERENCE.test(text)) return null;
    close();
    cancel = runInSlices(renderRest(), done);
    return close;
  }

  /** Show the whole text so far, adding only the new part. */
  function show(text) {
    if (text.length < given) clear();
    isTyped = false;
    append(text.slice(given));
    given = text.length;
  }

  function clear() {
    close();
    rendered.replaceChildren();
    open.clear();
    how = { top };
    writeLeaf = leafWriter(rendered);
    [isTyped, held, convert, source, tail, length, given, written, nextSearch, hasSplitList] = [null, "", null, "", "", 0, 0, 0, 0, false];
  }

  /** Stop rendering. */
  function close() {
    cancel?.();
    cancel = null;
  }

  return { node, update, finish, close, get isEmpty() { return !length; } };
}
