// Start form: question, protocol, members, files, and the plan with its cost.

import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { count, money, number } from "./format.js";
import { filePicker } from "./file_picker.js";
import { optionFields } from "./option_fields.js";
import { protocolDiagram } from "./protocol_diagram.js";
import { send } from "./api.js";

const DRAFT = "council-draft"; // name of the stored question that was not started yet
const DEBOUNCE_MS = 350; // milliseconds without input before an estimate is requested

/** `people` is the response of /api/members. */
export function startView({ protocols, people, onStart }) {
  const question = el("textarea", { id: "question", rows: "3", required: true, placeholder: "Should we …?", oninput: changed, onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && !submit.disabled && node.requestSubmit() });
  const files = filePicker(changed);
  const cards = el("div", { class: "protocols", role: "radiogroup", "aria-label": "Protocol" });
  const options = el("div", {});
  const cap = el("input", { type: "number", id: "cap", min: "0", step: "0.01", placeholder: "no limit", oninput: changed });
  const cheap = el("input", { type: "checkbox", id: "cheap", onchange: changed });
  const plan = el("div", { class: "plan", "aria-live": "polite" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = button("Run", null, { class: "primary run", type: "submit", disabled: true });
  const task = el("select", { id: "task", oninput: changed });
  const taskField = el("div", { class: "field", hidden: true }, el("label", { for: "task" }, "Task"), task);
  const form = el("div", { class: "request" }, el("div", { class: "field" }, el("label", { for: "question", class: "visually-hidden" }, "Question"), question), files.node,
    el("fieldset", {}, el("legend", {}, "Protocol"), cards), taskField, options,
    el("div", { class: "field small" }, el("label", { for: "cap" }, "Maximum cost, in dollars"), cap),
    el("div", { class: "field check" }, cheap, el("label", { for: "cheap" }, "Fast, cheaper models")));
  const node = el("form", { class: "start", onsubmit: run }, el("h1", {}, "What should the council answer?"), form,
    el("aside", { class: "card estimate", "aria-label": "Plan and cost" }, el("h2", { class: "eyebrow" }, "Plan"), plan, problem, el("div", { class: "go" }, submit, el("span", { class: "hint" }, "Nothing is spent until you press Run."))));
  const seats = new Map(); // seat → chosen member
  let chosen = "";
  let fields = null;
  let timer = 0;
  let pending = null;

  const choose = (name) => {
    chosen = name;
    const about = protocols.find((one) => one.name === name);
    fields = about ? optionFields(about.options, changed, { roster: (people.rosters || []).map((one) => one.name) }) : null;
    setChildren(options, fields?.node.childElementCount ? el("details", { class: "part" }, el("summary", {}, "Options"), fields.node) : null);
    const tasks = about?.tasks || [];
    taskField.hidden = tasks.length < 2;
    setChildren(task, tasks.map((one) => el("option", { value: one }, one)));
    seats.clear();
    changed();
  };
  const all = [{ name: "", summary: "chosen from the question", phases: [] }, ...protocols];
  setChildren(cards, all.map((one, n) => card(one, n === 0, choose)));
  question.value = sessionStorage.getItem(DRAFT) || "";
  changed();

  function body() {
    const words = question.value.trim();
    const verbs = [...task.options].map((one) => one.value).filter((one) => one !== "ask");
    const verb = verbs.includes(task.value) && !taskField.hidden && !verbs.some((one) => words.toLowerCase().startsWith(one)) ? `${task.value} ` : "";
    const request = { question: `${verb}${words}` };
    if (chosen) Object.assign(request, { protocol: chosen, options: fields?.value() || {} });
    if (files.value().length) request.targets = files.value();
    if (files.root()) request.root = files.root();
    if (seats.size) request.seats = Object.fromEntries(seats);
    if (cheap.checked) request.cheap = true;
    if (cap.value !== "") request.max_cost = Number(cap.value);
    return request;
  }

  function changed() {
    clearTimeout(timer);
    pending?.abort();
    problem.hidden = true;
    submit.disabled = true;
    setText(submit, "Run");
    sessionStorage.setItem(DRAFT, question.value);
    if (!question.value.trim() && !files.value().length) return setChildren(plan, el("p", { class: "soft" }, "The plan and its cost appear here as you type."));
    setAttr(plan, "data-old", "yes");
    timer = setTimeout(estimate, DEBOUNCE_MS);
    return undefined;
  }

  async function estimate() {
    pending = new AbortController();
    try {
      const { max_cost: _, ...request } = body();
      const estimated = await send("estimate", request, pending.signal);
      const focused = document.activeElement?.id;
      setChildren(plan, planNodes(estimated, member, Boolean(chosen)));
      if (focused) plan.querySelector(`#${CSS.escape(focused)}`)?.focus();
      setAttr(plan, "data-old", null);
      setText(submit, price(estimated, cap.value));
      submit.disabled = false;
    } catch (error) {
      if (error.name === "AbortError" || pending.signal.aborted) return;
      fail(error);
    }
  }

  /** Select for the member of a seat, with the available members. */
  function member(seat) {
    const known = (people.members || []).filter((one) => one.available && one.member.includes(":")).map((one) => one.member);
    const names = [...new Set([seat.model, ...known, "human"])];
    return el("select", { id: `member-${seat.name}`, "aria-label": `Member for ${seat.name}`, onchange: ({ target }) => (seats.set(seat.name, target.value), changed()) }, names.map((name) => el("option", { value: name, selected: name === seat.model }, name === "human" ? "human: you" : name)));
  }

  function fail(error) {
    setChildren(plan);
    setText(problem, error.message);
    problem.hidden = false;
  }

  async function run(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      const { run: id } = await send("runs", body());
      sessionStorage.removeItem(DRAFT);
      onStart(id);
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
    protocol.phases?.length ? protocolDiagram(protocol.phases) : el("span", { class: "picture auto", "aria-hidden": "true" }, "Aa"),
    el("b", {}, protocol.name || "automatic"), el("span", { class: "hint" }, protocol.summary), protocol.note && el("span", { class: "notice", title: protocol.note }, protocol.calls ? "needs setup" : "cannot run now"));
}

function price(plan, cap) {
  if (!plan.cost) return plan.unpriced?.length ? "Run · price unknown" : "Run";
  const worst = cap !== "" ? Math.min(Number(cap), plan.cost.worst) : plan.cap !== null && plan.cap !== undefined ? Math.min(plan.cap, plan.cost.worst) : plan.cost.worst;
  return worst > 0 ? `Run · at most ${money(worst)}` : "Run · free";
}

function planNodes(plan, member, isChosen) {
  const seats = [...plan.seats, ...(plan.chair ? [plan.chair] : [])];
  const cost = plan.cost && plan.cost.worst > 0 ? `low ${money(plan.cost.low)} · expected ${money(plan.cost.expected)} · worst ${money(plan.cost.worst)}` : plan.cost ? "free" : `price unknown: ${(plan.unpriced || []).join(", ")}`;
  const packet = plan.packet?.files?.length ? `${count(plan.packet.files.length, "file")}, about ${number(plan.packet.tokens)} tokens` : "";
  return [
    el("p", { class: "lead" }, el("b", {}, plan.protocol), !isChosen && el("span", { class: "soft" }, ` ${plan.why}`)),
    el("ul", { class: "plain seats" }, seats.map((seat, n) => el("li", { class: seat === plan.chair ? "chair" : `s${(n % 9) + 1}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), member(seat)))),
    el("p", { class: "soft" }, [`${plan.calls.min === plan.calls.max ? plan.calls.max : `${plan.calls.min} to ${plan.calls.max}`} calls`, packet, cost].filter(Boolean).join(" · ")),
    (plan.trusted || []).map((line) => el("p", {}, `Trusted settings of the project: ${line}`)),
    [...new Set([...(plan.notices || []), ...(plan.warnings || [])])].map((line) => el("p", { class: "notice" }, line)),
  ];
}
