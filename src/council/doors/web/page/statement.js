// One statement: its Markdown while it streams and when it is complete, or the reason for its absence.

import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { diffNode } from "./diff.js";
import { liveText } from "./live_text.js";
import { markdown } from "./markdown.js";
import { capital, number, formatState, formatSeconds, short } from "./format.js";
import { renderMarkdown } from "./render_markdown.js";

const FOLD_CHARS = 600; // longer statements of earlier rounds are folded

/** `earlier()` returns the statement of the previous round, if any; `built` is called when streamed text has become Markdown. */
export function statementNode({ key, title, earlier, built }) {
  const body = el("div", { class: "said" });
  const facts = el("span", { class: "facts" });
  const name = button(title, () => setFolded((chosen = !folded)), { class: "fold", "aria-expanded": "true" });
  const compare = button("compare", toggle, { class: "quiet", hidden: true, "aria-pressed": "false" });
  const brief = el("p", { class: "brief", hidden: true });
  const head = el("header", {}, el("h4", {}, name), facts, compare);
  const node = el("article", { class: "statement", "data-key": key, tabindex: "-1" }, head, brief, body);
  const created = Date.now() / 1000;
  let showing = "";
  let said = null;
  let live = null;
  let cancelBuild = null;
  let isBuilt = false; // whether the body shows the statement; a folded one is built when it is opened
  let folded = false;
  let chosen = null; // whether the reader folded it

  function toggle() {
    const on = compare.getAttribute("aria-pressed") !== "true";
    compare.setAttribute("aria-pressed", String(on));
    isBuilt = on;
    cancelBuild?.();
    if (on) setChildren(body, diffNode(earlier().said, said.said));
    setFolded((chosen = false));
  }

  function setFolded(on) {
    folded = on;
    body.hidden = on;
    brief.hidden = !on;
    setAttr(name, "aria-expanded", String(!on));
    if (on) setText(brief, said ? summarize(said.said) : "…");
    else if (!isBuilt) build();
  }

  /** Show streamed pieces, or the partial text of a replay. */
  function stream(from) {
    if (showing !== "live") {
      setMode("live");
      live?.close();
      live = liveText();
      setChildren(body, live.node);
      setText(facts, "");
    }
    live.update(from);
  }

  function setMode(what) {
    cancelBuild?.();
    cancelBuild = null;
    if (what !== "live") live?.close();
    showing = what;
    isBuilt = true;
    chosen = null;
    if (folded) setFolded(false);
    setAttr(node, "data-showing", what);
    compare.hidden = true;
    compare.setAttribute("aria-pressed", "false");
  }

  /** `isOlder`: the seat has a later statement. What the reader saw being written stays open. */
  function showStatement(statement, isOlder) {
    if (showing !== "said" || said.seq !== statement.seq) begin(statement); // compare by seq: a replay has other objects
    const fold = chosen ?? (isOlder && statement.at < created && statement.said.length > FOLD_CHARS);
    if (fold !== folded || !(folded || isBuilt)) setFolded(fold);
  }

  function begin(statement) {
    const streamed = showing === "live" ? live : null;
    said = statement;
    setMode("said");
    setText(facts, factsOf(statement));
    const before = earlier();
    compare.hidden = !before;
    if (before) compare.setAttribute("title", `Changes since ${before.phase}`);
    cancelBuild = streamed?.finish(statement.said, () => built(node));
    isBuilt = Boolean(cancelBuild);
    if (streamed && !isBuilt) build(() => built(node));
  }

  /** Build the Markdown; the streamed text stays until it is complete. */
  function build(then) {
    cancelBuild?.();
    isBuilt = true;
    cancelBuild = renderMarkdown(body, said.said, { top: 5 }, then);
  }

  function showMessage(words, detail) {
    const mode = `${words}|${detail}`;
    if (showing === mode) return;
    setMode(mode);
    setAttr(node, "data-showing", "silent");
    setText(facts, "");
    setChildren(body, el("p", { class: "silent" }, words), detail && el("p", { class: "reason" }, detail));
  }

  /** Show that a seat did not answer, and why, unless it stands above the answer. */
  const showAbsence = (absence, isToldAbove) => (isToldAbove ? showMessage("No answer", "") : showMessage(capital(formatState(absence.state)), absence.reason));
  return { node, body, stream, showStatement, showMessage, showAbsence, open: () => folded && setFolded((chosen = false)), get said() { return said; } };
}

/** The beginning of a text, without Markdown marks, on one line. */
export function summarize(text) {
  const parts = [...markdown(text.slice(0, 600)).querySelectorAll("h4, h5, h6, p, li, th, td, code")].filter((part) => !part.querySelector("p, li") && !part.parentElement.closest("p, li, h4, h5, h6, th, td"));
  return short(parts.map((part) => part.textContent).join(" · "), 160);
}

function factsOf(said) {
  const tokens = said.usage?.out ? `${number(said.usage.out)} tokens` : "";
  return [tokens, formatSeconds(said.seconds || 0)].filter(Boolean).join(" · ");
}
