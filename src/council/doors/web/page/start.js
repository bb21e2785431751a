// The start form: what to ask, of whom, in which way, and what it will cost at most before anything is spent.

import { button, el, mark, refill, say } from "./dom.js";
import { count, money, number } from "./words.js";
import { filePicker } from "./files.js";
import { optionFields } from "./options.js";
import { protocolPicture } from "./picture.js";
import { send } from "./api.js";

const PAUSE = 350; // milliseconds without a key until the estimate is asked for
const TASKS = ["validate", "brainstorm", "research"];

/** `people` is who can sit: {members, rosters} of the API. */
export function startView({ protocols, people, begun }) {
  const question = el("textarea", { id: "question", rows: "3", required: true, placeholder: "Should we …?", oninput: changed, onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && !submit.disabled && node.requestSubmit() });
  const files = filePicker(changed);
  const cards = el("div", { class: "protocols", role: "radiogroup", "aria-label": "Protocol" });
  const options = el("div", {});
  const cap = el("input", { type: "number", id: "cap", min: "0", step: "0.01", placeholder: "no other cap", oninput: changed });
  const plan = el("div", { class: "plan", "aria-live": "polite" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = button("Run", null, { class: "primary run", type: "submit", disabled: true });
  const task = el("select", { id: "task", oninput: changed }, TASKS.map((one) => el("option", { value: one }, one)));
  const taskField = el("div", { class: "field", hidden: true }, el("label", { for: "task" }, "Task"), task);
  const wish = el("div", { class: "wish" }, el("div", { class: "field" }, el("label", { for: "question", class: "away" }, "Question"), question), files.node,
    el("fieldset", {}, el("legend", {}, "Protocol"), cards), taskField, options,
    el("div", { class: "field small" }, el("label", { for: "cap" }, "It may cost at most, in dollars"), cap));
  const node = el("form", { class: "start", onsubmit: run }, el("h1", {}, "What should the council answer?"), wish,
    el("aside", { class: "card estimate", "aria-label": "Plan and price" }, el("h2", { class: "eyebrow" }, "Plan"), plan, problem, el("div", { class: "go" }, submit, el("span", { class: "hint" }, "Nothing is spent before you press Run."))));
  const seats = new Map(); // seat → the member that was chosen for it
  let chosen = "";
  let fields = null;
  let timer = 0;
  let asking = null;

  const choose = (name) => {
    chosen = name;
    const about = protocols.find((one) => one.name === name);
    fields = about ? optionFields(about.options, changed, { roster: (people.rosters || []).map((one) => one.name) }) : null;
    refill(options, fields?.node.childElementCount ? el("details", { class: "part" }, el("summary", {}, "Options"), fields.node) : null);
    taskField.hidden = !["judges", "quick"].includes(name);
    seats.clear();
    changed();
  };
  const all = [{ name: "", summary: "your words decide", phases: [] }, ...protocols];
  refill(cards, all.map((one, n) => card(one, n === 0, choose)));
  changed();

  function body() {
    const words = question.value.trim();
    const verb = !taskField.hidden && !TASKS.some((one) => words.toLowerCase().startsWith(one)) ? `${task.value} ` : "";
    const given = { question: `${verb}${words}` };
    if (chosen) Object.assign(given, { protocol: chosen, options: fields?.value() || {} });
    if (files.value().length) given.targets = files.value();
    if (files.root()) given.root = files.root();
    if (seats.size) given.seats = Object.fromEntries(seats);
    if (cap.value !== "") given.max_cost = Number(cap.value);
    return given;
  }

  function changed() {
    clearTimeout(timer);
    asking?.abort();
    problem.hidden = true;
    submit.disabled = true;
    say(submit, "Run");
    if (!question.value.trim() && !files.value().length) return refill(plan, el("p", { class: "soft" }, "The plan and its price appear here as you type."));
    mark(plan, "data-old", "yes");
    timer = setTimeout(estimate, PAUSE);
    return undefined;
  }

  async function estimate() {
    asking = new AbortController();
    try {
      const { max_cost: _, ...given } = body();
      const told = await send("estimate", given, asking.signal);
      const held = document.activeElement?.id;
      refill(plan, planNodes(told, member));
      if (held) plan.querySelector(`#${CSS.escape(held)}`)?.focus();
      mark(plan, "data-old", null);
      say(submit, price(told, cap.value));
      submit.disabled = false;
    } catch (error) {
      if (error.name === "AbortError" || asking.signal.aborted) return;
      fail(error);
    }
  }

  /** Who sits there, to be chosen from those that can be called. */
  function member(seat) {
    const known = (people.members || []).filter((one) => one.available && one.member.includes(":")).map((one) => one.member);
    const names = [...new Set([seat.model, ...known, "human"])];
    return el("select", { id: `member-${seat.name}`, "aria-label": `Who sits as ${seat.name}`, onchange: ({ target }) => (seats.set(seat.name, target.value), changed()) }, names.map((name) => el("option", { value: name, selected: name === seat.model }, name === "human" ? "human: you" : name)));
  }

  function fail(error) {
    refill(plan);
    say(problem, error.message);
    problem.hidden = false;
  }

  async function run(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const { run: id } = await send("runs", body());
      begun(id);
    } catch (error) {
      fail(error);
    }
    submit.disabled = false;
  }

  return { node, ask: () => question.focus() };
}

function card(protocol, checked, choose) {
  const id = `protocol-${protocol.name || "auto"}`;
  return el("label", { class: "protocol", for: id },
    el("input", { type: "radio", name: "protocol", id, value: protocol.name, checked, onchange: () => choose(protocol.name) }),
    protocol.phases?.length ? protocolPicture(protocol.phases) : el("span", { class: "picture auto", "aria-hidden": "true" }, "Aa"),
    el("b", {}, protocol.name || "automatic"), el("span", { class: "hint" }, protocol.summary), protocol.note && el("span", { class: "notice", title: protocol.note }, "needs setting up"));
}

function price(plan, cap) {
  if (!plan.cost) return plan.unpriced?.length ? "Run · price unknown" : "Run";
  const worst = cap !== "" ? Math.min(Number(cap), plan.cost.worst) : plan.cap !== null && plan.cap !== undefined ? Math.min(plan.cap, plan.cost.worst) : plan.cost.worst;
  return worst > 0 ? `Run · at most ${money(worst)}` : "Run · free";
}

function planNodes(plan, member) {
  const seats = [...plan.seats, ...(plan.chair ? [plan.chair] : [])];
  const cost = plan.cost && plan.cost.worst > 0 ? `low ${money(plan.cost.low)} · expected ${money(plan.cost.expected)} · worst ${money(plan.cost.worst)}` : plan.cost ? "free" : `price unknown: ${(plan.unpriced || []).join(", ")}`;
  const packet = plan.packet?.files?.length ? `${count(plan.packet.files.length, "file")}, about ${number(plan.packet.tokens)} tokens` : "";
  return [
    el("p", { class: "lead" }, el("b", {}, plan.protocol), el("span", { class: "soft" }, ` ${plan.why}`)),
    el("ul", { class: "plain seats" }, seats.map((seat, n) => el("li", { class: seat === plan.chair ? "chair" : `s${(n % 9) + 1}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), member(seat)))),
    el("p", { class: "soft" }, [`${plan.calls.min === plan.calls.max ? plan.calls.max : `${plan.calls.min} to ${plan.calls.max}`} calls`, packet, cost].filter(Boolean).join(" · ")),
    [...(plan.notices || []), ...(plan.warnings || [])].map((line) => el("p", { class: "notice" }, line)),
  ];
}
