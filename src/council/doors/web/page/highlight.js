// Colours of code: tokens of a vendored lexer become spans. Unknown languages and long code stay plain.

import { el } from "./dom.js";
import { tokenizeWith } from "./vendor/speed-highlight/tokenize.js";
import { default as bash } from "./vendor/speed-highlight/bash.js";
import { default as c } from "./vendor/speed-highlight/c.js";
import { default as css } from "./vendor/speed-highlight/css.js";
import { default as diff } from "./vendor/speed-highlight/diff.js";
import { default as docker } from "./vendor/speed-highlight/docker.js";
import { default as go } from "./vendor/speed-highlight/go.js";
import { default as html } from "./vendor/speed-highlight/html.js";
import { default as java } from "./vendor/speed-highlight/java.js";
import { default as js } from "./vendor/speed-highlight/js.js";
import { default as jsdoc } from "./vendor/speed-highlight/jsdoc.js";
import { default as json } from "./vendor/speed-highlight/json.js";
import { default as py } from "./vendor/speed-highlight/py.js";
import { default as regex } from "./vendor/speed-highlight/regex.js";
import { default as rs } from "./vendor/speed-highlight/rs.js";
import { default as sql } from "./vendor/speed-highlight/sql.js";
import { default as todo } from "./vendor/speed-highlight/todo.js";
import { default as toml } from "./vendor/speed-highlight/toml.js";
import { default as ts } from "./vendor/speed-highlight/ts.js";
import { default as yaml } from "./vendor/speed-highlight/yaml.js";

const MAX_CHARS = 8000; // longer code stays plain, to stay fast on any input
const LANGUAGES = { bash, c, css, diff, docker, go, html, java, js, jsdoc, json, py, regex, rs, sql, todo, toml, ts, yaml };
const ALIASES = {
  python: "py", python3: "py", javascript: "js", mjs: "js", jsx: "js", node: "js", typescript: "ts", tsx: "ts", sh: "bash", shell: "bash", zsh: "bash", console: "bash", rust: "rs", golang: "go", yml: "yaml",
  dockerfile: "docker", "c++": "c", cpp: "c", h: "c", hpp: "c", cc: "c", patch: "diff", jsonc: "json", json5: "json", xml: "html", svg: "html", vue: "html", kotlin: "java", postgresql: "sql", mysql: "sql", sqlite: "sql",
};

/** Return the text as strings and spans with the class of their kind, such as `t-kwd`. */
export function highlight(text, language) {
  const name = String(language || "").toLowerCase();
  const rules = LANGUAGES[Object.hasOwn(ALIASES, name) ? ALIASES[name] : Object.hasOwn(LANGUAGES, name) ? name : ""];
  if (!rules || text.length > MAX_CHARS) return [text];
  const parts = [];
  tokenizeWith(text, rules, (part, kind) => part && parts.push(kind ? el("span", { class: `t-${kind}` }, part) : part), { languages: LANGUAGES });
  return parts;
}
