// Files of the server's roots as material of a question, found by folder or by search.

import { bytes, count, number } from "./format.js";
import { button, el, setChildren, setText } from "./dom.js";
import { get, query } from "./api.js";

const SEARCH_MS = 200; // milliseconds without input before a search

/** Return {node, value(), root(), setTotal(packet), draft(), restore(draft)}. */
export function filePicker(changed) {
  const picked = new Map(); // path → kind
  const chosen = el("ul", { class: "plain picked" });
  const rows = el("ul", { class: "plain tree" });
  const where = el("p", { class: "where" });
  const total = el("span", { class: "soft total", role: "status" });
  const preview = el("div", { class: "preview", tabindex: "0", role: "region", "aria-label": "Preview", hidden: true });
  const roots = el("select", { "aria-label": "Root folder", onchange: () => openFolder("") });
  const search = el("input", { type: "search", class: "find", placeholder: "Search files by name", "aria-label": "Search files", oninput: searchLater });
  const dialog = el("dialog", { class: "files-dialog", "aria-label": "Pick files" },
    el("header", { class: "bar" }, el("h2", {}, "Files to send"), roots, button("Done", () => dialog.close(), { class: "primary" })), search, where,
    el("div", { class: "split" }, el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Files" }, rows), preview),
    el("footer", { class: "bar" }, total));
  const node = el("div", { class: "field files-field" }, chosen, button("Add files …", show), dialog);
  let loaded = false;
  let root = ""; // of a draft, until the roots are loaded
  let timer = 0;
  let asked = 0; // number of the last listing or search: a late answer of an earlier one is ignored

  async function show() {
    dialog.showModal();
    if (loaded) return;
    try {
      const found = await get("roots");
      setChildren(roots, found.map((root) => el("option", { value: root.name }, root.path || root.name)));
      if (found.some((one) => one.name === root)) roots.value = root;
      roots.hidden = found.length < 2;
      loaded = true;
      findOrList(); // a reader may have typed before the roots were known
    } catch (error) {
      setChildren(rows, el("li", { class: "problem", role: "alert" }, error.message));
    }
  }

  function openFolder(path) {
    search.value = "";
    setChildren(where, crumbs(path));
    return list(`files${query({ root: roots.value, path })}`, (found) => (found.length ? found.map((file) => row(file)) : el("li", { class: "soft" }, "No files here that can be sent.")));
  }

  function searchLater() {
    clearTimeout(timer);
    timer = setTimeout(findOrList, SEARCH_MS);
  }

  function findOrList() {
    if (loaded) search.value.trim() ? findFiles(search.value.trim()) : openFolder("");
  }

  function findFiles(q) {
    setChildren(where, el("span", { class: "soft" }, "Files by name"));
    return list(`files/search${query({ root: roots.value, q })}`, ({ files, more }) => [
      files.length ? files.map((file) => row(file, true)) : el("li", { class: "soft" }, "No matching files."), more && el("li", { class: "soft" }, "… and more: add a word to the search")]);
  }

  async function list(path, draw) {
    const mine = (asked += 1);
    try {
      const found = await get(path);
      if (mine === asked) setChildren(rows, draw(found));
    } catch (error) {
      if (mine === asked) setChildren(rows, el("li", { class: "problem", role: "alert" }, error.message));
    }
  }

  function crumbs(path) {
    const parts = path.split("/").filter(Boolean);
    return [button("top", () => openFolder(""), { class: "quiet" }), parts.map((part, n) => [" / ", button(part, () => openFolder(parts.slice(0, n + 1).join("/")), { class: "quiet" })])];
  }

  function row(file, withFolder = false) {
    const id = `file-${file.path.replace(/[^\w-]/g, "_")}`;
    const box = el("input", { type: "checkbox", id, checked: picked.has(file.path), onchange: () => toggle(file) });
    const isFolder = file.kind === "folder";
    const name = isFolder ? button(`${file.name}/`, () => openFolder(file.path), { class: "quiet" }) : el("label", { for: id }, withFolder ? file.path : file.name);
    if (isFolder) box.setAttribute("aria-label", `All of ${file.name}`);
    return el("li", {}, box, name, !isFolder && [el("span", { class: "soft" }, bytes(file.bytes || 0)), button("view", () => showFile(file.path), { class: "quiet", "aria-label": `View ${file.name}` })]);
  }

  async function showFile(path) {
    preview.hidden = false;
    setChildren(preview, el("p", { class: "hint" }, "…"));
    try {
      const file = await get(`files/text${query({ root: roots.value, path })}`);
      setChildren(preview, el("p", { class: "hint" }, `${file.path}: ${bytes(file.bytes)}, about ${number(file.tokens)} tokens`), file.secrets.length > 0 && el("p", { class: "problem", role: "alert" }, `Refused, because it contains secrets: ${file.secrets.join(", ")}. They are masked here. Remove them, or choose "redact" or "skip secrets".`), el("pre", {}, file.text), file.cut && el("p", { class: "hint" }, "… the rest is not shown here"));
    } catch (error) {
      setChildren(preview, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  function toggle(file) {
    if (picked.has(file.path)) picked.delete(file.path);
    else picked.set(file.path, file.kind);
    update();
  }

  function update() {
    draw();
    setText(total, picked.size ? "counting tokens …" : "");
    changed();
  }

  function draw() {
    setChildren(chosen, [...picked].map(([path, kind]) => el("li", {}, el("code", {}, kind === "folder" ? `${path}/` : path), button("×", () => toggle({ path, kind }), { class: "quiet", "aria-label": `Remove ${path}` }))));
  }

  /** Show the size of the material, as the plan counts it. */
  function setTotal(packet) {
    const files = packet?.files?.length || 0;
    setText(total, files ? `${count(files, "file")}, about ${number(packet.tokens)} tokens${packet.skipped?.length ? `, ${number(packet.skipped.length)} left out` : ""}` : "");
  }

  function restore(stored) {
    for (const [path, kind] of stored.paths || []) picked.set(path, kind);
    root = stored.root || "";
    draw();
  }

  return { node, value: () => [...picked.keys()], root: () => (loaded ? roots.value : root), setTotal, draft: () => ({ paths: [...picked], root: loaded ? roots.value : root }), restore };
}
