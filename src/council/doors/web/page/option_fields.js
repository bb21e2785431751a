// Form fields for options, generated from their JSON schema: those of a protocol, also of an installed one, and those of every run.

import { button, el, setChildren } from "./dom.js";
import { capital } from "./format.js";

/** Return {node, value(), restore(values)}: the options that differ from their defaults. `menus` has the names of each kind of choice: {rosters: […]}. */
export function optionFields(schema, changed, menus = {}) {
  const fields = Object.entries(schema?.properties || {}).map(([name, about]) => field(name, plain(about), changed, menus));
  const node = el("div", { class: "options" }, fields.map((one) => one.node));
  return { node, value: () => Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined)), restore };

  function restore(values) {
    for (const one of fields) if (values[one.name] !== undefined) one.restore(values[one.name]);
  }
}

export const fieldTitle = (name, about) => about?.title || name.replaceAll("_", " ");

/** Return the non-null part of an `anyOf`, with the outer fields. */
function plain({ anyOf, allOf, ...outer }) {
  const choice = (anyOf || allOf || []).find((one) => one.type !== "null");
  return { ...choice, ...outer };
}

function kindOf(about) {
  if (about.enum) return "choice";
  if (about.choices && about.type === "array") return "members";
  if (about.choices) return "menu";
  return about.format === "lines" ? "lines" : about.type;
}

function field(name, about, changed, menus) {
  const id = `option-${name}`;
  const kind = kindOf(about);
  const { node: input, value, restore } = (INPUTS[kind] || INPUTS.string)(id, about, changed, menus[about.choices] || []);
  input.addEventListener("input", changed);
  const hint = about.description && el("span", { class: "hint", id: `${id}-hint` }, about.description);
  const control = input.id === id ? input : input.querySelector(`[id="${id}"]`);
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  const label = el("label", { for: id }, capital(fieldTitle(name, about).toLowerCase()));
  const parts = kind === "boolean" ? [input, label, hint] : [label, input, hint];
  return { name, value, restore, node: el("div", { class: kind === "boolean" ? "field check" : "field", "data-kind": kind }, parts) };
}

/** Each kind of input returns {node, value(), restore(value)}; an unchanged field has no value, because the server knows the defaults. */
const INPUTS = {
  boolean(id, about) {
    const node = el("input", { type: "checkbox", id, checked: about.default === true });
    return { node, value: () => (node.checked === (about.default === true) ? undefined : node.checked), restore: (value) => (node.checked = value) };
  },
  choice(id, about) {
    const node = el("select", { id }, !about.enum.includes(about.default) && el("option", { value: "" }, "–"), about.enum.map((one) => el("option", { value: one, selected: one === about.default }, one)));
    return { node, value: () => (node.value === (about.default ?? "") ? undefined : node.value || undefined), restore: (value) => (node.value = value) };
  },
  integer: (id, about) => numberInput(id, about, "1"),
  number: (id, about) => numberInput(id, about, "any"),
  string(id, about) {
    const before = typeof about.default === "string" ? about.default : "";
    const node = el("input", { type: "text", id, value: before });
    return { node, value: () => (node.value.trim() === before ? undefined : node.value.trim()), restore: (value) => (node.value = value) };
  },
  array(id) {
    const node = el("input", { type: "text", id, placeholder: "a, b, c" });
    return { node, value: () => list(node.value.split(",")), restore: (value) => (node.value = value.join(", ")) };
  },
  lines(id) {
    const node = el("textarea", { id, rows: "2", placeholder: "one per line" });
    return { node, value: () => list(node.value.split("\n")), restore: (value) => (node.value = value.join("\n")) };
  },
  /** Names that the server knows, and a text field for another one, such as a file. */
  menu(id, about, changed, names) {
    const other = el("input", { type: "text", "aria-label": `Other ${about.title || "name"}`, hidden: true });
    const select = el("select", { id, onchange: () => ((other.hidden = select.value !== OTHER), other.hidden || other.focus(), changed()) },
      el("option", { value: "" }, "–"), names.map((one) => el("option", { value: one.name, title: one.about || "" }, one.name)), el("option", { value: OTHER }, "other …"));
    const restore = (value) => {
      const isKnown = names.some((one) => one.name === value);
      select.value = isKnown ? value : OTHER;
      [other.value, other.hidden] = [isKnown ? "" : value, isKnown];
    };
    return { node: el("div", { class: "menu-field" }, select, other), value: () => (select.value === OTHER ? other.value.trim() : select.value) || undefined, restore };
  },
  /** Several names, in order. */
  members(id, about, changed, names) {
    const chosen = [];
    const shown = el("ul", { class: "plain picked" });
    const draw = () => setChildren(shown, chosen.map((name, n) => el("li", {}, el("code", {}, name), button("×", () => (chosen.splice(n, 1), draw(), changed()), { class: "quiet", "aria-label": `Remove ${name}` }))));
    const add = el("select", { id, onchange: () => (add.value && chosen.push(add.value), (add.value = ""), draw(), changed()) }, el("option", { value: "" }, "add …"), names.map((one) => el("option", { value: one.name }, one.name)));
    return { node: el("div", { class: "menu-field" }, shown, add), value: () => (chosen.length ? [...chosen] : undefined), restore: (value) => (chosen.push(...value), draw()) };
  },
};

const OTHER = "\u0000other"; // no name contains this character

function numberInput(id, about, step) {
  const node = el("input", { type: "number", id, min: about.minimum ?? "", max: about.maximum ?? "", value: about.default ?? "", step });
  return { node, value: () => (node.value === "" || Number(node.value) === about.default ? undefined : Number(node.value)), restore: (value) => (node.value = value) };
}

function list(parts) {
  const found = parts.map((one) => one.trim()).filter(Boolean);
  return found.length ? found : undefined;
}
