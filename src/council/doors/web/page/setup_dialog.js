// Dialog with which the owner stores keys and a search on this machine. A key leaves the field as soon as it is stored or the dialog is closed.

import { button, el, setChildren, setText } from "./dom.js";
import { capital } from "./format.js";
import { send } from "./api.js";

const FOUND = { environment: "set in the environment", keyring: "stored", settings: "set", "": "not set" };

/** Return {node, show(setup), open(part)}. `saved` is called after something was stored. */
export function setupDialog(saved) {
  const vendors = part("key", "Models", "Vendor", "Tested by listing its models, which costs nothing.", saved);
  const search = part("search", "Search", "Provider", "The protocol Research answers from search results.", saved);
  const problem = el("p", { class: "problem", hidden: true });
  const node = el("dialog", { class: "setup-dialog", "aria-labelledby": "setup-title", onclose: () => (vendors.clear(), search.clear()) },
    el("h2", { id: "setup-title" }, "Set up models and search"),
    el("p", { class: "soft" }, "Keys are stored in the keyring of this computer, as with ", el("code", {}, "council keys set"), ". This page does not keep them."),
    problem, vendors.node, search.node, el("div", { class: "bar end" }, button("Close", () => node.close())));

  function show(setup) {
    setText(problem, setup.storage_problem ? capital(setup.storage_problem) : "");
    problem.hidden = !setup.storage_problem;
    vendors.show(setup.vendors, Boolean(setup.storage_problem));
    search.show(setup.search, Boolean(setup.storage_problem));
  }

  function open(which = "key") {
    node.showModal();
    (which === "search" ? search : vendors).focus();
  }

  return { node, show, open };
}

/** One form: what to set up, and its key or address. */
function part(path, title, label, hint, saved) {
  const id = `setup-${path}`;
  const select = el("select", { id, onchange: showField });
  const input = el("input", { type: "password", id: `${id}-value`, autocomplete: "off", spellcheck: "false", autocapitalize: "off", required: true });
  const name = el("label", { for: `${id}-value` }, "API key");
  const submit = button("Test and store", null, { type: "submit", class: "primary" });
  const result = el("p", { class: "result", role: "status" });
  const node = el("form", { class: "setup-part", onsubmit: store },
    el("h3", {}, title), el("p", { class: "hint" }, hint),
    el("div", { class: "setup-fields" }, el("div", { class: "field" }, el("label", { for: id }, label), select), el("div", { class: "field" }, name, input), submit), result);
  let items = [];
  let canStoreKeys = true;

  const chosen = () => items.find((one) => one.name === select.value);

  function show(found, isBlocked) {
    const before = select.value;
    items = found;
    canStoreKeys = !isBlocked;
    setChildren(select, items.map((one) => el("option", { value: one.name }, `${capital(one.name)} (${FOUND[one.found]})`)));
    select.value = items.some((one) => one.name === before) ? before : (items.find((one) => !one.found) || items[0])?.name || "";
    showField();
  }

  function showField() {
    const isKey = chosen()?.takes !== "address";
    clear();
    input.type = isKey ? "password" : "url";
    setText(name, isKey ? "API key" : "Address");
    input.placeholder = isKey ? "" : "of your own server";
    input.disabled = isKey && (!canStoreKeys || chosen()?.found === "environment");
    submit.disabled = input.disabled;
  }

  function clear() {
    input.value = "";
    setText(result, "");
    result.className = "result";
  }

  async function store(event) {
    event.preventDefault();
    const item = chosen();
    submit.disabled = true;
    result.className = "result soft";
    setText(result, "Testing …");
    try {
      const stored = await send(`setup/${path}`, { name: item.name, [item.takes]: input.value });
      input.value = "";
      await saved();
      result.className = "result good";
      setText(result, `${capital(stored.name)} is set up: ${stored.detail}.`);
    } catch (error) {
      result.className = "result problem";
      setText(result, capital(error.message));
    }
    submit.disabled = input.disabled;
  }

  return { node, show, clear, focus: () => (input.disabled ? select : input).focus() };
}
