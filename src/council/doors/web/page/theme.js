// Theme: light, dark or system. Stored in the browser if possible.

import { button, setAttr, setText } from "./dom.js";

const ORDER = ["auto", "light", "dark"];
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

export function themeButton() {
  let current = loadTheme();
  const node = button("", () => setTheme(ORDER[(ORDER.indexOf(current) + 1) % ORDER.length]), { class: "quiet theme" });

  function setTheme(theme) {
    current = theme;
    setAttr(document.documentElement, "data-theme", theme === "auto" ? null : theme);
    setText(node, NAMES[theme]);
    try {
      localStorage.setItem("council-theme", theme);
    } catch {
      // no storage in a local file or a private window
    }
  }

  setTheme(current);
  return node;
}

function loadTheme() {
  try {
    const theme = localStorage.getItem("council-theme");
    return ORDER.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}
