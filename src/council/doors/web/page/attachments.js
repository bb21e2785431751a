// Attachments of a question: images, PDFs and texts of this computer that are picked, dropped or pasted, as chips with their sizes.
// Each is uploaded at once, so that it survives a reload; a run names it by its id.

import { bytes } from "./format.js";
import { button, el, setChildren, setText } from "./dom.js";
import { get, remove, send } from "./api.js";

const MAX_TEXT_BYTES = 256 * 1024; // of one text, as in a packet
const MAX_ALL_BYTES = 15_000_000; // of all attached files, as on the server
const LONG_PASTE_CHARS = 4000; // pasted text that is attached instead of put into the question

/** Return {node, button, isBusy(), value(), draft(), restore(draft), takeFiles(files), takePaste(event)}. */
export function attachmentList(changed) {
  const attached = []; // {name, size, type, id, picture}; no id: it is being uploaded
  const chips = el("ul", { class: "plain picked attached" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const browse = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Attach files", onchange: () => takeFiles(browse.files).finally(() => (browse.value = "")) });
  const node = el("div", { class: "attachments-field" }, chips, problem, browse);
  let isChecking = false; // whether the server still has those of a draft
  const opener = button("Attach", () => browse.click(), { class: "quiet attach", title: "Attach images, PDFs and text files of this computer; or drop or paste them" });

  function update() {
    draw();
    changed();
  }

  function draw() {
    setChildren(chips, attached.map((file) => el("li", { "data-busy": file.id ? null : "yes" }, file.picture && el("img", { class: "thumb", src: file.picture, alt: "" }), el("code", { title: file.name }, file.name), el("span", { class: "hint" }, file.id ? bytes(file.size) : "uploading …"), button("×", () => drop(file), { class: "quiet", "aria-label": `Remove ${file.name}` }))));
  }

  function drop(file) {
    takeOut(file);
    if (file.id) remove(`attachments/${file.id}`).catch(() => {}); // it expires by itself
    update();
    opener.focus();
  }

  function takeOut(file) {
    const at = attached.indexOf(file);
    if (at >= 0) attached.splice(at, 1);
  }

  async function takeFiles(files) {
    const problems = await Promise.all([...files].map((file) => attach(file)));
    report(problems.filter(Boolean));
  }

  /** Attach a file, or return one line that says why not. The server checks what an image or a PDF contains. */
  async function attach(file) {
    const name = file.name || "pasted";
    if (!fits(file.size)) return `"${name}" does not fit: attach at most ${bytes(MAX_ALL_BYTES)} in all`;
    const isBinary = /^image\/(png|jpeg|webp|gif)$|^application\/pdf$/.test(file.type);
    const entry = { name: unused(name), size: file.size, type: file.type };
    attached.push(entry); // before anything is awaited, so that names and sizes count
    const content = await file.arrayBuffer();
    if (isBinary) {
      const data = toBase64(content);
      if (file.type.startsWith("image/")) entry.picture = `data:${file.type};base64,${data}`;
      return upload(entry, { data });
    }
    const text = decode(content);
    if (text !== null && file.size <= MAX_TEXT_BYTES) return upload(entry, { text });
    takeOut(entry);
    update();
    if (text === null) return `"${name}" is neither an image (PNG, JPEG, WebP, GIF) nor a PDF nor text: attach another file`;
    return `"${name}" has ${bytes(file.size)}: attach at most ${bytes(MAX_TEXT_BYTES)} of text, or a part of it`;
  }

  async function upload(entry, content) {
    update();
    try {
      const { id } = await send("attachments", { name: entry.name, ...content });
      if (attached.includes(entry)) entry.id = id;
      else remove(`attachments/${id}`).catch(() => {}); // removed while it was uploaded
      return "";
    } catch (error) {
      takeOut(entry);
      return error.message;
    } finally {
      update();
    }
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

  /** Attach pasted files, and a long pasted text, which would hide the question. */
  function takePaste(event) {
    const files = [...(event.clipboardData?.files || [])];
    const text = event.clipboardData?.getData("text/plain") || "";
    if (!files.length && text.length <= LONG_PASTE_CHARS) return;
    event.preventDefault();
    if (files.length) return void takeFiles(files);
    takeFiles([new File([text], "pasted.txt", { type: "text/plain" })]);
  }

  const ready = () => attached.filter((one) => one.id);
  const value = () => (ready().length ? { uploads: ready().map((one) => one.id) } : {});
  const draft = () => ready().map(({ id, name, size, type }) => ({ id, name, size, type }));

  /** Show the attachments of a draft, if the server still has them. */
  async function restore(stored) {
    if (!stored.length) return;
    isChecking = true;
    attached.push(...stored.map((one) => ({ ...one })));
    update();
    const known = await get("attachments").catch(() => null);
    isChecking = false;
    if (!known) return void update();
    const lost = stored.filter((one) => !known.some(({ id }) => id === one.id));
    for (const one of lost) takeOut(attached.find(({ id }) => id === one.id));
    report(lost.map((one) => `"${one.name}" is no longer kept by the server: attach it again`));
    update();
    const pictures = attached.filter((one) => one.id && !one.picture && one.type?.startsWith("image/"));
    await Promise.all(pictures.map(async (one) => (one.picture = await loadPicture(one).catch(() => ""))));
    if (pictures.length) draw();
  }

  return { node, button: opener, isBusy: () => isChecking || attached.some((one) => !one.id), value, draft, restore, takeFiles, takePaste };
}

async function loadPicture({ id }) {
  const file = await get(`attachments/${id}`);
  return `data:${file.media_type};base64,${file.data}`;
}

/** Return the text of bytes, or null if they are none. */
function decode(content) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function toBase64(content) {
  const all = new Uint8Array(content);
  const parts = [];
  for (let at = 0; at < all.length; at += 0x8000) parts.push(String.fromCharCode(...all.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}
