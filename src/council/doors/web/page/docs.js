// The HTTP API for people: every operation of /api/openapi.json with its fields, responses and an example.

import { get, signIn } from "./api.js";
import { el, setChildren } from "./dom.js";
import { themeButton } from "./theme.js";

const TONES = { GET: null, POST: "good", PATCH: "doubt", DELETE: "bad" };
const MAX_DEPTH = 6; // levels of fields that can be opened
let schemas = {};

async function show() {
  const list = el("div", {}, el("p", { class: "soft" }, "Loading…"));
  const search = el("input", { type: "search", placeholder: "Find an operation", "aria-label": "Find an operation", oninput: () => filter(list, search.value) });
  const back = el("a", { class: "button", href: "/" }, "Runs");
  const page = el("main", { class: "api" }, el("header", {}, el("h1", {}, "Council HTTP API"), themeButton(), back), search, list);
  document.body.append(page);
  await signIn();
  try {
    const described = await get("openapi.json");
    schemas = described.components.schemas;
    setChildren(list, introduction(described), groups(described));
  } catch (error) {
    setChildren(list, el("p", { class: "card", role: "alert" }, error.message));
  }
}

const introduction = (described) =>
  el("div", { class: "card" }, el("p", {}, described.info.description), el("p", { class: "soft" },
    "Send the token in every request: ", el("code", {}, "Authorization: Bearer TOKEN"), ". Bodies are JSON. Errors have a stable ", el("code", {}, "error.code"), "."));

function groups(described) {
  const found = new Map((described.tags || []).map((tag) => [tag.name, { about: tag.description, rows: [] }]));
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, about] of Object.entries(methods)) found.get(about.tags[0]).rows.push(operation(method.toUpperCase(), path, about));
  }
  return [...found.values()].filter((group) => group.rows.length).map((group) => el("section", {}, el("h2", {}, group.about), group.rows));
}

function operation(method, path, about) {
  const [first, ...rest] = (about.description || "").split(". ");
  const body = about.requestBody?.content["application/json"];
  const node = el("details", { class: "card operation", id: about.operationId, "data-words": `${method} ${path} ${about.operationId} ${about.description}`.toLowerCase() },
    el("summary", {}, el("span", { class: "method", "data-tone": TONES[method] }, method), el("code", { class: "path" }, path), el("span", { class: "soft" }, words(first.replace(/\.$/, "")))));
  node.addEventListener("toggle", () => node.open && node.children.length === 1 && node.append(el("div", { class: "inside" },
    rest.length > 0 && el("p", {}, words(rest.join(". "))),
    part("Parameters", (about.parameters || []).map((one) => field(one.name, one.schema, { needed: one.required, about: one.description || one.schema.description, place: one.in }))),
    body && part("Body", fields(body.schema, { marks: true })),
    Object.entries(about.responses).filter(([status]) => status < "400").map(([status, one]) => response(status, one)),
    part("Errors", Object.entries(about.responses).filter(([status]) => status >= "400").map(([status, one]) => el("div", { class: "prop" }, el("code", {}, status), el("span", {}, words(one.description))))))));
  return node;
}

/** Show `names` in a text as code. */
const words = (text) => text.split("`").map((part, n) => (n % 2 ? el("code", {}, part) : part));

const part = (title, rows) => rows.length > 0 && el("section", {}, el("h3", {}, title), el("div", { class: "props" }, rows));

function response(status, about) {
  return Object.entries(about.content || { "": {} }).map(([kind, content]) => el("section", {},
    el("h3", {}, `${status} ${kind}`), about.description !== "OK." && el("p", { class: "soft" }, words(about.description)),
    (content.schema || content.itemSchema) && el("div", { class: "props" }, fields(content.schema || content.itemSchema.properties.data.contentSchema || content.itemSchema)),
    content.example !== undefined && example(content.example)));
}

const example = (value) => el("details", { class: "opens" }, el("summary", {}, "Example"), el("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2)));

const resolve = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema) || {};
const nameOf = (schema) => schema?.$ref?.split("/").pop();

/** Describe the fields of an object, or of what a list or a choice contains. */
function fields(schema, { depth = 0, marks = false } = {}) {
  const found = resolve(schema);
  if (found.properties) return Object.entries(found.properties).map(([name, one]) => field(name, one, { needed: marks && found.required?.includes(name), about: one.description, depth, marks }));
  const inner = found.items ? [found.items] : (found.oneOf || found.anyOf || []).filter((one) => one.type !== "null");
  return inner.map((one) => field(typeName(one), one, { about: resolve(one).description, depth, marks, bare: true }));
}

function field(name, schema, { needed, about, place, depth = 0, marks, bare }) {
  const inner = depth < MAX_DEPTH && hasFields(schema);
  const head = [el("code", {}, name), el("span", {}, bare ? "" : typeName(schema), place && ` in ${place}`, needed && ", required"), about && el("span", {}, words(about))];
  if (!inner) return el("div", { class: "prop" }, head);
  const node = el("details", { class: "opens" }, el("summary", {}, "Fields"));
  node.addEventListener("toggle", () => node.open && node.children.length === 1 && node.append(el("div", { class: "props" }, fields(schema, { depth: depth + 1, marks }))));
  return el("div", { class: "prop" }, head, node);
}

function hasFields(schema) {
  const found = resolve(schema);
  return Boolean(found.properties || (found.items && hasFields(found.items)) || (found.oneOf || found.anyOf || []).some(hasFields));
}

function typeName(schema) {
  if (nameOf(schema)) return resolve(schema).enum ? resolve(schema).enum.join(" | ") : nameOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.items) return `list of ${typeName(schema.items)}`;
  const choices = schema.oneOf || schema.anyOf;
  return choices ? choices.map(typeName).join(" | ") : schema.type || "any";
}

function filter(list, words) {
  const wanted = words.toLowerCase().split(/\s+/);
  for (const node of list.querySelectorAll(".operation")) node.hidden = !wanted.every((word) => node.dataset.words.includes(word));
  for (const group of list.querySelectorAll("section:has(> .operation)")) group.hidden = !group.querySelector(".operation:not([hidden])");
}

show();
