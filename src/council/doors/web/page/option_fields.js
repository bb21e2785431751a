// Form fields for the options of a protocol, generated from its JSON schema.

import { el } from "./dom.js";

/** Return {node, value()}: the options that differ from their defaults. `known` has suggestions by option: {roster: […]}. */
export function optionFields(schema, changed, known = {}) {
  const fields = Object.entries(schema?.properties || {}).map(([name, about]) => field(name, plain(about), changed, known[name]));
  const node = el("div", { class: "options" }, fields.map((one) => one.node));
  return { node, value: () => Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined)) };
}

/** Return the non-null part of an `anyOf`, with the outer description and default. */
function plain(about) {
  const choice = (about.anyOf || about.allOf || []).find((one) => one.type !== "null");
  return choice ? { ...choice, description: about.description, default: about.default } : about;
}

function field(name, about, changed, suggested = []) {
  const id = `option-${name}`;
  const label = name.replaceAll("_", " ");
  const kind = about.enum ? "choice" : about.type;
  const input = (INPUTS[kind] || INPUTS.string)(id, about);
  input.addEventListener("input", changed);
  const list = suggested.length > 0 && el("datalist", { id: `${id}-known` }, suggested.map((one) => el("option", { value: one })));
  if (list) input.setAttribute("list", `${id}-known`);
  const hint = about.description && el("span", { class: "hint", id: `${id}-hint` }, about.description);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  const node = kind === "boolean"
    ? el("div", { class: "field check" }, input, el("label", { for: id }, label), hint)
    : el("div", { class: "field" }, el("label", { for: id }, label), input, list, hint);
  return { name, node, value: () => (READ[kind] || READ.string)(input, about) };
}

const INPUTS = {
  boolean: (id, about) => el("input", { type: "checkbox", id, checked: about.default === true }),
  choice: (id, about) => el("select", { id }, !about.enum.includes(about.default) && el("option", { value: "" }, "–"), about.enum.map((one) => el("option", { value: one, selected: one === about.default }, one))),
  integer: (id, about) => el("input", { type: "number", id, min: about.minimum ?? "", max: about.maximum ?? "", value: about.default ?? "", step: "1" }),
  number: (id, about) => el("input", { type: "number", id, min: about.minimum ?? "", max: about.maximum ?? "", value: about.default ?? "", step: "any" }),
  string: (id, about) => el("input", { type: "text", id, value: typeof about.default === "string" ? about.default : "" }),
  array: (id) => el("input", { type: "text", id, placeholder: "a, b, c" }),
};

/** Return undefined for an unchanged field: the server knows the defaults. */
const READ = {
  boolean: (input, about) => (input.checked === (about.default === true) ? undefined : input.checked),
  choice: (input, about) => (input.value === (about.default ?? "") ? undefined : input.value || undefined),
  integer: (input, about) => (input.value === "" || Number(input.value) === about.default ? undefined : Number(input.value)),
  number: (input, about) => READ.integer(input, about),
  string: (input, about) => (input.value.trim() === (about.default ?? "") ? undefined : input.value.trim()),
  array: (input) => (input.value.trim() ? input.value.split(",").map((one) => one.trim()).filter(Boolean) : undefined),
};
