// A table that scrolls sideways where it is too wide, with a button that opens it over the whole window.

import { button, el, setAttr } from "./dom.js";

const watcher = "ResizeObserver" in globalThis ? new ResizeObserver((entries) => entries.forEach(({ target }) => markOverflow(target))) : null;

const markOverflow = (wide) => setAttr(wide.parentElement, "data-overflow", wide.scrollWidth > wide.clientWidth + 1 ? "yes" : null);

export function wideTable(table) {
  const wide = el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "a table" }, table);
  watcher?.observe(wide);
  wide.addEventListener("scroll", () => setAttr(wide.parentElement, "data-end", wide.scrollLeft + wide.clientWidth > wide.scrollWidth - 2 ? "yes" : null), { passive: true });
  return el("div", { class: "table-box" }, wide, button("Open wide", () => openTable(table), { class: "quiet" }));
}

function openTable(table) {
  const dialog = el("dialog", { class: "table-dialog", "aria-label": "A table", onclose: () => dialog.remove() },
    el("div", { class: "wide prose", tabindex: "0", role: "group", "aria-label": "a table" }, table.cloneNode(true)), button("Close", () => dialog.close()));
  document.body.append(dialog);
  dialog.showModal();
}
