// The head of a run: what was asked, how it stands, what it costs, and what can be done about it.

import { button, el, mark, memory, refill, say } from "./dom.js";
import { clock, money, short, statusInWords } from "./words.js";
import { rounds } from "./fold.js";
import { toneOf } from "./stands.js";

export function headerView(context) {
  const status = el("span", { class: "pill" });
  const crumbs = el("span", { class: "crumbs" });
  const question = el("h1", {});
  const bar = el("span", { class: "bar-fill" });
  const meter = el("div", { class: "meter", role: "meter", "aria-label": "Cost against the cap", "aria-valuemin": "0" }, bar);
  const cost = el("span", { class: "cost" });
  const time = el("span", { class: "time", title: "time at work" });
  const actions = el("div", { class: "actions" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const node = el("header", { class: "run-head" },
    el("div", { class: "asked" }, el("p", { class: "line" }, status, crumbs), question),
    el("div", { class: "figures" }, el("div", { class: "money" }, cost, meter), time, actions), problem);
  const isNew = memory();

  function update(scene) {
    const { minutes, full, seconds, live } = scene;
    const replays = scene.at !== null;
    say(status, replays ? "replay" : statusInWords(minutes, live));
    mark(status, "data-tone", replays || (live && minutes.status === "running") ? "live" : toneOf(minutes.status) || (minutes.status === "complete" ? "good" : ""));
    say(crumbs, crumbsOf(minutes));
    say(question, full.plan.question || full.name || "…");
    mark(question, "data-long", (full.plan.question || "").length > 160 ? "yes" : null);
    if (full.plan.question) document.title = `${short(full.plan.question, 60)} · council`;
    say(time, clock(seconds));
    tellCost(minutes, full, scene.detail);
    if (isNew(full.status, live, context.canAct, full.run)) refill(actions, buttons(full, live));
  }

  function tellCost(m, full, detail) {
    const known = m === full ? detail?.report?.cost : null;
    const spent = known ? known.usd : m.usd;
    const unknown = known ? known.usd === null : m.unpriced.size > 0;
    const cap = m.cap ?? full.plan.cost?.worst ?? null;
    const said = unknown ? `${money(m.usd)} and an unknown part` : `${money(spent)}${m.estimated ? " est." : ""}`;
    const limit = m.cap !== null ? `of ${money(m.cap)}` : full.plan.cost?.worst ? `of at most ${money(full.plan.cost.worst)}` : "";
    say(cost, [said, limit].filter(Boolean).join(" "));
    meter.hidden = !cap;
    meter.setAttribute("aria-valuemax", String(cap || 1));
    meter.setAttribute("aria-valuenow", String(Math.min(spent || 0, cap || 1)));
    meter.setAttribute("aria-valuetext", cost.textContent);
    const part = cap ? Math.min(1, (spent || 0) / cap) : 0;
    bar.style.setProperty("--part", part.toFixed(4));
    mark(meter, "data-tone", part > 0.9 ? "bad" : part > 0.7 ? "doubt" : "");
  }

  function buttons(full, live) {
    const act = (label, what, more = {}) => button(label, (event) => doing(event.currentTarget, what), more);
    const unfinished = full.status !== "complete";
    return [
      context.canAct && live && act("Stop", () => context.source.cancel(full.run), { class: "danger" }),
      context.canAct && !live && unfinished && full.run && act("Resume", context.resume, { class: "primary" }),
      context.source.share && full.run && el("a", { class: "button", href: context.source.share(full.run), download: `${full.name || full.run}.html` }, "Share .html"),
    ].filter(Boolean);
  }

  async function doing(pressed, what) {
    pressed.disabled = true;
    problem.hidden = true;
    try {
      await what();
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    } finally {
      pressed.disabled = false;
    }
  }

  return { node, update };
}

function crumbsOf(m) {
  const plan = m.plan;
  const held = rounds(m).length;
  const due = plan.phases?.length || 0;
  const phase = m.status === "running" && held ? `${rounds(m).at(-1).name} (${held} of ${Math.max(due, held)})` : "";
  const task = plan.task && plan.task !== "ask" ? plan.task : "";
  return [plan.protocol, task, phase, short(plan.target, 60) !== short(plan.question, 60) ? short(plan.target, 60) : "", m.run].filter(Boolean).join(" · ");
}
