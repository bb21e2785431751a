// A question to a person: whoever sits as `human` answers it here.

import { button, el, memory, refill } from "./dom.js";
import { askFields } from "./askfields.js";
import { BUSY } from "./words.js";
import { everyone } from "./fold.js";
import { markdown } from "./markdown.js";

export function asksView(context) {
  const node = el("section", { class: "asks", "aria-label": "A question to you", hidden: true });
  const isNew = memory();
  let waits = false;

  function update({ full, live }) {
    const people = live && context.source.asks ? everyone(full).filter((seat) => isHuman(seat) && BUSY.has(seat.state)) : [];
    const key = people.map((seat) => `${seat.name} ${seat.phase}`).join();
    if (!isNew(full.run, key)) return;
    waits = people.length > 0;
    node.hidden = !waits;
    if (waits) load(full.run);
  }

  async function load(run) {
    try {
      const open = await context.source.asks(run);
      refill(node, open.map((ask) => form(run, ask)));
      node.hidden = !open.length;
      if (!open.length && waits) setTimeout(() => waits && load(run), 1000); // looked a moment too early
    } catch (error) {
      refill(node, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  function form(run, ask) {
    const words = el("textarea", { id: "asked-words", rows: "6" });
    const typed = ask.fields?.length ? askFields(ask.fields) : null;
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const said = () => (typed ? JSON.stringify(typed.value()) : words.value);
    return el("form", { class: "card", onsubmit: (event) => (event.preventDefault(), give(run, ask.key, said(), problem)) },
      el("h2", { class: "eyebrow" }, `Your turn: you sit as ${ask.seat}`), el("details", { open: true }, el("summary", {}, "What you are asked"), el("div", { class: "put", tabindex: "0", role: "group", "aria-label": "What you are asked" }, markdown(ask.prompt, { top: 3 }))),
      typed ? typed.node : [el("label", { for: "asked-words" }, "Your answer"), words], problem,
      el("div", { class: "go" }, button("Answer", null, { class: "primary", type: "submit" }), button("Abstain", () => give(run, ask.key, "", problem), { class: "quiet" })));
  }

  async function give(run, key, words, problem) {
    try {
      await context.source.answer(run, key, words);
      refill(node);
      node.hidden = true;
    } catch (error) {
      refill(problem, error.message);
      problem.hidden = false;
    }
  }

  return { node, update };
}

const isHuman = (seat) => seat.model === "human" || seat.model.startsWith("human:");
