// HTTP API client. Every error is one line that can be shown as it is.

/** Exchange the token in the URL fragment for a cookie. A fragment is never sent to a server or logged. */
export async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (!token) return;
  const run = given.get("run");
  history.replaceState(null, "", location.pathname + location.search + (run ? `#/run/${encodeURIComponent(run)}` : ""));
  await send("session", { token });
}

async function parseResponse(response) {
  const text = await response.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // handled below
  }
  if (response.ok && value !== null) return value;
  const message = value?.error || value?.detail;
  const error = new Error(typeof message === "string" ? message : statusMessage(response.status));
  error.status = response.status;
  throw error;
}

function statusMessage(status) {
  if (status === 401) return "this page is not signed in: open the address that `council serve` printed";
  return `the server answered with status ${status}`;
}

async function request(path, init) {
  try {
    return await fetch(`/api/${path}`, { credentials: "same-origin", ...init });
  } catch {
    throw new Error("the server cannot be reached: is `council serve` still running?");
  }
}

export const get = async (path) => parseResponse(await request(path));

export async function text(path) {
  const response = await request(path);
  return response.ok ? response.text() : parseResponse(response);
}

export async function send(path, body = {}, signal) {
  const headers = { "Content-Type": "application/json" };
  return parseResponse(await request(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
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
  attempts: (run) => get(`${runPath(run)}/attempts`),
  packet: (run) => get(`${runPath(run)}/packet`),
  report: (run, format) => text(`${runPath(run)}/report?format=${format}`),
  reportAddress: (run, format) => `/api/${runPath(run)}/report?format=${format}`,
  asks: (run) => get(`${runPath(run)}/asks`),
  answer: (run, key, answer) => send(`${runPath(run)}/asks/${key.split("/").map(encodeURIComponent).join("/")}`, { answer }),
  cancel: (run) => send(`${runPath(run)}/cancel`),
  resume: (run) => send(`${runPath(run)}/resume`),
};
