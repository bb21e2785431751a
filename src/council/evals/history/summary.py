"""The result of an evaluation on a history: what each arm found, what that cost, and what the figures do not show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from council.engine.layout import format_count
from council.engine.records import FindingRow, ReportObject
from council.evals.conclusions import wrap_text
from council.evals.evaluation import Arm, align_columns, format_comparison
from council.evals.history.case_file import ChosenCases
from council.evals.history.cases import SHALLOW_NOTE, Fix, HistoryCase
from council.evals.history.hits import chance_of_any, find_hits, read_span
from council.evals.history.labels import LabelledHits, Labels, apply_hit_label, list_bugs
from council.evals.review_measures import (
    NEAR_LINES,
    Reviewed,
    count_judges,
    count_support,
    format_share,
    measure_support,
    read_judges,
)
from council.evals.statistics import (
    MIN_QUESTIONS,
    bootstrap_mean,
    compare,
    format_p,
)
from council.money import format_usd
from council.runs.eval_object import (
    ArmComparison,
    HistoryArm,
    HistoryEvalObject,
    HistorySeat,
    HistorySupport,
    IntervalObject,
)

MIN_BUGS = 10  # below, nothing is concluded
FAIL, CRITICAL = "FAIL", "critical"
LIMITS = (
    "A bug is what somebody noticed and repaired later: bugs that were never found are in no figure, and a fix that "
    "renamed or moved code may count as a bug. labels.toml corrects that.",
    "A hit is a finding at a line that the fix changed. It may still describe another problem, and a finding elsewhere "
    "may describe the bug: read cases.html before you rely on a difference.",
    "Precision is a lower bound: a finding that no fix touched may still be right. The same holds for controls, which "
    "are only commits that no later fix touched so far.",
    "Models may have read this repository, with its later fixes, in their training. Then the figures are too high.",
)


@dataclass(frozen=True, slots=True)
class CaseReview:
    """The review of one case by one arm."""

    case: HistoryCase
    report: ReportObject
    bugs: Sequence[Fix]  # as labelled
    hits: Sequence[bool]  # of each finding, as labelled
    has_unnamed_hit: bool  # a person says that one of the findings hits, and not which
    changed: Mapping[str, Sequence[int]]  # the lines that the commit added, by file

    @property
    def findings(self) -> Sequence[FindingRow]:
        return self.report["findings"]

    @property
    def is_found(self) -> bool:
        return any(self.hits) or self.has_unnamed_hit

    def as_reviewed(self) -> Reviewed:
        support = [count_support(one) for one in self.findings]
        judges = max(read_judges(self.report), len(self.report["seats"]))  # a finding says how many there were
        return Reviewed(bool(self.bugs), tuple(zip(support, self.hits, strict=True)), judges, self.has_unnamed_hit)

    def chance(self, support: int) -> float:
        """Return how likely the findings with this support hit, if their lines were random."""
        spans = [read_span(one) for one in self.findings if count_support(one) >= support]
        return chance_of_any(spans, self.changed, self.bugs)

    def is_found_by(self, seat: str) -> bool:
        return any(hit and seat in one["found_by"] for one, hit in zip(self.findings, self.hits, strict=True))


def read_case(
    case: HistoryCase, arm: str, report: ReportObject, labels: Labels, changed: Mapping[str, Sequence[int]]
) -> CaseReview:
    """Return the review of a case with its hits, by the lines of the findings and by the labels."""
    bugs = list_bugs(case, labels)
    found = [bool(find_hits(one, bugs)) for one in report["findings"]]
    hits = apply_hit_label(labels, case, arm, found) if bugs else LabelledHits((False,) * len(found))
    return CaseReview(case, report, bugs, hits.findings, hits.has_unnamed, changed)


@dataclass(frozen=True, slots=True)
class HistoryArmReviews:
    """The reviews of one arm, by the id of the case."""

    arm: Arm
    reviews: Mapping[str, CaseReview]

    @property
    def bugs(self) -> list[CaseReview]:
        return [one for one in self.reviews.values() if one.bugs]

    @property
    def controls(self) -> list[CaseReview]:
        return [one for one in self.reviews.values() if one.case.is_control]

    @property
    def members(self) -> list[str]:
        reports = [one.report for one in self.reviews.values()]
        places = [seat for report in reports for seat in (*report["seats"], report["chair"]) if seat]
        return sorted({name for seat in places if (name := seat["served_by"])})

    @property
    def found(self) -> dict[str, bool]:
        return {one.case.id: one.is_found for one in self.bugs}

    def as_json(self, base: HistoryArmReviews | None) -> HistoryArm:
        reports = [one.report for one in self.reviews.values()]
        costs = [report["cost"]["usd"] for report in reports]
        usd = None if None in costs else round(math.fsum(cost or 0.0 for cost in costs), 9)
        found = sum(self.found.values())
        return {
            "arm": self.arm.name,
            "protocol": self.arm.protocol,
            "options": self.arm.options,
            "reviews": len(reports),
            "judges": count_judges([one.as_reviewed() for one in self.reviews.values()]),
            "members": self.members,
            "by_support": self._measure_support(),
            "seats": self._measure_seats(),
            "findings_per_review": _divide(sum(len(report["findings"]) for report in reports), len(reports)),
            "controls_with_findings": bootstrap_mean([bool(one.findings) for one in self.controls]).as_json(),
            "controls_with_critical": bootstrap_mean([_has_critical(one) for one in self.controls]).as_json(),
            "fail_on_bugs": _share_of_fails(self.bugs),
            "fail_on_controls": _share_of_fails(self.controls),
            "tokens": sum(report["tokens"]["in"] + report["tokens"]["out"] for report in reports),
            "calls": sum(report["calls"]["made"] for report in reports),
            "usd": usd,
            "usd_per_review": None if usd is None else _divide(usd, len(reports)),
            "usd_per_bug": None if usd is None else _divide(usd, found),
            "seconds": round(math.fsum(report["seconds"] for report in reports), 3),
            "against": self._compare(base) if base and base is not self else None,
            "runs": {name: one.report["run"] for name, one in self.reviews.items()},
            "hits": self.found,
        }

    def _measure_support(self) -> list[HistorySupport]:
        bugs = self.bugs
        rows: list[HistorySupport] = []
        # A finding on a commit without a known bug says nothing about precision.
        for row in measure_support([one.as_reviewed() for one in bugs]):
            chances = [one.chance(row["support"]) for one in bugs]
            rows.append(
                {
                    "support": row["support"],
                    "found": sum(one.as_reviewed().is_found(row["support"]) for one in bugs),
                    "recall": row["recall"],
                    "by_chance": None if not chances else round(math.fsum(chances) / len(chances), 6),
                    "precision": row["precision"],
                }
            )
        return rows

    def _measure_seats(self) -> list[HistorySeat]:
        members: dict[str, set[str]] = {}
        for one in self.reviews.values():
            for seat in one.report["seats"]:
                members.setdefault(seat["name"], set()).update(filter(None, [seat["served_by"]]))
        if len(members) < 2:
            return []
        return [
            {
                "seat": seat,
                "members": sorted(names),
                "recall": bootstrap_mean([one.is_found_by(seat) for one in self.bugs]).as_json(),
            }
            for seat, names in members.items()
        ]

    def _compare(self, base: HistoryArmReviews) -> ArmComparison:
        mine, theirs = self.found, base.found
        shared = [name for name in mine if name in theirs]
        found = compare([theirs[name] for name in shared], [mine[name] for name in shared])
        return {"arm": base.arm.name, **found.as_json()}


def _divide(total: float, count: int) -> float | None:
    return round(total / count, 9) if count else None


def _has_critical(one: CaseReview) -> bool:
    return any(finding["severity"].lower() == CRITICAL for finding in one.findings)


def _share_of_fails(reviews: Sequence[CaseReview]) -> IntervalObject:
    return bootstrap_mean([one.report["verdict"] == FAIL for one in reviews]).as_json()


def choose_base(arms: Sequence[HistoryArmReviews]) -> HistoryArmReviews | None:
    """Return the arm that the others are compared with: the first one with one judge, else the first one."""
    single = [
        one for one in arms if one.reviews and count_judges([two.as_reviewed() for two in one.reviews.values()]) == 1
    ]
    return next(iter([*single, *arms]), None)


def summarize(
    chosen: ChosenCases, arms: Sequence[HistoryArmReviews], labels: Labels, base: str | None = None
) -> HistoryEvalObject:
    """Return the result as the object `council.history-eval/1`."""
    cases = chosen.cases
    compared = next((one for one in arms if one.arm.name == base), None) or choose_base(arms)
    bugs = sum(bool(list_bugs(case, labels)) for case in cases)
    controls = sum(case.is_control for case in cases)
    result: HistoryEvalObject = {
        "schema": "council.history-eval/1",
        "dataset": f"history:{chosen.request['repository']}",
        "since": chosen.request["since"],
        "seed": chosen.request["seed"],
        "questions": len(cases),
        "bugs": bugs,
        "controls": controls,
        "without_bug": len(cases) - bugs - controls,
        "near_lines": NEAR_LINES,
        "unfinished": len(arms) * len(cases) - sum(len(one.reviews) for one in arms),
        "members": sorted({name for one in arms for name in one.members}),
        "arms": [one.as_json(compared) for one in arms],
        "conclusions": [],
    }
    result["conclusions"] = [*_conclude(result), *([SHALLOW_NOTE] if chosen.mined.is_shallow else []), *LIMITS]
    return result


def _conclude(result: HistoryEvalObject) -> Iterator[str]:
    bugs = result["bugs"]
    if bugs < MIN_BUGS:
        yield f"{bugs} bugs are too few: below {MIN_BUGS}, this evaluation decides nothing."
    elif bugs < MIN_QUESTIONS:
        yield f"{bugs} bugs are few: below {MIN_QUESTIONS}, no difference is called decided."
    if result["unfinished"]:
        yield f"{result['unfinished']} reviews are missing: run the same command again to complete them."
    if result["without_bug"]:
        yield f"{result['without_bug']} commits count neither as bugs nor as controls, because their fixes are labelled so."
    for arm in result["arms"]:
        yield from _conclude_chance(arm)
    if bugs >= MIN_BUGS:
        for arm in result["arms"]:
            yield from _conclude_difference(arm)


def _conclude_chance(arm: HistoryArm) -> Iterator[str]:
    """Say so if the lines of the findings are no better than random ones."""
    for row in arm["by_support"][:1]:
        low, chance = row["recall"]["low"], row["by_chance"]
        if low is not None and chance is not None and row["found"] and low <= chance:
            yield (
                f"{arm['arm']}: findings at random changed lines of the same files would hit {100 * chance:.0f} % of the "
                "bugs, which its interval does not exclude: its hits may be chance."
            )


def _conclude_difference(arm: HistoryArm) -> Iterator[str]:
    found = arm["against"]
    if found is None or found["difference"]["mean"] is None:
        return
    shown = found["difference"]
    mean, low, high = (100 * (shown[name] or 0.0) for name in ("mean", "low", "high"))
    span = f"{mean:+.0f} points ({low:+.0f} to {high:+.0f}), p {format_p(found['p_value'])}"
    if found["decided"]:
        better = "more" if mean > 0 else "fewer"
        yield f"{arm['arm']} found {better} of the bugs than {found['arm']}: {span}."
        return
    needed, count = found["needed_questions"], shown["n"]
    more = (
        f" If that is the true difference, about {needed - count:,} more bugs give a 4 in 5 chance of a clear answer (80 % power)."
        if needed and needed > count
        else ""
    )
    yield f"Not decided: {arm['arm']} and {found['arm']} cannot be told apart by the bugs they found: {span}.{more}"


# Text

SUPPORT_HEAD = ("arm", "found by", "bugs found", "recall", "by chance", "precision at least")
ARM_HEAD = (
    *("arm", "reviews", "findings each", "controls with findings", "with critical", "FAIL on bugs", "FAIL on controls"),
    *("$ a review", "$ a bug found", "against", "points", "p"),
)


def format_result(result: HistoryEvalObject) -> str:
    """Return what the reviews mean, and then the tables, as text."""
    conclusions = [wrap_text(line, "- ", "  ") for line in result["conclusions"]]
    members = f"models: {', '.join(result['members'])}" if result["members"] else ""
    first = [f"{result['dataset']}: {format_counts(result)}, fixes since {result['since']}", *filter(None, [members])]
    return "\n".join([*first, "", *conclusions, "", *format_tables(result)])


def format_counts(result: HistoryEvalObject) -> str:
    return f"{format_count(result['bugs'], 'bug')}, {format_count(result['controls'], 'control')}"


def format_tables(result: HistoryEvalObject) -> list[str]:
    """Return what was found by how many judges, and what each arm did."""
    support = [
        (
            arm["arm"],
            f"{row['support']} or more of {arm['judges']}",
            f"{row['found']} of {row['recall']['n']}",
            format_share(row["recall"]),
            "" if row["by_chance"] is None else f"{100 * row['by_chance']:.0f} %",
            format_share(row["precision"]),
        )
        for arm in result["arms"]
        for row in arm["by_support"]
    ]
    seats = [
        (arm["arm"], f"{seat['seat']} alone", "", format_share(seat["recall"]), "", "")
        for arm in result["arms"]
        for seat in arm["seats"]
    ]
    return [
        f"{format_counts(result)}; 95 % intervals in brackets",
        "",
        *align_columns([SUPPORT_HEAD, *support, *seats], left=(0, 1)),
        "",
        *align_columns([ARM_HEAD, *map(_format_arm, result["arms"])], left=(0, 9)),
    ]


def _format_arm(arm: HistoryArm) -> tuple[str, ...]:
    points, p = format_comparison(arm["against"])[:2]
    each = arm["findings_per_review"]
    return (
        arm["arm"],
        str(arm["reviews"]),
        "" if each is None else f"{each:.1f}",
        format_share(arm["controls_with_findings"]),
        format_share(arm["controls_with_critical"]),
        format_share(arm["fail_on_bugs"]),
        format_share(arm["fail_on_controls"]),
        *("" if usd is None else format_usd(usd) for usd in (arm["usd_per_review"], arm["usd_per_bug"])),
        arm["against"]["arm"] if arm["against"] and points else "",
        points,
        p,
    )
