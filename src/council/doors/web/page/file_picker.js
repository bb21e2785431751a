// Material of a question: files of the server's roots, found by folder or by search, and images, PDFs and texts that are dropped or pasted.

import { bytes, count, number } from "./format.js";
import { button, el, setChildren, setText } from "./dom.js";
import { get, query } from "./api.js";

const SEARCH_MS = 200; // milliseconds without input before a search
const MAX_TEXT_BYTES = 256 * 1024; // of one text, as in a packet
const MAX_ALL_BYTES = 15_000_000; // of all attached files, as on the server
const LONG_PASTE_CHARS = 4000; // pasted text that is attached instead of put into the question

/** Return {node, value(), root(), attachments(), setTotal(packet), takeFiles(files), takePaste(event)}. */
export function filePicker(changed) {
  const picked = new Map(); // path → kind
  const attached = []; // {name, size, text} or {name, size, data, type}, data in base64
  const chosen = el("ul", { class: "plain picked" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
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
  const browse = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Attach files", onchange: () => (takeFiles(browse.files), (browse.value = "")) });
  const node = el("div", { class: "field files-field" }, el("span", { class: "label visually-hidden" }, "Files"), chosen,
    el("div", { class: "bar" }, button("Add files …", show), button("Attach …", () => browse.click(), { title: "Attach images, PDFs and text files of this computer" }), browse, el("span", { class: "hint" }, "or drop or paste images, PDFs and text here")), problem, dialog);
  let loaded = false;
  let timer = 0;
  let asked = 0; // number of the last listing or search: a late answer of an earlier one is ignored

  async function show() {
    dialog.showModal();
    if (loaded) return;
    try {
      const found = await get("roots");
      setChildren(roots, found.map((root) => el("option", { value: root.name }, root.path || root.name)));
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
    setChildren(chosen,
      [...picked].map(([path, kind]) => item(kind === "folder" ? `${path}/` : path, "", () => toggle({ path, kind }))),
      attached.map((file) => item(file.name, `${bytes(file.size)}, attached`, () => (attached.splice(attached.indexOf(file), 1), update()), file.type?.startsWith("image/") && el("img", { class: "thumb", src: `data:${file.type};base64,${file.data}`, alt: "" }))));
    setText(total, picked.size ? "counting tokens …" : "");
    changed();
  }

  const item = (name, about, remove, picture) => el("li", {}, picture, el("code", {}, name), about && el("span", { class: "hint" }, about), button("×", remove, { class: "quiet", "aria-label": `Remove ${name}` }));

  // Attachments

  async function takeFiles(files) {
    const problems = [];
    for (const file of files) problems.push(await attach(file));
    report(problems.filter(Boolean));
    update();
  }

  /** Attach a file, or return one line that says why not. The server checks what an image or a PDF contains. */
  async function attach(file) {
    const name = file.name || "pasted";
    if (!fits(file.size)) return `"${name}" does not fit: attach at most ${bytes(MAX_ALL_BYTES)} in all`;
    const content = await file.arrayBuffer();
    if (/^image\/(png|jpeg|webp|gif)$|^application\/pdf$/.test(file.type)) return add({ name: unused(name), size: file.size, type: file.type, data: toBase64(content) });
    let text = "";
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    } catch {
      text = "\0";
    }
    if (text.includes("\0")) return `"${name}" is neither an image (PNG, JPEG, WebP, GIF) nor a PDF nor text: attach another file`;
    if (file.size > MAX_TEXT_BYTES) return `"${name}" has ${bytes(file.size)}: attach at most ${bytes(MAX_TEXT_BYTES)} of text, or a part of it`;
    return add({ name, size: file.size, text });
  }

  function add(file) {
    attached.push(file);
    return "";
  }

  const fits = (size) => attached.reduce((sum, one) => sum + one.size, size) <= MAX_ALL_BYTES;

  /** Return a name that no other attachment has: browsers call every pasted image image.png. */
  function unused(name) {
    const [, stem, suffix] = name.match(/^(.*?)(\.[^.]*)?$/);
    let n = 1;
    while (attached.some((one) => one.name === (n === 1 ? name : `${stem}-${n}${suffix || ""}`))) n += 1;
    return n === 1 ? name : `${stem}-${n}${suffix || ""}`;
  }

  function report(lines) {
    problem.hidden = !lines.length;
    setText(problem, lines.join(" · "));
  }

  /** Attach pasted files, and a long pasted text, which would hide the question. Return whether the paste was taken. */
  function takePaste(event) {
    const files = [...(event.clipboardData?.files || [])];
    const text = event.clipboardData?.getData("text/plain") || "";
    if (!files.length && text.length <= LONG_PASTE_CHARS) return;
    event.preventDefault();
    if (files.length) return void takeFiles(files);
    const pasted = attached.filter((one) => one.name.startsWith("pasted")).length;
    report([add({ name: pasted ? `pasted-${pasted + 1}.txt` : "pasted.txt", size: text.length, text })].filter(Boolean));
    update();
  }

  function toBase64(content) {
    const all = new Uint8Array(content);
    const parts = [];
    for (let at = 0; at < all.length; at += 0x8000) parts.push(String.fromCharCode(...all.subarray(at, at + 0x8000)));
    return btoa(parts.join(""));
  }

  /** Show the size of the material, as the plan counts it. */
  function setTotal(packet) {
    const files = packet?.files?.length || 0;
    setText(total, files ? `${count(files, "file")}, about ${number(packet.tokens)} tokens${packet.skipped?.length ? `, ${number(packet.skipped.length)} left out` : ""}` : "");
  }

  return { node, value: () => [...picked.keys()], root: () => (loaded ? roots.value : ""), attachments: () => attached.map(({ name, text, data }) => (data === undefined ? { name, text } : { name, data })), setTotal, takeFiles, takePaste };
}
