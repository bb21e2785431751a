// Streamed text, appended to blocks of a few thousand characters, so that a new piece needs only a small layout.
// Streamed JSON is shown as plain lines.

import { el } from "./dom.js";

const BLOCK_CHARS = 3000; // characters before a new block starts at the next line
const MAX_BLOCK_CHARS = 8000; // … or at the next word if there is no line break

export function liveText() {
  const node = el("div", { class: "live-text" });
  let block = null;
  let length = 0;
  let transform = null;

  function write(piece) {
    if (transform === null && piece.trim()) transform = /^\s*(\{|```)/.test(piece) ? jsonToText() : (text) => text;
    append(transform ? transform(piece) : piece);
  }

  function append(text) {
    let rest = node.childNodes.length ? text : text.trimStart();
    while (rest) {
      if (!block) begin();
      const cut = findBreak(rest, block.length);
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

  /** Show the whole text so far, adding only the new part. */
  function show(text) {
    if (text.length < length) clear();
    append(text.slice(length));
    length = text.length;
  }

  function clear() {
    node.replaceChildren();
    block = null;
    length = 0;
    transform = null;
  }

  return { node, write, show, clear };
}

function findBreak(text, had) {
  if (had + text.length <= BLOCK_CHARS) return -1;
  const line = text.indexOf("\n", Math.max(0, BLOCK_CHARS - had));
  if (line >= 0 && had + line < MAX_BLOCK_CHARS) return line + 1;
  if (had + text.length <= MAX_BLOCK_CHARS) return -1;
  const space = text.indexOf(" ", Math.max(0, MAX_BLOCK_CHARS - had));
  return space >= 0 ? space + 1 : Math.max(1, MAX_BLOCK_CHARS - had);
}

/** Return a function that converts JSON pieces to lines of "key: value". */
export function jsonToText() {
  let inside = false;
  let escaped = false;
  let code = "";
  let isKey = true;
  let depth = 0;
  let hasStarted = false;
  const stack = [];

  function convert(char) {
    if (inside) return convertString(char);
    if (!hasStarted && char !== "{" && char !== "[") return "";
    if (char === '"') {
      inside = true;
      isKey = stack.at(-1) === "{" && expectsKey;
      return isKey ? `\n${"  ".repeat(Math.max(0, depth - 1))}` : "";
    }
    if (char === "{" || char === "[") {
      hasStarted = true;
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

  function convertString(char) {
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
    let text = "";
    for (const char of piece) text += convert(char);
    return text;
  };
}
