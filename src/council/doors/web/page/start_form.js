// Start form: question, material, protocol, options, members, and the plan with its cost.

import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { count, money, number } from "./format.js";
import { filePicker } from "./file_picker.js";
import { optionFields } from "./option_fields.js";
import { protocolDiagram } from "./protocol_diagram.js";
import { send } from "./api.js";

const DRAFT = "council-draft"; // name of the stored question that was not started yet
const DEBOUNCE_MS = 350; // milliseconds without input before an estimate is requested
const EXAMPLES = [
  "Should a team of five keep PostgreSQL for its event log, or move the log to Kafka?",
  "How should we roll out feature flags without slowing down releases?",
  "Rank these names for a backup service: Second Copy, Keepsafe, Tidepool, Northbox",
];
const FIRST_OPTIONS = ["max_cost", "cheap", "effort"]; // shown without opening "More options"

/** `people` is the response of /api/members, `options` that of /api/options. */
export function startView({ protocols, people, options: common, onStart }) {
  const question = el("textarea", { id: "question", rows: "3", required: true, placeholder: "Should we …?", oninput: changed, onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && !submit.disabled && node.requestSubmit() });
  const examples = el("ul", { class: "plain examples", "aria-label": "Example questions" }, EXAMPLES.map((text) => el("li", {}, button(text, () => ((question.value = text), changed(), question.focus()), { class: "example" }))));
  const files = filePicker(changed);
  const cards = el("div", { class: "protocols", role: "radiogroup", "aria-label": "Protocol" });
  const options = el("div", {});
  const plan = el("div", { class: "plan", "aria-live": "polite" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = button("Run", null, { class: "primary run", type: "submit", disabled: true });
  const task = el("select", { id: "task", oninput: changed });
  const taskField = el("div", { class: "field", hidden: true }, el("label", { for: "task" }, "Task"), task);
  const menus = { rosters: people.rosters || [], presets: people.presets || [], members: availableMembers(people).map((name) => ({ name })) };
  const [first, rest] = splitOptions(common).map((schema) => optionFields(schema, changed, menus));
  const request = el("div", { class: "request" }, el("div", { class: "field" }, el("label", { for: "question", class: "visually-hidden" }, "Question"), question), examples, files.node);
  const choices = el("div", { class: "choices" }, el("fieldset", {}, el("legend", {}, "Protocol"), cards), taskField, options, first.node,
    rest.node.childElementCount > 0 && el("details", { class: "part" }, el("summary", {}, "More options"), rest.node));
  const node = el("form", { class: "start", onsubmit: run, ondragover, ondragleave: () => setAttr(node, "data-drop", null), ondrop, onpaste: files.takePaste },
    el("h1", {}, "What should the council answer?"), request,
    el("aside", { class: "card estimate", "aria-label": "Plan and cost" }, el("div", { class: "go" }, submit, el("span", { class: "hint" }, "Nothing is spent until you press Run.")), problem, el("h2", { class: "eyebrow" }, "Plan"), plan), choices);
  const seats = new Map(); // seat → chosen member
  let chosen = "";
  let fields = null;
  let timer = 0;
  let pending = null;

  const choose = (name) => {
    chosen = name;
    const about = protocols.find((one) => one.name === name);
    fields = about ? optionFields(about.options, changed, menus) : null;
    setChildren(options, fields?.node.childElementCount ? el("details", { class: "part" }, el("summary", {}, `Options of ${about.name}`), fields.node) : null);
    const tasks = about?.tasks || [];
    taskField.hidden = tasks.length < 2;
    setChildren(task, tasks.map((one) => el("option", { value: one }, one)));
    seats.clear();
    changed();
  };
  const automatic = { name: "", use: "Automatic", purpose: "chosen from the words of the question", phases: [] };
  const [shown, others] = [protocols.filter((one) => one.use), protocols.filter((one) => !one.use)];
  setChildren(cards, [automatic, ...shown].map((one, n) => card(one, n === 0, choose)));
  if (others.length) cards.after(el("details", { class: "more" }, el("summary", {}, `More: ${others.map((one) => one.name).join(", ")}`), el("div", { class: "protocols" }, others.map((one) => card(one, false, choose)))));
  question.value = sessionStorage.getItem(DRAFT) || "";
  changed();

  function ondragover(event) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    setAttr(node, "data-drop", "yes");
  }

  function ondrop(event) {
    setAttr(node, "data-drop", null);
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    files.takeFiles(event.dataTransfer.files);
  }

  function body() {
    const words = question.value.trim();
    const verbs = [...task.options].map((one) => one.value).filter((one) => one !== "ask");
    const verb = verbs.includes(task.value) && !taskField.hidden && !verbs.some((one) => words.toLowerCase().startsWith(one)) ? `${task.value} ` : "";
    const request = { question: `${verb}${words}`, ...first.value(), ...rest.value() };
    if (chosen) Object.assign(request, { protocol: chosen, options: fields?.value() || {} });
    if (files.value().length) request.targets = files.value();
    if (files.attachments().length) request.attachments = files.attachments();
    if (files.root()) request.root = files.root();
    if (seats.size) request.seats = Object.fromEntries(seats);
    return request;
  }

  function changed() {
    clearTimeout(timer);
    pending?.abort();
    problem.hidden = true;
    submit.disabled = true;
    setText(submit, "Run");
    sessionStorage.setItem(DRAFT, question.value);
    examples.hidden = question.value.trim() !== "";
    if (!question.value.trim() && !files.value().length) return setChildren(plan, el("p", { class: "soft" }, "The plan and its cost appear here as you type."));
    setAttr(plan, "data-old", "yes");
    timer = setTimeout(estimate, DEBOUNCE_MS);
    return undefined;
  }

  async function estimate() {
    pending = new AbortController();
    const mine = pending;
    try {
      const { max_cost: cap, ...request } = body();
      const estimated = await send("estimate", request, mine.signal);
      const focused = document.activeElement?.id;
      setChildren(plan, planNodes(estimated, member, Boolean(chosen)));
      if (focused) plan.querySelector(`#${CSS.escape(focused)}`)?.focus();
      setAttr(plan, "data-old", null);
      files.setTotal(estimated.packet);
      setText(submit, price(estimated, cap));
      submit.disabled = false;
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return;
      fail(error);
    }
  }

  /** Select for the member of a seat, with the available members. */
  function member(seat) {
    const names = [...new Set([seat.model, ...availableMembers(people), "human"])];
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

const availableMembers = (people) => (people.members || []).filter((one) => one.available && one.member.includes(":")).map((one) => one.member);

/** Split the options of every run into those that are always shown, and the others. */
function splitOptions(schema) {
  const all = Object.entries(schema?.properties || {});
  const isFirst = ([name]) => FIRST_OPTIONS.includes(name);
  return [all.filter(isFirst).sort(([a], [b]) => FIRST_OPTIONS.indexOf(a) - FIRST_OPTIONS.indexOf(b)), all.filter((one) => !isFirst(one))].map((part) => ({ properties: Object.fromEntries(part) }));
}

function card(protocol, checked, choose) {
  const id = `protocol-${protocol.name || "auto"}`;
  const label = protocol.use || protocol.name;
  return el("label", { class: "protocol", for: id },
    el("input", { type: "radio", name: "protocol", id, value: protocol.name, checked, onchange: () => choose(protocol.name) }),
    protocol.phases?.length ? protocolDiagram(protocol.phases) : el("span", { class: "picture auto", "aria-hidden": "true" }, "Aa"),
    el("span", {}, el("b", {}, label), protocol.name && protocol.name !== label.toLowerCase() && el("span", { class: "hint" }, ` ${protocol.name}`)),
    el("span", { class: "hint" }, protocol.purpose || protocol.summary), protocol.note && el("span", { class: "notice", title: protocol.note }, protocol.calls ? "needs setup" : "cannot run now"));
}

function price(plan, cap) {
  if (!plan.cost) return plan.unpriced?.length ? "Run · price unknown" : "Run";
  const worst = Math.min(plan.cost.worst, cap ?? Infinity, plan.cap ?? Infinity);
  return worst > 0 ? `Run · at most ${money(worst)}` : "Run · free";
}

function planNodes(plan, member, isChosen) {
  const seats = [...plan.seats, ...(plan.chair ? [plan.chair] : [])];
  const cost = plan.cost && plan.cost.worst > 0 ? `low ${money(plan.cost.low)} · expected ${money(plan.cost.expected)} · worst ${money(plan.cost.worst)}` : plan.cost ? "free" : `price unknown: ${(plan.unpriced || []).join(", ")}`;
  const packet = plan.packet?.files?.length ? `${count(plan.packet.files.length, "file")}, about ${number(plan.packet.tokens)} tokens` : "";
  const attached = plan.attachments?.length ? count(plan.attachments.length, "image or PDF", "images and PDFs") : "";
  const skipped = plan.packet?.skipped?.length ? el("details", { class: "soft" }, el("summary", {}, `${number(plan.packet.skipped.length)} left out`), el("ul", {}, plan.packet.skipped.map((one) => el("li", {}, `${one.path}: ${one.why}`)))) : null;
  return [
    el("p", { class: "lead" }, el("b", {}, plan.protocol), !isChosen && el("span", { class: "soft" }, ` ${plan.why}`)),
    el("ul", { class: "plain seats" }, seats.map((seat, n) => el("li", { class: seat === plan.chair ? "chair" : `s${(n % 9) + 1}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), member(seat)))),
    el("p", { class: "soft" }, [`${plan.calls.min === plan.calls.max ? plan.calls.max : `${plan.calls.min} to ${plan.calls.max}`} calls`, packet, attached, cost].filter(Boolean).join(" · ")), skipped,
    (plan.trusted || []).map((line) => el("p", {}, `Trusted settings of the project: ${line}`)),
    [...new Set([...(plan.notices || []), ...(plan.warnings || [])])].map((line) => el("p", { class: "notice" }, line)),
  ];
}
