// Menu of the protocols: for each its picture, name, one sentence and price.

import { button, el, setText } from "./dom.js";
import { capital, money } from "./format.js";
import { protocolDiagram } from "./protocol_diagram.js";

const AUTOMATIC = { name: "", use: "Automatic", purpose: "Chosen from the words of the question.", phases: [] };

/** Return {node, value(), set(name)}. `choose` gets the name of a protocol, "" for the automatic choice. `setUp` opens the setup of what a protocol needs, if it can be set up here. */
export function protocolMenu(protocols, choose, setUp) {
  const rows = [AUTOMATIC, ...protocols.filter((one) => one.use), ...protocols.filter((one) => !one.use)];
  const label = el("b", {}, AUTOMATIC.use);
  const menu = el("div", { class: "protocol-menu", popover: "auto", id: "protocol-menu" },
    el("p", { class: "hint" }, "Prices are for one line of question, at most. The Run button shows yours."),
    el("div", { class: "protocols", role: "radiogroup", "aria-label": "Protocol" }, rows.map((one) => row(one, pick, setUp))));
  const opener = button([el("span", { class: "visually-hidden" }, "Protocol: "), label, el("span", { class: "caret", "aria-hidden": "true" }, "▾")], null, { class: "menu-button", popovertarget: "protocol-menu", title: "Protocol: how the council works" });
  menu.addEventListener("toggle", ({ newState }) => newState === "open" && menu.querySelector("input:checked").focus());
  menu.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), menu.hidePopover()));
  menu.addEventListener("click", ({ target, detail }) => detail > 0 && target.closest(".protocol") && !target.closest("button") && setTimeout(() => menu.hidePopover())); // not the arrow keys, which click too

  const checked = () => menu.querySelector("input:checked");

  function pick(name) {
    setText(label, nameOf(rows.find((one) => one.name === name)));
    choose(name);
  }

  function set(name) {
    const input = [...menu.querySelectorAll("input")].find((one) => one.value === name);
    if (!input) return;
    input.checked = true;
    setText(label, nameOf(rows.find((one) => one.name === name)));
  }

  return { node: el("div", { class: "protocol-field" }, opener, menu), value: () => checked().value, set };
}

const nameOf = (protocol) => protocol.use || capital(protocol.name);

function row(protocol, pick, setUp) {
  const id = `protocol-${protocol.name || "auto"}`;
  const name = nameOf(protocol);
  const needsSetup = Boolean(protocol.note && protocol.calls);
  const canSetUp = Boolean(needsSetup && setUp);
  return el("div", { class: "protocol-row" },
    el("label", { class: "protocol", for: id },
      el("input", { type: "radio", name: "protocol", id, value: protocol.name, checked: !protocol.name, onchange: () => pick(protocol.name) }),
      protocol.phases?.length ? protocolDiagram(protocol.phases) : el("span", { class: "picture auto", "aria-hidden": "true" }, "Aa"),
      el("span", { class: "protocol-text" }, el("b", {}, name), protocol.name && protocol.name !== name.toLowerCase() && el("span", { class: "hint" }, ` ${protocol.name}`), el("span", { class: "hint sentence" }, capital(protocol.purpose || protocol.summary || ""))),
      el("span", { class: "protocol-price" }, protocol.note ? !canSetUp && el("span", { class: "notice", title: protocol.note }, needsSetup ? "needs setup" : "cannot run now") : priceOf(protocol.cost))),
    canSetUp && button("Set up", setUp, { title: protocol.note, "aria-label": `Set up ${name}` }));
}

const priceOf = (cost) => (cost ? (cost.worst > 0 ? money(cost.worst) : "free") : "");
