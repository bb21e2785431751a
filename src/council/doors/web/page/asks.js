// Questions to a person who holds a `human` seat.

import { button, el, changeDetector, setChildren } from "./dom.js";
import { askFields } from "./ask_fields.js";
import { BUSY } from "./format.js";
import { allSeats, stateOf } from "./minutes.js";
import { markdown } from "./markdown.js";

export function asksView(context) {
  const node = el("section", { class: "asks", "aria-label": "Question for you", hidden: true });
  const isNew = changeDetector();
  let isWaiting = false;

  function update({ full, live }) {
    const people = live && context.source.asks ? allSeats(full).filter((seat) => isHuman(seat) && BUSY.has(stateOf(full, seat))) : [];
    const key = people.map((seat) => `${seat.name} ${seat.phase}`).join();
    if (!isNew(full.run, key)) return;
    isWaiting = people.length > 0;
    node.hidden = !isWaiting;
    if (isWaiting) load(full.run);
  }

  async function load(run) {
    try {
      const open = await context.source.asks(run);
      setChildren(node, open.map((ask) => form(run, ask)));
      node.hidden = !open.length;
      if (!open.length && isWaiting) setTimeout(() => isWaiting && load(run), 1000); // the question may not be stored yet
    } catch (error) {
      setChildren(node, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  function form(run, ask) {
    const words = el("textarea", { id: "asked-words", rows: "6" });
    const typed = ask.fields?.length ? askFields(ask.fields) : null;
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const answer = () => (typed ? JSON.stringify(typed.value()) : words.value);
    return el("form", { class: "card", onsubmit: (event) => (event.preventDefault(), submitAnswer(run, ask.key, answer(), problem)) },
      el("h2", { class: "eyebrow" }, `Your turn: answer for seat ${ask.seat}`), el("details", { open: true }, el("summary", {}, "Question"), el("div", { class: "prompt", tabindex: "0", role: "group", "aria-label": "Question" }, markdown(ask.prompt, { top: 3 }))),
      typed ? typed.node : [el("label", { for: "asked-words" }, "Your answer"), words], problem,
      el("div", { class: "go" }, button("Answer", null, { class: "primary", type: "submit" }), button("Abstain", () => submitAnswer(run, ask.key, "", problem), { class: "quiet" })));
  }

  async function submitAnswer(run, key, words, problem) {
    try {
      await context.source.answer(run, key, words);
      setChildren(node);
      node.hidden = true;
    } catch (error) {
      setChildren(problem, error.message);
      problem.hidden = false;
    }
  }

  return { node, update };
}

const isHuman = ({ model }) => model === "human" || model?.startsWith("human:");
