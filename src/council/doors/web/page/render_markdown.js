// Render Markdown of any length: short texts at once, long ones in slices, in blocks with lazy layout.

import { blocks, markdown } from "./markdown.js";
import { el, setChildren } from "./dom.js";
import { runInSlices } from "./scheduler.js";

const BLOCK_CHARS = 3000; // characters per block
const MAX_DIRECT_CHARS = 2 * BLOCK_CHARS;

/** Render a text into a node, which keeps its content until the new one is complete. Return a function that cancels it. */
export function renderMarkdown(into, text, how = {}, done = () => {}) {
  if (text.length <= MAX_DIRECT_CHARS) {
    setChildren(into, markdown(text, how));
    done();
    return () => {};
  }
  const prose = el("div", { class: "prose" });
  return runInSlices(buildBlocks(text, prose, how), () => {
    setChildren(into, prose);
    done();
  });
}

function* buildBlocks(text, into, how) {
  let leaf = null;
  let size = Infinity;
  for (const block of blocks(text, how)) {
    if (size > BLOCK_CHARS) {
      leaf = el("div", { class: "leaf" });
      into.append(leaf);
      size = 0;
    }
    leaf.append(block);
    size += block.textContent.length;
    yield;
  }
}
