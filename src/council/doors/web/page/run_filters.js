// Filters of the list of runs: in the address of the page, and as the parameters of a request.

export const RESULTS = {
  Verdict: ["PASS", "WARN", "FAIL", "DISAGREE"],
  Outcome: ["SURVIVED", "MODIFIED", "OVERTURNED"],
  Status: ["complete", "incomplete", "failed", "running", "queued"],
};
const FILTERS = ["q", "task", "result", "protocol", "day"]; // names in the address of the page

/** The filters of the address: a search of runs can be linked, and stays when a run is opened. */
export function readFilters() {
  const given = new URLSearchParams(location.search);
  return Object.fromEntries(FILTERS.map((name) => [name, given.get(name) || ""]));
}

export function writeFilters(values) {
  const given = new URLSearchParams(location.search);
  for (const name of FILTERS) values[name] ? given.set(name, values[name]) : given.delete(name);
  const search = given.toString();
  history.replaceState(history.state, "", `${location.pathname}${search ? `?${search}` : ""}${location.hash}`);
}

/** The request for the filters: a day is sent as two times, because days differ between time zones. */
export function parametersOf({ q, task, result, protocol, day }) {
  const [year, month, date] = day.split("-").map(Number);
  const at = (n) => (day ? new Date(year, month - 1, date + n).getTime() / 1000 : "");
  const isStatus = RESULTS.Status.includes(result);
  return { q, task, protocol, verdict: isStatus ? "" : result, status: isStatus ? result : "", from: at(0), to: at(1) };
}

export const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(text);
