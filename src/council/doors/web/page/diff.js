// Diff of two texts as they are rendered: by parts and words; a text without parts first by lines, then by words within changed lines, to be fast on long texts.
// Myers' algorithm with a limit: texts with little in common are shown as replaced.

import { blocks } from "./markdown.js";
import { el } from "./dom.js";

const MAX_CHANGES = 400; // changes after which two texts count as replaced

const MIN_SHARED_WORDS = 3; // shared words in a row that are shown as unchanged

/** Return a list of {kind: "same" | "gone" | "new", text}. */
export function wordDiff(before, after) {
  return mergeShortMatches(rawDiff(before, after));
}

/** Merge one or two equal words inside a change into it, for readability. */
function mergeShortMatches(parts) {
  const out = [];
  let [gone, fresh] = ["", ""];
  const flush = () => {
    add(out, "gone", gone);
    add(out, "new", fresh);
    [gone, fresh] = ["", ""];
  };
  parts.forEach((part, n) => {
    const lone = part.kind === "same" && n > 0 && n < parts.length - 1 && (gone || fresh) && (part.text.match(/[\p{L}\p{N}]+/gu) || []).length < MIN_SHARED_WORDS && !part.text.includes("\n");
    if (part.kind === "same" && !lone) {
      flush();
      add(out, "same", part.text);
    }
    if (part.kind === "gone" || lone) gone += part.text;
    if (part.kind === "new" || lone) fresh += part.text;
  });
  flush();
  return out;
}

function rawDiff(before, after) {
  const out = [];
  for (const part of diffParts(before.split(/(?<=\n)/), after.split(/(?<=\n)/))) {
    if (part.kind === "same") add(out, "same", part.from.join(""));
    else {
      const [a, b] = [part.from.join(""), part.to.join("")];
      for (const piece of diffParts(words(a), words(b))) {
        add(out, piece.kind === "same" ? "same" : "gone", piece.from.join(""));
        if (piece.kind !== "same") add(out, "new", piece.to.join(""));
      }
    }
  }
  return out;
}

