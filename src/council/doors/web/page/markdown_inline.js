// Inline Markdown: code, emphasis, links. Text that does not parse stays as it is.

import { el, link, webAddress } from "./dom.js";

const MAX_DEPTH = 4;
const MAX_LINE_CHARS = 20000; // longer lines are not parsed, to stay fast on any input
const MAX_TRIES = 12; // closing marks to check for one opening mark
const EMPHASIS = [["***", "strong"], ["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const STOPS = /[\\`*_~[!h]/g;

/** Return nodes and strings for one line. `cite(n)` may return a replacement for a citation such as [3]. */
export function inline(text, cite = null, depth = 0) {
  if (text.length > MAX_LINE_CHARS || depth > MAX_DEPTH) return [text];
  const out = [];
  let plain = "";
  const closed = new Map(); // marks without a closing mark in the rest of the line
  const push = (node) => {
    if (plain) out.push(plain);
    plain = "";
    out.push(node);
  };
  for (let at = 0; at < text.length; ) {
    STOPS.lastIndex = at;
    const stop = STOPS.exec(text)?.index ?? text.length;
    plain += text.slice(at, stop);
    at = stop;
    if (at >= text.length) break;
    const found = READ[text[at]]?.(text, at, { cite, depth, closed });
    if (found) {
      if (typeof found.node === "string") plain += found.node;
      else push(found.node);
      at = found.end;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  if (plain) out.push(plain);
  return out;
}

const READ = {
  "\\": (text, at) => (PUNCTUATION.test(text[at + 1] || "") ? { node: text[at + 1], end: at + 2 } : null),
  "`": code,
  "*": emphasis,
  _: emphasis,
  "~": emphasis,
  "[": bracket,
  "!": (text, at, how) => (text[at + 1] === "[" ? bracket(text, at + 1, how) : null), // images become links
  h: address,
};

function code(text, at, { closed }) {
  let run = at;
  while (text[run] === "`") run += 1;
  const mark = text.slice(at, run);
  const end = closed.has(mark) ? -1 : text.indexOf(mark, run);
  if (end < 0) {
    closed.set(mark, true);
    return { node: mark, end: run };
  }
  return { node: el("code", {}, text.slice(run, end)), end: end + mark.length };
}

function emphasis(text, at, { cite, depth, closed }) {
  const [mark, tag] = EMPHASIS.find(([mark]) => text.startsWith(mark, at)) || [];
  if (!mark || closed.has(mark) || /\s/.test(text[at + mark.length] ?? " ")) return null;
  if (mark[0] === "_" && WORD.test(text[at - 1] || "")) return null;
  let from = at + mark.length;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const end = text.indexOf(mark, from);
    if (end < 0) {
      if (tries === 0) closed.set(mark, true);
      return null;
    }
    if (closes(text, end, mark) && end > at + mark.length) {
      const inside = inline(text.slice(at + mark.length, end), cite, depth + 1);
      return { node: mark === "***" ? el("strong", {}, el("em", {}, inside)) : el(tag, {}, inside), end: end + mark.length };
    }
    from = end + 1;
  }
  return null;
}

function closes(text, end, mark) {
  if (/\s/.test(text[end - 1])) return false;
  if (mark[0] === "_" && WORD.test(text[end + mark.length] || "")) return false;
  return mark.length > 1 || (text[end + 1] !== mark && text[end - 1] !== mark);
}

function bracket(text, at, { cite, depth }) {
  const close = text.indexOf("]", at);
  if (close < 0 || close - at > 500) return null;
  const label = text.slice(at + 1, close);
  if (text[close + 1] === "(") {
    const end = text.indexOf(")", close);
    if (end > 0 && end - close < 2000) {
      const target = text.slice(close + 2, end).trim().split(/\s/)[0];
      const inside = depth ? [label] : inline(label, null, MAX_DEPTH);
      return { node: webAddress(target) ? link(target, inside) : el("span", {}, inside), end: end + 1 };
    }
  }
  const number = cite && /^\d{1,4}$/.test(label) ? cite(Number(label)) : null;
  return number ? { node: number, end: close + 1 } : null;
}

function address(text, at) {
  if (!(text.startsWith("http://", at) || text.startsWith("https://", at)) || WORD.test(text[at - 1] || "")) return null;
  let end = at;
  while (end < text.length && end - at < 2000 && !/[\s<>"'`|\]]/.test(text[end])) end += 1;
  while (/[.,;:!?)*_]/.test(text[end - 1])) end -= 1;
  const whole = text.slice(at, end);
  return webAddress(whole) ? { node: link(whole, whole), end } : null;
}
