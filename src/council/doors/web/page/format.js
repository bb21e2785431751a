// Format numbers, times and states. The texts of the states match the terminal and the report.

const STATES = {
  waiting: "waiting",
  asked: "asked",
  writing: "writing",
  ok: "answered",
  ok_repaired: "answered after a repair turn",
  in_doubt: "no complete answer arrived, and it may have been billed",
  degenerate: "its answer was empty, repetitive or a placeholder",
  truncated: "its answer was cut off at its length limit",
  refused: "it declined to answer",
  blind: "it had files to read but cited none",
  timed_out: "it ran out of time",
  "failed(net)": "it could not be reached",
  "failed(rate)": "it was still rate-limited after all retries",
  "failed(quota)": "its account has no credit or quota left",
  "failed(overload)": "it was overloaded",
  "failed(server)": "its server had an error",
  "failed(schema)": "its answer did not match the schema",
  "failed(size)": "the prompt did not fit its context window",
  "failed(model)": "there is no such model",
  "failed(auth)": "its key or login was refused",
  "failed(endpoint)": "its base_url does not look like a model API",
  "failed(parameter)": "it rejected a request parameter",
  "failed(member)": "its code failed",
  "failed(script)": "its script made it fail",
  "failed(flood)": "its response or answer was larger than the limit",
  "skipped(budget)": "the budget did not cover it",
  "skipped(cancel)": "the run was stopped before its turn",
  stopped: "the run stopped before it answered",
  not_asked: "was not asked",
};

const STOPPED = {
  interrupted: "interrupted",
  cancelled: "stopped by you",
  budget: "budget spent",
  chair: "no chair",
  quorum: "too few answered",
};

export const OK = new Set(["ok", "ok_repaired"]);
export const BUSY = new Set(["asked", "writing"]);

export function formatState(state) {
  return STATES[state] || (state.startsWith("failed(cli") ? "its command ended with an error" : state);
}

const ROW_STATUSES = {
  agreed: "all agree", possible: "may differ", contested: "they differ", qualified: "with conditions",
  landed: "objection accepted", dismissed: "objection rejected", open: "no ruling",
};

/** The status of a row of the disagreement map in words: "2 of 3 hold it" */
export const formatRowStatus = (status) => ROW_STATUSES[status] || (/^\d+ of \d+$/.test(status) ? `${status} hold it` : status);

/** "complete", "running", "incomplete: budget spent" */
export function formatStatus(minutes, live) {
  if (minutes.status === "queued") return "queued";
  if (minutes.status === "running") return live ? "running" : "stopped";
  const why = STOPPED[minutes.stopped];
  return why ? `${minutes.status}: ${why}` : minutes.status;
}

/** Why a request was sent again, or how it failed. */
export function formatTrouble(event) {
  return event.type === "fault" ? formatFault(event) : formatAttempt(event);
}

function formatFault(event) {
  const next = event.wait === null || event.wait === undefined ? "" : `, next attempt in ${event.wait < 10 ? event.wait.toFixed(1) : Math.round(event.wait)} s`;
  return `${event.member} failed (${event.kind}): ${event.detail}${next}`;
}

function formatAttempt(event) {
  const [kind, rest] = [event.why.split(":")[0], event.why.split(":").slice(1).join(":").trim()];
  if (kind === "fallback") return `fallback to ${event.member}: ${rest}`;
  if (kind === "retry") return `try ${event.n} with ${event.member}: ${rest}`;
  return `try ${event.n} with ${event.member}: ${event.why}`;
}

export function money(usd, digits) {
  if (usd === null || usd === undefined) return "unknown";
  if (usd === 0) return "$0";
  if (digits !== undefined) return `$${usd.toFixed(digits)}`;
  return `$${usd.toFixed(usd < 0.01 ? 4 : usd < 1 ? 3 : 2).replace(/(\.\d\d)0+$/, "$1")}`;
}

/** An amount, marked if it is an estimate. */
export const amount = (usd, isEstimated, digits) => `${money(usd, digits)}${isEstimated ? " est." : ""}`;

export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function formatSeconds(seconds) {
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : clock(seconds);
}

export function count(n, one, many = `${one}s`) {
  return `${number(n)} ${n === 1 ? one : many}`;
}

export const number = (n) => Number(n || 0).toLocaleString("en");

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} KB` : `${(n / 1e6).toFixed(1)} MB`;
}

export function ago(at, now = Date.now() / 1000) {
  const past = Math.max(0, now - at);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return new Date(at * 1000).toLocaleDateString("en", { day: "numeric", month: "short", year: past > 3e7 ? "numeric" : undefined });
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Shorten to one line of at most `most` characters. */
export function short(text, most = 120) {
  const line = String(text ?? "").replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).trimEnd()}…`;
}

const RESPONSES = /\b[Rr]esponses? ((?:[A-Z]{1,2}\b)(?:(?:, | and | or |, and |, or )[A-Z]{1,2}\b)*)/g;

/** Replace the blind labels ("Response A") in a text by seat names; unknown labels stay. */
export function replaceLabels(text, labels) {
  if (!labels || !Object.keys(labels).length) return text;
  return text.replace(RESPONSES, (whole, names) => (names.match(/[A-Z]{1,2}/g).every((one) => labels[one]) ? names.replace(/[A-Z]{1,2}/g, (one) => labels[one]) : whole));
}

/** Drop the first part of the names if they all share it, for narrow columns. */
export function shortNames(names) {
  const parts = names.map((name) => name.split("-"));
  const shared = names.length > 1 && parts.every((one) => one.length > 1 && one[0] === parts[0][0] && /\D/.test(one.slice(1).join("")));
  return shared ? parts.map((one) => one.slice(1).join("-")) : [...names];
}
