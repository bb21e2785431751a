// Formulas: where they are in a text, and their MathML, which browsers draw themselves. What cannot be read stays visible as its source.

import { el } from "./dom.js";
import { temml } from "./vendor/temml.min.mjs";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const MAX_CHARS = 2000; // a longer formula stays source, to stay fast on any input
const OPTIONS = { throwOnError: true, trust: false, strict: false, maxExpand: 100, maxSize: [40, 40] };
const KINDS = [["$$", "$$"], ["\\[", "\\]"], ["\\(", "\\)"], ["$", "$"]];
const DISPLAY = new Set(["$$", "\\["]);
const ATTRIBUTE = /^(?!on|href|src|xlink|style$)[a-z][a-z:-]*$/i; // no handler and no address
const SIGN = /[\\^_=<>+*/|{}≤≥≈∈∑∫√]|\d\s*[-−]|[-−]\s*\d/; // what prose between brackets does not have

/** Return the source of the formula at a place of a text: \(…\), \[…\], $$…$$, or $…$ as in pandoc. "$5 and $10" is none. */
export function findMath(text, at = 0) {
  const rest = text.slice(at, at + MAX_CHARS + 4);
  if (rest[0] === "\\") {
    const found = /^\\\((?:.|\n)+?\\\)|^\\\[(?:.|\n)+?\\\]/.exec(rest)?.[0];
    return found && isTex(found.slice(2, -2), found[1] === "(") ? found : null; // escaped brackets are none
  }
  if (rest[0] !== "$" || /[\w$\\]/.test(text[at - 1] ?? " ")) return null;
  const display = /^\$\$(?:[^$]|\n)+\$\$/.exec(rest)?.[0];
  if (display) return isTex(display.slice(2, -2), true) ? display : null;
  const found = /^\$(?![\s$])(?:[^$\n\\`]|\\.)*?(?<!\s)\$(?!\w)/.exec(rest)?.[0];
  return found && !isPrice(found.slice(1, -1)) ? found : null;
}

/** Whether the text between delimiters can be a formula: it has a sign of one or, where `mayBeLetter`, is one letter. */
const isTex = (text, mayBeLetter) => SIGN.test(text) || (mayBeLetter && /^\s*[A-Za-z]\s*$/.test(text));

/** A text that begins with an amount and goes on in words, as in "$5 or 10$". */
const isPrice = (text) => /^[\d.,]+(?:[kKmMbB]|bn)?\b/.test(text) && /(?:^|[\s,;])(?!\\)[A-Za-z]{2,}(?:[\s,;.]|$)/.test(text.replace(/\\[A-Za-z]+(?:\s*\{[^{}]*\})?/g, ""));

/** A formula in a line, as MathML or as its source. */
export function inlineMath(source) {
  const [tex, isDisplay] = strip(source);
  return draw(tex, isDisplay) || el("code", { class: "math" }, source);
}

/** A formula that is a block of its own. */
export function mathBlock(source) {
  const drawn = draw(strip(source)[0], true);
  if (drawn) return el("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "a formula" }, drawn); // it scrolls sideways, so it must be focusable
  return el("pre", { class: "math", tabindex: "0" }, el("code", {}, source));
}

/** Return a formula without its delimiters, and whether it stands alone. */
function strip(source) {
  const text = source.trim();
  const [open, close] = KINDS.find(([begin, end]) => text.startsWith(begin) && text.endsWith(end));
  return [text.slice(open.length, -close.length).trim(), DISPLAY.has(open)];
}

function draw(tex, isDisplay) {
  if (!tex || tex.length > MAX_CHARS) return null;
  try {
    const node = build(temml.__renderToMathMLTree(tex, { ...OPTIONS, displayMode: isDisplay, macros: {} }));
    if (node.localName !== "math") return null;
    node.setAttribute("alttext", tex);
    if (isDisplay) node.setAttribute("display", "block");
    return node;
  } catch {
    return null; // no TeX that can be read
  }
}

/** Make the nodes of a tree of the library. Styles are set one by one: the policy of the page allows no style attribute. */
function build(tree) {
  if (tree.text !== undefined && !tree.type) return document.createTextNode(tree.text);
  const children = (tree.children || []).map(build);
  const node = tree.type ? document.createElementNS(MATHML, tree.type) : document.createDocumentFragment();
  node.append(...children);
  if (!tree.type) return node;
  for (const [name, value] of Object.entries(tree.attributes || {})) {
    if (name === "style") setStyles(node, String(value).split(";").map((one) => one.split(":")));
    else if (ATTRIBUTE.test(name)) node.setAttribute(name, String(value));
  }
  const classes = (tree.classes || []).filter(Boolean).join(" ");
  if (classes) node.setAttribute("class", classes);
  setStyles(node, Object.entries(tree.style || {}));
  return node;
}

function setStyles(node, styles) {
  for (const [name, value] of styles) {
    if (value && !/url\(/i.test(value)) node.style.setProperty(name.trim().replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), String(value).trim());
  }
}
