"""Sentences for readers: the reasons of a trust level, outcomes and headings, in the language of the answer."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from council.engine.degraded import format_phase_in
from council.engine.trust import Trust
from council.text_cleanup import single_line
from council.types import Json, TrustFact

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "zh", "ja")
NO_SPACES = ("zh", "ja")
MAX_DETAIL_CHARS = 120
# Share of HIGH answers that were right in simulations with strongly correlated errors, in percent: docs/evidence.md.
HIGH_ACCURACY_PERCENT = 74


@cache
def load_wording(language: str) -> Wording:
    """Return the sentences of a language; English for an unknown one."""
    name = language if language in LANGUAGES else "en"
    path = files("council").joinpath(f"render/languages/{name}.toml")
    return Wording(name, tomllib.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True, eq=False)
class Wording:
    """The sentences of one language."""

    language: str
    table: Json

    def say(self, section: str, key: str, *, number: int = 1, **values: Any) -> str:
        """Return a sentence with its values; `number` chooses between one and many."""
        text = self.table[section][key]
        if isinstance(text, dict):
            text = text["one" if number == 1 else "many"]
        return str(text).format(**values)

    @property
    def colon(self) -> str:
        return "：" if self.language in NO_SPACES else " : " if self.language == "fr" else ": "

    def join(self, names: Sequence[str]) -> str:
        """Return names as a list: alpha, beta and gamma."""
        names = [name.replace("_", " ") for name in names]
        if self.language in NO_SPACES:
            return "、".join(names)
        if len(names) < 2:
            return "".join(names)
        return f"{', '.join(names[:-1])} {self.table['tail']['and']} {names[-1]}"

    def format_reason(self, fact: TrustFact) -> str:
        """Return why a fact limits trust."""
        return self._format_fact("reasons", _reason_key(fact), fact)

    def format_support(self, fact: TrustFact) -> str:
        """Return what a fact says in favour of the answer."""
        key = "all_answered_vendors" if fact.kind == "all_answered" and fact.total > 1 else fact.kind
        return self._format_fact("supports", key, fact)

    def _format_fact(self, section: str, key: str, fact: TrustFact) -> str:
        detail = format_phase_in(fact.detail) if fact.kind == "missed_phase" else fact.detail
        text = self.say(
            section,
            key,
            number=len(fact.seats) or fact.count,
            seats=self.join(fact.seats),
            count=fact.count,
            total=fact.total,
            detail=single_line(detail, MAX_DETAIL_CHARS).rstrip(" ."),
            member=single_line(fact.detail, MAX_DETAIL_CHARS),
        )
        return text.strip()

    def list_reasons(self, trust: Trust) -> list[str]:
        """Return the reasons that limit trust, each once."""
        return list(dict.fromkeys(filter(None, map(self.format_reason, trust.limits))))

    def list_supports(self, trust: Trust) -> list[str]:
        """Return what speaks for the answer. HIGH also states its limit."""
        limit = [self.say("supports", "limit", percent=HIGH_ACCURACY_PERCENT)] if trust.level == "HIGH" else []
        return [*map(self.format_support, trust.supports), *limit]


def _reason_key(fact: TrustFact) -> str:
    """Return the row of a fact that has several sentences."""
    if fact.kind == "partial_agreement" and fact.total:
        return "partial_agreement_counted"
    if fact.kind == "modified" and not fact.total:
        return "modified_by_chair"
    if fact.kind == "not_complete" and fact.detail == "failed":
        return "not_complete_failed"
    return fact.kind
