// Render Markdown of any length: short texts at once, long ones in slices, in leaves with lazy layout.

import { blocks, markdown } from "./markdown.js";
import { el, setChildren } from "./dom.js";
import { runInSlices } from "./scheduler.js";

const LEAF_CHARS = 3000; // characters per leaf
const MAX_DIRECT_CHARS = 2 * LEAF_CHARS;

/** Render a text into a node, which keeps its content until the new one is complete. Return a function that cancels it. */
export function renderMarkdown(into, text, how = {}, done = () => {}) {
  if (text.length <= MAX_DIRECT_CHARS) {
    setChildren(into, markdown(text, how));
    done();
    return () => {};
  }
  const prose = el("div", { class: "prose" });
  return runInSlices(buildBlocks(text, leafWriter(prose), how), () => {
    setChildren(into, prose);
    done();
  });
}

function* buildBlocks(text, write, how) {
  for (const block of blocks(text, how)) {
    write(block);
    yield;
  }
}

/** Return a function that appends blocks to a node, in leaves. */
export function leafWriter(into) {
  let leaf = null;
  let size = Infinity;
  return (block) => {
    if (size > LEAF_CHARS) {
      leaf = el("div", { class: "leaf" });
      into.append(leaf);
      size = 0;
    }
    leaf.append(block);
    size += block.textContent.length;
  };
}
