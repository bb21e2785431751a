// Everything of the composer besides question, attachments and protocol, folded into one part whose summary says what is set.

import { el, setChildren, setText } from "./dom.js";
import { count, listed, money } from "./format.js";
import { fieldTitle, optionFields } from "./option_fields.js";
import { seatsOf } from "./plan_view.js";

// Options of every run by the group in which they are shown; the others are in the last group.
const GROUPS = { Members: ["cheap", "models", "exclude_family"], Material: ["look", "redact", "skip_secrets", "decisions"], Limits: ["max_cost", "effort", "check"] };
const LAST_GROUP = "Limits";

/** `common` describes the options of every run, `menus` has the names of each kind of choice, `files` is the picker of files of the server, `keyButton` opens the setup of another vendor. */
export function optionPanel({ common, menus, files, members, keyButton, changed }) {
  const described = common?.properties || {};
  const parts = Object.fromEntries(Object.keys(GROUPS).map((group) => [group, optionFields({ properties: pick(described, group) }, changed, menus)]));
  const seats = new Map(); // seat → chosen member
  const seatList = el("ul", { class: "plain member-menus" });
  const seatHint = el("p", { class: "hint" }, "The seats appear here with the plan.");
  const task = el("select", { id: "task", oninput: changed });
  const taskField = el("div", { class: "field", hidden: true }, el("label", { for: "task" }, "Task"), task);
  const own = el("div", {});
  const ownTitle = el("legend", {});
  const ownGroup = el("fieldset", { hidden: true }, ownTitle, taskField, own);
  const about = el("span", { class: "set" });
  const group = (title, ...content) => el("fieldset", {}, el("legend", {}, title), content);
  const node = el("details", { class: "composer-options" }, el("summary", {}, el("span", { class: "options-title" }, "Options"), about),
    el("div", { class: "option-groups" },
      ownGroup,
      group("Limits and checks", parts.Limits.node),
      group("Members", seatHint, seatList, keyButton, parts.Members.node),
      group("Material of this server", files, parts.Material.node)));
  let fields = null;
  let protocol = null;

  function showProtocol(chosen) {
    protocol = chosen;
    fields = chosen ? optionFields(chosen.options, changed, menus) : null;
    const tasks = chosen?.tasks || [];
    taskField.hidden = tasks.length < 2;
    setChildren(task, tasks.map((one) => el("option", { value: one }, one)));
    setText(ownTitle, chosen ? `Options of ${chosen.name}` : "");
    setChildren(own, fields?.node);
    ownGroup.hidden = taskField.hidden && !fields?.node.childElementCount;
    seats.clear();
  }

  /** Show a menu of members for each seat of the plan. */
  function showSeats(plan) {
    const focused = seatList.contains(document.activeElement) ? document.activeElement.id : "";
    setChildren(seatList, seatsOf(plan).map((seat, n) => el("li", { class: seat === plan.chair ? "chair" : `s${(n % 9) + 1}` }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), memberMenu(seat))));
    seatHint.hidden = true;
    if (focused) seatList.querySelector(`#${CSS.escape(focused)}`)?.focus();
  }

  function memberMenu(seat) {
    const names = [...new Set([seat.model, ...members, "human"])];
    return el("select", { id: `member-${seat.name}`, "aria-label": `Member for ${seat.name}`, onchange: ({ target }) => (seats.set(seat.name, target.value), changed()) }, names.map((name) => el("option", { value: name, selected: name === seat.model }, name === "human" ? "human: you" : name)));
  }

  const commonValues = () => Object.assign({}, ...Object.values(parts).map((one) => one.value()));

  /** Return the chosen task if it has to begin the question. */
  function verb(words) {
    const verbs = [...task.options].map((one) => one.value).filter((one) => one !== "ask");
    const isNeeded = verbs.includes(task.value) && !taskField.hidden && !verbs.some((one) => words.toLowerCase().startsWith(one));
    return isNeeded ? `${task.value} ` : "";
  }

  /** Say in one line what is set. `picked` is the number of files. */
  function summarize(picked) {
    const lines = [
      ...[...seats].map(([seat, member]) => `${seat}: ${member}`),
      picked && count(picked, "file"),
      ...describe(commonValues(), described), ...describe(fields?.value() || {}, protocol?.options?.properties || {}),
    ].filter(Boolean);
    setText(about, lines.join(" · ") || "Cap, effort, members, files, checks");
    about.classList.toggle("soft", !lines.length);
  }

  const draft = () => ({ common: commonValues(), own: fields?.value() || {}, task: task.value, seats: Object.fromEntries(seats) });

  function restore(stored) {
    for (const one of Object.values(parts)) one.restore(stored.common || {});
    fields?.restore(stored.own || {});
    if ([...task.options].some((one) => one.value === stored.task)) task.value = stored.task;
    for (const [seat, member] of Object.entries(stored.seats || {})) seats.set(seat, member);
  }

  return { node, showProtocol, showSeats, commonValues, ownValues: () => fields?.value() || {}, seats: () => Object.fromEntries(seats), verb, summarize, draft, restore };
}

function pick(properties, group) {
  const named = Object.values(GROUPS).flat();
  const others = group === LAST_GROUP ? Object.keys(properties).filter((name) => !named.includes(name)) : [];
  return Object.fromEntries([...GROUPS[group], ...others].filter((name) => name in properties).map((name) => [name, properties[name]]));
}

/** Return a few words for each option that is set. */
function describe(values, properties) {
  return Object.entries(values).map(([name, value]) => {
    if (name === "max_cost") return `cap ${money(value)}`;
    const title = fieldTitle(name, properties[name]).toLowerCase();
    if (value === true) return title;
    if (value === false) return `no ${title}`;
    return Array.isArray(value) ? `${title}: ${value.length > 2 ? value.length : listed(value)}` : `${title}: ${value}`;
  });
}
