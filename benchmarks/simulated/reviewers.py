"""Simulated reviewers of the review bench, whose findings go through the real grouping rule of judges."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

from council.evals.review_bench import FILE_NAME, BenchObject, Case, GroupingMeasure, summarize_bench
from council.evals.review_measures import Reviewed
from council.evals.statistics import bootstrap_mean
from council.protocols.judges.findings import Finding, verify_finding
from council.protocols.judges.groups import FindingGroup, group_findings
from council.protocols.judges.locations import Material


@dataclass(frozen=True, slots=True)
class Reviewers:
    """Reviewers with a known share of bugs that they find, a rate of false findings, and a correlation of what they
    see.
    """

    recall: tuple[float, ...] = (0.6, 0.6, 0.6)
    false_rate: float = 1.0  # false findings per program
    correlation: float = 0.3
    wording: int = 3  # how many ways they describe the same bug; 1: all the same


WORDINGS = {
    "boundary": ("the boundary value is compared wrongly", "off by one: the comparison treats the limit itself wrongly", "wrong comparison operator at the boundary"),
    "sign": ("the wrong arithmetic operator is used", "the sum is computed with the wrong arithmetic sign", "arithmetic error: the operator has to be the opposite"),
    "logic": ("the two conditions are combined with the wrong logical operator", "and / or are mixed up in this condition", "wrong logical operator between the conditions"),
    "constant": ("the constant is off by one", "off by one: this constant is too large", "the constant has the wrong value"),
    "condition": ("the condition is inverted", "this branch runs in the opposite case: the condition is inverted", "inverted condition"),
}  # fmt: skip
FALSE_WORDINGS = (
    "the argument is not validated",
    "this is quadratic for long lists",
    "a name shadows a builtin",
    "no handling of negative numbers",
)


@dataclass(frozen=True, slots=True)
class SimulatedFinding:
    """A finding of a simulated reviewer, with the problem that it reports."""

    finding: Finding
    problem: str  # "bug", or the false claim and its line


def simulate_review(case: Case, reviewers: Reviewers, rng: random.Random) -> list[SimulatedFinding]:
    """Return what the reviewers report about a program."""
    shared, found = rng.gauss(0, 1), list[SimulatedFinding]()
    for n, recall in enumerate(reviewers.recall, 1):
        seat = f"judge-{n}"
        own = math.sqrt(reviewers.correlation) * shared + math.sqrt(1 - reviewers.correlation) * rng.gauss(0, 1)
        if case.line and NormalDist().cdf(own) < recall:
            text = WORDINGS[case.operator][rng.randrange(reviewers.wording)]
            found.append(_make_finding(case, seat, case.line, text, "bug", len(found)))
        while rng.random() < reviewers.false_rate / (1 + reviewers.false_rate):
            lines = [at for at, text in enumerate(case.source.splitlines(), 1) if text.strip() and at != case.line]
            text, line = rng.choice(FALSE_WORDINGS), rng.choice(lines)
            found.append(_make_finding(case, seat, line, text, f"{text} {line}", len(found)))
    return found


def _make_finding(case: Case, seat: str, line: int, text: str, problem: str, n: int) -> SimulatedFinding:
    quote = case.source.splitlines()[line - 1].strip()
    raw = Finding(
        "significant",
        "correctness",
        f"{text.capitalize()}.",
        f"{FILE_NAME}:{line}",
        seat=seat,
        quote=quote,
        id=f"{seat}.F{n}",
    )
    return SimulatedFinding(verify_finding(raw, Material({FILE_NAME: case.source})), problem)


def run_simulation(cases: Sequence[Case], reviewers: Reviewers, seed: int = 0) -> BenchObject:
    """Review all cases with simulated reviewers and the real grouping rule, and return the measures."""
    rng = random.Random(f"reviewers {seed}")
    reviews, joined, same = [], list[float](), list[float]()
    for case in cases:
        said = simulate_review(case, reviewers, rng)
        groups = group_findings([one.finding for one in said], len(reviewers.recall))
        reviews.append(_read_groups(case, groups, said, len(reviewers.recall)))
        group_of = {member.id: n for n, group in enumerate(groups) for member in group.members}
        for a, b in combinations(said, 2):
            if a.finding.seat != b.finding.seat:
                is_joined, is_same = group_of[a.finding.id] == group_of[b.finding.id], a.problem == b.problem
                joined += [float(is_same)] if is_joined else []
                same += [float(is_joined)] if is_same else []
    grouping: GroupingMeasure = {
        "precision": bootstrap_mean(joined).as_json(),
        "recall": bootstrap_mean(same).as_json(),
    }
    return summarize_bench(reviews, grouping)


def _read_groups(case: Case, groups: Sequence[FindingGroup], said: Sequence[SimulatedFinding], judges: int) -> Reviewed:
    bugs = {one.finding.id for one in said if one.problem == "bug"}
    rows = [(len(group.found_by), any(member.id in bugs for member in group.members)) for group in groups]
    return Reviewed(bool(case.line), tuple(rows), judges)
