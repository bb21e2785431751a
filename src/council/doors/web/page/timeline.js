// Phases and seats over time. It is the replay's slider too: a native range lies over the plot, so that it can be dragged,
// stepped with the arrow keys and read out.

import { button, el, mark, memory, refill, say } from "./dom.js";
import { clock, stateInWords, OK } from "./words.js";
import { everyone, hostOf, isApart, rounds } from "./fold.js";

const SPEEDS = [1, 4, 16];

export function timelineView(context) {
  const play = button("Play", () => context.play.toggle(), { class: "play", "aria-pressed": "false" });
  const speeds = SPEEDS.map((speed) => button(`${speed}×`, () => context.play.pace(speed), { "aria-pressed": "false", "data-speed": speed, "aria-label": `${speed} times as fast` }));
  const now = el("span", { class: "now" });
  const back = button("To the end", () => context.play.seek(null), { class: "quiet", hidden: true });
  const labels = el("div", { class: "labels" });
  const bands = el("div", { class: "bands", "aria-hidden": "true" });
  const rows = el("div", { class: "rows", "aria-hidden": "true" });
  const slider = el("input", { type: "range", min: "0", max: "1", step: "any", value: "1", "aria-label": "Moment of the run" });
  const plot = el("div", { class: "plot" }, bands, rows, slider);
  const node = el("section", { class: "timeline card", "aria-labelledby": "timeline-title" },
    el("header", { class: "bar" }, el("h2", { class: "eyebrow", id: "timeline-title" }, "Timeline"),
      el("div", { class: "transport", role: "group", "aria-label": "Replay" }, play, el("span", { class: "segments" }, speeds), now, back)),
    el("div", { class: "chart" }, labels, plot), legend());
  const isNew = memory();
  const seatsNew = memory();
  slider.addEventListener("input", () => context.play.seek(Number(slider.value)));
  slider.addEventListener("keydown", stepped);

  /** A step of the arrow keys is a second, a page is a phase. */
  function stepped(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = Number(slider.value) + step * Math.max(0.25, Number(slider.max) / 60);
    context.play.seek(Math.max(0, Math.min(Number(slider.max), to)));
  }

  function update(scene) {
    const { full, at, seconds, end } = scene;
    const seats = everyone(full).filter((seat) => !hostOf(full, seat.name) && (seat.model || seat.phase));
    if (seatsNew(seats.length)) refill(labels, el("span", { class: "corner" }), seats.map((seat) => labelOf(seat)));
    const moving = scene.live && at === null;
    if (isNew(full.seq, seats.length, moving ? Math.floor(end * 2) : end)) draw(full, seats, end);
    slider.min = String(beginning(full));
    slider.max = String(end || 1);
    slider.value = String(at === null ? end || 1 : at);
    slider.setAttribute("aria-valuetext", valueText(scene));
    say(now, `${clock(seconds)} / ${clock(end)}`);
    say(play, scene.playing ? "Pause" : "Play");
    mark(play, "aria-pressed", String(scene.playing));
    for (const one of speeds) mark(one, "aria-pressed", String(Number(one.dataset.speed) === scene.speed));
    back.hidden = at === null;
    say(back, scene.live ? "Back to live" : "To the end");
    mark(node, "data-at", at === null ? "end" : "past");
  }

  const labelOf = (seat) => button(seat.name, () => context.focusSeat(seat.name), { class: `label ${context.tone(seat.name)}`, title: `Focus ${seat.name}` });

  function draw(full, seats, end) {
    plot.style.setProperty("--begin", String(beginning(full)));
    plot.style.setProperty("--end", String(Math.max(beginning(full) + 0.001, end)));
    refill(bands, rounds(full).map((phase) => band(phase, end)));
    refill(rows, seats.map((seat) => row(full, seat, end)));
    mark(node, "data-rows", seats.length > 24 ? "tiny" : seats.length > 10 ? "small" : null);
  }

  function row(full, seat, end) {
    const spans = full.spans.filter((span) => span.seat === seat.name || hostOf(full, span.seat) === seat.name);
    return el("div", { class: `row ${context.tone(seat.name)}` }, spans.map((span) => bar(full, span, seat, end)));
  }

  return { node, update };
}

/** The time a run waited for its worker is not drawn. */
const beginning = (full) => full.phases.values().next().value?.from || 0;

const along = (from, to) => ({ "--from": String(from), "--to": String(to) });

function band(phase, end) {
  return el("div", { class: "band", style: along(phase.from, phase.to ?? end) }, el("span", {}, phase.name));
}

function bar(full, span, seat, end) {
  const ended = span.to !== null;
  const kind = !ended ? "open" : OK.has(span.state) || span.state === "truncated" ? "ok" : span.state === "stopped" ? "stopped" : "failed";
  const apart = span.seat !== seat.name || isApart(full, span.phase);
  return [
    el("div", { class: `span ${kind}${apart ? " apart" : ""}`, style: along(span.from, span.to ?? end) }),
    span.marks.map((one) => el("span", { class: "mark retry", style: along(one.t, one.t), title: one.text })),
    ended && kind !== "stopped" && !apart && el("span", { class: `mark ${kind}`, style: along(span.to, span.to), title: stateInWords(span.state) }),
  ];
}

function valueText({ minutes, seconds }) {
  const phase = rounds(minutes).at(-1);
  const where = phase ? ` in ${phase.name}, ${phase.said.size} of ${phase.asked.length} heard` : "";
  return `${clock(seconds)}${where}`;
}

const legend = () =>
  el("p", { class: "legend", "aria-hidden": "true" },
    el("span", {}, el("i", { class: "mark ok" }), "said"), el("span", {}, el("i", { class: "mark retry" }), "retry"), el("span", {}, el("i", { class: "mark failed" }), "absent"),
    el("span", { class: "hint" }, "drag to replay"));
