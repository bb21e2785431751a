// Tabs with the details of a run: packet, money, attempts, events, report. A tab is filled when it is opened.

import { attemptsTab } from "./attempts_tab.js";
import { button, el } from "./dom.js";
import { eventsTab } from "./events_tab.js";
import { moneyTab } from "./money_tab.js";
import { packetTab } from "./packet_tab.js";
import { reportTab } from "./report_tab.js";

const TABS = [["Packet", packetTab], ["Money", moneyTab], ["Attempts", attemptsTab], ["Events", eventsTab], ["Report", reportTab]];

export function tabsView(context) {
  const panels = new Map();
  const bar = el("div", { class: "tabs", role: "tablist", "aria-label": "Run details" });
  const stage = el("div", { class: "stage" });
  const node = el("section", { class: "run-details card", "aria-label": "Run details" }, bar, stage);
  let chosen = "";
  let last = null;

  TABS.forEach(([name, make]) => {
    const id = name.toLowerCase();
    const tab = button(name, () => choose(name), { role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, "aria-selected": "false", tabindex: "-1" });
    const panel = el("div", { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, hidden: true, tabindex: "0" });
    panels.set(name, { tab, panel, make, view: null });
    bar.append(tab);
    stage.append(panel);
  });
  panels.get("Packet").tab.tabIndex = 0;
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = TABS.map(([name]) => name);
    const at = names.findIndex((name) => panels.get(name).tab === document.activeElement);
    const next = names[(at + step + names.length) % names.length];
    choose(next);
    panels.get(next).tab.focus();
  });

  function choose(name) {
    chosen = name;
    for (const [key, { tab, panel }] of panels) {
      tab.setAttribute("aria-selected", String(key === name));
      tab.tabIndex = key === name ? 0 : -1;
      panel.hidden = key !== name;
    }
    const one = panels.get(name);
    if (!one.view) {
      one.view = one.make(context);
      one.panel.append(one.view.node);
    }
    if (last) one.view.update(last);
  }

  return {
    node,
    choose,
    update(scene) {
      last = scene;
      if (chosen) panels.get(chosen).view.update(scene);
    },
  };
}
