// The seats side by side. One can be focused: it takes the whole width, the others wait in a row of tabs.

import { button, el, mark } from "./dom.js";
import { everyone, hostOf } from "./fold.js";
import { seatColumn } from "./column.js";

export function benchView(context) {
  const heading = el("h2", { class: "eyebrow" }, "Seats");
  const others = el("div", { class: "others", hidden: true });
  const grid = el("div", { class: "columns" });
  const node = el("section", { class: "bench", "aria-label": "Seats" }, el("header", { class: "bar" }, heading, others), grid);
  const columns = new Map();
  let focused = "";

  function update(scene) {
    for (const seat of seated(scene)) if (!columns.has(seat.name)) add(seat.name);
    for (const column of columns.values()) column.update(scene);
    for (const column of columns.values()) column.follow();
  }

  /** The seats of the plan and the chair; helpers stand in their hosts' columns. */
  const seated = ({ full }) => everyone(full).filter((seat) => !hostOf(full, seat.name) && (seat.model || seat.phase));

  function add(name) {
    const column = seatColumn(name, columns.size + 1, { ...context, focus: (who) => focus(focused === who ? "" : who) });
    columns.set(name, column);
    grid.append(column.node);
    mark(grid, "data-count", columns.size > 6 ? "many" : columns.size);
  }

  function focus(name) {
    focused = columns.has(name) ? name : "";
    mark(node, "data-focus", focused);
    for (const [who, column] of columns) {
      mark(column.node, "data-focused", who === focused ? "yes" : null);
      column.press(who === focused);
    }
    others.hidden = !focused;
    others.replaceChildren(...(focused ? tabs() : []));
    context.focused(focused);
  }

  const tabs = () => [
    ...[...columns.keys()].map((who) => button(who, () => focus(who), { class: `chip ${context.tone(who)}`, "aria-pressed": String(who === focused) })),
    button("all seats", () => focus(""), { class: "quiet" }),
  ];

  return {
    node,
    update,
    focus,
    nth: (n) => focus([...columns.keys()][n - 1] === focused ? "" : [...columns.keys()][n - 1]),
    get focused() { return focused; },
    show(name, phase, quote) {
      if (focused && focused !== name) focus(name);
      columns.get(name)?.show(phase, quote);
    },
  };
}
