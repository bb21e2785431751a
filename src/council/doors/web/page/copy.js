// Copy text to the clipboard, and a copy button on every code block.

import { button, el, setText } from "./dom.js";

const SHOWN_MS = 1500; // milliseconds for which a button says that it copied

/** Copy a text. A page from a file has no clipboard API, so a selection is copied there. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Make a button that copies what `read` returns, which may be a promise. */
export function copyButton(label, read, more = {}) {
  const node = button(label, async () => {
    await copyText(await read());
    setText(node, "Copied");
    setTimeout(setText, SHOWN_MS, node, label);
  }, more);
  return node;
}

/** Give every code block of a node a button that copies it. */
export function addCopyButtons(node) {
  for (const block of node.querySelectorAll("pre")) {
    const frame = el("div", { class: "code" });
    block.replaceWith(frame);
    frame.append(block, copyButton("Copy", () => block.textContent, { class: "quiet copy-code", "aria-label": "Copy this code" }));
  }
}
