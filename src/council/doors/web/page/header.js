// Header of a run: question, status, cost and actions.

import { button, el, setAttr, changeDetector, setChildren, setText } from "./dom.js";
import { amount, capital, clock, money, short, formatStatus } from "./format.js";
import { moneyOf, rounds, unpricedMembers } from "./minutes.js";
import { toneOf } from "./positions.js";
import { notifyButton, notifyEnd, showTab } from "./tab_state.js";

const MAX_TAB_CHARS = 300; // of the title of the page

export function headerView(context) {
  const status = el("span", { class: "pill" });
  const crumbs = el("span", { class: "crumbs" });
  const question = el("h1", { tabindex: "0" });
  const bar = el("span", { class: "bar-fill" });
  const meter = el("div", { class: "meter", role: "meter", "aria-label": "Cost against the cap", "aria-valuemin": "0" }, bar);
  const cost = el("span", { class: "cost" });
  const time = el("span", { class: "time", title: "active time" });
  const actions = el("div", { class: "actions" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const node = el("header", { class: "run-head" },
    el("div", { class: "title" }, el("p", { class: "line" }, status, crumbs), question),
    el("div", { class: "figures" }, el("div", { class: "money" }, cost, meter), time, actions), problem);
  const isNew = changeDetector();
  let wasLive = false;

  function update(scene) {
    const { minutes, full, seconds, live } = scene;
    const replays = scene.at !== null;
    setText(status, replays ? "replay" : formatStatus(minutes, live));
    setAttr(status, "data-tone", replays || (live && minutes.status === "running") ? "live" : toneOf(minutes.status) || (minutes.status === "complete" ? "good" : ""));
    setText(crumbs, formatCrumbs(minutes));
    setText(question, formatTitle(full));
    setAttr(question, "title", question.textContent);
    if (full.plan.question) showTab(short(full.plan.question, MAX_TAB_CHARS), tabState(full, live));
    if (wasLive && !live) notifyEnd(full.run, short(full.plan.question, 120), formatStatus(full, live));
    wasLive = live;
    setText(time, clock(seconds));
    updateCost(minutes, full, scene.detail, live);
    if (isNew(full.status, live, context.canAct, full.run, full.verdict === null)) setChildren(actions, buttons(full, live));
  }

  function updateCost(m, full, detail, live) {
    const { inDoubt } = moneyOf(m, null, live);
    const known = m === full ? detail?.report?.cost : null;
    const spent = known ? known.usd : m.usd;
    const doubtful = known ? known.in_doubt ?? 0 : inDoubt;
    const unknown = known ? known.usd === null : unpricedMembers(m).length > 0;
    const isEstimated = known ? known.estimated : m.estimated;
    const cap = m.cap ?? full.plan.cost?.worst ?? null;
    const shown = unknown ? `${amount(m.usd, m.estimated)} plus unknown costs` : amount(spent, isEstimated);
    const limit = m.cap !== undefined ? `of ${money(m.cap)}` : full.plan.cost?.worst ? `of at most ${money(full.plan.cost.worst)}` : "";
    const doubt = doubtful > 0 ? `(at most ${money(doubtful)} more in doubt)` : "";
    setText(cost, [shown, doubt, limit].filter(Boolean).join(" "));
    meter.hidden = !cap;
    meter.setAttribute("aria-valuemax", String(cap || 1));
    meter.setAttribute("aria-valuenow", String(Math.min((spent || 0) + doubtful, cap || 1)));
    meter.setAttribute("aria-valuetext", cost.textContent);
    const part = cap ? Math.min(1, ((spent || 0) + doubtful) / cap) : 0;
    bar.style.setProperty("--part", part.toFixed(4));
    setAttr(meter, "data-tone", part > 0.9 ? "bad" : part > 0.7 ? "doubt" : "");
  }

  function buttons(full, live) {
    const act = (label, action, more = {}) => button(label, (event) => runAction(event.currentTarget, action), more);
    const isInterrupted = full.verdict === null; // after an end, the button stands with its cause
    return [
      context.canAct && live && notifyButton(),
      context.canAct && live && act("Stop", () => context.source.cancel(full.run), { class: "danger" }),
      context.canAct && !live && isInterrupted && full.run && act("Resume", context.resume, { class: "primary" }),
      context.source.save && full.run && act("Share .html", () => context.source.save(full.run, "html", `${full.name || full.run}.html`)),
    ].filter(Boolean);
  }

  async function runAction(pressed, action) {
    pressed.disabled = true;
    problem.hidden = true;
    try {
      await action();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
    } finally {
      pressed.disabled = false;
    }
  }

  return { node, update };
}

/** State of the run for the icon and the title of the tab. */
function tabState(m, live) {
  if (live || m.status === "queued") return "live";
  return m.status === "complete" ? "done" : m.status === "running" ? "stopped" : "failed";
}

/** The question; a task that its words do not begin with is put before them. */
function formatTitle({ plan, name }) {
  const { question, task } = plan;
  if (!question || !task || task === "ask" || question.toLowerCase().startsWith(task)) return question || name || "…";
  return `${capital(task)} ${question}`;
}

function formatCrumbs(m) {
  const plan = m.plan;
  const started = rounds(m).length;
  const total = plan.phases?.length || 0;
  const phase = m.status === "running" && started ? `${rounds(m).at(-1).name} (${started} of ${Math.max(total, started)})` : "";
  const task = plan.task && plan.task !== "ask" ? plan.task : "";
  return [plan.protocol, task, phase, short(plan.target, 60) !== short(plan.question, 60) ? short(plan.target, 60) : "", m.run].filter(Boolean).join(" · ");
}
