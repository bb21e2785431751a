"""Grouping on real reviews: 418 findings of three reviewers of eight projects, who worked alone, with their true
defects.

`also` has further defects that a finding mentions, and `unsure` the pairs that an expert could decide otherwise;
neither counts as a false group. `clerk` has the groups of a strong model that was asked by the prompt of the clerk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

import pytest

from council.protocols.judges.findings import Finding, is_in_one_scope, parse_finding, verify_finding
from council.protocols.judges.groups import ClerkGroup, FindingGroup, group_findings
from council.protocols.judges.locations import Material
from council.types import PacketFile
from tests.paths import TESTS

PROJECTS = ("go", "java", "javascript", "kotlin", "python", "rust", "sql", "typescript")
Pair = frozenset[str]


@dataclass(frozen=True)
class Review:
    findings: dict[str, Finding]
    defects: list[list[str]]
    true_pairs: frozenset[Pair]
    allowed_pairs: frozenset[Pair]
    clerk: list[list[str]]


@cache
def load(project: str) -> Review:
    data: dict[str, Any] = json.loads((TESTS / "data" / "reviews" / f"{project}.json").read_text(encoding="utf-8"))
    files = [
        PacketFile(file["path"], file["content"], tuple(map(tuple, file["ranges"])), lines=file["lines"])
        for file in data["files"]
    ]
    material = Material({}, data["diff"], files)
    findings = {
        f"{seat}.F{n}": verify_finding(parse_finding(seat, row, f"{seat}.F{n}"), material)
        for seat, rows in data["judges"].items()
        for n, row in enumerate(rows, 1)
    }
    named = {one: {name, *data["also"].get(one, [])} for name, ids in data["defects"].items() for one in ids}
    related = {frozenset(pair) for pair in combinations(findings, 2) if named[pair[0]] & named[pair[1]]}
    return Review(
        findings,
        list(data["defects"].values()),
        list_pairs(data["defects"].values()),
        frozenset(related | {frozenset(pair) for pair in data["unsure"]}),
        data["clerk"],
    )


def list_pairs(groups: Iterable[Sequence[str]]) -> frozenset[Pair]:
    """Return the pairs of findings of two judges."""
    pairs = (pair for group in groups for pair in combinations(group, 2))
    return frozenset(frozenset(pair) for pair in pairs if pair[0].split(".")[0] != pair[1].split(".")[0])


def group(review: Review, clerk: Iterable[Sequence[str]] = ()) -> frozenset[Pair]:
    """Return the pairs that the code joins."""
    groups: list[FindingGroup] = group_findings(
        review.findings.values(), 3, clerk=[ClerkGroup(tuple(ids)) for ids in clerk]
    )
    return list_pairs([member.id for member in one.members] for one in groups)


def count(clerk: bool) -> tuple[int, int]:
    """Return the numbers of joined and of all true pairs, after a check that no pair is false."""
    joined = total = 0
    for project in PROJECTS:
        review = load(project)
        pairs = group(review, review.clerk if clerk else ())
        assert not pairs - review.true_pairs - review.allowed_pairs, project
        joined += len(pairs & review.true_pairs)
        total += len(review.true_pairs)
    return joined, total


def test_the_reviews_are_large_enough() -> None:
    assert sum(len(load(project).findings) for project in PROJECTS) == 418


@pytest.mark.behaviour("20-clerk-groups")
def test_with_the_clerk_nearly_all_true_pairs_are_joined_and_none_is_false() -> None:
    joined, total = count(clerk=True)
    assert joined >= 0.95 * total


@pytest.mark.behaviour("20-findings-grouped", "20-no-false-corroboration")
def test_by_rule_alone_more_than_half_of_the_true_pairs_are_joined_and_none_is_false() -> None:
    joined, total = count(clerk=False)
    assert joined >= 0.6 * total


@pytest.mark.behaviour("20-clerk-checked")
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("project", PROJECTS)
def test_a_clerk_that_is_wrong_in_a_quarter_of_its_groups_joins_nothing_across_files_or_definitions(
    project: str, seed: int
) -> None:
    review, random = load(project), Random(seed)
    groups = [list(ids) for ids in review.defects if len(ids) > 1]
    for mistaken in random.sample(groups, len(groups) // 4):
        exchange_finding(mistaken, random.choice(groups), random)
    for pair in group(review, groups) - review.true_pairs - review.allowed_pairs:
        a, b = (review.findings[one] for one in pair)
        assert a.file == b.file and is_in_one_scope(a, b)


def exchange_finding(one: list[str], other: list[str], random: Random) -> None:
    """Exchange the findings of one judge between two groups, which a check by judge cannot see."""
    a = random.choice(one)
    matches = [b for b in other if b.split(".")[0] == a.split(".")[0]]
    if matches:
        one[one.index(a)], other[other.index(matches[0])] = matches[0], a