const words = (text) => text.match(/\s+|[\p{L}\p{N}_'’-]+|[^\s\p{L}\p{N}]/gu) || [];

function add(out, kind, text) {
  if (!text) return;
  if (out.at(-1)?.kind === kind) out.at(-1).text += text;
  else out.push({ kind, text });
}

/** Return runs of equal and replaced parts: [{kind, from, to}]. */
function diffParts(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const middle = script(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (from) => ({ kind: "same", from, to: from });
  return [same(a.slice(0, head)), ...middle, same(a.slice(a.length - tail))].filter((part) => part.from.length || part.to.length);
}

function script(a, b) {
  const trace = shortest(a, b);
  if (!trace) return [{ kind: "replaced", from: a, to: b }];
  const steps = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const { v, at } = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && v[at + k - 1] < v[at + k + 1]);
    const from = down ? k + 1 : k - 1;
    const [px, py] = d === 0 ? [0, 0] : [v[at + from], v[at + from] - from];
    while (x > px && y > py && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      steps.push(["same", a[x - 1]]);
      [x, y] = [x - 1, y - 1];
    }
    if (d === 0) break;
    if (down) steps.push(["to", b[(y -= 1)]]);
    else steps.push(["from", a[(x -= 1)]]);
  }
  return groupSteps(steps.reverse());
}

/** Return the furthest point of each diagonal by number of changes, or null if the texts differ too much. */
function shortest(a, b) {
  const most = Math.min(a.length + b.length, MAX_CHANGES);
  const at = most + 1;
  const v = new Int32Array(2 * most + 3);
  const trace = [];
  for (let d = 0; d <= most; d += 1) {
    trace.push({ v: v.slice(), at });
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[at + k - 1] < v[at + k + 1]) ? v[at + k + 1] : v[at + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      v[at + k] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
  }
  return null;
}

function groupSteps(steps) {
  const parts = [];
  for (const [kind, text] of steps) {
    const same = kind === "same";
    if (!parts.length || (parts.at(-1).kind === "same") !== same) parts.push({ kind: same ? "same" : "replaced", from: [], to: [] });
    const part = parts.at(-1);
    if (kind !== "to") part.from.push(text);
    if (kind !== "from") part.to.push(text);
  }
  return parts;
}

const TAGS = { same: "span", gone: "del", new: "ins" };
const GROUPS = new Set(["ul", "ol", "blockquote", "div", "table", "thead", "tbody"]);
const MIN_SHARE = 0.5; // share of equal words from which two parts are compared word by word
const MAX_AHEAD = 8; // later parts that may be the changed one

/** Show the changes between two Markdown texts as they are rendered: by paragraph, list item and row, then by word. */
export function diffNode(earlier, later) {
  const [before, after] = [earlier, later].map(partsOf);
  const rows = diffParts(before.map(keyOf), after.map(keyOf)).flatMap(({ kind, from, to }) =>
    kind === "same" ? from.map((key) => rowOf(key, "same")) : replacedRows([...from], [...to]));
  const unchanged = rows.flatMap((row) => row.pieces).filter((piece) => piece.kind === "same").reduce((sum, piece) => sum + piece.text.length, 0);
  const share = Math.round((100 * unchanged) / Math.max(1, after.reduce((sum, part) => sum + part.text.length, 0)));
  return el("div", {},
    el("p", { class: "hint" }, `${Math.min(100, share)} % unchanged`),
    el("div", { class: "diff" }, rows.map(({ kind, pieces }) => el(kind === "pre" ? "pre" : "p", { class: `diff-${kind}`, tabindex: kind === "pre" ? "0" : null }, pieces.map((piece) => el(TAGS[piece.kind], {}, piece.text))))));
}

/** Return the parts of a rendered text: [{kind, text}], one for each heading, paragraph, list item, row and block of code. */
function partsOf(text) {
  const found = [];
  for (const block of blocks(text, { top: 5 })) collectParts(block, found);
  return found;
}

function collectParts(node, found) {
  const nested = [...node.children].filter((child) => GROUPS.has(child.localName));
  if (GROUPS.has(node.localName)) for (const child of node.children) child.localName !== "button" && collectParts(child, found);
  else if (node.localName === "tr") found.push({ kind: "tr", text: [...node.children].map((cell) => cell.textContent).join(" | ") });
  else {
    const own = [...node.childNodes].filter((child) => !nested.includes(child)).map((child) => child.textContent).join("");
    if (own.trim()) found.push({ kind: node.localName, text: own });
    for (const child of nested) collectParts(child, found);
  }
}

const keyOf = ({ kind, text }) => `${kind} ${text}`;
const partOf = (key) => ({ kind: key.slice(0, key.indexOf(" ")), text: key.slice(key.indexOf(" ") + 1) });

function rowOf(key, kind) {
  const part = partOf(key);
  return { kind: part.kind, pieces: [{ kind, text: part.text }] };
}

/** Pair parts of one kind that share enough text; the others are gone or new. */
function replacedRows(from, to) {
  const rows = [];
  for (const key of from) {
    const pair = to.slice(0, MAX_AHEAD).findIndex((other) => isSimilar(partOf(key), partOf(other)));
    rows.push(...to.splice(0, Math.max(0, pair)).map((other) => rowOf(other, "new")));
    if (pair < 0) rows.push(rowOf(key, "gone"));
    else rows.push({ kind: partOf(key).kind, pieces: wordDiff(partOf(key).text, partOf(to.shift()).text) });
  }
  return [...rows, ...to.map((key) => rowOf(key, "new"))];
}

function isSimilar(before, after) {
  if (before.kind !== after.kind) return false;
  const known = new Set(words(before.text));
  const all = words(after.text).filter((word) => word.trim());
  return all.filter((word) => known.has(word)).length >= MIN_SHARE * Math.max(1, all.length);
}

// Rendered text

const BLOCKS = "p, li, h1, h2, h3, h4, h5, h6, td, th, pre, blockquote, summary";
const MIN_MARKED_SHARE = 15; // percent of shared text below which marks would cover everything

/** Mark in two rendered texts what only one of them has, with <del> and <ins>. Return the percentage that they share. */
export function markChanges(before, after) {
  const [a, b] = [readText(before), readText(after)];
  const [gone, fresh] = [[], []];
  let [x, y, same] = [0, 0, 0];
  for (const { kind, text } of wordDiff(a.text, b.text)) {
    if (kind === "gone") gone.push([x, x + text.length]);
    if (kind === "new") fresh.push([y, y + text.length]);
    if (kind === "same") same += text.length;
    if (kind !== "new") x += text.length;
    if (kind !== "gone") y += text.length;
  }
  const share = Math.round((200 * same) / Math.max(1, a.text.length + b.text.length));
  if (share < MIN_MARKED_SHARE) return share;
  markRanges(a.parts, gone, "del");
  markRanges(b.parts, fresh, "ins");
  return share;
}

/** Return the text of a node with a line for each block, and where each text node is in it. */
function readText(root) {
  const parts = [];
  let [text, last] = ["", null];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const block = node.parentElement.closest(BLOCKS);
    if (last !== null && block !== last) text += "\n";
    last = block;
    parts.push({ node, from: text.length });
    text += node.data;
  }
  return { text, parts };
}

function markRanges(parts, ranges, tag) {
  for (const { node, from } of parts) {
    const end = from + node.data.length;
    const inside = ranges.filter(([start, stop]) => start < end && stop > from).map(([start, stop]) => [Math.max(start, from) - from, Math.min(stop, end) - from]);
    if (!inside.length) continue;
    const pieces = [];
    let at = 0;
    for (const [start, stop] of inside) {
      const changed = node.data.slice(start, stop);
      pieces.push(node.data.slice(at, start), changed.trim() ? el(tag, {}, changed) : changed);
      at = stop;
    }
    node.replaceWith(...pieces.filter((piece) => piece !== ""), node.data.slice(at));
  }
}
