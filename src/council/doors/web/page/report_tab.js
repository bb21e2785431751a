// The report as Markdown, with downloads in every format.

import { button, el, changeDetector, setChildren } from "./dom.js";
import { renderMarkdown } from "./render_markdown.js";

const FORMS = ["md", "json", "sarif", "junit", "github", "mermaid", "html"];

export function reportTab(context) {
  const text = el("div", {});
  const forms = el("p", { class: "forms" });
  const node = el("div", {}, forms, text);
  const isNew = changeDetector();

  function update({ full }) {
    if (!isNew(full.run, full.status, full.seq && full.status !== "running" ? full.seq : 0)) return;
    if (context.source.save) setChildren(forms, "Download: ", FORMS.map((form) => button(form, () => download(full, form), { class: "link" })), button("Copy as Markdown", copy, { class: "quiet" }));
    load(full.run);
  }

  async function download(full, form) {
    try {
      await context.source.save(full.run, form, `${full.name || full.run}.${form}`);
    } catch (error) {
      setChildren(text, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  async function load(run) {
    try {
      const report = await context.source.report(run, "md");
      renderMarkdown(text, report, { top: 3 });
    } catch (error) {
      setChildren(text, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  const copy = async () => navigator.clipboard.writeText(await context.source.report(context.minutes().run, "md"));

  return { node, update };
}
