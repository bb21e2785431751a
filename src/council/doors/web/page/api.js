// The HTTP API. Every answer is JSON, every refusal is one line that can be shown as it is.

/** The token stands in the address once, behind the #, where no server and no log sees it. It becomes a cookie. */
export async function signIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await send("session", { token });
}

async function answered(response) {
  const text = await response.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // said below
  }
  if (response.ok && value !== null) return value;
  const words = value?.error || value?.detail;
  const error = new Error(typeof words === "string" ? words : plainWords(response.status));
  error.status = response.status;
  throw error;
}

function plainWords(status) {
  if (status === 401) return "this page is not signed in: open the address that `council serve` printed";
  return `the server answered with ${status}`;
}

async function reached(path, init) {
  try {
    return await fetch(`/api/${path}`, { credentials: "same-origin", ...init });
  } catch {
    throw new Error("the server cannot be reached: is `council serve` still running?");
  }
}

export const get = async (path) => answered(await reached(path));

export async function text(path) {
  const response = await reached(path);
  return response.ok ? response.text() : answered(response);
}

export async function send(path, body = {}, signal) {
  const headers = { "Content-Type": "application/json" };
  return answered(await reached(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

/** a=1&b=2 of what has a value. */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

const of = (run) => `runs/${encodeURIComponent(run)}`;

/** What a run view needs of the server. A file that was exported brings its own. */
export const server = {
  detail: (run) => get(of(run)),
  attempts: (run) => get(`${of(run)}/attempts`),
  packet: (run) => get(`${of(run)}/packet`),
  report: (run, format) => text(`${of(run)}/report?format=${format}`),
  reportAddress: (run, format) => `/api/${of(run)}/report?format=${format}`,
  asks: (run) => get(`${of(run)}/asks`),
  answer: (run, key, answer) => send(`${of(run)}/asks/${key.split("/").map(encodeURIComponent).join("/")}`, { answer }),
  cancel: (run) => send(`${of(run)}/cancel`),
  resume: (run) => send(`${of(run)}/resume`),
};
