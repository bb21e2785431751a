// Form for a question to a person, generated from the fields of the server: text, choices, numbers, lists, rows, groups.

import { button, el } from "./dom.js";

let counter = 0;

/** Return {node, value()}: an object without empty fields. Rows keep them, because the server completes only the top level. */
export function askFields(fields, inRow = false) {
  const parts = fields.map((field) => ({ field, ...FIELD_TYPES[field.kind in FIELD_TYPES ? field.kind : "text"](field) }));
  const empty = (field) => (inRow ? (field.optional ? null : field.kind === "text" ? "" : undefined) : undefined);
  return {
    node: el("div", { class: "ask-fields" }, parts.map((part) => part.node)),
    value: () => Object.fromEntries(parts.map((part) => [part.field.name, part.value() ?? empty(part.field)]).filter(([, value]) => value !== undefined)),
  };
}

const title = (field) => field.name.replaceAll("_", " ");

function labelField(field, input, value, hint = field.help) {
  const id = `asked-${(counter += 1)}`;
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return { node: el("div", { class: "field" }, el("label", { for: id }, title(field)), input, hint && el("span", { class: "hint", id: `${id}-hint` }, hint)), value };
}

const FIELD_TYPES = {
  text(field) {
    const input = el("textarea", { rows: "3" });
    return labelField(field, input, () => input.value.trim() || undefined);
  },
  choice(field) {
    // No default choice: a person must vote explicitly.
    const input = el("select", { required: !field.optional }, el("option", { value: "" }, field.optional ? "–" : "choose …"), field.choices.map((one) => el("option", { value: String(one) }, String(one))));
    return labelField(field, input, () => field.choices.find((one) => String(one) === input.value));
  },
  "yes or no"(field) {
    const input = el("select", { required: true }, el("option", { value: "" }, "choose …"), el("option", { value: "no" }, "no"), el("option", { value: "yes" }, "yes"));
    return labelField(field, input, () => (input.value ? input.value === "yes" : undefined));
  },
  number: (field) => numberField(field, "any"),
  "whole number": (field) => numberField(field, "1"),
  list(field) {
    const input = el("textarea", { rows: "3" });
    const hint = [field.help, field.choices && `one per line, each one of: ${field.choices.join(", ")}`].filter(Boolean).join("; ") || "one per line";
    return labelField(field, input, () => lines(input.value), hint);
  },
  group(field) {
    const inner = askFields(field.fields, true);
    return { node: el("fieldset", {}, el("legend", {}, title(field)), inner.node), value: inner.value };
  },
  rows(field) {
    const rows = [];
    const holder = el("div", { class: "ask-rows" });
    const add = () => {
      const inner = askFields(field.fields, true);
      rows.push(inner);
      holder.append(el("fieldset", {}, el("legend", {}, `${title(field)} ${rows.length}`), inner.node));
    };
    for (let n = 0; n < (field.minItems || 0); n += 1) add();
    const node = el("div", { class: "field" }, el("span", { class: "label" }, title(field)), field.help && el("span", { class: "hint" }, field.help), holder, button(`Add to ${title(field)}`, add));
    return { node, value: () => rows.map((row) => row.value()).filter((value) => Object.values(value).some(Boolean)) };
  },
};

function numberField(field, step) {
  const input = el("input", { type: "number", step, min: field.minimum ?? "", max: field.maximum ?? "" });
  return labelField(field, input, () => (input.value === "" ? undefined : Number(input.value)));
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
