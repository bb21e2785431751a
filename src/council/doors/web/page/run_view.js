// View of one run: one event log, many views. A change requests a frame, and a frame updates every view.

import { answerView } from "./answer.js";
import { asksView } from "./asks.js";
import { announcer } from "./announcer.js";
import { draftView } from "./draft_answer.js";
import { seatsView } from "./seats.js";
import { el, setAttr, setChildren } from "./dom.js";
import { shortNames } from "./format.js";
import { allSeats } from "./minutes.js";
import { headerView } from "./header.js";
import { mapView } from "./disagreement_map.js";
import { newPlayer } from "./player.js";
import { newEventLog } from "./event_log.js";
import { rowsAt } from "./positions.js";
import { shiftsView } from "./position_shifts.js";
import { tabsView } from "./tabs.js";
import { timelineView } from "./timeline.js";

const HUES = 9;
const HISTORY_EVENTS = new Set(["phase", "closed"]); // events that change the list of runs
const POSITION_EVENTS = new Set(["phase_ended", "closed"]); // events that may change the disagreement map, beside typed replies
const POSITIONS_MS = 400; // milliseconds in which such events are answered by one request

/** `source` provides data (the server or an exported file); `follow(run, handlers)` delivers the events. */
export function runView(run, { source, follow, reconnect, canAct, openRun = () => {}, openSetup = null, notify = () => {}, now = Date.now }) {
  let log = newEventLog();
  let detail = null;
  let positions = []; // the rows of the map after each phase, as the server sent them
  let asking = 0;
  let loading = null; // the request for the report that was sent last
  let ended = false;
  let waiting = 0;
  const player = newPlayer(() => length(), () => requestUpdate());
  const context = {
    source, canAct, tone, resume, shortName, openRun, openSetup, recordOutcome,
    minutes: () => log.full,
    show: (seat, phase, quote) => seats.show(seat, phase, quote),
    focusSeat: (seat) => seats.focus(seats.focused === seat ? "" : seat),
    focused: (seat) => setAttr(node, "data-focus", seat),
    play: player,
  };
  const seats = seatsView(context);
  const map = mapView(context);
  const views = { header: headerView(context), asks: asksView(context), draft: draftView(), answer: answerView(context), timeline: timelineView(context), map, shifts: shiftsView(context), seats, tabs: tabsView(context) };
  const announcements = announcer();
  const panels = el("div", { class: "panels" }, seats.node, el("aside", { class: "side", "aria-label": "Positions" }, map.node, views.shifts.node));
  const node = el("div", { class: "run" }, views.header.node, views.asks.node, views.draft.node, views.answer.node, views.timeline.node,
    panels, views.tabs.node, announcements.node);

  /** The timeline stands above the text while it is written, and below the evidence of a run that is over. */
  function placeTimeline() {
    const timeline = views.timeline.node;
    const before = log.full.verdict ? views.tabs.node : panels;
    if (timeline.nextElementSibling === before) return;
    const focused = timeline.contains(document.activeElement) ? document.activeElement : null;
    node.insertBefore(timeline, before);
    focused?.focus({ preventScroll: true });
  }

  /** Colour class of a seat; the chair has none. */
  function tone(name) {
    const names = allSeats(log.full).filter((seat) => seat.name !== log.full.chair).map((seat) => seat.name);
    const at = names.indexOf(name);
    return at < 0 ? "chair" : `s${(at % HUES) + 1}`;
  }

  /** Short name of a seat: attacker for judge-attacker. */
  function shortName(name) {
    const names = (log.full.plan.seats || []).map((seat) => seat.name);
    return shortNames(names)[names.indexOf(name)] ?? name;
  }

  const live = () => !ended && log.full.status === "running";

  /** Active seconds, including those since the last event of a live run. */
  function length() {
    const { seconds, last } = log.full;
    return live() && last ? seconds + Math.max(0, now() / 1000 - last) : seconds;
  }

  function requestUpdate() {
    waiting ||= requestAnimationFrame(frame);
  }

  function frame() {
    waiting = 0;
    player.advance();
    const { at, playing, speed } = player.state;
    const minutes = log.minutesAt(at);
    const scene = { log, full: log.full, minutes, rows: rowsAt(positions, minutes.seq), at, playing, speed, seconds: at ?? length(), end: length(), live: live(), detail };
    for (const view of Object.values(views)) view.update(scene);
    placeTimeline();
    setAttr(panels, "data-done", scene.minutes.verdict ? "yes" : null); // show positions first only after the end, so that they do not move text that is being read
  }

  /** Load the report; only the answer to the last request counts. */
  async function load() {
    const request = (loading = {});
    const found = await source.detail(run).catch(() => null); // the events are enough to show the run
    if (request !== loading) return;
    [loading, detail] = [null, found];
    requestUpdate();
  }

  async function loadPositions() {
    asking = 0;
    positions = await source.positions(run).catch(() => positions); // the map stays as it is without a connection
    requestUpdate();
  }

  async function recordOutcome(label, note) {
    await source.recordOutcome(run, label, note);
    await load();
    notify();
  }

  async function resume() {
    await source.resume(run);
    ended = false;
    [loading, detail] = [null, null];
    reconnect();
    requestUpdate();
    notify();
  }

  const stop = follow(run, {
    since: () => log.full.seq,
    reset: () => log.clearStreams(),
    entry(entry) {
      if (entry.type !== "delta") ended = false;
      if (!log.add(entry)) return;
      announcements.onEvent(entry, log.full);
      if (entry.type === "closed") load();
      if (POSITION_EVENTS.has(entry.type) || entry.reply) asking ||= setTimeout(loadPositions, POSITIONS_MS);
      if (HISTORY_EVENTS.has(entry.type)) notify();
      requestUpdate();
    },
    async refused() {
      const error = await source.detail(run).then(() => null, (reason) => reason);
      if (error?.status !== 404) return; // what is shown stays, and the stream is opened again
      stop();
      setChildren(node, el("p", { class: "problem big", role: "alert" }, error.message));
    },
    end() {
      ended = true;
      if (!detail && !loading) load();
      clearTimeout(asking);
      loadPositions();
      requestUpdate();
    },
  });
  const ticking = setInterval(() => (live() || player.state.playing) && requestUpdate(), 500);
  requestUpdate();

  return {
    node, seats, map, player, tabs: views.tabs,
    close() {
      stop();
      clearInterval(ticking);
      clearTimeout(asking);
      cancelAnimationFrame(waiting);
      log = newEventLog();
    },
  };
}
