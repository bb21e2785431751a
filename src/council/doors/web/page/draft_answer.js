// The answer while the chair writes it, in the place of the answer card.

import { el, setAttr, setChildren, setText } from "./dom.js";
import { liveText } from "./live_text.js";

const ANSWER_FIELDS = ["answer", "decision"]; // fields of typed replies that hold the answer

export function draftView() {
  const state = el("span", { class: "pill" });
  const text = el("div", { class: "words", tabindex: "0", role: "group", "aria-label": "Text of the answer" });
  const node = el("section", { class: "draft card", "aria-labelledby": "draft-title", hidden: true },
    el("header", { class: "answer-head" }, el("h2", { class: "eyebrow", id: "draft-title" }, "Answer"), state), text);
  let shown = ""; // key of the statement
  let live = null;

  function update({ minutes }) {
    const isRunning = minutes.status === "running"; // a resumed run has the verdict of its first end
    const [key, stream] = (isRunning && findStream(minutes)) || [];
    if (stream) {
      if (key !== shown) begin(key);
      live.update(stream);
    } else if (live && !(isRunning && isStated(minutes, shown))) end();
    setText(state, stream ? `${stream.seat} is writing` : "written, being checked");
    setAttr(state, "data-tone", stream ? "live" : "");
    if (live) node.hidden = live.isEmpty;
  }

  function begin(key) {
    end();
    shown = key;
    live = liveText({ top: 3, only: ANSWER_FIELDS });
    setChildren(text, live.node);
  }

  function end() {
    live?.close();
    [live, shown] = [null, ""];
    node.hidden = true;
  }

  return { node, update };
}

/** Return the key and the stream of the chair, or of the only seat of a phase. */
function findStream(m) {
  const calls = new Map((m.plan.phases || []).map((phase) => [phase.name, phase.calls]));
  return Object.entries(m.live).find(([, stream]) => stream.seat === m.chair || calls.get(m.seats[stream.seat]?.phase) === 1);
}

const isStated = (m, key) => Object.values(m.phases).some((phase) => Object.values(phase.seats || {}).some((one) => one.said && one.key === key));
