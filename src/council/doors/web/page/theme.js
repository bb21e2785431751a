// Light, dark, or as the system has it. Remembered where the browser lets it be.

import { button, mark, say } from "./dom.js";

const ORDER = ["auto", "light", "dark"];
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

export function themeButton() {
  let now = kept();
  const node = button("", () => show(ORDER[(ORDER.indexOf(now) + 1) % ORDER.length]), { class: "quiet theme" });

  function show(theme) {
    now = theme;
    mark(document.documentElement, "data-theme", theme === "auto" ? null : theme);
    say(node, NAMES[theme]);
    try {
      localStorage.setItem("council-theme", theme);
    } catch {
      // a file or a private window may not keep anything
    }
  }

  show(now);
  return node;
}

function kept() {
  try {
    const theme = localStorage.getItem("council-theme");
    return ORDER.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}
