// One event stream for all tabs. Browsers allow six connections per server, so a stream in each of eight tabs would block
// the API. The tab that holds a lock is the leader: it streams every watched run and forwards the events to the others.
// Without locks or channels, each tab is its own leader.

import { openStream } from "./api.js";

const NAME = "council-stream";
const RETRY_MS = 1000; // milliseconds before a lost or refused stream is opened again
const BATCH_MS = 30; // milliseconds in which requests of several tabs are merged

const watched = new Map(); // run → {since(), entry(e), reset(), end()} of this tab
const wanted = new Map(); // tab → {run: since}, only in the leader
const me = Math.random().toString(36).slice(2);
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(NAME) : null;
let isLeader = false;

export function watch(run, handlers) {
  watched.set(run, handlers);
  sendWants();
  return () => {
    watched.delete(run);
    sendWants();
  };
}

/** Request the runs again, after one was resumed. */
export const reconnect = () => sendWants(true);

export function connect() {
  if (!channel || !navigator.locks) return becomeLeader();
  channel.onmessage = ({ data }) => HANDLERS[data.kind]?.(data);
  addEventListener("pagehide", () => channel.postMessage({ kind: "wants", tab: me, runs: {} }));
  addEventListener("pageshow", (event) => event.persisted && sendWants(true));
  navigator.locks.request(NAME, () => {
    becomeLeader();
    return new Promise(() => {}); // hold the lock until the tab closes
  });
}

const wants = () => Object.fromEntries([...watched].map(([run, handlers]) => [run, handlers.since()]));

function sendWants(force = false) {
  const message = { kind: "wants", tab: me, runs: wants(), force };
  if (isLeader) receiveWants(message);
  else channel?.postMessage(message);
}

/** Return the handlers of a run; it may be watched under a prefix of its id. */
const handlersOf = (run) => watched.get(run) || [...watched].find(([name]) => run.startsWith(name))?.[1];

/** Ignore what is ahead of this tab, text before its first event too: the stream is about to be opened again from its position. */
function receiveEntry(handlers, entry) {
  if (!handlers || (entry.seq ?? 0) > handlers.since() + 1 || (entry.type === "delta" && !handlers.since())) return;
  handlers.entry(entry);
}

const HANDLERS = {
  who: () => sendWants(),
  wants: (message) => isLeader && receiveWants(message),
  entry: ({ run, entry }) => receiveEntry(handlersOf(run), entry),
  reset: ({ runs }) => runs.forEach((run) => handlersOf(run)?.reset()),
  refused: ({ runs }) => runs.forEach((run) => handlersOf(run)?.refused()),
  end: ({ run }) => handlersOf(run)?.end(),
};

function broadcast(message) {
  HANDLERS[message.kind](message);
  if (wanted.size > 1 || !wanted.has(me)) channel?.postMessage(message);
}

// The leader

let source = null;
let timer = 0;
const positions = new Map(); // run → last event of the open stream

function becomeLeader() {
  isLeader = true;
  channel?.postMessage({ kind: "who" });
  sendWants();
}

function receiveWants({ tab, runs, force }) {
  if (Object.keys(runs).length) wanted.set(tab, runs);
  else wanted.delete(tab);
  const missing = Object.entries(runs).some(([run, since]) => !positions.has(run) || since < positions.get(run));
  if (force || missing) {
    close(); // an event of the old stream would move the new tab past those it has not seen
    timer ||= setTimeout(open, BATCH_MS);
  } else if (!wanted.size) close();
}

function close() {
  source?.();
  source = null;
  positions.clear();
}

/** Lowest position of each run over all tabs. */
function minPositions() {
  const found = new Map();
  for (const [run, since] of [...wanted.values()].flatMap(Object.entries)) found.set(run, Math.min(found.get(run) ?? since, since));
  return found;
}

function open() {
  timer = 0;
  close();
  for (const [run, since] of minPositions()) positions.set(run, since);
  const runs = [...positions.keys()];
  if (!runs.length) return;
  const names = runs.map((run) => `run=${encodeURIComponent(run)}`).join("&");
  const since = encodeURIComponent([...positions].map(([run, seq]) => `${run}:${seq}`).join(","));
  const mine = openStream(`stream?patches=true&${names}&since=${since}`, {
    opened: () => broadcast({ kind: "reset", runs }),
    event: (type, data) => (type === "end" ? onEnd(JSON.parse(data).run) : onEvent(JSON.parse(data))),
    closed: (status) => onClosed(mine, runs, status),
  });
  source = mine;
}

/** The stream is lost, or the server refused it: then the views check why. Open it again. */
function onClosed(mine, runs, status) {
  if (status) broadcast({ kind: "refused", runs });
  setTimeout(() => source === mine && open(), RETRY_MS);
}

function onEvent(entry) {
  if (entry.seq) {
    positions.set(entry.run, entry.seq);
    for (const runs of wanted.values()) if (entry.run in runs) runs[entry.run] = Math.max(runs[entry.run], entry.seq);
  }
  broadcast({ kind: "entry", run: entry.run, entry });
}

function onEnd(run) {
  for (const one of run ? [run] : [...positions.keys()]) {
    positions.delete(one);
    for (const runs of wanted.values()) delete runs[one];
    broadcast({ kind: "end", run: one });
  }
  if (!positions.size) close();
}
