// One event stream for all tabs. Browsers stop at six connections to a server, so eight tabs with a stream each would lock
// the API out. The tab that holds a lock leads: it streams whatever any tab watches and tells the others.
// Where locks or channels are missing, each tab leads itself.

import { TYPES } from "./fold.js";

const NAME = "council-stream";
const PATIENCE = 1500; // milliseconds until a stream that was refused is tried again
const SOON = 30; // milliseconds in which several tabs that ask at once become one stream

const watched = new Map(); // run → {since(), entry(e), reset(), end()} of this tab
const wanted = new Map(); // tab → {run: since}, known to the leader
const me = Math.random().toString(36).slice(2);
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(NAME) : null;
let leads = false;

export function watch(run, handlers) {
  watched.set(run, handlers);
  tellWants();
  return () => {
    watched.delete(run);
    tellWants();
  };
}

/** Ask for a run once more: it had ended and was resumed. */
export const again = () => tellWants(true);

export function begin() {
  if (!channel || !navigator.locks) return lead();
  channel.onmessage = ({ data }) => HEARD[data.kind]?.(data);
  addEventListener("pagehide", () => channel.postMessage({ kind: "wants", tab: me, runs: {} }));
  addEventListener("pageshow", (event) => event.persisted && tellWants(true));
  navigator.locks.request(NAME, () => {
    lead();
    return new Promise(() => {}); // held until the tab is gone
  });
}

const wants = () => Object.fromEntries([...watched].map(([run, handlers]) => [run, handlers.since()]));

function tellWants(anew = false) {
  const told = { kind: "wants", tab: me, runs: wants(), anew };
  if (leads) hearWants(told);
  else channel?.postMessage(told);
}

/** A run may have been asked for by the beginning of its name. */
const watching = (run) => watched.get(run) || [...watched].find(([name]) => run.startsWith(name))?.[1];

const HEARD = {
  who: () => tellWants(),
  wants: (told) => leads && hearWants(told),
  entry: ({ run, entry }) => watching(run)?.entry(entry),
  reset: ({ runs }) => runs.forEach((run) => watching(run)?.reset()),
  refused: ({ runs }) => runs.forEach((run) => watching(run)?.refused()),
  end: ({ run }) => watching(run)?.end(),
};

function toAll(message) {
  HEARD[message.kind](message);
  if (wanted.size > 1 || !wanted.has(me)) channel?.postMessage(message);
}

// The leader

let source = null;
let timer = 0;
const carried = new Map(); // run → the last event the open stream has told of it

function lead() {
  leads = true;
  channel?.postMessage({ kind: "who" });
  tellWants();
}

function hearWants({ tab, runs, anew }) {
  if (Object.keys(runs).length) wanted.set(tab, runs);
  else wanted.delete(tab);
  const missing = Object.entries(runs).some(([run, since]) => !carried.has(run) || since < carried.get(run));
  if (anew || missing) timer ||= setTimeout(open, SOON);
  else if (!wanted.size) close();
}

function close() {
  source?.close();
  source = null;
  carried.clear();
}

/** Each run from where the tab that knows least of it has come to. */
function least() {
  const found = new Map();
  for (const [run, since] of [...wanted.values()].flatMap(Object.entries)) found.set(run, Math.min(found.get(run) ?? since, since));
  return found;
}

function open() {
  timer = 0;
  close();
  for (const [run, since] of least()) carried.set(run, since);
  const runs = [...carried.keys()];
  if (!runs.length) return;
  const asked = runs.map((run) => `run=${encodeURIComponent(run)}`).join("&");
  const since = encodeURIComponent([...carried].map(([run, seq]) => `${run}:${seq}`).join(","));
  const mine = new EventSource(`/api/stream?${asked}&since=${since}`);
  source = mine;
  mine.onopen = () => toAll({ kind: "reset", runs });
  mine.onerror = () => mine.readyState === EventSource.CLOSED && refused(mine, runs);
  for (const type of TYPES) mine.addEventListener(type, ({ data }) => told(JSON.parse(data)));
  mine.addEventListener("end", ({ data }) => ended(JSON.parse(data || "{}").run));
}

/** The server answered, but with no stream: who watches may find out why and leave; else it is tried again. */
function refused(mine, runs) {
  toAll({ kind: "refused", runs });
  setTimeout(() => source === mine && open(), PATIENCE);
}

function told(entry) {
  if (entry.seq) {
    carried.set(entry.run, entry.seq);
    for (const runs of wanted.values()) if (entry.run in runs) runs[entry.run] = Math.max(runs[entry.run], entry.seq);
  }
  toAll({ kind: "entry", run: entry.run, entry });
}

function ended(run) {
  for (const one of run ? [run] : [...carried.keys()]) {
    carried.delete(one);
    for (const runs of wanted.values()) delete runs[one];
    toAll({ kind: "end", run: one });
  }
  if (!carried.size) close();
}
