// Text as it streams in: plain, appended to text nodes of a few thousand characters each, so that a new piece lays out
// one small block and not a book. What streams as JSON is shown as the words inside it.

import { el } from "./dom.js";

const FULL = 3000; // characters after which the next line begins a new block
const BURST = 8000; // … and the next word, where there are no lines

export function liveText() {
  const node = el("div", { class: "live-text" });
  let block = null;
  let length = 0;
  let flow = null;

  function write(piece) {
    if (flow === null && piece.trim()) flow = /^\s*(\{|```)/.test(piece) ? jsonFlow() : (text) => text;
    append(flow ? flow(piece) : piece);
  }

  function append(text) {
    let rest = node.childNodes.length ? text : text.trimStart();
    while (rest) {
      if (!block) begin();
      const cut = breakIn(rest, block.length);
      const part = cut < 0 ? rest : rest.slice(0, cut);
      block.text.appendData(part);
      block.length += part.length;
      rest = cut < 0 ? "" : rest.slice(cut);
      if (cut >= 0) block = null;
    }
  }

  function begin() {
    block = { text: document.createTextNode(""), length: 0 };
    node.append(el("div", { class: "leaf" }, block.text));
  }

  /** The whole text so far; only what is new is added, where the old is its beginning. */
  function show(text) {
    if (text.length < length) clear();
    append(text.slice(length));
    length = text.length;
  }

  function clear() {
    node.replaceChildren();
    block = null;
    length = 0;
    flow = null;
  }

  return { node, write, show, clear };
}

function breakIn(text, had) {
  if (had + text.length <= FULL) return -1;
  const line = text.indexOf("\n", Math.max(0, FULL - had));
  if (line >= 0 && had + line < BURST) return line + 1;
  if (had + text.length <= BURST) return -1;
  const space = text.indexOf(" ", Math.max(0, BURST - had));
  return space >= 0 ? space + 1 : Math.max(1, BURST - had);
}

/** JSON, piece by piece, as lines of "key  value": nobody wants to watch quotation marks being typed. */
export function jsonFlow() {
  let inside = false;
  let escaped = false;
  let code = "";
  let isKey = true;
  let depth = 0;
  let began = false;
  const stack = [];

  function sign(char) {
    if (inside) return within(char);
    if (!began && char !== "{" && char !== "[") return "";
    if (char === '"') {
      inside = true;
      isKey = stack.at(-1) === "{" && expectsKey;
      return isKey ? `\n${"  ".repeat(Math.max(0, depth - 1))}` : "";
    }
    if (char === "{" || char === "[") {
      began = true;
      stack.push(char);
      depth += 1;
      expectsKey = char === "{";
      return depth > 1 && char === "{" ? "\n" : "";
    }
    if (char === "}" || char === "]") {
      stack.pop();
      depth -= 1;
      expectsKey = false;
      return "";
    }
    if (char === ",") {
      expectsKey = stack.at(-1) === "{";
      return stack.at(-1) === "[" ? "\n" : "";
    }
    if (char === ":") {
      expectsKey = false;
      return "";
    }
    return /\s/.test(char) ? "" : char;
  }

  let expectsKey = true;

  function within(char) {
    if (code) return unicode(char);
    if (escaped) {
      escaped = false;
      if (char === "u") code = "u";
      return { n: "\n", t: "\t", r: "", b: "", f: "", u: "" }[char] ?? char;
    }
    if (char === "\\") {
      escaped = true;
      return "";
    }
    if (char !== '"') return isKey && char === "_" ? " " : char;
    inside = false;
    return isKey ? ": " : "";
  }

  function unicode(char) {
    code += char;
    if (code.length < 5) return "";
    const sign = String.fromCharCode(Number.parseInt(code.slice(1), 16) || 0xfffd);
    code = "";
    return sign;
  }

  return (piece) => {
    let said = "";
    for (const char of piece) said += sign(char);
    return said;
  };
}
