// A run as it is seen: one fold, many views. Every change asks for a frame, and a frame tells each view the scene.

import { answerView } from "./answer.js";
import { asksView } from "./asks.js";
import { announcer } from "./announce.js";
import { benchView } from "./bench.js";
import { el, mark, refill, say } from "./dom.js";
import { briefly } from "./words.js";
import { everyone } from "./fold.js";
import { headerView } from "./header.js";
import { mapView } from "./map.js";
import { newPlayer } from "./player.js";
import { newRecord } from "./record.js";
import { shiftsView } from "./shifts.js";
import { tabsView } from "./tabs.js";
import { timelineView } from "./timeline.js";

const HUES = 9;
const TELLING = new Set(["phase", "closed"]); // after these the history looks different

/** `source` answers for the run (the server, or an exported file); `follow(run, handlers)` brings its events. */
export function runView(run, { source, follow, again, canAct, notify = () => {} }) {
  let record = newRecord();
  let detail = null;
  let ended = false;
  let waiting = 0;
  const player = newPlayer(() => length(), () => due());
  const context = {
    source, canAct, tone, resume, brief,
    minutes: () => record.full,
    show: (seat, phase, quote) => bench.show(seat, phase, quote),
    focusSeat: (seat) => bench.focus(bench.focused === seat ? "" : seat),
    focused: (seat) => mark(node, "data-focus", seat),
    play: player,
  };
  const bench = benchView(context);
  const map = mapView(context);
  const views = { header: headerView(context), asks: asksView(context), answer: answerView(context), timeline: timelineView(context), map, shifts: shiftsView(context), bench, tabs: tabsView(context) };
  const tell = announcer();
  const fetching = el("p", { class: "fetching", role: "status", hidden: true });
  const hall = el("div", { class: "hall" }, bench.node, el("aside", { class: "side", "aria-label": "Where they stand" }, map.node, views.shifts.node));
  const node = el("div", { class: "run" }, views.header.node, fetching, views.asks.node, views.answer.node, views.timeline.node,
    hall, views.tabs.node, tell.node);

  /** Seats keep their colour however the page changes; the chair has none. */
  function tone(name) {
    const names = everyone(record.full).filter((seat) => seat !== record.full.chair).map((seat) => seat.name);
    const at = names.indexOf(name);
    return at < 0 ? "chair" : `s${(at % HUES) + 1}`;
  }

  /** A seat as it is called where there is little room: judge-attacker is attacker beside other judges. */
  function brief(name) {
    const names = (record.full.plan.seats || []).map((seat) => seat.name);
    return briefly(names)[names.indexOf(name)] ?? name;
  }

  const live = () => !ended && record.full.status === "running";

  /** Seconds at work, with those since the last event while it is at work. */
  function length() {
    const { seconds, last } = record.full;
    return live() && last ? seconds + Math.max(0, Date.now() / 1000 - last) : seconds;
  }

  function due() {
    waiting ||= requestAnimationFrame(frame);
  }

  function frame() {
    waiting = 0;
    player.move();
    const { at, playing, speed } = player.state;
    const scene = { record, full: record.full, minutes: record.minutesAt(at), at, playing, speed, seconds: at ?? length(), end: length(), live: live(), detail };
    for (const view of Object.values(views)) view.update(scene);
    tellFetching(record.full.fetching);
    mark(hall, "data-done", scene.minutes.verdict ? "yes" : null); // then where they stand comes first, and does not push what is being read
  }

  function tellFetching(event) {
    fetching.hidden = !event;
    if (event) say(fetching, `Fetching ${event.what}: ${Math.round((100 * event.done) / Math.max(1, event.total))} %`);
  }

  async function load() {
    try {
      detail = await source.detail(run);
    } catch {
      detail = null; // the events alone tell the run; what is missing stays unsaid until the next try
    }
    due();
  }

  async function resume() {
    await source.resume(run);
    ended = false;
    detail = null;
    again();
    due();
    notify();
  }

  const stop = follow(run, {
    since: () => record.full.seq,
    reset: () => record.hush(),
    entry(entry) {
      if (entry.type !== "delta") ended = false;
      if (!record.take(entry)) return;
      tell.hear(entry, record.full);
      if (entry.type === "closed") load();
      if (TELLING.has(entry.type)) notify();
      due();
    },
    async refused() {
      const error = await source.detail(run).then(() => null, (why) => why);
      if (!error?.status) return;
      stop();
      refill(node, el("p", { class: "problem big", role: "alert" }, error.message));
    },
    end() {
      ended = true;
      if (!detail) load();
      due();
    },
  });
  const ticking = setInterval(() => (live() || player.state.playing) && due(), 500);
  due();

  return {
    node, bench, map, player, tabs: views.tabs,
    close() {
      stop();
      clearInterval(ticking);
      cancelAnimationFrame(waiting);
      record = newRecord();
    },
  };
}
