"""Findings: parsing, verification, grouping and sorting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.judges.findings import (
    Challenge,
    Finding,
    FindingGroup,
    build_rows,
    compute_fingerprint,
    find_dropped,
    find_inconsistent_judges,
    find_survivors,
    find_verified_seats,
    group_findings,
    is_challenged,
    parse_finding,
    parse_location,
    sort_groups,
    verify_finding,
)
from council.protocols.judges.rules import Vote

CODE = "".join(f"line {n}\n" for n in range(1, 101))
FILES = {"src/auth.py": CODE, "src/db.py": CODE, "tests/auth.py": CODE}


def found(seat: str, location: str, description: str = "", severity: str = "significant", category: str = "style") -> Finding:  # fmt: skip
    words = description or f"something at {location} by {seat}"
    return verify_finding(Finding(severity, category, words, location=location, seat=seat), FILES)


def who(groups: list[FindingGroup]) -> list[tuple[str, ...]]:
    return [one.found_by for one in groups]


# Parsing


@pytest.mark.behaviour("20-locations-checked")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("src/auth.py:12", ("src/auth.py", 12)),
        ("src/auth.py:12-20", ("src/auth.py", 12)),
        ("auth.py:12:5", ("auth.py", 12)),
        ("src/auth.py#L12-L20", ("src/auth.py", 12)),
        ("src/auth.py:L12", ("src/auth.py", 12)),
        ("src/auth.py, line 12", ("src/auth.py", 12)),
        ("src/auth.py (lines 12-14)", ("src/auth.py", 12)),
        ("see `src/auth.py:12` and db.py:3", ("src/auth.py", 12)),
        ("`src/auth.py`:12", ("src/auth.py", 12)),
        ("`load` in src/auth.py:12", ("src/auth.py", 12)),
        ("don't trust (src/auth.py:12)", ("src/auth.py", 12)),
        ("[src/auth.py:12](there)", ("src/auth.py", 12)),
        ("`my file.py:3`", ("my file.py", 3)),
        ("app/[id].tsx:4", ("app/[id].tsx", 4)),
        (".\\src\\auth.py:12", ("src/auth.py", 12)),
        ("Makefile:3", ("Makefile", 3)),
    ],
)
def test_locations_are_parsed_in_all_common_forms(text: str, place: tuple[str, int]) -> None:
    assert parse_location(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "the whole design", "http://localhost:8080", "https://example.org/a.py#L3", "12:30", "src/auth.py", "src/auth.py:0",
     "src/auth.py:99999999"],
)  # fmt: skip
def test_text_without_a_file_and_line_is_not_a_location(text: str) -> None:
    assert parse_location(text) is None


@given(st.text())
def test_parsing_a_location_never_fails(text: str) -> None:
    place = parse_location(text)
    assert place is None or place[1] > 0


@pytest.mark.behaviour("20-schema-version-zero")
def test_fields_missing_in_older_schemas_get_defaults() -> None:
    row: dict[str, Any] = {"severity": "minor", "category": "style", "description": "d", "location": "a.py:1", "recommendation": "do"}  # fmt: skip
    old = parse_finding("judge-1", row)
    assert (old.fix, old.why, old.ref) == ("do", "No root cause specified", "a.py:1")
    bare = parse_finding("judge-1", {"severity": "minor", "description": "d", "fix": None})
    assert (bare.fix, bare.ref) == ("No fix specified", "No reference")
    new = parse_finding("judge-1", row | {"fix": "f", "why": "w", "ref": "r"})
    assert (new.fix, new.why, new.ref) == ("f", "w", "r")


# Verification


@pytest.mark.behaviour("20-locations-checked")
@pytest.mark.parametrize(
    ("location", "ref", "verified"),
    [
        ("src/auth.py:100", "", True),
        ("src/auth.py:101", "", False),
        ("src/nowhere.py:1", "", False),
        ("the design", "", None),
        ("the login", "src/auth.py:5", True),
        ("db.py:5", "", True),
        ("auth.py:5", "", False),
        ("b/src/db.py:5", "", True),
        ("/anywhere/project/src/db.py:5", "", True),
        ("other/db.py:5", "", False),
    ],
    ids=["last", "beyond", "no-file", "no-place", "by-ref", "by-its-end", "ambiguous", "diff-side", "rooted", "elsewhere"],
)  # fmt: skip
def test_a_line_is_verified_only_if_it_exists(location: str, ref: str, verified: bool | None) -> None:
    finding = verify_finding(Finding("minor", "style", "d", location=location, ref=ref), FILES)
    assert finding.verified is verified


def test_a_final_line_break_does_not_start_a_new_line() -> None:
    finding = Finding("minor", "style", "d", location="a.py:2")
    assert verify_finding(finding, {"a.py": "one\n"}).verified is False
    assert verify_finding(finding, {"a.py": "one\r\ntwo"}).code == "two"
    assert verify_finding(finding, {"a.py": "one\x0ctwo"}).verified is False  # a form feed is not a line break


# Grouping


@pytest.mark.behaviour("20-findings-grouped")
def test_findings_at_one_verified_location_are_grouped() -> None:
    groups = group_findings(
        [found("a", "src/auth.py:10", "no check"), found("b", "src/auth.py:13", "token unchecked")], 3
    )
    assert [(one.found_by, one.support) for one in groups] == [(("a", "b"), "found by 2 of 3")]
    assert {member.description for member in groups[0].members} == {"no check", "token unchecked"}


@pytest.mark.behaviour("20-findings-grouped")
def test_distant_lines_and_other_files_are_separate_groups() -> None:
    apart = [found("a", "src/auth.py:10"), found("b", "src/auth.py:14"), found("c", "src/db.py:10")]
    assert len(group_findings(apart, 3)) == 3


@pytest.mark.behaviour("20-findings-grouped")
def test_a_chain_of_neighbouring_lines_is_not_one_group() -> None:
    chain = [found(f"judge-{n}", f"src/auth.py:{1 + 3 * n}") for n in range(6)]
    assert max(len(one.members) for one in group_findings(chain, 6)) == 2


@pytest.mark.behaviour("20-findings-grouped")
def test_similar_wording_is_grouped_if_no_location_differs() -> None:
    words = "The session token is never checked for expiry on refresh"
    groups = group_findings(
        [found("a", "", words), found("b", "the login", words + " calls"), found("c", "", "Names are unclear")], 3
    )
    assert who(groups) == [("c",), ("a", "b")]


@pytest.mark.behaviour("20-findings-grouped")
def test_the_same_wording_at_two_verified_locations_stays_two_groups() -> None:
    words = "The docstring of this function is missing"
    assert len(group_findings([found("a", "src/auth.py:5", words), found("b", "src/auth.py:90", words)], 2)) == 2


def test_two_findings_of_one_judge_are_not_joined_by_location() -> None:
    first = found("a", "src/auth.py:10", "password compared in variable time")
    second = found("a", "src/auth.py:11", "magic number without a name")
    other = found("b", "src/auth.py:11", "password compared in variable time here")
    assert who(group_findings([first, second, other], 2)) == [("a", "b"), ("a",)]


def test_a_judge_that_repeats_a_finding_counts_once() -> None:
    words = "The session token is never checked"
    assert [one.support for one in group_findings([found("a", "", words), found("a", "", words)], 2)] == [
        "found by 1 of 2"
    ]


def test_a_finding_of_one_judge_is_kept_and_attributed() -> None:
    assert [(one.found_by, one.judge_count) for one in group_findings([found("a", "src/db.py:3")], 3)] == [(("a",), 3)]


def test_a_group_has_the_severity_of_its_worst_member() -> None:
    (one,) = group_findings(
        [found("a", "src/db.py:3", severity="minor"), found("b", "src/db.py:3", severity="critical")], 2
    )
    assert (one.severity, one.lead.seat) == ("critical", "b")


FINDINGS = st.lists(
    st.builds(
        found,
        seat=st.sampled_from("abcd"),
        location=st.sampled_from(["", "src/auth.py:3", "src/auth.py:5", "src/auth.py:8", "src/db.py:3", "src/gone.py:1"]),
        description=st.sampled_from(["token never checked", "token is never checked", "unclear name", ""]),
        severity=st.sampled_from(["critical", "significant", "minor"]),
        category=st.sampled_from(["security", "style"]),
    ),
    max_size=8,
)  # fmt: skip


@pytest.mark.behaviour("20-findings-grouped")
@given(FINDINGS, st.randoms())
@settings(max_examples=300)
def test_grouping_does_not_depend_on_order_and_loses_nothing(findings: list[Finding], random: Any) -> None:
    groups = group_findings(findings, 4)
    assert group_findings(random.sample(findings, len(findings)), 4) == groups
    assert sorted(map(repr, findings)) == sorted(repr(member) for one in groups for member in one.members)


@given(FINDINGS)
def test_a_group_spans_at_most_three_lines_of_one_file(findings: list[Finding]) -> None:
    for one in group_findings(findings, 4):
        places = [member for member in one.members if member.verified]
        assert len({member.path for member in places}) <= 1
        assert not places or max(member.line for member in places) - min(member.line for member in places) <= 3


# Order


@pytest.mark.behaviour("20-security-outweighs-style")
def test_security_findings_behind_a_fail_come_first_then_severity_then_count() -> None:
    security = found("f", "src/db.py:50", severity="significant", category="Security")
    critical = found("w", "src/db.py:10", severity="critical")
    shared = [found("f", "src/auth.py:20"), found("w", "src/auth.py:20")]
    alone = found("w", "src/auth.py:40")
    groups = sort_groups(group_findings([alone, *shared, critical, security], 2), failing=["f"])
    assert [one.lead.line for one in groups] == [50, 10, 20, 40]


def test_other_security_findings_are_sorted_like_the_rest() -> None:
    security = found("w", "src/db.py:50", severity="minor", category="security")
    critical = found("f", "src/db.py:10", severity="critical")
    assert [one.lead.line for one in sort_groups(group_findings([security, critical], 2), failing=["f"])] == [10, 50]


# Fingerprints


@pytest.mark.behaviour("issue-3-fingerprints")
def test_a_fingerprint_does_not_change_when_lines_are_added_above() -> None:
    before = verify_finding(
        Finding("minor", "style", "No check at line 3", location="a.py:3"), {"a.py": "x\ny\n  f(1)\n"}
    )
    after = verify_finding(
        Finding("minor", "style", "No check at line 5", location="a.py:5"), {"a.py": "n\nn\nx\ny\n    f(1)\n"}
    )
    assert compute_fingerprint(FindingGroup((before,), 1)) == compute_fingerprint(FindingGroup((after,), 1))


@pytest.mark.behaviour("issue-3-fingerprints")
@pytest.mark.parametrize("change", [{"path": "b.py"}, {"code": "g(1)"}, {"description": "another matter"}])
def test_another_file_code_or_description_changes_the_fingerprint(change: dict[str, str]) -> None:
    one = verify_finding(Finding("minor", "style", "No check", location="a.py:1"), {"a.py": "f(1)\n"})
    assert compute_fingerprint(FindingGroup((one,), 1)) != compute_fingerprint(
        FindingGroup((replace(one, **change),), 1)
    )  # type: ignore[arg-type]


@pytest.mark.behaviour("issue-3-fingerprints")
def test_a_group_takes_the_location_of_a_verified_member() -> None:
    words = "The session token is never checked for expiry"
    groups = group_findings([found("a", "the login", words, severity="critical"), found("b", "src/db.py:3", words)], 2)
    (row,) = build_rows(groups)
    assert (row["location"], row["verified"], groups[0].lead.seat) == ("src/db.py:3", True, "a")
    alone = build_rows(group_findings([found("a", "src/db.py:3", words, severity="critical")], 2))
    assert row["fingerprint"] == alone[0]["fingerprint"]


@pytest.mark.behaviour("issue-3-fingerprints")
def test_equal_fingerprints_in_one_report_are_numbered_by_location() -> None:
    files = {"a.py": "f(1)\n" * 90}
    twice = [
        verify_finding(Finding("minor", "style", "No check", location=f"a.py:{n}", seat="a"), files) for n in (80, 2)
    ]
    marks = {row["location"]: row["fingerprint"] for row in build_rows(group_findings(twice, 1))}
    assert marks["a.py:80"] == f"{marks['a.py:2']}:2"


# The report's rows


def test_a_row_has_the_keys_of_the_report() -> None:
    (row,) = build_rows(group_findings([found("b", "db.py:3", "d"), found("a", "src/db.py:4", "d")], 3))
    assert list(row) == [
        "severity", "category", "description", "location", "fix", "why", "ref", "recommendation", "found_by", "of",
        "verified", "fingerprint", "disputed",
    ]  # fmt: skip
    assert (row["location"], row["found_by"], row["of"], row["verified"]) == ("src/db.py:3", ["a", "b"], 3, True)


def test_an_unverified_location_is_shown_unchanged() -> None:
    (row,) = build_rows(group_findings([found("a", "src/gone.py:1")], 1))
    assert (row["location"], row["verified"]) == ("src/gone.py:1", False)


# Judges and debate


@pytest.mark.behaviour("issue-3-inconsistent-judge")
def test_a_judge_that_passes_with_a_critical_finding_is_flagged_and_not_changed() -> None:
    votes = [Vote("a", "x", "PASS", "HIGH"), Vote("b", "x", "FAIL", "HIGH"), Vote("c", "x", "PASS", "HIGH")]
    critical = [found(seat, "src/db.py:3", severity="critical") for seat in "ab"]
    assert find_inconsistent_judges(votes, [*critical, found("c", "src/db.py:3")]) == ("a",)
    assert votes[0].verdict == "PASS"


@pytest.mark.behaviour("20-dropped-finding")
def test_a_finding_that_the_second_round_does_not_mention_is_listed() -> None:
    kept, gone = found("a", "src/db.py:3", "query by hand"), found("a", "src/db.py:50", "no index")
    again = found("a", "src/db.py:4", "the query is built by hand")
    anothers = found("b", "src/db.py:50", "no index")
    assert find_dropped([kept, gone], [again, anothers]) == [gone]


@pytest.mark.parametrize(
    ("target", "claim", "answer"),
    [
        ("a", "query is built by hand from input", True),
        ("a", "db.py:4 is escaped by the driver", True),
        ("a", "the naming is fine", False),
        ("b", "query built by hand from input", False),
    ],
)
def test_a_challenge_is_matched_by_its_target_and_its_words_or_place(target: str, claim: str, answer: bool) -> None:
    finding = found("a", "src/db.py:3", "query built by hand from input")
    assert is_challenged(finding, [Challenge(target, claim)]) is answer


@pytest.mark.behaviour("20-rule-corroborated")
def test_a_survivor_kept_a_challenged_critical_finding() -> None:
    held, lost = (found(seat, f"src/db.py:{line}", severity="critical") for seat, line in (("a", 3), ("b", 50)))
    against = [Challenge("a", "src/db.py:3 is safe"), Challenge("b", "src/db.py:50 is safe")]
    assert find_survivors([held, lost], [held, replace(lost, severity="minor")], against) == {"a"}
    assert find_survivors([held], [held], []) == frozenset()


def test_verified_seats_have_a_verified_finding() -> None:
    assert find_verified_seats([found("a", "src/db.py:3"), found("b", "src/gone.py:3"), found("c", "")]) == {"a"}
