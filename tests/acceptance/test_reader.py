"""What a reader is told: one level, one outcome and true reasons, the same at every door, for a table of councils."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from council.render.tail import format_tail
from tests.acceptance.reader_cases import Case, Truth
from tests.acceptance.reader_council import Json, Views, collect_views, hold_council
from tests.acceptance.reader_recount import CONTRADICTIONS, Reason, expect_positions, find_open, recount
from tests.acceptance.reader_table import CASES

LEVELS = ("HIGH", "MEDIUM", "LOW", "CONTESTED")


@dataclass(frozen=True)
class Language:
    """The words of a tail that a test expects, written down here once more."""

    outcome: str
    differ: str
    agree: str
    trust: str
    confidence: str
    levels: tuple[str, str, str, str]
    limit: str

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{label}: " for label in (self.outcome, self.differ, self.agree, self.trust))

    def name(self, level: str) -> str:
        return self.levels[LEVELS.index(level)]

    def list_patterns(self) -> list[str]:
        """Return where our texts show a level beside the tail."""
        levels = "|".join(self.levels)
        return [
            rf"^\*\*({levels})\.\*\*",
            rf"^{self.confidence}: ({levels})\b",
            rf"^\| {self.trust} \| ({levels})\b",
            rf"^\*\*{self.trust}:\*\* ({levels})\b",
        ]


LANGUAGES = {
    "en": Language("Outcome", "They differ", "They agree", "Trust", "Confidence", LEVELS, "members can share an error"),
    "de": Language(
        "Ergebnis",
        "Uneinig",
        "Einig",
        "Vertrauen",
        "Sicherheit",
        ("HOCH", "MITTEL", "NIEDRIG", "UMSTRITTEN"),
        "Mitglieder können denselben Fehler machen",
    ),
}
# Cases in which a reason is false today.
JARGON = re.compile(
    r"\b(?:alpha|beta|gamma|delta|pragmatist|visionary|skeptic|generalist|domain_expert)-\d|\bissue-\d"  # ids of issues
    r"|\bF\d\b|\b[cD]\d\b"  # ids of findings, claims and disputes
    r"|\b(?:FATAL|MAJOR|MINOR|CRITICAL|STAND|REJECTED|SURVIVED|MODIFIED|OVERTURNED)\b"
    r"|\b[rR][123]\b|did not rule|(?:failed|skipped)\("
    r"|\b(?:timed_out|in_doubt|ok_repaired|coverage_hole|council-notes)\b"
    r"|\b(?!domain_expert)[a-z]+_[a-z_]+\b"  # internal kinds
    r"|BELOW 80|below was"
)


def test_the_table_is_large_enough() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.anyio
@pytest.mark.behaviour("10-reader-table", "10-tail", "10-trust-in-turn", "10-trust-one-level")
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
async def test_every_door_tells_the_same_and_every_reason_is_true(case: Case) -> None:
    views = collect_views(*await hold_council(case.setup))
    assert views.report["status"] == case.truth.status
    check_reasons(case, views.report)
    check_strongest(case, views)
    check_tail(case, views.report)
    check_texts(case, views)


# Reasons


def check_reasons(case: Case, report: Json) -> None:
    trust = report["trust"]
    given = [Reason(row["kind"], tuple(row["seats"]), row["count"], row["total"]) for row in trust["facts"]]
    assert set(given) == recount(case.truth)
    kinds = {reason.kind for reason in given}
    assert not [pair for pair in CONTRADICTIONS if set(pair) <= kinds]
    assert trust["level"] == case.level
    assert report["confidence"] in (None, case.level)
    sentences = [*trust["because"], *trust["in_favour"]]
    assert len(set(sentences)) == len(sentences), "a reason is told twice"
    assert bool(trust["because"]) == (case.level != "HIGH")
    for row in trust["facts"]:
        assert row["detail"] in DETAILS[row["kind"]](case.truth) if row["kind"] in DETAILS else True, row


def list_first_points(truth: Truth) -> Iterator[str]:
    yield from (point.text for point in truth.points[:1])
    if truth.claims and truth.claims.added:
        yield truth.claims.added.text
    if truth.review and truth.review.disputed:
        yield truth.review.disputed[0].text


DETAILS: dict[str, Callable[[Any], set[str]]] = {
    "one_vendor": lambda truth: {member.partition(":")[0] for member in truth.members.values()},
    "one_voice": lambda truth: {member for members in truth.speakers.values() for member in members},
    "shared_member": lambda truth: set(truth.first_by.values()),
    "own_attack": lambda truth: {truth.first_by[truth.attack.leader]},
    "open_dispute": lambda truth: set(find_open(truth.claims)),
    "contested_points": lambda truth: set(list_first_points(truth)),
    "same_verdict": lambda truth: set(truth.first.values()),
    "missed_phase": lambda truth: {phase for _, phase in truth.missed},
}


def check_strongest(case: Case, views: Views) -> None:
    """Check that a seat is called the strongest only if prices tell, and only if it answered."""
    truth = case.truth
    is_known = truth.status == "complete" and truth.strongest in truth.first
    assert (views.report.get("strongest") or {}).get("seat") == (truth.strongest if is_known else None)
    assert ("Strongest seat" in views.texts["document"]) == is_known


# The tail


def check_tail(case: Case, report: Json) -> None:
    words = LANGUAGES[case.language]
    outcome = f"{words.outcome}: {case.outcome}" if case.outcome else ""
    *lines, last = report["tail"]
    expected = [line for line in (outcome, expect_positions(case)) if line]
    if case.language == "en":
        assert lines == expected
    else:
        assert len(lines) == len(expected)
        assert all(line.startswith(words.labels) for line in lines)
    assert last.startswith(f"{words.trust}: {words.name(case.level)} — ")
    assert (words.limit in last) == (case.level == "HIGH")
    for line in report["tail"]:
        assert not JARGON.search(line), line


# The doors


def check_texts(case: Case, views: Views) -> None:
    tail = format_tail(views.report["tail"])
    for door, text in views.texts.items():
        assert not [words for words in case.hides if words in text], door
        assert find_levels(case, text) <= {LANGUAGES[case.language].name(case.level)}, door
        assert "\n\n---\n\n---\n" not in text, door
        check_quotes(case, door, text)
        if has_tail(case, door, views):
            assert text.count(tail) == 1, f"{door}\n{text}"
            check_lines(case, door, text)
        if door in ("pipe", "chat", "chat streamed", "mcp") and has_tail(case, door, views):
            assert text.rstrip().endswith(tail), f"{door}\n{text}"
    assert not [words for words in case.shows if words not in views.texts["pipe"]]


def has_tail(case: Case, door: str, views: Views) -> bool:
    """Return whether a door shows an answer with its tail: a chat that broke off and a failed run do not."""
    return case.truth.status != "failed" and bool(views.texts[door]) and not (views.errors and "chat" in door)


def check_lines(case: Case, door: str, text: str) -> None:
    """Check that a text has each line of its tail once, and none of a model that begins like it."""
    words = LANGUAGES[case.language]
    tail = [line for line in text.splitlines() if line.startswith(words.labels)]
    for label in words.labels:
        found = re.findall(rf"^\s*{re.escape(label.strip())}", text, re.MULTILINE)
        assert len(found) == sum(line.startswith(label) for line in tail) <= 1, f"{door}: {label}\n{text}"


def check_quotes(case: Case, door: str, text: str) -> None:
    for line in text.splitlines():
        for forged in case.quotes:
            assert forged not in line or line.lstrip().startswith(">"), f"{door}: {line}"


def find_levels(case: Case, text: str) -> set[str]:
    patterns = LANGUAGES[case.language].list_patterns()
    return {level for pattern in patterns for level in re.findall(pattern, text, re.MULTILINE)}
