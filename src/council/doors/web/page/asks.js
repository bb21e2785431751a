// A question to a person: whoever sits as `human` answers it here.

import { button, el, memory, refill } from "./dom.js";
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
      const asks = await context.source.asks(run);
      const open = Array.isArray(asks) ? asks : asks.asks || [];
      refill(node, open.map((ask) => form(run, ask)));
      node.hidden = !open.length;
      if (!open.length && waits) setTimeout(() => waits && load(run), 1000); // looked a moment too early
    } catch (error) {
      refill(node, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  function form(run, ask) {
    const id = `ask-${ask.key.replace(/\W/g, "-")}`;
    const words = el("textarea", { id, rows: "6", required: true });
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const submit = button("Answer", null, { class: "primary", type: "submit" });
    return el("form", { class: "card", onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        await context.source.answer(run, ask.key, words.value);
        refill(node);
        node.hidden = true;
      } catch (error) {
        refill(problem, error.message);
        problem.hidden = false;
        submit.disabled = false;
      }
    } }, el("h2", { class: "eyebrow" }, `${ask.seat || ask.key}: your turn`), markdown(ask.question || ask.prompt || lastOf(ask.messages), { top: 3 }), el("label", { for: id }, "Your answer"), words, problem, submit);
  }

  return { node, update };
}

const isHuman = (seat) => seat.model === "human" || seat.model.startsWith("human:");
const lastOf = (messages) => messages?.at(-1)?.content || "What do you say?";
