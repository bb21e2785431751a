// The filters of the list of runs, kept in the address of the page, and its days.

import { money } from "./format.js";
import { el } from "./dom.js";

export const DAYS = 14; // days in the spending chart
export const RESULTS = {
  Verdict: ["PASS", "WARN", "FAIL", "DISAGREE"],
  Outcome: ["SURVIVED", "MODIFIED", "OVERTURNED"],
  Status: ["complete", "incomplete", "failed", "running", "queued"],
};
const FILTERS = ["q", "task", "result", "protocol", "day"]; // names in the address of the page

export const dayOf = (date) => `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
const dayBack = (n) => dayOf(new Date(Date.now() - n * 864e5));

/** Draw a bar for each of the last days. A press shows the runs of the day. */
export function spendChart(days, choose) {
  const spent = new Map(days.map((one) => [one.day, one.usd ?? 0]));
  if (!spent.size) return null;
  const shown = Array.from({ length: DAYS }, (_, n) => dayBack(DAYS - 1 - n));
  const most = Math.max(1e-9, ...shown.map((day) => spent.get(day) || 0));
  const summary = shown.filter((day) => spent.get(day)).map((day) => `${day} ${money(spent.get(day))}`).join(", ") || "nothing";
  return el("div", { class: "days", role: "img", "aria-label": `Spent per day: ${summary}` }, shown.map((day) => el("i", { title: `${day}: ${money(spent.get(day) || 0)}`, style: { "--part": ((spent.get(day) || 0) / most).toFixed(3) }, onclick: () => choose(day) })));
}

export function formatDay(day) {
  if (day === dayBack(0)) return "Today";
  if (day === dayBack(1)) return "Yesterday";
  const [year, month, date] = day.split("-").map(Number);
  return new Date(year, month - 1, date).toLocaleDateString("en", { weekday: "short", day: "numeric", month: "short", year: year === new Date().getFullYear() ? undefined : "numeric" });
}

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
