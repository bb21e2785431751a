// Markdown of any length into a node: what is short at once, what is long in slices, in blocks that are laid out only when seen.

import { blocks, markdown } from "./markdown.js";
import { el, refill } from "./dom.js";
import { slowly } from "./slices.js";

const LEAF = 3000; // characters of a block
const LONG = 2 * LEAF;

/** Fill `into` with the text; what stood there stays until the new is whole. Returns how to give it up. */
export function write(into, text, how = {}, done = () => {}) {
  if (text.length <= LONG) {
    refill(into, markdown(text, how));
    done();
    return () => {};
  }
  const prose = el("div", { class: "prose" });
  return slowly(building(text, prose, how), () => {
    refill(into, prose);
    done();
  });
}

function* building(text, into, how) {
  let leaf = null;
  let size = Infinity;
  for (const block of blocks(text, how)) {
    if (size > LEAF) {
      leaf = el("div", { class: "leaf" });
      into.append(leaf);
      size = 0;
    }
    leaf.append(block);
    size += block.textContent.length;
    yield;
  }
}
