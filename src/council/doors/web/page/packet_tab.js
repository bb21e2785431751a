// Receipt of the packet: the files and attachments that were sent, and the skipped files with the reason.

import { bytes, count, number } from "./format.js";
import { button, el, changeDetector, setChildren } from "./dom.js";

export function packetTab(context) {
  const node = el("div", {});
  const isNew = changeDetector();

  function update({ full }) {
    if (isNew(full.run, full.plan)) setChildren(node, receipt(full.plan.packet || {}), attachments(full.plan.attachments || []), dossier(full.run));
  }

  function dossier(run) {
    if (!context.source.packet) return null;
    const text = el("div", {});
    const show = button("Show the packet as sent", async () => {
      show.disabled = true;
      try {
        const value = await context.source.packet(run);
        setChildren(text, pre(value.dossier ?? value.text ?? JSON.stringify(value, null, 2)));
      } catch (error) {
        setChildren(text, el("p", { class: "problem", role: "alert" }, error.message));
      }
      show.disabled = false;
    });
    return el("div", {}, show, text);
  }

  return { node, update };
}

const pre = (value) => el("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** List images and PDFs with the seats that could not see them. */
function attachments(rows) {
  if (!rows.length) return null;
  const size = (one) => (one.pages ? count(one.pages, "page") : `${number(one.width)} × ${number(one.height)} pixels`);
  const unseen = (one) => one.unseen_by.length > 0 && el("span", { class: "tag", "data-tone": "bad" }, `${one.has_text ? "pages not" : "not"} seen by ${one.unseen_by.map((by) => by.seat).join(", ")}`);
  return [el("h3", {}, "Images and PDFs"), el("ul", { class: "files attachments" }, rows.map((one) => el("li", {}, el("code", {}, one.path), el("span", { class: "soft" }, ` ${one.media_type}, ${size(one)}, ${bytes(one.bytes)}`), unseen(one))))];
}

function receipt(packet) {
  const files = packet.files || [];
  const skipped = packet.skipped || [];
  const holes = new Set(packet.holes || []);
  const summary = files.length || skipped.length ? `${count(files.length, "file")}, ${bytes(packet.bytes || 0)}, about ${number(packet.tokens || 0)} tokens were sent to every seat.` : packet.attachments?.length ? "" : "No files were sent; the seats received only the question.";
  return [
    summary && el("p", {}, summary),
    files.length > 0 && el("ul", { class: "files" }, files.map((file) => el("li", {}, el("code", {}, typeof file === "string" ? file : file.path)))),
    skipped.length > 0 && el("h3", {}, `Skipped (${skipped.length})`),
    skipped.length > 0 && el("ul", { class: "files" }, skipped.map((one) => el("li", {}, el("code", {}, one.path), el("span", { class: "soft" }, ` ${one.why}`), holes.has(one.path) && el("span", { class: "tag", "data-tone": "bad" }, "not seen by the judges")))),
  ];
}
