// The receipt of what left the machine: files that were sent, and those that were left out with the reason.

import { bytes, count, number } from "./words.js";
import { button, el, memory, refill } from "./dom.js";

export function packetTab(context) {
  const node = el("div", {});
  const isNew = memory();

  function update({ full }) {
    if (isNew(full.run, full.plan)) refill(node, receipt(full.plan.packet || {}), dossier(full.run));
  }

  function dossier(run) {
    if (!context.source.packet) return null;
    const text = el("div", {});
    const show = button("Show the packet as it was sent", async () => {
      show.disabled = true;
      try {
        const value = await context.source.packet(run);
        refill(text, pre(value.dossier ?? value.text ?? JSON.stringify(value, null, 2)));
      } catch (error) {
        refill(text, el("p", { class: "problem", role: "alert" }, error.message));
      }
      show.disabled = false;
    });
    return el("div", {}, show, text);
  }

  return { node, update };
}

const pre = (said) => el("pre", { tabindex: "0" }, typeof said === "string" ? said : JSON.stringify(said, null, 2));

function receipt(packet) {
  const files = packet.files || [];
  const skipped = packet.skipped || [];
  const holes = new Set(packet.holes || []);
  const told = files.length || skipped.length ? `${count(files.length, "file")}, ${bytes(packet.bytes || 0)}, about ${number(packet.tokens || 0)} tokens went to every seat.` : "No file went along: the seats were told the question alone.";
  return [
    el("p", {}, told),
    files.length > 0 && el("ul", { class: "files" }, files.map((file) => el("li", {}, el("code", {}, typeof file === "string" ? file : file.path)))),
    skipped.length > 0 && el("h3", {}, `Left out (${skipped.length})`),
    skipped.length > 0 && el("ul", { class: "files" }, skipped.map((one) => el("li", {}, el("code", {}, one.path), el("span", { class: "soft" }, ` ${one.why}`), holes.has(one.path) && el("span", { class: "tag", "data-tone": "bad" }, "not seen by the judges")))),
  ];
}
