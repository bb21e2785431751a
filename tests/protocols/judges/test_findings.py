"""Findings: parsing, comparison of two judges' findings, and the changes of a second round."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from council.protocols.judges.findings import (
    Challenge,
    Finding,
    StandingFindings,
    apply_changes,
    find_challenges,
    find_inconsistent_judges,
    find_survivors,
    is_possibly_same,
    is_same_problem,
    list_judge_names,
    parse_finding,
    resolve_reference,
    shares_line,
    split_ids,
    verify_finding,
)
from council.protocols.judges.groups import build_rows, group_findings
from council.protocols.judges.locations import Material
from council.protocols.judges.replies import ReportedFinding, SecondOpinion, SettledSeverity, WithdrawnFinding
from council.protocols.judges.rules import Vote
from council.protocols.judges.verdict import read_findings
from council.types import Seat
from tests.paths import DATA

PAIRS: dict[str, Any] = tomllib.loads((DATA / "finding_pairs.toml").read_text(encoding="utf-8"))
REVIEWS: dict[str, Any] = tomllib.loads((DATA / "review_pairs.toml").read_text(encoding="utf-8"))
MATERIAL = Material({"src/db.py": "".join(f"step_{n}(order)\n" for n in range(1, 101))})


def found(seat: str, line: int, description: str, severity: str = "significant", **more: Any) -> Finding:
    """Return a finding of one line, quoted unless `quote` says otherwise."""
    fields = {"category": "correctness", "location": f"src/db.py:{line}", "quote": f"step_{line}(order)"} | more
    n = fields.pop("n", 1)
    row = {"severity": severity, "description": description, **fields}
    return verify_finding(parse_finding(seat, row, f"{seat}.F{n}"), MATERIAL)


# Parsing


@pytest.mark.behaviour("20-schema-version-zero")
def test_fields_missing_in_older_schemas_get_defaults() -> None:
    row: dict[str, Any] = {"severity": "minor", "category": "style", "description": "d", "location": "a.py:1", "recommendation": "do"}  # fmt: skip
    old = parse_finding("judge-1", row)
    assert (old.fix, old.why, old.ref, old.quote) == ("do", "No root cause specified", "a.py:1", "")
    bare = parse_finding("judge-1", {"severity": "minor", "description": "d", "fix": None, "quote": None})
    assert (bare.fix, bare.ref, bare.quote) == ("No fix specified", "No reference", "")
    new = parse_finding("judge-1", row | {"fix": "f", "why": "w", "ref": "r"})
    assert (new.fix, new.why, new.ref) == ("f", "w", "r")


@pytest.mark.behaviour("20-finding-ids")
def test_findings_have_ids_that_continue_in_the_second_round() -> None:
    rows = [ReportedFinding(severity="minor", description=text) for text in "ab"]
    reply = SecondOpinion(verdict="WARN", confidence="LOW", findings=rows)
    assert [one.id for one in read_findings("judge-1", reply, MATERIAL)] == ["judge-1.F1", "judge-1.F2"]
    assert [one.id for one in read_findings("judge-1", reply, MATERIAL, after=2)] == ["judge-1.F3", "judge-1.F4"]


JUDGES = [
    Seat("judge-1", "Judge"),
    Seat("judge-2", "Judge"),
    Seat("judge-attacker", "Red", "attacker"),
    Seat("judge-error-paths", "Trace", "error paths"),
]


@pytest.mark.behaviour("20-finding-ids", "20-ids-resolve")
@pytest.mark.parametrize(
    ("text", "finding_id"),
    [
        ("judge-2.F1", "judge-2.F1"), ("judge-2 F1", "judge-2.F1"), ("[judge-2.f1]", "judge-2.F1"), ("Judge-2: F1", "judge-2.F1"),
        ("judge-2's F1", "judge-2.F1"), ("F1 of judge-2", "judge-2.F1"), ("F1 (judge-2)", "judge-2.F1"), ("Judge 2, finding 1", "judge-2.F1"),
        ("attacker.F1", "judge-attacker.F1"), ("Red F1", "judge-attacker.F1"), ("Red/F1", "judge-attacker.F1"), ("error paths F1", "judge-error-paths.F1"),
        ("judge error-paths.F1", "judge-error-paths.F1"), ("F1", "F1"), ("finding F1", "F1"), ("my own F2", "F2"), ("`F1`", "F1"),
        ("judge-2.F9", ""), ("judge-9.F1", ""), ("defender.F1", ""), ("Blue F1", ""), ("Judge F1", ""), ("the injection", ""), ("", ""),
        ("judge-2.F1: the injection", "judge-2.F1"), ("I agree with judge-2.F1 because the line is as quoted", "judge-2.F1"),
    ],
)  # fmt: skip
def test_an_id_is_read_in_the_forms_that_judges_write(text: str, finding_id: str) -> None:
    known = ["judge-1.F1", "judge-2.F1", "judge-attacker.F1", "judge-error-paths.F1"]
    assert resolve_reference(text, known, list_judge_names(JUDGES)).id == finding_id


@pytest.mark.behaviour("20-ids-resolve")
def test_a_name_that_two_judges_have_means_the_other_one() -> None:
    seats = [Seat(f"{family}-judge-attacker", "Red", "attacker") for family in ("claude", "codex")]
    known, names = [f"{seat.name}.F1" for seat in seats], list_judge_names(seats)
    assert resolve_reference("attacker.F1", known, names).id == ""
    assert resolve_reference("Red F1", known, names, "claude-judge-attacker").id == "codex-judge-attacker.F1"


@pytest.mark.parametrize(
    ("text", "ids"),
    [("a.F1, b.F2 and c.F3", ["a.F1", "b.F2", "c.F3"]), ("a.F1", ["a.F1"]), ("a.F1, as I said", ["a.F1, as I said"])],
)
def test_several_ids_in_one_text_are_split(text: str, ids: list[str]) -> None:
    assert split_ids(text) == ids


@pytest.mark.behaviour("20-ids-resolve")
def test_an_id_of_another_or_an_unknown_judge_never_hits_the_writers_own_finding() -> None:
    standing = changed(
        withdraw("a", "attacker.F1", "It is wrong."),
        withdraw("a", "b.F1", "It is wrong."),
        ("b", "Red F1"),
        ("b", "F1"),
        ("b", "a.F2"),
    )
    assert [one.id for one in standing.findings] == ["a.F1", "a.F2", "b.F1"]
    assert standing.withdrawn == ()
    assert standing.supporters == {"a.F2": ("b",)}
    assert standing.problems == (
        'a withdraws "attacker.F1", which is no finding: nothing is withdrawn.',
        "a withdraws b.F1, a finding of b: it remains.",
        'b supports "Red F1", which is no finding: the support does not count.',
        'b supports "F1" without naming its judge: the support does not count.',
    )


# Pairs of findings


def judge(pair: Any, files: Any = PAIRS["files"]) -> tuple[Finding, Finding]:
    material = Material(files)
    a, b = (
        verify_finding(parse_finding(seat, pair[side], f"{seat}.F1"), material)
        for seat, side in (("judge-1", "a"), ("judge-2", "b"))
    )
    return a, b


@pytest.mark.behaviour("20-no-false-corroboration")
@pytest.mark.parametrize("pair", [one for one in PAIRS["pair"] if not one["same"]], ids=lambda pair: pair["name"])
def test_two_defects_are_never_joined(pair: Any) -> None:
    a, b = judge(pair)
    assert not is_same_problem(a, b)
    assert not is_same_problem(b, a)


@pytest.mark.behaviour("20-findings-grouped")
@pytest.mark.parametrize("which", ["tune", "holdout"])
def test_more_than_half_of_the_true_pairs_with_quotes_are_joined_without_a_clerk(which: str) -> None:
    pairs = [judge(one) for one in PAIRS["pair"] if one["same"] and one["quoted"] and one["set"] == which]
    joined = [is_same_problem(a, b) for a, b in pairs]
    assert sum(joined) >= 0.55 * len(pairs)
    assert all(is_possibly_same(a, b) for (a, b), is_joined in zip(pairs, joined, strict=True) if not is_joined)


@pytest.mark.behaviour("20-no-false-corroboration")
@pytest.mark.parametrize("pair", [one for one in REVIEWS["pair"] if not one["same"]], ids=lambda pair: pair["name"])
def test_two_defects_on_one_line_are_never_joined_in_the_words_of_strong_reviewers(pair: Any) -> None:
    a, b = judge(pair, REVIEWS["files"])
    assert shares_line(a, b)
    assert not is_same_problem(a, b)


@pytest.mark.behaviour("20-findings-grouped")
def test_at_least_sixty_percent_of_the_true_pairs_of_strong_reviewers_are_joined() -> None:
    pairs = [judge(one, REVIEWS["files"]) for one in REVIEWS["pair"] if one["same"]]
    assert sum(is_same_problem(a, b) for a, b in pairs) >= 0.6 * len(pairs)


def test_the_table_has_enough_pairs_and_a_third_of_them_held_out() -> None:
    held_out = [one for one in PAIRS["pair"] if one["set"] == "holdout"]
    assert len(PAIRS["pair"]) >= 40
    assert len(held_out) * 3 >= len(PAIRS["pair"]) - 3


@pytest.mark.behaviour("20-no-false-corroboration")
@pytest.mark.parametrize("distance", [1, 2, 3])
def test_being_close_is_no_reason_to_join(distance: int) -> None:
    a = found("a", 10, "SQL injection through the name.", "critical", category="security")
    b = found("b", 10 - distance, "The function lacks a docstring.", "minor", category="style")
    assert not is_same_problem(a, b)


@pytest.mark.behaviour("20-findings-grouped")
def test_nearly_equal_wording_joins_in_one_file_unless_the_places_differ() -> None:
    words = "The session token is never checked for expiry on refresh."
    unquoted = [found(seat, line, words, quote="") for seat, line in (("a", 10), ("b", 12), ("c", 60))]
    assert is_same_problem(unquoted[0], unquoted[1])
    assert not is_same_problem(unquoted[0], unquoted[2])
    assert not is_same_problem(found("a", 10, words), found("b", 12, words))  # two quoted lines
    gone = [found(seat, 1, words, location="src/gone.py:1", quote="") for seat in "ab"]
    assert is_same_problem(*gone)  # the same place, although the packet does not have it


# Second round


Change = tuple[str, WithdrawnFinding | SettledSeverity | str]  # by a judge; a text is a finding that it supports


def withdraw(seat: str, finding: str, why: str) -> Change:
    return seat, WithdrawnFinding(id=finding, why=why)


def settle(seat: str, finding: str, why: str) -> Change:
    return seat, SettledSeverity(id=finding, severity="minor", why=why)


def changed(*changes: Change, added: tuple[Finding, ...] = ()) -> StandingFindings:
    fields: dict[str, dict[str, list[Any]]] = {}
    kinds = {WithdrawnFinding: "withdrawn", SettledSeverity: "settled", str: "supports"}
    for seat, change in changes:
        fields.setdefault(seat, {}).setdefault(kinds[type(change)], []).append(change)
    replies = {seat: SecondOpinion(verdict="WARN", confidence="LOW", **lists) for seat, lists in fields.items()}
    return apply_changes(FIRST, added, replies, {})


FIRST = (
    found("a", 3, "The query is built by hand.", "critical"),
    found("a", 50, "There is no index.", n=2),
    found("b", 70, "The loop never ends."),
)


@pytest.mark.behaviour("20-findings-stand")
def test_findings_of_the_first_round_stand_without_being_repeated() -> None:
    assert changed().findings == FIRST


@pytest.mark.behaviour("20-findings-stand")
def test_a_finding_is_withdrawn_by_its_judge_with_a_reason() -> None:
    standing = changed(withdraw("a", "a.F1", "The driver escapes it."))
    assert [one.id for one in standing.findings] == ["a.F2", "b.F1"]
    assert [(one.id, why) for one, why in standing.withdrawn] == [("a.F1", "The driver escapes it.")]


@pytest.mark.behaviour("20-findings-stand")
def test_a_finding_that_is_withdrawn_and_reported_again_is_corrected() -> None:
    again = found("a", 3, "The query is built by hand.", "critical", n=4, fix="bind the value")
    standing = changed(withdraw("a", "a.F1", "The fix was wrong."), added=(again,))
    assert next((one.id, one.fix) for one in standing.findings) == ("a.F1", "bind the value")
    assert ([one.id for one in standing.findings], standing.withdrawn) == (["a.F1", "a.F2", "b.F1"], ())


@pytest.mark.behaviour("20-findings-stand")
@pytest.mark.parametrize(
    ("withdrawal", "problem"),
    [
        (withdraw("a", "a.F1", " "), "a withdraws a.F1 without a reason: it remains."),
        (withdraw("b", "a.F1", "No."), "b withdraws a.F1, a finding of a: it remains."),
        (withdraw("a", "a.F9", "No."), 'a withdraws "a.F9", which is no finding: nothing is withdrawn.'),
    ],
)
def test_a_withdrawal_without_a_reason_or_of_another_finding_is_reported_and_changes_nothing(
    withdrawal: Change, problem: str
) -> None:
    standing = changed(withdrawal)
    assert (standing.findings, standing.withdrawn, standing.problems) == (FIRST, (), (problem,))


@pytest.mark.behaviour("20-findings-stand")
def test_a_severity_is_settled_with_a_reason_only() -> None:
    standing = changed(settle("a", "F1", "Only admins reach it."), settle("b", "b.F1", ""))
    assert [(one.id, one.severity, one.first_severity) for one in standing.findings] == [
        ("a.F1", "minor", "critical"), ("a.F2", "significant", ""), ("b.F1", "significant", ""),
    ]  # fmt: skip
    assert standing.problems == ("b rates b.F1 as minor without a reason: no change.",)


@pytest.mark.behaviour("20-supports-join")
def test_supports_are_kept_by_finding_and_unknown_ones_reported() -> None:
    standing = changed(("b", "a.F1"), ("a", "a.F2"), ("b", "a.F7"))
    assert standing.supporters == {"a.F1": ("b",)}
    assert standing.problems == ('b supports "a.F7", which is no finding: the support does not count.',)


def test_a_withdrawn_finding_that_another_judge_supports_stands() -> None:
    standing = changed(withdraw("a", "a.F1", "I misread it."), ("b", "a.F1"))
    assert [one.id for one in standing.findings] == ["a.F1", "a.F2", "b.F1"]
    assert [one.id for one, _ in standing.withdrawn] == ["a.F1"]


def test_new_findings_are_added_and_repeated_ones_are_not() -> None:
    again = found("a", 3, "The query is still built by hand.", "minor", n=3)
    new = found("a", 80, "The file is never closed.", n=4)
    standing = changed(added=(again, new))
    assert [(one.id, one.severity) for one in standing.findings if one.seat == "a"] == [
        ("a.F1", "critical"), ("a.F2", "significant"), ("a.F4", "significant"),
    ]  # fmt: skip


# Judges and challenges


@pytest.mark.behaviour("issue-3-inconsistent-judge")
def test_a_judge_that_passes_with_a_critical_finding_is_flagged() -> None:
    votes = [Vote("a", "x", "PASS", "HIGH"), Vote("b", "x", "FAIL", "HIGH"), Vote("c", "x", "PASS", "HIGH")]
    critical = [found(seat, 3, "d", "critical") for seat in "ab"]
    assert find_inconsistent_judges(votes, [*critical, found("c", 3, "d")]) == ("a",)


@pytest.mark.parametrize(
    ("target", "claim", "answer"),
    [
        ("a", "query is built by hand from input", True),
        ("a", "db.py:3 is escaped by the driver", True),
        ("a", "db.py:4 is escaped by the driver", False),
        ("a", "F1 is wrong: the driver escapes it", True),
        ("all", "a.F1 is wrong: the driver escapes it", True),
        ("a", "F2 is wrong", False),
        ("a", "the naming is fine", False),
        ("b", "query built by hand from input", False),
    ],
)
def test_a_challenge_is_matched_by_id_or_by_its_target_and_its_words_or_line(
    target: str, claim: str, answer: bool
) -> None:
    finding = found("a", 3, "query built by hand from input")
    assert bool(find_challenges(finding, [Challenge(target, claim)])) is answer


@pytest.mark.behaviour("20-rule-corroborated")
def test_a_survivor_answered_the_second_round_and_kept_a_challenged_critical_finding() -> None:
    held, low, silent = (found(seat, line, f"Defect {line}.", severity) for seat, line, severity in
                         (("a", 3, "critical"), ("b", 50, "minor"), ("c", 60, "critical")))  # fmt: skip
    against = [Challenge(one.seat, f"src/db.py:{one.place.line} is safe") for one in (held, low, silent)]
    assert find_survivors([held, low, silent], against, ["a", "b"]) == {"a"}
    assert find_survivors([held], [], ["a"]) == frozenset()


def test_a_finding_is_verified_by_its_quote() -> None:
    rows = [found("a", 3, "d"), found("b", 3, "d", quote=""), found("c", 3, "d", quote="invented()")]
    assert [one.seat for one in rows if one.is_verified] == ["a"]


@pytest.mark.behaviour("20-from-memory")
@pytest.mark.parametrize(
    ("ref", "state", "note"),
    [
        ("src/auth.py:1", "verified", ""),
        ("LIMIT -1 means no limit (from memory; check the documentation)", "located", "from memory"),
        ("src/auth.py:1; From my memory of the library", "located", "from memory"),
    ],
)
def test_a_finding_from_memory_is_at_best_located_and_still_joined_with_others_on_its_line(
    ref: str, state: str, note: str
) -> None:
    material = Material({"src/auth.py": "return check(token)\n"})
    row = {
        "severity": "critical",
        "description": "The token is never checked for expiry.",
        "quote": "return check(token)",
    }
    one, other = (
        verify_finding(parse_finding(seat, row | {"location": "src/auth.py:1", "ref": cited}, f"{seat}.F1"), material)
        for seat, cited in (("a", ref), ("b", "from memory"))
    )
    assert (one.state, one.is_verified) == (state, state == "verified")
    (group,) = build_rows(group_findings([one, other], 2))
    assert (group["found_by"], group["verified"], group["location_note"]) == (["a", "b"], state == "verified", note)
