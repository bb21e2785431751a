// The seats side by side. A focused seat takes the whole width, and the others become tabs.

import { button, el, setAttr } from "./dom.js";
import { allSeats, parentSeat } from "./minutes.js";
import { seatColumn } from "./seat_column.js";

export function seatsView(context) {
  const heading = el("h2", { class: "eyebrow" }, "Seats");
  const others = el("div", { class: "others", hidden: true });
  const grid = el("div", { class: "columns" });
  const node = el("section", { class: "seat-list", "aria-label": "Seats" }, el("header", { class: "bar" }, heading, others), grid);
  const columns = new Map();
  let focused = "";

  function update(scene) {
    for (const seat of seated(scene)) if (!columns.has(seat.name)) add(seat.name);
    for (const column of columns.values()) column.update(scene);
    for (const column of columns.values()) column.follow();
  }

  /** Seats of the plan and the chair; helpers are shown in the column of their seat. */
  const seated = ({ full }) => allSeats(full).filter((seat) => !parentSeat(full, seat.name) && (seat.model || seat.phase));

  function add(name) {
    const column = seatColumn(name, columns.size + 1, { ...context, focus: (seatName) => focus(focused === seatName ? "" : seatName) });
    columns.set(name, column);
    grid.append(column.node);
    setAttr(grid, "data-count", columns.size > 6 ? "many" : columns.size);
  }

  function focus(name) {
    focused = columns.has(name) ? name : "";
    setAttr(node, "data-focus", focused);
    for (const [seatName, column] of columns) {
      setAttr(column.node, "data-focused", seatName === focused ? "yes" : null);
      column.press(seatName === focused);
    }
    others.hidden = !focused;
    others.replaceChildren(...(focused ? tabs() : []));
    context.focused(focused);
  }

  const tabs = () => [
    ...[...columns.keys()].map((seatName) => button(seatName, () => focus(seatName), { class: `chip ${context.tone(seatName)}`, "aria-pressed": String(seatName === focused) })),
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
