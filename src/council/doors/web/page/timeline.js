// Timeline of phases, as one strip that opens to a row for each seat. Over it lies the replay slider: a native range input,
// for dragging, arrow keys and screen readers.

import { button, el, setAttr, changeDetector, setChildren, setText } from "./dom.js";
import { clock, formatState, formatTrouble, OK } from "./format.js";
import { countAnswers, listSteps, phasesOf, rounds, shownSeats } from "./minutes.js";

const SPEEDS = [1, 4, 16];

export function timelineView(context) {
  const play = button("Play", () => context.play.toggle(), { class: "play", "aria-pressed": "false" });
  const speeds = SPEEDS.map((speed) => button(`${speed}×`, () => context.play.setSpeed(speed), { "aria-pressed": "false", "data-speed": speed, "aria-label": `${speed} times speed` }));
  const now = el("span", { class: "now" });
  const back = button("To the end", () => context.play.seek(null), { class: "quiet", hidden: true });
  const toggle = button("Seats", () => setOpen(!isOpen), { class: "quiet opens", "aria-expanded": "false", title: "Show a row for each seat" });
  const labels = el("div", { class: "labels" });
  const bands = el("div", { class: "bands", "aria-hidden": "true" });
  const rows = el("div", { class: "rows", "aria-hidden": "true" });
  const slider = el("input", { type: "range", min: "0", max: "1", step: "any", value: "1", "aria-label": "Position in the run" });
  const plot = el("div", { class: "plot" }, bands, rows, slider);
  const segments = el("span", { class: "segments" }, speeds);
  const node = el("section", { class: "timeline", "aria-label": "Timeline" },
    el("div", { class: "strip", role: "group", "aria-label": "Replay" }, play, segments, el("div", { class: "chart" }, labels, plot), now, back, toggle), legend());
  let isOpen = false;
  const isNew = changeDetector();
  const seatsNew = changeDetector();
  slider.addEventListener("input", () => context.play.seek(Number(slider.value)));
  slider.addEventListener("keydown", onKeydown);

  function setOpen(on) {
    isOpen = on;
    setAttr(node, "data-open", on ? "yes" : null);
    setAttr(toggle, "aria-expanded", String(on));
    setText(toggle, on ? "Hide seats" : "Seats");
  }

  setOpen(false);

  /** Arrow keys move by a sixtieth of the run. */
  function onKeydown(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = Number(slider.value) + step * Math.max(0.25, Number(slider.max) / 60);
    context.play.seek(Math.max(0, Math.min(Number(slider.max), to)));
  }

  function update(scene) {
    const { full, at, seconds, end } = scene;
    const seats = shownSeats(full);
    if (seatsNew(seats.length)) setChildren(labels, el("span", { class: "corner" }), seats.map((seat) => labelOf(seat)));
    const moving = scene.live && at === null;
    if (isNew(full.seq, seats.length, moving ? Math.floor(end * 2) : end)) draw(full, seats, end);
    slider.min = String(startOf(full));
    slider.max = String(end || 1);
    slider.value = String(at === null ? end || 1 : at);
    slider.setAttribute("aria-valuetext", valueText(scene));
    setText(now, `${clock(seconds)} / ${clock(end)}`);
    setText(play, scene.playing ? "Pause" : "Play");
    setAttr(play, "aria-pressed", String(scene.playing));
    for (const one of speeds) setAttr(one, "aria-pressed", String(Number(one.dataset.speed) === scene.speed));
    back.hidden = at === null;
    setText(back, scene.live ? "Back to live" : "To the end");
    setAttr(node, "data-at", at === null ? "end" : "past");
    setAttr(node, "data-live", moving ? "yes" : null);
  }

  const labelOf = (seat) => button(seat.name, () => context.focusSeat(seat.name), { class: `label ${context.tone(seat.name)}`, title: `Focus ${seat.name}` });

  function draw(full, seats, end) {
    plot.style.setProperty("--begin", String(startOf(full)));
    plot.style.setProperty("--end", String(Math.max(startOf(full) + 0.001, end)));
    setChildren(bands, rounds(full).map((phase) => band(phase, end)));
    setChildren(rows, seats.map((seat) => row(full, seat, end)));
    setAttr(node, "data-rows", seats.length > 24 ? "tiny" : seats.length > 10 ? "small" : null);
  }

  function row(full, seat, end) {
    const steps = listSteps(full).filter((step) => step.seat === seat.name || full.seats[step.seat].host === seat.name);
    return el("div", { class: `row ${context.tone(seat.name)}` }, steps.map((step) => bar(full, step, seat, end)));
  }

  return { node, update };
}

/** Start of the first phase; the wait for the worker is not drawn. */
const startOf = (full) => phasesOf(full)[0]?.begin || 0;

const timeRange = (from, to) => ({ "--from": String(from), "--to": String(to) });

function band(phase, end) {
  return el("div", { class: "band", style: timeRange(phase.begin, phase.end ?? end) }, el("span", {}, phase.name));
}

function bar(full, step, seat, end) {
  const ended = step.end !== undefined;
  const kind = !ended ? "open" : OK.has(step.state) || step.state === "truncated" ? "ok" : step.state === "stopped" ? "stopped" : "failed";
  const apart = step.seat !== seat.name || full.phases[step.phase].private;
  return [
    el("div", { class: `span ${kind}${apart ? " apart" : ""}`, style: timeRange(step.begin, step.end ?? end) }),
    step.faults?.map(([at, fault]) => el("span", { class: "mark retry", style: timeRange(at, at), title: formatTrouble(full.events.get(fault)) })),
    ended && kind !== "stopped" && !apart && el("span", { class: `mark ${kind}`, style: timeRange(step.end, step.end), title: formatState(step.state) }),
  ];
}

function valueText({ minutes, seconds }) {
  const phase = rounds(minutes).at(-1);
  const { asked, answered } = countAnswers(phase ?? {});
  const where = phase ? ` in ${phase.name}, ${answered} of ${asked} answered` : "";
  return `${clock(seconds)}${where}`;
}

const legend = () =>
  el("p", { class: "legend", "aria-hidden": "true" },
    el("span", {}, el("i", { class: "mark ok" }), "answered"), el("span", {}, el("i", { class: "mark retry" }), "retry"), el("span", {}, el("i", { class: "mark failed" }), "absent"),
    el("span", { class: "hint" }, "drag to replay"));
