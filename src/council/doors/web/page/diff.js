// What changed between two rounds, word by word: first by lines, then by words within the lines that differ, so that two
// long texts are compared in a moment. Myers' way, with a limit: what has little in common is shown as replaced.

import { el } from "./dom.js";

const FAR = 400; // differences after which two texts are not compared further

const ISLAND = 3; // words that two texts must share in a row to be shown as kept

/** A list of {kind: "same" | "gone" | "new", text}. */
export function wordDiff(before, after) {
  return tidy(raw(before, after));
}

/** A word or two that happen to be equal in the middle of a change belong to the change: else nobody could read it. */
function tidy(parts) {
  const out = [];
  let [gone, fresh] = ["", ""];
  const flush = () => {
    add(out, "gone", gone);
    add(out, "new", fresh);
    [gone, fresh] = ["", ""];
  };
  parts.forEach((part, n) => {
    const lone = part.kind === "same" && n > 0 && n < parts.length - 1 && (gone || fresh) && (part.text.match(/[\p{L}\p{N}]+/gu) || []).length < ISLAND && !part.text.includes("\n");
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

function raw(before, after) {
  const out = [];
  for (const part of compared(before.split(/(?<=\n)/), after.split(/(?<=\n)/))) {
    if (part.kind === "same") add(out, "same", part.from.join(""));
    else {
      const [a, b] = [part.from.join(""), part.to.join("")];
      for (const piece of compared(words(a), words(b))) {
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

/** Runs of equal parts and of replaced ones: [{kind, from, to}]. */
function compared(a, b) {
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
  return grouped(steps.reverse());
}

/** How far each diagonal comes with every number of changes; nothing when the texts are too far apart. */
function shortest(a, b) {
  const most = Math.min(a.length + b.length, FAR);
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

function grouped(steps) {
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

/** The words alone are compared: marks of Markdown say nothing about a change of mind. */
const bare = (text) => text.replace(/\*\*|`/g, "");

export function diffNode(earlier, later) {
  const [before, after] = [bare(earlier), bare(later)];
  const parts = wordDiff(before, after);
  const kept = parts.filter((part) => part.kind === "same").reduce((sum, part) => sum + part.text.length, 0);
  const share = Math.round((100 * kept) / Math.max(1, after.length));
  return el("div", {},
    el("p", { class: "hint" }, `${Math.min(100, share)} % of it stood there before`),
    el("div", { class: "diff" }, parts.map((part) => el(TAGS[part.kind], {}, part.text))));
}
