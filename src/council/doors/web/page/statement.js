// One statement in a seat's column: streaming as plain text, then as Markdown, or why it is missing.

import { button, el, mark, refill, say } from "./dom.js";
import { diffNode } from "./diff.js";
import { liveText } from "./livetext.js";
import { number, stateInWords, tookWords } from "./words.js";
import { write } from "./prose.js";

/** `earlier()` gives what the same seat said in the round before, if it can be compared; `built` hears that what had
    streamed stands there as Markdown. */
export function statementNode({ key, title, earlier, built }) {
  const body = el("div", { class: "said" });
  const facts = el("span", { class: "facts" });
  const compare = button("compare", toggle, { class: "quiet", hidden: true, "aria-pressed": "false" });
  const head = el("header", {}, el("h4", {}, title), facts, compare);
  const node = el("article", { class: "statement", "data-key": key, tabindex: "-1" }, head, body);
  let showing = "";
  let said = null;
  let live = null;
  let heard = 0;
  let drop = null;

  function toggle() {
    const on = compare.getAttribute("aria-pressed") !== "true";
    compare.setAttribute("aria-pressed", String(on));
    if (on) refill(body, diffNode(earlier().said, said.said));
    else build();
  }

  /** The text as it streams: pieces are added, a text of a replay is shown up to its end. */
  function stream(from) {
    if (showing !== "live") {
      become("live");
      live = liveText();
      heard = 0;
      refill(body, live.node);
      say(facts, "");
    }
    if (from.text !== undefined) live.show(from.text);
    else {
      if (heard > from.pieces.length) live.clear(), (heard = 0);
      for (; heard < from.pieces.length; heard += 1) live.write(from.pieces[heard]);
    }
  }

  function become(what) {
    drop?.();
    drop = null;
    showing = what;
    mark(node, "data-showing", what);
    compare.hidden = true;
    compare.setAttribute("aria-pressed", "false");
  }

  function tell(statement) {
    if (showing === "said" && said.seq === statement.seq) return; // also in a replay, where it is another object
    const streamed = showing === "live";
    said = statement;
    become("said");
    say(facts, factsOf(statement));
    const before = earlier();
    compare.hidden = !before;
    if (before) compare.setAttribute("title", `What changed since ${before.phase}`);
    build(streamed && built);
  }

  /** What streamed stays until its Markdown is whole. */
  function build(then) {
    drop?.();
    drop = write(body, said.said, { top: 5 }, () => then && then(node));
  }

  function pause(words, detail) {
    const told = `${words}|${detail}`;
    if (showing === told) return;
    become(told);
    mark(node, "data-showing", "silent");
    say(facts, "");
    refill(body, el("p", { class: "silent" }, words), detail && el("p", { class: "reason" }, detail));
  }

  const absent = (missed) => pause(stateInWords(missed.state), missed.reason);
  return { node, body, stream, tell, pause, absent, get said() { return said; } };
}

function factsOf(said) {
  const tokens = said.usage?.out ? `${number(said.usage.out)} tokens` : "";
  return [tokens, tookWords(said.seconds || 0)].filter(Boolean).join(" · ");
}
