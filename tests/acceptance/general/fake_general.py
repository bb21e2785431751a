"""A fake general council: scripted replies at an endpoint, and a folder of documents to search."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.helpers import Json, Result, Terminal, Workspace
from tests.fake_provider import Reply, Seen
from tests.trusted_project import trust_project

MEMBERS = ("generalist", "skeptic", "domain_expert")
QUESTION = "Should the archive move to cold storage?"
PHASE = {
    "Queries": "research", "Position": "r1", "ClaimGroups": "clerk", "Reconsidered": "r2", "Synthesis": "synthesise",
    "SpecSynthesis": "synthesise",
}  # fmt: skip
DOCUMENTS = {
    "docs/cost.md": "# Cold storage\n\nCold storage costs a fifth of the archive's price, and each retrieval costs extra.\n",
    "docs/restore.md": "# Restore times\n\nA restore from cold storage took eleven hours in the last drill of the archive.\n",
}
Said = Json | str | Reply | Callable[[Seen], Any]


def claim(
    question: str, answer: str = "yes", *, text: str = "", confidence: float = 0.9, sources: tuple[int, ...] = (), holds_when: str = ""
) -> Json:  # fmt: skip
    said = text or f"The answer to {question} is {answer}."
    return {
        "question": question, "answer": answer, "text": said, "holds_when": holds_when, "confidence": confidence, "sources": list(sources),
    }  # fmt: skip


def groups(*rows: tuple[str, str]) -> Json:
    """Groups of the clerk: ("c1 c2", "conflict")."""
    return {
        "groups": [
            {"question": f"What about {ids}?", "claims": ids.split(), "relation": relation} for ids, relation in rows
        ]
    }


def position(*claims: Json, response: str = "Move it.", confidence: float = 0.8, **more: Any) -> Json:
    said = {"sources": [], "areasOfUncertainty": ["how often it is read"]} | more
    return {"response": response, "claims": list(claims), "confidence": confidence, **said}


def source(url: str, title: str = "Cold storage") -> Json:
    """A source that a member copied instead of giving its number."""
    return {"title": title, "url": url, "snippet": "costs a fifth", "query": ""}


def answer(word: str, paragraph: str = "", topic: str = "D1", confidence: float = 0.7) -> Json:
    said = paragraph or f"{word}: the drill shows it."
    return {"answers": [{"topic": topic, "word": word, "paragraph": said, "confidence": confidence}]}


def told(name: str = "D1", *sides: str) -> Json:
    cases = [{"position": side, "case": f"The case for {side}."} for side in sides or ("moving", "staying")]
    return {"disagreement": name, "because": "they weigh restores apart", "sides": cases}


def synthesis(text: str = "Move unread files.", *disagreements: Json, **more: Any) -> Json:
    return {"answer": text, "disagreements": list(disagreements), "added_disagreements": [], **more}


@dataclass
class FakeGeneral:
    """Replies by phase ("clerk") or phase and seat ("r1/skeptic"); a list is used in order."""

    workspace: Workspace
    council: Terminal
    says: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.says = {
            "research": {"queries": ["cold storage archive cost", "cold storage restore"]}, "r1": position(claim("moving")),
            "clerk": groups(), "r2": answer("MAINTAIN"), "synthesise": synthesis(),
        } | self.says  # fmt: skip
        self.workspace.provider.answer = self.speak
        self.configure()

    def configure(self, more: str = "") -> None:
        lines = ["[providers.sim]", f'base_url = "{self.workspace.provider.base_url}"', "backoff = 0.01", ""]
        for seat in MEMBERS:
            lines += [f"[seats.{seat}]", f'model = "sim:{seat}"', "fallback = []", ""]
        lines += ["[chair]", 'model = "sim:chair"', "fallback = []", "", more]
        (self.workspace.folder / "council.toml").write_text("\n".join(lines), encoding="utf-8")
        trust_project(self.workspace.folder)

    def who(self, seen: Seen) -> tuple[str, str]:
        wanted = (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        return PHASE[wanted], seen.model

    def speak(self, seen: Seen) -> Reply:
        phase, seat = self.who(seen)
        said = self.says.get(f"{phase}/{seat}", self.says[phase])
        if isinstance(said, list):
            said = said.pop(0) if len(said) > 1 else said[0]
        if callable(said):
            said = said(seen)
        return said if isinstance(said, Reply) else Reply(text=said if isinstance(said, str) else json.dumps(said))

    def documents(self, files: dict[str, str] | None = None) -> None:
        for name, text in (files or DOCUMENTS).items():
            path = self.workspace.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def ask(self, *flags: str, search: str = "--no-search", question: str = QUESTION) -> Result:
        """Run `council …` and return its JSON report."""
        return self.council("--protocol", "general", *([search] if search else []), *flags, "--json", question)

    @property
    def asked(self) -> list[str]:
        return ["/".join(self.who(seen)) for seen in self.workspace.provider.log]

    def prompts(self, phase: str) -> dict[str, str]:
        """Return each seat's complete prompt in a phase."""
        return {
            seat: seen.prompt for seen in self.workspace.provider.log for at, seat in [self.who(seen)] if at == phase
        }
