// Elements are built, never parsed: a string can only become a text node or the value of a named attribute.
// Whatever a model wrote passes through here, so there is no other way into the page.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "hidden", "disabled", "open", "selected", "min", "max"]);

/** el("p", {class: "soft"}, "words", el("b", {}, "more")) */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

export function svg(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

function filled(node, given, children) {
  for (const [name, value] of Object.entries(given)) set(node, name, value);
  node.append(...children.flat(9).filter(shown).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

const shown = (child) => child !== null && child !== undefined && child !== false && child !== "";

export function set(node, name, value) {
  if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
  else if (name === "style") for (const [key, what] of Object.entries(value)) node.style.setProperty(key, what);
  else if (PROPERTIES.has(name) && name in node) node[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** The only place where an address becomes a link: http and https alone, and the other side learns nothing of this page. */
export function link(address, ...children) {
  const safe = webAddress(address);
  if (!safe) return el("span", {}, ...children);
  return el("a", { href: safe, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

export function webAddress(address) {
  try {
    const url = new URL(String(address).trim());
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
  } catch {
    return "";
  }
}

/** Put these children in the place of all others. */
export function refill(node, ...children) {
  node.replaceChildren(...children.flat(9).filter(shown).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

/** Change a text only where it differs, so that nothing is laid out again for nothing. */
export function say(node, text) {
  const said = String(text ?? "");
  if (node.textContent !== said) node.textContent = said;
  return node;
}

export function flag(node, name, on) {
  if (node.hasAttribute(name) !== Boolean(on)) node.toggleAttribute(name, Boolean(on));
}

export function mark(node, name, value) {
  if (value === null || value === undefined || value === "") node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

export const button = (label, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, label);

/** What a view last showed: `changed(…)` is true when any of it is new, compared by value for what is plain. */
export function memory() {
  let last = [];
  return (...now) => {
    const same = now.length === last.length && now.every((one, n) => Object.is(one, last[n]));
    last = now;
    return !same;
  };
}

/** Whether the reader asked for calm. */
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Bring a node into view; without a ride for those who asked for calm. */
export function bringIntoView(node, block = "nearest") {
  node.scrollIntoView({ behavior: calm() ? "auto" : "smooth", block, inline: "nearest" });
}

/** Draw the eye to a node for a moment. */
export function flash(node) {
  node.classList.remove("flash");
  void node.offsetWidth; // begins the animation anew
  node.classList.add("flash");
  setTimeout(() => node.classList.remove("flash"), 2400);
}
