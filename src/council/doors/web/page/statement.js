// One statement: streamed as plain text, then shown as Markdown, or the reason for its absence.

import { button, el, setAttr, setChildren, setText } from "./dom.js";
import { diffNode } from "./diff.js";
import { liveText } from "./live_text.js";
import { number, formatState, formatSeconds } from "./format.js";
import { renderMarkdown } from "./render_markdown.js";

/** `earlier()` returns the statement of the previous round, if any; `built` is called when streamed text has become Markdown. */
export function statementNode({ key, title, earlier, built }) {
  const body = el("div", { class: "said" });
  const facts = el("span", { class: "facts" });
  const compare = button("compare", toggle, { class: "quiet", hidden: true, "aria-pressed": "false" });
  const head = el("header", {}, el("h4", {}, title), facts, compare);
  const node = el("article", { class: "statement", "data-key": key, tabindex: "-1" }, head, body);
  let showing = "";
  let said = null;
  let live = null;
  let piecesShown = 0;
  let cancelBuild = null;

  function toggle() {
    const on = compare.getAttribute("aria-pressed") !== "true";
    compare.setAttribute("aria-pressed", String(on));
    if (on) setChildren(body, diffNode(earlier().said, said.said));
    else build();
  }

  /** Show streamed pieces, or the partial text of a replay. */
  function stream(from) {
    if (showing !== "live") {
      setMode("live");
      live = liveText();
      piecesShown = 0;
      setChildren(body, live.node);
      setText(facts, "");
    }
    if (from.text !== undefined) live.show(from.text);
    else {
      if (piecesShown > from.pieces.length) live.clear(), (piecesShown = 0);
      for (; piecesShown < from.pieces.length; piecesShown += 1) live.write(from.pieces[piecesShown]);
    }
  }

  function setMode(what) {
    cancelBuild?.();
    cancelBuild = null;
    showing = what;
    setAttr(node, "data-showing", what);
    compare.hidden = true;
    compare.setAttribute("aria-pressed", "false");
  }

  function showStatement(statement) {
    if (showing === "said" && said.seq === statement.seq) return; // compare by seq: a replay has other objects
    const streamed = showing === "live";
    said = statement;
    setMode("said");
    setText(facts, factsOf(statement));
    const before = earlier();
    compare.hidden = !before;
    if (before) compare.setAttribute("title", `Changes since ${before.phase}`);
    build(streamed && built);
  }

  /** Build the Markdown; the streamed text stays until it is complete. */
  function build(then) {
    cancelBuild?.();
    cancelBuild = renderMarkdown(body, said.said, { top: 5 }, () => then && then(node));
  }

  function showMessage(words, detail) {
    const mode = `${words}|${detail}`;
    if (showing === mode) return;
    setMode(mode);
    setAttr(node, "data-showing", "silent");
    setText(facts, "");
    setChildren(body, el("p", { class: "silent" }, words), detail && el("p", { class: "reason" }, detail));
  }

  const showAbsence = (absence) => showMessage(formatState(absence.state), absence.reason);
  return { node, body, stream, showStatement, showMessage, showAbsence, get said() { return said; } };
}

function factsOf(said) {
  const tokens = said.usage?.out ? `${number(said.usage.out)} tokens` : "";
  return [tokens, formatSeconds(said.seconds || 0)].filter(Boolean).join(" · ");
}
