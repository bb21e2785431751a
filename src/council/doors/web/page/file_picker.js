// File picker for the roots of the server.

import { bytes } from "./format.js";
import { button, el, setChildren } from "./dom.js";
import { get, query } from "./api.js";

export function filePicker(changed) {
  const picked = new Map(); // path → kind
  const chosen = el("ul", { class: "plain picked" });
  const rows = el("ul", { class: "plain tree" });
  const where = el("p", { class: "where" });
  const roots = el("select", { "aria-label": "Root folder", onchange: () => openFolder("") });
  const dialog = el("dialog", { class: "files-dialog", "aria-label": "Pick files" },
    el("header", { class: "bar" }, el("h2", {}, "Files to send"), roots, button("Done", () => dialog.close(), { class: "primary" })), where,
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Files" }, rows));
  const add = button("Add files …", show);
  const node = el("div", { class: "field" }, el("span", { class: "label" }, "Files"), chosen, el("div", {}, add), dialog);
  let loaded = false;

  async function show() {
    dialog.showModal();
    if (loaded) return;
    try {
      const found = await get("roots");
      setChildren(roots, found.map((root) => el("option", { value: root.name }, root.path || root.name)));
      roots.hidden = found.length < 2;
      loaded = true;
      openFolder("");
    } catch (error) {
      setChildren(rows, el("li", { class: "problem", role: "alert" }, error.message));
    }
  }

  async function openFolder(path) {
    setChildren(where, crumbs(path));
    try {
      const found = await get(`files${query({ root: roots.value, path })}`);
      setChildren(rows, found.length ? found.map(row) : el("li", { class: "soft" }, "No files here that can be sent."));
    } catch (error) {
      setChildren(rows, el("li", { class: "problem", role: "alert" }, error.message));
    }
  }

  function crumbs(path) {
    const parts = path.split("/").filter(Boolean);
    return [button("top", () => openFolder(""), { class: "quiet" }), parts.map((part, n) => [" / ", button(part, () => openFolder(parts.slice(0, n + 1).join("/")), { class: "quiet" })])];
  }

  function row(file) {
    const id = `file-${file.path.replace(/[^\w-]/g, "_")}`;
    const box = el("input", { type: "checkbox", id, checked: picked.has(file.path), onchange: () => toggle(file) });
    const name = file.kind === "folder" ? button(`${file.name}/`, () => openFolder(file.path), { class: "quiet" }) : el("label", { for: id }, file.name);
    if (file.kind === "folder") box.setAttribute("aria-label", `All of ${file.name}`);
    return el("li", {}, box, name, file.kind === "file" && el("span", { class: "soft" }, bytes(file.bytes || 0)));
  }

  function toggle(file) {
    if (picked.has(file.path)) picked.delete(file.path);
    else picked.set(file.path, file.kind);
    draw();
    changed();
  }

  function draw() {
    setChildren(chosen, [...picked].map(([path, kind]) => el("li", {}, el("code", {}, kind === "folder" ? `${path}/` : path), button("×", () => toggle({ path, kind }), { class: "quiet", "aria-label": `Remove ${path}` }))));
  }

  return { node, value: () => [...picked.keys()], root: () => (loaded ? roots.value : "") };
}
