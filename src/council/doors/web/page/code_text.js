// Text of a model that may be code without a fence: a fix, a correction.

import { el } from "./dom.js";
import { inline, markdown } from "./markdown.js";

const CODE = /[{};=]|\w\(|__\w|->/;

const PROSE = /^(?:[-*•]\s+|\d+[.)]\s+)?[A-Z][a-z']*,?\s+[`\w("'/](?!.*[;{}]$)/;
const FENCED = /^ {0,3}(?:```|~~~)/m;

/** Return a text that may be code without backticks, such as a fix, as nodes. Code of several lines is a block of its own;
 * `kind` is its language. */
export function codeOrLine(text, kind = "") {
  if (text.trim().includes("\n")) return [markdown(FENCED.test(text) || !isCode(text) ? text : fence(text, kind))];
  return CODE.test(text) && !text.includes("`") && !PROSE.test(text) ? [el("code", {}, text)] : inline(text);
}

function isCode(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.filter((line) => (CODE.test(line) || /^\s{2}|:$/.test(line)) && !PROSE.test(line.trim())).length * 2 > lines.length;
}

function fence(text, kind) {
  const marks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
  return `${marks}${kind}\n${text.replace(/\n+$/, "")}\n${marks}`;
}
