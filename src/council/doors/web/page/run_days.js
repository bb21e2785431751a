// Days of the list of runs: their names, and a chart of what each cost.

import { el } from "./dom.js";
import { money } from "./format.js";

export const DAYS = 14; // days in the spending chart

export const dayOf = (date) => `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
export const timeOf = (at) => new Date(at * 1000).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
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
