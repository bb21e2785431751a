// What can be done with an answer: copy it, ask on, fork it or run it again with other members, and export it.

import { button, el, changeDetector, setChildren, setText } from "./dom.js";
import { copyButton } from "./copy.js";
import { allSeats, rounds } from "./minutes.js";

const EXPORTS = [["md", "Markdown"], ["json", "JSON"], ["html", "HTML"]];

export function answerToolbar(context) {
  const node = el("div", { class: "answer-tools" });
  const isNew = changeDetector();
  let scene = null;

  function update(now) {
    scene = now;
    if (!isNew(now.full.run, now.full.status, now.live, hasAnswer())) return;
    const can = context.canAct && !now.live;
    const open = (make) => () => place.replaceChildren(make());
    const place = el("div", { class: "tool-form" });
    const close = () => place.replaceChildren();
    setChildren(node, el("div", { class: "bar", role: "toolbar", "aria-label": "Answer" },
      hasAnswer() && copyButton("Copy Markdown", answerText, { title: "Copy the answer and its trust as Markdown" }),
      can && now.full.status === "complete" && button("Ask on", open(() => askForm(context, now.full, close)), { title: "Ask a question that continues this run" }),
      can && button("Fork", open(() => memberForm(context, now.full, close, true)), { title: "Run again from a phase on; earlier answers are reused at no cost" }),
      can && button("Re-run", open(() => memberForm(context, now.full, close, false)), { title: "Ask the same question again, with other members if you like" }),
      can && now.full.plan.fork && el("a", { class: "button", href: `#compare=${encodeURIComponent(now.full.plan.fork.run)},${encodeURIComponent(now.full.run)}` }, "Compare with its original"),
      context.source.save && el("span", { class: "exports" }, "Export ", EXPORTS.map(([format, label]) => button(label, () => save(format), { class: "link" })))),
    place);
  }

  const answer = () => scene.detail?.report?.answer || scene.minutes.verdict?.answer || "";
  const hasAnswer = () => Boolean(answer().trim());
  const answerText = () => addTail(answer(), scene.detail?.report?.tail || []);
  const save = (format) => context.source.save(scene.full.run, format, `${scene.full.name || scene.full.run}.${format}`);

  return { node, update };
}

/** Return an answer with its tail in the form of all other outputs, so that trust is copied with it. */
const addTail = (answer, lines) => (lines.length ? `${answer.trimEnd()}\n\n---\n\n${lines.join("  \n")}` : answer);

/** Return a form with its error line; `act` returns the new run. */
function runForm(context, title, close, fields, label, act) {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const submit = button(label, null, { type: "submit", class: "primary" });
  const onsubmit = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.hidden = true;
    try {
      context.openRun((await act()).run);
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
      submit.disabled = false;
    }
  };
  return el("form", { class: "run-form", "aria-label": title, onsubmit }, el("h3", {}, title), fields, problem, el("div", { class: "go" }, submit, button("Close", close, { class: "quiet" })));
}

function askForm(context, full, close) {
  const question = el("textarea", { id: "ask-on", rows: "3", required: true, placeholder: "What follows from it …?" });
  const fields = el("div", { class: "field" }, el("label", { for: "ask-on" }, "Question; this question and its answer are sent along"), question);
  setTimeout(() => question.focus());
  return runForm(context, "Ask on", close, fields, "Ask", () => context.source.start({ question: question.value.trim(), continues: full.run }));
}

/** Form for a fork, with its first phase, or for a new run of the same question; both with a menu of members per seat. */
function memberForm(context, full, close, forks) {
  const phases = [...new Set(rounds(full).map((phase) => phase.name.split("/")[0]))];
  let isChosen = false; // whether the user chose the phase
  const from = el("select", { id: "fork-from", onchange: () => (isChosen = true) }, phases.map((name) => el("option", { value: name, selected: name === phases.at(-1) }, name)));
  const seats = allSeats(full).filter((seat) => seat.model);
  const menus = new Map(seats.map((seat) => [seat.name, el("select", { id: `other-${seat.name}`, "aria-label": `Member for ${seat.name}`, onchange: followMembers }, el("option", { value: seat.model }, seat.model))]));
  context.source.members().then(({ members }) => fill(members)).catch(() => {}); // without a list the members stay
  const fill = (members) => {
    const known = members.filter((one) => one.available && one.member.includes(":")).map((one) => one.member);
    for (const seat of seats) menus.get(seat.name).append(...[...known, "human"].filter((name) => name !== seat.model).map((name) => el("option", { value: name }, name === "human" ? "human: you" : name)));
  };
  /** Another member has to be asked, so the fork begins with the first phase of its seat. */
  function followMembers() {
    const names = seats.filter((seat) => menus.get(seat.name).value !== seat.model).map((seat) => seat.name);
    const first = rounds(full).find((phase) => names.some((name) => phase.seats?.[name]?.said || phase.seats?.[name]?.asked));
    if (!isChosen) from.value = first?.name.split("/")[0] ?? phases.at(-1);
  }
  const changed = () => Object.fromEntries(seats.map((seat) => [seat.name === full.chair ? "chair" : seat.name, menus.get(seat.name).value]).filter(([, member], n) => member !== seats[n].model));
  const fields = [
    forks && el("div", { class: "field" }, el("label", { for: "fork-from" }, "Run again from"), from, el("p", { class: "hint" }, "Answers before this phase are reused at no cost.")),
    el("ul", { class: "plain member-menus" }, seats.map((seat) => el("li", { class: context.tone(seat.name) }, el("span", { class: "dot", "aria-hidden": "true" }), el("b", {}, seat.name), menus.get(seat.name)))),
  ];
  return runForm(context, forks ? "Fork this run" : "Run it again", close, fields, forks ? "Fork" : "Run again", () => context.source.fork(full.run, { seats: changed(), ...(forks ? { from: from.value } : {}) }));
}
