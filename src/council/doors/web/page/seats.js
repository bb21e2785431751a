// The seats: columns side by side, compact columns, a list, or one seat over the whole width with the others as tabs.

import { button, el, setAttr } from "./dom.js";
import { shownSeats } from "./minutes.js";
import { seatColumn } from "./seat_column.js";

const MODES = [["columns", "Columns"], ["compact", "Compact"], ["list", "List"], ["one", "One seat"]];
const STORED = "council-seats";
const MANY = 6; // from more seats on, columns are not the default

export function seatsView(context) {
  const heading = el("h2", { class: "eyebrow" }, "Seats");
  const others = el("div", { class: "others", hidden: true });
  const modes = MODES.map(([mode, label]) => button(label, () => choose(mode), { "data-mode": mode, "aria-pressed": "false" }));
  const grid = el("div", { class: "columns" });
  const node = el("section", { class: "seat-list", "aria-label": "Seats" },
    el("header", { class: "bar" }, heading, others, el("span", { class: "segments", role: "group", "aria-label": "View of the seats" }, modes)), grid);
  const columns = new Map();
  const opened = new Set(); // seats of the list whose statements are shown
  const created = Date.now() / 1000;
  let focused = "";
  let mode = "";
  let isChosen = false;

  function update(scene) {
    const names = shownSeats(scene.full).map((seat) => seat.name);
    for (const name of names) if (!columns.has(name)) add(name);
    for (const name of columns.keys()) if (!names.includes(name)) remove(name);
    if (scene.full.run && !isChosen) setDefaultMode(scene.full, names.length);
    for (const column of columns.values()) column.update(scene);
    for (const column of columns.values()) column.follow();
  }

  function add(name) {
    const column = seatColumn(name, columns.size + 1, { ...context, focus: press });
    columns.set(name, column);
    grid.append(column.node);
    setCount();
    if (mode === "list") column.setOpen(opened.has(name));
  }

  function remove(name) {
    columns.get(name).node.remove();
    columns.delete(name);
    setCount();
    if (focused) focus(focused);
  }

  const setCount = () => setAttr(grid, "data-count", columns.size > MANY ? "many" : columns.size);

  /** The name of a seat opens it in the list, and focuses it elsewhere. */
  function press(name) {
    if (mode !== "list" || focused) return focus(focused === name ? "" : name);
    if (!opened.delete(name)) opened.add(name);
    columns.get(name).setOpen(opened.has(name));
  }

  /** Without a choice, many seats are compact while they write, and a list in a run that was over before. */
  function setDefaultMode(full, count) {
    const stored = mode ? "" : loadMode();
    isChosen = Boolean(stored);
    const wanted = stored || (count <= MANY ? "columns" : Object.keys(full.live).length > 0 || full.last >= created ? "compact" : "list");
    if (wanted !== mode && !focused) setMode(wanted);
  }

  /** Choose a view and remember it. */
  function choose(wanted) {
    isChosen = true;
    storeMode(wanted);
    setMode(wanted);
  }

  function setMode(wanted) {
    mode = wanted;
    focus(wanted === "one" ? focused || [...columns.keys()][0] : "");
  }

  function draw() {
    const shown = focused ? "one" : mode === "one" ? "columns" : mode;
    setAttr(node, "data-mode", shown);
    for (const one of modes) setAttr(one, "aria-pressed", String(one.dataset.mode === shown));
    for (const [name, column] of columns) column.setOpen(shown === "list" ? opened.has(name) : null);
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
    draw();
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
    nextMode: () => choose(MODES[(MODES.findIndex(([one]) => one === node.dataset.mode) + 1) % MODES.length][0]),
    get focused() { return focused; },
    show(name, phase, quote) {
      if (focused && focused !== name) focus(name);
      if (mode === "list" && !focused && columns.has(name)) columns.get(name).setOpen(Boolean(opened.add(name)));
      columns.get(name)?.show(phase, quote);
    },
  };
}

function loadMode() {
  try {
    return MODES.some(([mode]) => mode === localStorage.getItem(STORED)) ? localStorage.getItem(STORED) : "";
  } catch {
    return ""; // no storage in a local file or a private window
  }
}

function storeMode(mode) {
  try {
    localStorage.setItem(STORED, mode);
  } catch {
    // it is not remembered
  }
}
