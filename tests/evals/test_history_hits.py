"""Hits of findings on lines that a fix changed later, labels of persons, and what the figures say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from council.engine.records import FindingRow, ReportObject
from council.errors import UsageError
from council.evals.evaluation import Arm, split_arm
from council.evals.history.case_file import CaseRequest, ChosenCases, read_cases, write_cases
from council.evals.history.cases import Fix, FixedLine, HistoryCase, Mined
from council.evals.history.hits import chance_of_any, chance_of_hit, find_hits, read_span
from council.evals.history.labels import LABELS, CaseLabels, read_labels, write_labels
from council.evals.history.links import make_link
from council.evals.history.summary import HistoryArmReviews, format_result, read_case, summarize
from council.evals.review_measures import bootstrap_share

LINE = FixedLine("src/cart.py", 40, "    return total - tax(total)")
FIX = Fix("f" * 40, "Fix the tax", "2026-02-01", (LINE,))
REQUEST: CaseRequest = {"repository": "/project", "since": "1y", "limit": 30, "seed": 0}


def make_case(n: int, *fixes: Fix) -> HistoryCase:
    return HistoryCase(f"{n:010}", f"{n:040}", f"{n + 1:040}", f"Change {n}", "2026-01-01", 20, fixes)


def make_finding(line: int, location: str = "", **fields: Any) -> FindingRow:
    path = fields.pop("path", LINE.path)
    row = {
        "severity": "SIGNIFICANT", "category": "correctness", "description": "It is wrong.", "location": location or f"{path}:{line}",
        "fix": "", "why": "", "ref": "", "found_by": ["judge-1"], "of": 2, "verified": True, "disputed": False, "quote": "", "path": path, "line": line,
    }  # fmt: skip
    return cast("FindingRow", row | fields)


def make_report(*findings: FindingRow, verdict: str = "WARN", usd: float | None = 0.5, judges: int = 2) -> ReportObject:
    seats = [{"name": f"judge-{n}", "served_by": f"sim:m{n}"} for n in range(1, judges + 1)]
    report = {
        "run": "r1", "status": "complete", "verdict": verdict, "findings": list(findings), "seats": seats, "chair": None,
        "tokens": {"in": 100, "out": 10}, "calls": {"made": 2}, "cost": {"usd": usd}, "seconds": 1.0,
    }  # fmt: skip
    return cast("ReportObject", report)


@pytest.mark.behaviour("evidence-history-hits")
@pytest.mark.parametrize(
    ("finding", "hit"),
    [
        (make_finding(40), True),
        (make_finding(39), True),  # one line of tolerance
        (make_finding(41), True),
        (make_finding(38), False),
        (make_finding(42), False),
        (make_finding(40, path="src/other.py"), False),
        (make_finding(30, "src/cart.py:30-45"), True),
        (make_finding(30, "src/cart.py:30-38"), False),
        (make_finding(30, "src/cart.py:31-45"), False),  # the line was corrected: the range is not about it
        (make_finding(38, quote="    total = 0\n    print(total)\n    return total - tax(total)"), True),
        (make_finding(38, quote="x\ny\nreturn total - tax(total)", verified=False), False),
        (make_finding(10, quote="    return total - tax(total)"), False),  # the same text elsewhere in the file
        (make_finding(0, "src/cart.py"), False),
    ],
)
def test_a_finding_hits_if_it_encloses_a_fixed_line_or_quotes_it_in_its_place(finding: FindingRow, hit: bool) -> None:
    assert find_hits(finding, [FIX]) == ([FIX.commit] if hit else [])


@pytest.mark.behaviour("evidence-history-chance")
def test_the_chance_of_a_hit_is_that_of_a_random_changed_line() -> None:
    changed = list(range(31, 51))
    assert chance_of_hit(read_span(make_finding(33)), changed, [FIX]) == 3 / 20  # lines 39 to 41
    assert chance_of_hit(read_span(make_finding(33, "src/cart.py:33-37")), changed, [FIX]) == 7 / 20
    everything = read_span(make_finding(1, "src/cart.py:1-500"))
    assert chance_of_hit(everything, changed, [FIX]) == 1
    assert chance_of_hit(read_span(make_finding(40, path="src/other.py")), changed, [FIX]) == 0
    assert chance_of_hit(read_span(make_finding(0)), changed, [FIX]) == 0
    spans = [read_span(make_finding(line)) for line in (31, 35)]
    assert chance_of_any(spans, {LINE.path: changed}, [FIX]) == pytest.approx(1 - (17 / 20) ** 2)
    flags_all = [read_span(make_finding(line)) for line in changed]
    assert chance_of_any(flags_all, {LINE.path: changed}, [FIX]) > 0.95


def summarize_two_arms(labels: dict[str, CaseLabels], count: int = 12) -> Any:
    """The council finds every bug, and with both judges every second; one judge finds none. A control has a finding."""
    bugs, control = [make_case(n, FIX) for n in range(count)], make_case(99)
    changed = {LINE.path: list(range(31, 51))}

    def review(case: HistoryCase, arm: str) -> ReportObject:
        if arm == "quick":
            return make_report(make_finding(33, of=1), verdict="PASS", usd=0.1, judges=1)
        if case.is_control:
            return make_report(make_finding(5, severity="CRITICAL"), verdict="FAIL")
        holders = ["judge-1", "judge-2"] if int(case.id) % 2 else ["judge-1"]
        return make_report(make_finding(40, found_by=holders), make_finding(40), verdict="FAIL")

    cases = [*bugs, control]
    arms = [
        HistoryArmReviews(
            Arm(name, name.partition(":")[0]),
            {case.id: read_case(case, name, review(case, name), labels, changed) for case in cases},
        )
        for name in ("judges:count=2", "quick")
    ]
    return summarize(ChosenCases(REQUEST, Mined(tuple(cases))), arms, labels)


@pytest.mark.behaviour("evidence-history-table")
def test_the_table_counts_a_bug_once_and_has_costs_controls_and_verdicts() -> None:
    result = summarize_two_arms({})
    council, quick = result["arms"]
    assert (result["bugs"], result["controls"], result["questions"]) == (12, 1, 13)
    one, two = council["by_support"]
    assert (one["found"], two["found"], one["recall"]["n"]) == (12, 6, 12)
    assert [one["recall"]["mean"], two["recall"]["mean"]] == [1.0, 0.5]
    assert one["by_chance"] == pytest.approx(1 - (17 / 20) ** 2, abs=1e-6) and two["by_chance"] == pytest.approx(3 / 40)
    assert [seat["recall"]["mean"] for seat in council["seats"]] == [1.0, 0.5]
    assert (council["usd_per_review"], council["usd_per_bug"]) == (0.5, pytest.approx(6.5 / 12))
    assert council["findings_per_review"] == pytest.approx(25 / 13)
    assert [council[name]["mean"] for name in ("controls_with_findings", "controls_with_critical")] == [1.0, 1.0]
    assert [council[name]["mean"] for name in ("fail_on_bugs", "fail_on_controls")] == [1.0, 1.0]
    assert (quick["usd_per_bug"], quick["by_support"][0]["precision"]["mean"]) == (None, 0.0)
    assert (council["against"]["arm"], council["against"]["wrong_to_right"], quick["against"]) == ("quick", 12, None)
    text = format_result(result)
    assert "1 or more of 2" in text and "judge-2 alone" in text and "12 bugs are few" in text


@pytest.mark.behaviour("evidence-history-limits")
def test_the_conclusions_say_what_the_figures_do_not_show() -> None:
    few = summarize_two_arms({}, count=9)["conclusions"]
    assert few[0] == "9 bugs are too few: below 10, this evaluation decides nothing."
    assert not [line for line in few if "points" in line]
    text = " ".join(few)
    for words in (
        "what somebody noticed and repaired",
        "a finding that no fix touched may still be right",
        "their training",
    ):
        assert words in text


@pytest.mark.behaviour("evidence-history-labels")
def test_labels_of_a_person_decide_and_are_kept(tmp_path: Path) -> None:
    path, cases, arms = tmp_path / LABELS, [make_case(n, FIX) for n in range(3)], ["judges:count=2", "quick"]
    write_labels(path, cases, arms)
    text = path.read_text(encoding="utf-8")
    assert read_labels(path, cases, arms)[cases[0].id].fixes == {"f" * 10: "bug"}
    parts = text.split("[cases.")
    parts[1] = parts[1].replace('"bug"', '"no bug"').replace('note = ""', 'note = "it was a rename"')
    parts[2] = (
        parts[2]
        .replace('"judges:count=2" = "rule"', '"judges:count=2" = "no hit"')
        .replace('"quick" = "rule"', '"quick" = "hit"')
    )
    path.write_text("[cases.".join(parts), encoding="utf-8")
    write_labels(path, cases, arms)
    labels = read_labels(path, cases, arms)
    assert labels[cases[0].id].note == "it was a rename"
    result = summarize_two_arms(labels)
    assert (result["bugs"], result["without_bug"], result["controls"]) == (11, 1, 1)
    council, quick = result["arms"]
    assert (council["by_support"][0]["found"], quick["by_support"][0]["found"]) == (10, 1)
    assert council["hits"][cases[1].id] is False and cases[0].id not in council["hits"]


def review_with_label(label: str, *holders: Sequence[str], lines: Sequence[int] = (5, 6, 7)) -> Any:
    """The result of one review, whose findings have these holders and lines. A bug is at line 40."""
    case = make_case(1, FIX)
    found = [make_finding(line, found_by=list(names)) for line, names in zip(lines, holders, strict=False)]
    labels = {case.id: CaseLabels(hits={"judges:count=2": label})}
    review = read_case(case, "judges:count=2", make_report(*found), labels, {LINE.path: list(range(1, 51))})
    arm = HistoryArmReviews(Arm("judges:count=2", "judges"), {case.id: review})
    return summarize(ChosenCases(REQUEST, Mined((case,))), [arm], labels)["arms"][0]


BOTH, ONE, OTHER = ("judge-1", "judge-2"), ("judge-1",), ("judge-2",)


@pytest.mark.behaviour("evidence-history-labels")
@pytest.mark.parametrize(
    ("label", "found", "precision", "seats"),
    [
        ("hit", (1, 0), (1 / 3, 0.0), [0.0, 0.0]),  # it is not known which finding
        ("hit 1", (1, 1), (1 / 3, 1.0), [1.0, 1.0]),
        ("hit 2", (1, 0), (1 / 3, 0.0), [1.0, 0.0]),
        ("hit 3", (1, 0), (1 / 3, 0.0), [0.0, 1.0]),
        ("no hit", (0, 0), (0.0, 0.0), [0.0, 0.0]),
    ],
)
def test_a_labelled_hit_counts_for_several_judges_only_if_it_names_their_finding(
    label: str, found: tuple[int, int], precision: tuple[float, float], seats: list[float]
) -> None:
    arm = review_with_label(label, BOTH, ONE, OTHER)
    assert tuple(row["found"] for row in arm["by_support"]) == found
    assert tuple(row["precision"]["mean"] for row in arm["by_support"]) == pytest.approx(precision)
    assert [seat["recall"]["mean"] for seat in arm["seats"]] == seats
    assert arm["hits"] == {make_case(1).id: label != "no hit"}


@pytest.mark.behaviour("evidence-history-labels")
def test_a_labelled_hit_of_the_only_finding_names_it_and_the_rule_names_those_it_found() -> None:
    assert [row["found"] for row in review_with_label("hit", BOTH)["by_support"]] == [1, 1]
    by_rule = review_with_label("hit", ONE, BOTH, lines=(5, 40))
    assert [row["found"] for row in by_rule["by_support"]] == [1, 1]
    corrected = review_with_label("hit 1", ONE, BOTH, lines=(5, 40))
    assert [row["found"] for row in corrected["by_support"]] == [1, 0]
    for label, problem in (("hit 3", "has 2 findings, not 3"), ("hit 2", "has 1 finding, not 2")):
        holders = (ONE, BOTH) if "2 findings" in problem else (ONE,)
        with pytest.raises(UsageError, match=problem):
            review_with_label(label, *holders)


@pytest.mark.behaviour("evidence-report-order")
def test_the_text_of_a_history_comes_before_its_tables() -> None:
    lines = format_result(summarize_two_arms({}, count=40)).splitlines()
    assert lines[0] == "history:/project: 40 bugs, 1 control, fixes since 1y"
    assert lines[1] == "models: sim:m1, sim:m2"
    last_line_of_text = max(n for n, line in enumerate(lines) if line.startswith("- "))
    assert last_line_of_text < next(n for n, line in enumerate(lines) if line.startswith("arm "))
    assert any("p < .001" in line for line in lines) and max(map(len, lines[: last_line_of_text + 1])) <= 110


@pytest.mark.behaviour("evidence-history-labels")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[cases.abc]\n", '"abc" is no case of this evaluation'),
        ('[cases.0000000000]\nhits = { quick = "maybe" }\n', 'the label "maybe" of "quick" is not known'),
        ('[cases.0000000000]\nhits = { quick = "hit 0" }\n', 'the label "hit 0" of "quick" is not known, nothing was sent: use rule, hit'),
        ('[cases.0000000000]\nhits = { triad = "hit" }\n', '"triad" is no arm of this case'),
        ('[cases.0000000000]\nfixes = { abc = "bug" }\n', '"abc" is no fix of this case'),
        ('[cases.0000000000]\nfixes = { ffffffffff = 1 }\n', 'the label "1"'),
        ("[cases.0000000000]\nhit = 1\n", '"hit" is no label'),
        ("[case.0000000000]\n", '"case" is no table of labels'),
        ("cases = 3\n", '"cases" is no table'),
        ("[cases\n", "cannot be read"),
    ],
)  # fmt: skip
def test_a_label_that_is_not_known_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / LABELS
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_labels(path, [make_case(0, FIX)], ["quick"])
    assert problem in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.behaviour("evidence-history-resume")
def test_cases_are_kept_and_other_ones_are_refused(tmp_path: Path) -> None:
    chosen = ChosenCases(REQUEST, Mined((make_case(0, FIX), make_case(1)), 5, 2, 1, {"merge": 1}, True))
    assert read_cases(tmp_path, REQUEST) is None
    write_cases(tmp_path, chosen)
    assert read_cases(tmp_path, REQUEST) == chosen
    with pytest.raises(UsageError, match="have seed 0, not 4, nothing was sent"):
        read_cases(tmp_path, {**REQUEST, "seed": 4})
    (tmp_path / "cases.json").write_text('{"cases": [1]}', encoding="utf-8")
    with pytest.raises(UsageError, match="has no cases that can be read"):
        read_cases(tmp_path, REQUEST)


@pytest.mark.behaviour("evidence-history-page")
@pytest.mark.parametrize(
    ("remote", "link"),
    [
        ("https://github.com/acme/shop.git", "https://github.com/acme/shop/commit/abc"),
        ("https://user:secret@github.com/acme/shop", "https://github.com/acme/shop/commit/abc"),
        ("git@github.com:acme/shop.git", "https://github.com/acme/shop/commit/abc"),
        ("ssh://git@gitlab.example.org:2222/group/sub/shop.git", "https://gitlab.example.org/group/sub/shop/-/commit/abc"),
        ("https://token@x:y@gitlab.com/acme/shop/", "https://gitlab.com/acme/shop/-/commit/abc"),
        ("https://example.org/github.com/shop.git", ""),
        ("https://notgithub.com/acme/shop.git", ""),
        ("/srv/git/shop.git", ""),
        ('https://github.com/acme/"><script>', ""),
        ("", ""),
    ],
)  # fmt: skip
def test_a_commit_is_linked_without_the_credentials_of_the_remote(remote: str, link: str) -> None:
    assert make_link(remote, "abc") == link


@pytest.mark.behaviour("evidence-history-arms")
def test_an_arm_may_name_several_members() -> None:
    name, options = split_arm("judges:models=openai:gpt-5.2+anthropic:claude-opus-5.5:count=1:deep")
    assert (name, options["models"]) == ("judges", "openai:gpt-5.2,anthropic:claude-opus-5.5")
    assert (options["count"], options["deep"]) == ("1", True)
    assert split_arm("advisors:rounds=3") == ("advisors", {"rounds": "3"})


def test_the_interval_of_a_share_is_over_reviews() -> None:
    alike = [[True] * 10, [False] * 10] * 3
    apart = [[True, False] * 5] * 6
    wide, narrow = bootstrap_share(alike), bootstrap_share(apart)
    assert wide.mean == narrow.mean == 0.5 and wide.n == narrow.n == 60
    assert wide.high - wide.low > 0.5 and narrow.high - narrow.low == 0
    assert bootstrap_share([[True, True, True]]).low < 0.1  # one review says little
