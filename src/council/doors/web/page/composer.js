// The start view: one composer with question, attachments, protocol, options and a Run button with the price.

import { attachmentList } from "./attachments.js";
import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { filePicker } from "./file_picker.js";
import { capital } from "./format.js";
import { loadDraft, removeDraft, saveDraft } from "./draft.js";
import { optionPanel } from "./option_panel.js";
import { planNodes, runLabel } from "./plan_view.js";
import { protocolMenu } from "./protocol_menu.js";
import { send } from "./api.js";

const DEBOUNCE_MS = 350; // milliseconds without input before an estimate is requested
const EXAMPLES = [
  "Should a team of five keep PostgreSQL for its event log, or move the log to Kafka?",
  "How should we roll out feature flags without slowing down releases?",
  "Rank these names for a backup service: Second Copy, Keepsafe, Tidepool, Northbox",
];

/** `people` is the response of /api/members, `options` that of /api/options, `setup` that of /api/setup. */
export function startView({ protocols, people, options: common, setup, openSetup, onStart }) {
  const stored = loadDraft();
  const question = el("textarea", { id: "question", rows: "3", required: true, placeholder: "Should we …?", oninput: () => (grow(), changed()), onkeydown });
  const attachments = attachmentList(changed);
  const files = filePicker(changed);
  const members = availableMembers(people);
  const menus = { rosters: people.rosters || [], presets: people.presets || [], members: members.map((name) => ({ name })) };
  const keyButton = setup.refused ? null : button("Add a key …", () => openSetup("key"));
  const options = optionPanel({ common, menus, files: files.node, members, keyButton, changed });
  const menu = protocolMenu(protocols, (name) => (showProtocol(name), changed()), setup.refused ? null : () => openSetup("search"));
  const submit = button("Run", null, { class: "primary run", type: "submit", disabled: true, title: "Ctrl+Enter or ⌘Enter" });
  const plan = el("div", { class: "plan", "aria-live": "polite" });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const missing = el("div", { class: "missing", role: "status", hidden: true });
  const examples = el("section", { class: "examples", "aria-label": "Example questions", hidden: true }, el("h2", { class: "eyebrow" }, "For example"),
    el("ul", { class: "plain" }, EXAMPLES.map((text) => el("li", {}, button(text, () => useExample(text), { class: "example" })))));
  const node = el("form", { class: "start", onsubmit: run, ondragover, ondragleave: () => setAttr(node, "data-drop", null), ondrop, onpaste: attachments.takePaste },
    el("h1", {}, "What should the council answer?"),
    el("div", { class: "composer" },
      el("label", { for: "question", class: "visually-hidden" }, "Question"), question, attachments.node, missing, problem,
      el("div", { class: "go" }, attachments.button, menu.node, submit),
      options.node),
    el("section", { class: "estimate", "aria-label": "Plan and cost" }, plan), examples);
  let isFirst = false; // no run has been started yet
  let timer = 0;
  let pending = null;

  function restore() {
    menu.set(stored.protocol || "");
    question.value = stored.question || "";
    options.restore(stored.options || {});
    files.restore(stored.files || []);
    attachments.restore(stored.attachments || []);
    requestAnimationFrame(grow); // when it is in the document
  }

  function showProtocol(name) {
    const chosen = protocols.find((one) => one.name === name);
    options.showProtocol(chosen);
    showMissing(chosen);
  }

  /** Say what has to be set up before real members, or this protocol, can answer. */
  function showMissing(protocol) {
    if (!hasVendor(people)) return sayMissing("No vendor is set up yet, so only the small embedded model can answer.", "Add a key", "key");
    const needsSearch = protocol?.note && protocol.calls;
    return needsSearch ? sayMissing(`${protocol.use || protocol.name} needs a search provider.`, "Set up search", "search") : (missing.hidden = true);
  }

  function sayMissing(line, label, part) {
    missing.hidden = false;
    setChildren(missing, el("span", {}, line), setup.refused ? el("span", { class: "soft" }, `${capital(setup.refused)}.`) : button(label, () => openSetup(part), { class: "primary" }));
  }

  /** Make the field as high as its text, where the style sheet cannot. */
  function grow() {
    if (CSS.supports("field-sizing", "content")) return;
    question.style.height = "auto";
    question.style.height = `${question.scrollHeight}px`;
  }

  function useExample(text) {
    question.value = text;
    grow();
    changed();
    question.focus();
  }

  function onkeydown(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!submit.disabled) node.requestSubmit();
    else if (timer) estimate(); // the price is shown before anything can be spent
  }

  function ondragover(event) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    setAttr(node, "data-drop", "yes");
  }

  function ondrop(event) {
    setAttr(node, "data-drop", null);
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    attachments.takeFiles(event.dataTransfer.files);
  }

  function body() {
    const words = question.value.trim();
    const chosen = menu.value();
    const request = { question: `${options.verb(words)}${words}`, ...options.commonValues() };
    if (chosen) Object.assign(request, { protocol: chosen, options: options.ownValues() });
    if (files.value().length) request.targets = files.value();
    if (files.root()) request.root = files.root();
    Object.assign(request, attachments.value());
    const seats = options.seats();
    if (Object.keys(seats).length) request.seats = seats;
    return request;
  }

  const draft = () => ({ question: question.value, protocol: menu.value(), options: options.draft(), files: files.draft(), attachments: attachments.draft() });

  function changed() {
    clearTimeout(timer);
    timer = 0;
    pending?.abort();
    problem.hidden = true;
    submit.disabled = true;
    setText(submit, "Run");
    saveDraft(draft());
    options.summarize(files.value().length);
    showExamples();
    if (!question.value.trim() && !files.value().length) return setChildren(plan, el("p", { class: "soft" }, "The plan and its price appear here as you type. Nothing is spent until you press Run."));
    setAttr(plan, "data-old", "yes");
    if (attachments.isBusy()) return undefined; // it calls again when it is done
    timer = setTimeout(estimate, DEBOUNCE_MS);
    return undefined;
  }

  function showExamples(isEmptyList = isFirst) {
    isFirst = isEmptyList;
    examples.hidden = !isFirst || question.value.trim() !== "";
  }

  async function estimate() {
    clearTimeout(timer);
    timer = 0;
    pending = new AbortController();
    const mine = pending;
    try {
      const { max_cost: cap, ...request } = body();
      const estimated = await send("estimate", request, mine.signal);
      setChildren(plan, planNodes(estimated, Boolean(menu.value())));
      setAttr(plan, "data-old", null);
      options.showSeats(estimated);
      files.setTotal(estimated.packet);
      setText(submit, runLabel(estimated, cap));
      submit.disabled = false;
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return;
      fail(error);
    }
  }

  function fail(error) {
    setChildren(plan);
    setText(problem, error.message);
    if (error.code === "search_not_enabled") sayMissing("This question needs a search provider.", "Set up search", "search");
    problem.hidden = false;
  }

  async function run(event) {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    try {
      const { run: id } = await send("runs", body());
      removeDraft();
      onStart(id);
    } catch (error) {
      fail(error);
    }
    submit.disabled = false;
  }

  showProtocol(stored.protocol || "");
  restore();
  changed();

  return { node, showExamples };
}

const availableMembers = (people) => (people.members || []).filter((one) => one.available && one.member.includes(":")).map((one) => one.member);

const hasVendor = (people) => (people.seats || []).some((seat) => seat.vendor !== "local");
