// The tab of the browser: title with a mark, icon by state, and a notification when a run ends, if the reader asked for it.

import { button } from "./dom.js";

const MARKS = { live: "● ", done: "✓ ", failed: "✗ ", stopped: "■ ", "": "" };
const NOTIFY = "council-notify"; // name of the stored wish

const icon = document.querySelector('link[rel="icon"]');
const base = icon?.getAttribute("href") || "";

/** Show the title and the state of what the tab shows: "", live, done, failed or stopped. */
export function showTab(title, state = "") {
  const text = `${MARKS[state]}${title ? `${title} · council` : "council"}`;
  if (document.title !== text) document.title = text;
  if (!base.endsWith("icon.svg")) return; // an exported file has no other files
  const address = state ? base.replace("icon.svg", `icon-${state}.svg`) : base;
  if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
}

const canNotify = () => "Notification" in globalThis && Notification.permission !== "denied";
const isWanted = () => canNotify() && Notification.permission === "granted" && localStorage.getItem(NOTIFY) === "yes";

/** Button with which the reader asks for notifications; the browser asks for its permission only then. */
export function notifyButton() {
  if (!canNotify()) return null;
  return button("Notify me", async ({ currentTarget }) => {
    const on = !isWanted() && (await Notification.requestPermission()) === "granted";
    localStorage.setItem(NOTIFY, on ? "yes" : "no");
    currentTarget?.setAttribute("aria-pressed", String(on));
  }, { "aria-pressed": String(isWanted()), title: "Show a notification of the desktop when a run ends" });
}

export function notifyEnd(run, question, status) {
  if (!isWanted() || document.visibilityState === "visible") return;
  const shown = new Notification(`Council: ${status}`, { body: question, tag: run });
  shown.onclick = () => {
    globalThis.focus();
    shown.close();
  };
}
