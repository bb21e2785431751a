"""Sentences and headings for readers, in the language of the answer. The files are in data/languages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypedDict

from council.language import LANGUAGES
from council.text_cleanup import single_line
from council.types import CONCLUSIONS, TrustFact

MAX_DETAIL_CHARS = 120
ROUND_PHASE = re.compile(r"r(\d+)")
# Facts whose sentence counts errors, not the seats that found them.
COUNTED_KINDS = frozenset(
    {"error_open_fatal", "error_open", "error_dismissed_fatal", "error_dismissed", "error_corrected"}
)
# Rows of facts about the agreement of seats that reach conclusions without a common answer.
CONCLUSION_ROWS = {
    "all_agree": "same_conclusion",
    "all_hold": "same_conclusion",
    "partial_agreement": "conclusion_shared_in_part",
    "not_shared": "conclusion_not_shared",
}
# The limit that HIGH states, in percent: the lowest share of right HIGH answers in simulations with strongly
# correlated errors, and how often each simulated member was right. A test compares them with the record
# benchmarks/simulated/trust_levels.json.
HIGH_ACCURACY_PERCENT = 71
HIGH_COMPETENCE_PERCENT = 70


Sentence = str | dict[str, str]  # one text, or those for "one" and "many"
Sections = dict[str, dict[str, Sentence]]  # section → key → sentence


class LayoutWording(TypedDict):
    """The variables of a layout that is written in a language."""

    t: Callable[..., str]
    wording: Wording


@cache
def load_wording(language: str) -> Wording:
    """Return the sentences of a language; English for an unknown language and for a sentence that a file lacks."""
    if language == "en" or language not in LANGUAGES:
        return Wording("en", read_table("en"))
    return Wording(language, fill_missing(read_table(language), load_wording("en").table))


def read_table(language: str) -> Sections:
    """Return the sections of the file of a language."""
    path = files("council").joinpath(f"data/languages/{language}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def fill_missing(own: Sections, english: Sections) -> Sections:
    """Return the rows of a language, and the English ones that it lacks."""
    return {section: rows | own.get(section, {}) for section, rows in english.items()}


@dataclass(frozen=True, eq=False)
class Wording:
    """The sentences of one language."""

    language: str
    table: Sections

    def say(self, section: str, key: str, *, number: int = 1, **values: Any) -> str:
        """Return a sentence with its values; `number` chooses between one and many."""
        text = self.table[section][key]
        if isinstance(text, dict):
            text = text["one" if number == 1 else "many"]
        return str(text).format(**values)

    def heading(self, key: str, *, number: int = 1, **values: Any) -> str:
        """Return a heading or a phrase of a report. Layouts call it as `t`."""
        section = "headings" if key in self.table["headings"] else "phrases"
        return self.say(section, key, number=number, **values)

    def layout_variables(self) -> LayoutWording:
        """Return the variables of a layout that is written in this language."""
        return {"t": self.heading, "wording": self}

    # Punctuation

    @property
    def colon(self) -> str:
        return self._mark("colon")

    @property
    def semicolon(self) -> str:
        return self._mark("semicolon")

    @property
    def comma(self) -> str:
        return self._mark("comma")

    @property
    def dash(self) -> str:
        return self._mark("dash")

    @property
    def period(self) -> str:
        return self._mark("period")

    def _mark(self, name: str) -> str:
        return str(self.table["punctuation"][name])

    def enclose(self, text: str) -> str:
        """Return a text in brackets, with the space before them if the language has one."""
        return f"{self._mark('open')}{text}{self._mark('close')}"

    def quote(self, text: str) -> str:
        """Return a text in quotation marks."""
        return f"{self._mark('quote')}{text}{self._mark('unquote')}"

    def join(self, names: Sequence[str]) -> str:
        """Return names as a list: alpha, beta and gamma."""
        names = [name.replace("_", " ") for name in names]
        if len(names) < 2:
            return "".join(names)
        return f"{self._mark('list').join(names[:-1])}{self._mark('and')}{names[-1]}"

    def join_alternatives(self, texts: Sequence[str]) -> str:
        return self._mark("or").join(texts)

    def format_number(self, number: int) -> str:
        """Return a whole number with separators: 12,345."""
        return f"{number:,}".replace(",", self._mark("thousands"))

    def format_level(self, level: str) -> str:
        """Return a trust level in this language; an unknown word stays as it is."""
        return str(self.table["levels"].get(level, level))

    def format_status(self, status: str) -> str:
        """Return the status of a point or a claim in this language; an unknown word stays as it is."""
        return str(self.table["statuses"].get(status, status))

    # Phases

    def format_phase(self, phase: str) -> str:
        """Return the name of a phase: "draft", "round 2"; an unknown phase keeps its name."""
        if number := ROUND_PHASE.fullmatch(phase):
            return self.say("phases", "round", n=number[1])
        return str(self.table["phases"].get(phase) or single_line(phase))

    # Trust

    def format_reason(self, fact: TrustFact) -> str:
        """Return why a fact limits trust."""
        return self._format_fact("reasons", _reason_key(fact), fact)

    def format_support(self, fact: TrustFact) -> str:
        """Return what a fact says in favour of the answer."""
        return self._format_fact("supports", _support_key(fact), fact)

    def _format_fact(self, section: str, key: str, fact: TrustFact) -> str:
        detail = self.format_phase(fact.detail) if fact.kind == "missed_phase" else fact.detail
        text = self.say(
            section,
            key,
            number=fact.count if fact.kind in COUNTED_KINDS else len(fact.seats) or fact.count,
            seats=self.join(fact.seats),
            count=fact.count,
            total=fact.total,
            detail=single_line(detail, MAX_DETAIL_CHARS).rstrip(" .。"),
            member=single_line(fact.detail, MAX_DETAIL_CHARS),
        )
        return text.strip()

    def list_reasons(self, limits: Iterable[TrustFact]) -> list[str]:
        """Return the reasons that limit trust, each once."""
        return list(dict.fromkeys(filter(None, map(self.format_reason, limits))))

    def list_supports(self, level: str, supports: Iterable[TrustFact]) -> list[str]:
        """Return what speaks for the answer. HIGH also states its limit."""
        limit = self.say("supports", "limit", percent=HIGH_ACCURACY_PERCENT, competence=HIGH_COMPETENCE_PERCENT)
        return [*map(self.format_support, supports), *([limit] if level == "HIGH" else [])]


def _reason_key(fact: TrustFact) -> str:
    """Return the row of a fact that has several sentences."""
    if fact.detail == CONCLUSIONS and fact.kind in CONCLUSION_ROWS:
        return CONCLUSION_ROWS[fact.kind]
    if fact.kind == "partial_agreement" and fact.total:
        return "partial_agreement_counted"
    if fact.kind == "modified" and not fact.total:
        return "modified_by_chair"
    if fact.kind == "not_complete" and fact.detail == "failed":
        return "not_complete_failed"
    if fact.kind == "missed_phase" and fact.detail == "answer":
        return "missed_answer_phase"
    if fact.kind == "landed" and fact.total == 1:
        return "landed_single"
    return fact.kind


def _support_key(fact: TrustFact) -> str:
    """Return the row of a fact in favour that has several sentences."""
    if fact.kind == "all_answered" and fact.total > 1:
        return "all_answered_vendors"
    if fact.kind == "dismissed" and fact.total == 1:
        return "dismissed_single"
    key = CONCLUSION_ROWS.get(fact.kind, fact.kind) if fact.detail == CONCLUSIONS else fact.kind
    return f"{key}_both" if fact.kind in ("all_agree", "all_hold", "same_verdict") and fact.count == 2 else key
