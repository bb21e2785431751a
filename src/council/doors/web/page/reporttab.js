// The report as Markdown, and every other form of it to take away.

import { button, el, memory, refill } from "./dom.js";
import { write } from "./prose.js";

const FORMS = ["md", "json", "sarif", "junit", "github", "mermaid", "html"];

export function reportTab(context) {
  const text = el("div", {});
  const forms = el("p", { class: "forms" });
  const node = el("div", {}, forms, text);
  const isNew = memory();

  function update({ full }) {
    if (!isNew(full.run, full.status, full.seq && full.status !== "running" ? full.seq : 0)) return;
    if (context.source.reportAddress) {
      refill(forms, "Take away: ", FORMS.map((form) => el("a", { href: context.source.reportAddress(full.run, form), download: `${full.name || full.run}.${form}` }, form)), button("Copy as Markdown", copy, { class: "quiet" }));
    }
    load(full.run);
  }

  async function load(run) {
    try {
      const said = await context.source.report(run, "md");
      write(text, said, { top: 3 });
    } catch (error) {
      refill(text, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  const copy = async () => navigator.clipboard.writeText(await context.source.report(context.minutes().run, "md"));

  return { node, update };
}
