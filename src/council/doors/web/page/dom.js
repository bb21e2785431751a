// DOM helpers. A string can only become a text node or an attribute value, never parsed HTML.
// All model output reaches the page through these functions.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "hidden", "disabled", "open", "selected", "min", "max"]);

/** Make an element: el("p", {class: "soft"}, "text", el("b", {}, "more")) */
export function el(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children.flat(9).filter(isShown).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

const isShown = (child) => child !== null && child !== undefined && child !== false && child !== "";

export function set(node, name, value) {
  if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
  else if (name === "style") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
  else if (PROPERTIES.has(name) && name in node) node[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** Make a link. Only web and mail addresses are allowed, without opener or referrer. */
export function link(address, ...children) {
  const safe = checkAddress(address, ["http:", "https:", "mailto:"]);
  if (!safe) return el("span", {}, ...children);
  return el("a", { href: safe, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

export const webAddress = (address) => checkAddress(address, ["http:", "https:"]);

function checkAddress(address, protocols) {
  try {
    const url = new URL(String(address).trim());
    return protocols.includes(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}

/** Replace all children. */
export function setChildren(node, ...children) {
  node.replaceChildren(...children.flat(9).filter(isShown).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

const builtOpen = new WeakMap(); // details element → whether it was built open

/** Replace all children. The parts that the reader opened or closed stay as they are, and so does the focus. */
export function rebuild(node, ...children) {
  const chosen = new Map([...listParts(node)].filter(([, part]) => part.open !== builtOpen.get(part)).map(([key, part]) => [key, part.open]));
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const focusedKey = [...listParts(node)].find(([, part]) => part.firstChild === focused)?.[0];
  setChildren(node, ...children);
  const parts = listParts(node);
  for (const [key, part] of parts) {
    builtOpen.set(part, part.open);
    if (chosen.has(key)) part.open = chosen.get(key);
  }
  if (focused) (node.contains(focused) ? focused : parts.get(focusedKey)?.firstChild)?.focus({ preventScroll: true });
}

/** Return the details elements by their titles; equal titles are numbered. */
function listParts(node) {
  const parts = new Map();
  for (const part of node.querySelectorAll("details")) {
    const summary = part.querySelector("summary");
    const title = (summary.querySelector("h3") || summary).textContent;
    let key = title;
    for (let n = 2; parts.has(key); n += 1) key = `${title} ${n}`;
    parts.set(key, part);
  }
  return parts;
}

/** Set the text if it differs, to avoid needless layout. */
export function setText(node, text) {
  const value = String(text ?? "");
  if (node.textContent !== value) node.textContent = value;
  return node;
}

export function setAttr(node, name, value) {
  if (value === null || value === undefined || value === "") node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

export const button = (label, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, label);

/** Return a function that tells whether any of its arguments differs from the last call. */
export function changeDetector() {
  let last = [];
  return (...now) => {
    const same = now.length === last.length && now.every((one, n) => Object.is(one, last[n]));
    last = now;
    return !same;
  };
}

/** Whether the reader prefers reduced motion. */
export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Scroll a node into view, smoothly unless reduced motion is preferred. */
export function bringIntoView(node, block = "nearest") {
  node.scrollIntoView({ behavior: prefersReducedMotion() ? "auto" : "smooth", block, inline: "nearest" });
}

/** Highlight a node for a moment. */
export function flash(node) {
  node.classList.remove("flash");
  void node.offsetWidth; // restarts the animation
  node.classList.add("flash");
  setTimeout(() => node.classList.remove("flash"), 2400);
}
