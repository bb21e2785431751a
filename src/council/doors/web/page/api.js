// HTTP API client: the token, the state of the connection, requests and streams. Every error is one line that can be shown as it is.

const TOKEN = "council-token"; // in the storage of the tab: a cookie would be sent to every port of this machine
const TAB_MS = 400; // milliseconds to wait for the token of another tab
const RETRY_MS = 2000; // milliseconds between attempts to reach the server

const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel(TOKEN) : null;
let token = "";

/** Take the token from the URL fragment, which is never sent to a server or logged, from this tab or from another one. */
export async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const fresh = given.get("token") || (given.has("code") ? await redeem(given.get("code")) : "");
  if (fresh || given.has("code")) {
    const run = given.get("run");
    history.replaceState(null, "", location.pathname + location.search + (run ? `#/run/${encodeURIComponent(run)}` : ""));
  }
  keep(fresh || sessionStorage.getItem(TOKEN) || (await askTabs()));
  if (!tabs) return;
  tabs.onmessage = ({ data }) => {
    if (data.kind === "ask" && token) tabs.postMessage({ kind: "token", token });
    if (data.kind === "token" && data.token !== token && connection.state === "signed-out") {
      keep(data.token);
      ping();
    }
  };
  if (fresh) tabs.postMessage({ kind: "token", token }); // for tabs whose token has ended
}

/** Exchange the one-time code of `council serve --open` for the token. */
async function redeem(code) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/api/session", { method: "POST", credentials: "omit", headers, body: JSON.stringify({ code }) }).catch(() => null);
  return response?.ok ? (await response.json()).token : "";
}

function keep(value) {
  token = value;
  if (value) sessionStorage.setItem(TOKEN, value);
}

function askTabs() {
  if (!tabs) return "";
  return new Promise((done) => {
    setTimeout(done, TAB_MS, "");
    tabs.onmessage = ({ data }) => data.kind === "token" && done(data.token);
    tabs.postMessage({ kind: "ask" });
  });
}

// The connection

const listeners = new Set();
let timer = 0;

/** `state` is up, down or signed-out; `since` is when it was last up, in milliseconds. */
export const connection = { state: "up", since: 0, listen: (listener) => listeners.add(listener), now: () => (connection.state === "up" ? Date.now() : connection.since) };

function setState(state) {
  if (state === "down") timer ||= setTimeout(ping, RETRY_MS);
  if (state === connection.state) return;
  if (connection.state === "up") connection.since = Date.now();
  connection.state = state;
  for (const listener of listeners) listener(state);
}

function ping() {
  timer = 0;
  request("roots").catch(() => {}); // the state tells the result
}

async function request(path, init = {}) {
  const headers = { ...init.headers, Authorization: `Bearer ${token}` };
  let response;
  try {
    response = await fetch(`/api/${path}`, { ...init, credentials: "omit", headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    setState("down");
    throw new Error("the server cannot be reached: is `council serve` still running?");
  }
  setState(response.status === 401 ? "signed-out" : "up");
  return response;
}

/** Read an event stream: `EventSource` cannot send a token. Return a function that closes it. */
export function openStream(path, { opened, event, closed }) {
  const stop = new AbortController();
  const read = async () => {
    const response = await request(path, { signal: stop.signal });
    if (!response.ok) return response.status;
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done || stop.signal.aborted) return 0;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) stop.signal.aborted || deliver(block, event);
    }
  };
  read().catch(() => 0).then((status) => stop.signal.aborted || closed(status));
  return () => stop.abort();
}

function deliver(block, event) {
  const lines = block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).replace(/^ /, "")]);
  const data = lines.filter(([name]) => name === "data").map(([, value]) => value);
  if (data.length) event(lines.find(([name]) => name === "event")?.[1] || "message", data.join("\n"));
}

// Requests

async function parseResponse(response) {
  const text = await response.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // handled below
  }
  if (response.ok && (value !== null || response.status === 204)) return value;
  const message = value?.error?.message;
  const error = new Error(typeof message === "string" ? message : statusMessage(response.status));
  error.status = response.status;
  error.code = value?.error?.code;
  throw error;
}

function statusMessage(status) {
  if (status === 401) return "this page is not signed in: open the address that `council serve` printed";
  return `the server answered with status ${status}`;
}

export const get = async (path) => parseResponse(await request(path));

export async function text(path) {
  const response = await request(path);
  return response.ok ? response.text() : parseResponse(response);
}

export async function send(path, body = {}, signal, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  return parseResponse(await request(path, { method, headers, body: JSON.stringify(body), signal }));
}

export const remove = async (path) => parseResponse(await request(path, { method: "DELETE" }));

/** Download a file under a name. A link could not send the token. */
export async function save(path, name) {
  const response = await request(path);
  if (!response.ok) return parseResponse(response);
  const address = URL.createObjectURL(await response.blob());
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return undefined;
}

/** Format a query string from the values that are set. */
export function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return set.length ? `?${new URLSearchParams(set)}` : "";
}

const runPath = (run) => `runs/${encodeURIComponent(run)}`;

/** Data source of a run view. An exported file has its own. */
export const server = {
  detail: (run) => get(runPath(run)),
  positions: (run) => get(`${runPath(run)}/positions`),
  members: () => get("members"),
  start: (request) => send("runs", request),
  fork: (run, request) => send(`${runPath(run)}/fork`, request),
  attempts: (run) => get(`${runPath(run)}/attempts`),
  packet: (run) => get(`${runPath(run)}/packet`),
  report: (run, format) => text(`${runPath(run)}/report?format=${format}`),
  save: (run, format, name) => save(`${runPath(run)}/report?format=${format}`, name),
  asks: (run) => get(`${runPath(run)}/asks`),
  answer: (run, key, answer) => send(`${runPath(run)}/asks/${key.split("/").map(encodeURIComponent).join("/")}`, { answer }),
  cancel: (run) => send(`${runPath(run)}/cancel`),
  resume: (run) => send(`${runPath(run)}/resume`),
  recordOutcome: (run, label, note) => send(`${runPath(run)}/outcome`, { label, note }),
  rename: (run, title) => send(runPath(run), { title }, undefined, "PATCH"),
  remove: (run) => remove(runPath(run)),
};
