"""What a reader is told: one level, one outcome and true reasons, the same at every door, for a table of councils."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from council.render.tail import format_tail
from tests.acceptance.reader_cases import Case, Truth
from tests.acceptance.reader_council import Json, Views, collect_views, hold_council
from tests.acceptance.reader_recount import CONTRADICTIONS, Reason, expect_positions, find_open, recount
from tests.acceptance.reader_table import CASES

LEVELS = ("HIGH", "MEDIUM", "LOW", "CONTESTED")
LABELS = {
    "en": {"outcome": "Outcome: ", "differ": "They differ: ", "agree": "They agree: ", "trust": "Trust: "},
}
LEVEL_NAMES = {"en": {level: level for level in LEVELS}}
LIMIT = {"en": "members can share an error"}
JARGON = re.compile(
    r"\b(?:alpha|beta|gamma|delta|pragmatist|visionary|skeptic|generalist|domain_expert)-\d|\bissue-\d"  # ids of issues
    r"|\bF\d\b|\b[cD]\d\b"  # ids of findings, claims and disputes
    r"|\b(?:FATAL|MAJOR|MINOR|CRITICAL|STAND|REJECTED|SURVIVED|MODIFIED|OVERTURNED)\b"
    r"|\b[rR][123]\b|did not rule|(?:failed|skipped)\("
    r"|\b(?:timed_out|in_doubt|ok_repaired|coverage_hole|council-notes)\b"
    r"|\b(?!domain_expert)[a-z]+_[a-z_]+\b"  # internal kinds
    r"|BELOW 80|below was"
)
OWN_LEVELS = (  # where our texts show a level beside the tail
    re.compile(r"^\*\*(HIGH|MEDIUM|LOW|CONTESTED)\.\*\*", re.MULTILINE),
    re.compile(r"^Confidence: (HIGH|MEDIUM|LOW|CONTESTED)", re.MULTILINE),
    re.compile(r"^\| Trust \| (HIGH|MEDIUM|LOW|CONTESTED)", re.MULTILINE),
    re.compile(r"^\*\*Trust:\*\* (HIGH|MEDIUM|LOW|CONTESTED)", re.MULTILINE),
)


def test_the_table_is_large_enough() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.anyio
@pytest.mark.behaviour("10-reader-table", "10-tail", "10-trust-one-level")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_door_tells_the_same_and_every_reason_is_true(case: Case) -> None:
    views = collect_views(*await hold_council(case.setup))
    assert views.report["status"] == case.truth.status
    check_reasons(case, views.report)
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


# The tail


def check_tail(case: Case, report: Json) -> None:
    labels = LABELS[case.language]
    outcome = f"{labels['outcome']}{case.outcome}" if case.outcome else ""
    *lines, last = report["tail"]
    expected = [outcome, expect_positions(case)]
    if case.language == "en":
        assert lines == [line for line in expected if line]
    else:
        assert len(lines) == len([line for line in expected if line])
        assert all(line.startswith(tuple(labels.values())) for line in lines)
    level = LEVEL_NAMES[case.language][case.level]
    assert last.startswith(f"{labels['trust']}{level} — ")
    assert (LIMIT[case.language] in last) == (case.level == "HIGH")
    for line in report["tail"]:
        assert not JARGON.search(line), line


# The doors


def check_texts(case: Case, views: Views) -> None:
    tail = format_tail(views.report["tail"])
    for door, text in views.texts.items():
        assert not [words for words in case.hides if words in text], door
        assert list(find_levels(text)) in ([], [case.level]), door
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
    for label in LABELS[case.language].values():
        begins = re.compile(
            rf"^\s*[*_]*{re.escape(label.strip())}(?!\*\* (?:{'|'.join(LEVELS)}))", re.MULTILINE
        )  # a header has it bold
        wanted = sum(line.startswith(label) for line in format_lines(case, text))
        assert len(begins.findall(text)) == wanted <= 1, f"{door}: {label}\n{text}"


def format_lines(case: Case, text: str) -> list[str]:
    """Return the lines of our tail in a text: those after its last rule that begin with a label."""
    labels = tuple(LABELS[case.language].values())
    lines = text.splitlines()
    at = max(n for n, line in enumerate(lines) if line.startswith(labels))
    while at > 0 and lines[at - 1].startswith(labels):
        at -= 1
    found = []
    for line in lines[at:]:
        if not line.startswith(labels):
            break
        found.append(line)
    return found


def check_quotes(case: Case, door: str, text: str) -> None:
    for line in text.splitlines():
        for forged in case.quotes:
            assert forged not in line or line.lstrip().startswith(">"), f"{door}: {line}"


def find_levels(text: str) -> Iterator[str]:
    yield from sorted({level for pattern in OWN_LEVELS for level in pattern.findall(text)})
