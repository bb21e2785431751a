// Attachments of a question: images, PDFs and texts of this computer that are picked, dropped or pasted, as chips with their sizes.

import { bytes } from "./format.js";
import { button, el, setChildren, setText } from "./dom.js";

const MAX_TEXT_BYTES = 256 * 1024; // of one text, as in a packet
const MAX_ALL_BYTES = 15_000_000; // of all attached files, as on the server
const LONG_PASTE_CHARS = 4000; // pasted text that is attached instead of put into the question

/** Return {node, button, value(), draft(), restore(draft), takeFiles(files), takePaste(event)}. */
export function attachmentList(changed) {
  const attached = []; // {name, size, text} or {name, size, data, type}, data in base64
  const chips = el("ul", { class: "plain picked attached" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const browse = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Attach files", onchange: () => (takeFiles(browse.files), (browse.value = "")) });
  const node = el("div", { class: "attachments-field" }, chips, problem, browse);
  const opener = button("Attach", () => browse.click(), { class: "quiet attach", title: "Attach images, PDFs and text files of this computer; or drop or paste them" });

  function update() {
    setChildren(chips, attached.map((file) => el("li", {}, file.type?.startsWith("image/") && el("img", { class: "thumb", src: `data:${file.type};base64,${file.data}`, alt: "" }), el("code", {}, file.name), el("span", { class: "hint" }, bytes(file.size)), button("×", () => remove(file), { class: "quiet", "aria-label": `Remove ${file.name}` }))));
    changed();
  }

  function remove(file) {
    attached.splice(attached.indexOf(file), 1);
    update();
    opener.focus();
  }

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

  /** Attach pasted files, and a long pasted text, which would hide the question. */
  function takePaste(event) {
    const files = [...(event.clipboardData?.files || [])];
    const text = event.clipboardData?.getData("text/plain") || "";
    if (!files.length && text.length <= LONG_PASTE_CHARS) return;
    event.preventDefault();
    if (files.length) return void takeFiles(files);
    report([add({ name: unused("pasted.txt"), size: text.length, text })].filter(Boolean));
    update();
  }

  const value = () => (attached.length ? { attachments: attached.map(({ name, text, data }) => (data === undefined ? { name, text } : { name, data })) } : {});

  return { node, button: opener, value, draft: () => [], restore: () => {}, takeFiles, takePaste };
}

function toBase64(content) {
  const all = new Uint8Array(content);
  const parts = [];
  for (let at = 0; at < all.length; at += 0x8000) parts.push(String.fromCharCode(...all.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}
