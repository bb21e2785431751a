"""Groups of findings: joining, sorting, fingerprints and the rows of the report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.judges.findings import Finding, is_same_problem, parse_finding, verify_finding
from council.protocols.judges.groups import (
    ClerkGroup,
    FindingGroup,
    build_rows,
    compute_fingerprint,
    group_findings,
    list_split_groups,
    sort_groups,
)
from council.protocols.judges.locations import Material

CODE = "".join(f"step_{n}(order)\n" for n in range(1, 101))
MATERIAL = Material({"src/auth.py": CODE, "src/db.py": CODE})


def found(seat: str, location: str, description: str = "", severity: str = "significant", **more: Any) -> Finding:
    """Return a finding that quotes its line, unless `quote` says otherwise."""
    line = location.rpartition(":")[2]
    fields = {"category": "style", "quote": f"step_{line}(order)" if line else ""} | more
    n = fields.pop("n", 1)
    words = description or f"something at {location} by {seat}"
    row = {"severity": severity, "description": words, "location": location, **fields}
    return verify_finding(parse_finding(seat, row, f"{seat}.F{n}"), MATERIAL)


def who(groups: list[FindingGroup]) -> list[tuple[str, ...]]:
    return [one.found_by for one in groups]


@pytest.mark.behaviour("20-findings-grouped")
def test_findings_that_quote_one_line_and_share_the_defect_are_one_group() -> None:
    a = found("a", "src/auth.py:10", "SQL injection through name", "critical", category="security")
    b = found("b", "src/auth.py:10", "User text is injected into SQL", category="security")
    groups = group_findings([a, b], 3)
    assert [(one.found_by, one.support, one.severity) for one in groups] == [
        (("a", "b"), "found by 2 of 3", "critical")
    ]
    assert {member.description for member in groups[0].members} == {a.description, b.description}


@pytest.mark.behaviour("20-findings-grouped")
def test_equal_words_about_one_quoted_line_are_one_group_with_its_judges_in_order() -> None:
    same = [found(f"judge-{n}", "src/auth.py:10", "The step of the order is run for every order.") for n in (1, 10, 2)]
    (group,) = group_findings(same, 12)  # every word of it is common or in the quoted code
    assert group.found_by == ("judge-1", "judge-2", "judge-10")


@pytest.mark.behaviour("20-no-false-corroboration")
def test_findings_on_neighbouring_lines_are_separate_groups() -> None:
    chain = [found(f"judge-{n}", f"src/auth.py:{1 + n}", "No check of the token") for n in range(6)]
    assert len(group_findings(chain, 6)) == 6


@pytest.mark.behaviour("20-no-false-corroboration")
def test_a_finding_with_two_defects_does_not_connect_two_others() -> None:
    words = {"a": "MD5 is broken", "b": "MD5 is broken and nothing expires", "c": "It never expires"}
    groups = group_findings([found(seat, "src/auth.py:10", text) for seat, text in words.items()], 3)
    assert max(len(one.found_by) for one in groups) == 2
    assert sorted(len(one.members) for one in groups) == [1, 2]


@pytest.mark.behaviour("20-possibly-same")
def test_a_close_pair_counts_as_two_and_is_marked() -> None:
    a = found("a", "src/auth.py:10", "Predictable reset codes", category="security")
    b = found("b", "src/auth.py:10", "Only ten thousand values", category="security")
    rows = build_rows(group_findings([a, b, found("c", "src/db.py:10", "Only ten thousand values")], 3))
    assert {row["id"]: (row["found_by"], row["possibly_same"]) for row in rows} == {
        "a.F1": (["a"], ["b.F1"]), "b.F1": (["b"], ["a.F1"]), "c.F1": (["c"], []),
    }  # fmt: skip


@pytest.mark.behaviour("20-supports-join")
def test_a_support_adds_the_judge_and_joins_its_own_close_finding() -> None:
    a = found("a", "src/auth.py:10", "Reset codes are predictable", category="security")
    b = found("b", "src/auth.py:10", "Codes come from a weak source", category="bug")
    far = found("c", "src/auth.py:50", "The loop never ends")
    assert len(group_findings([a, b, far], 3)) == 3
    groups = group_findings([a, b, far], 3, {"a.F1": ["b", "c"]})
    assert who(groups) == [("a", "b"), ("c",)]
    assert [(one.held_by, one.support, one.grouped_by) for one in groups] == [
        (("a", "b", "c"), "found by 2, held by 3 of 3", "support"),
        (("c",), "found by 1 of 3", ""),
    ]
    assert {(one["seat"], one["id"], one.get("supports", False)) for one in build_rows(groups)[0]["by_judge"]} == {
        ("a", "a.F1", False), ("b", "b.F1", False), ("c", "", True),
    }  # fmt: skip


def test_a_judge_that_repeats_a_finding_counts_once() -> None:
    words = "The session token is never checked for expiry"
    twice = [found("a", "", words, n=n) for n in (1, 2)]
    assert [(one.support, len(one.members)) for one in group_findings(twice, 2)] == [("found by 1 of 2", 2)]


def test_two_findings_of_one_judge_are_not_joined_by_their_line() -> None:
    first = found("a", "src/auth.py:10", "password compared in variable time")
    second = found("a", "src/auth.py:10", "magic number without a name", n=2)
    other = found("b", "src/auth.py:10", "password is compared in variable time here")
    assert sorted(who(group_findings([first, second, other], 2))) == [("a",), ("a", "b")]


def test_a_group_shows_every_judges_words_severity_and_place() -> None:
    a = found("a", "src/db.py:3", "The token is never checked for expiry", "minor")
    b = found(
        "b", "src/db.py:3", "Nothing checks the token for expiry", "critical", quote="step_3(order)\nstep_4(order)"
    )
    (row,) = build_rows(group_findings([a, b], 2))
    assert (row["severity"], row["found_by"], row["id"]) == ("critical", ["a", "b"], "b.F1")
    assert [(one["id"], one["severity"], one["location"], one["description"]) for one in row["by_judge"]] == [
        ("b.F1", "critical", "src/db.py:3", b.description), ("a.F1", "minor", "src/db.py:3", a.description),
    ]  # fmt: skip


FINDINGS = st.lists(
    st.builds(
        found,
        seat=st.sampled_from("abcd"),
        location=st.sampled_from(["", "src/auth.py:3", "src/auth.py:5", "src/auth.py:8", "src/db.py:3", "src/gone.py:1"]),
        description=st.sampled_from(["token never expires", "token expires never today", "unclear name", ""]),
        severity=st.sampled_from(["critical", "significant", "minor"]),
        category=st.sampled_from(["security", "style"]),
    ),
    max_size=8,
)  # fmt: skip


@pytest.mark.behaviour("20-findings-grouped")
@given(FINDINGS, st.randoms())
@settings(max_examples=200)
def test_grouping_does_not_depend_on_order_and_loses_nothing(findings: list[Finding], random: Any) -> None:
    groups = group_findings(findings, 4)
    assert group_findings(random.sample(findings, len(findings)), 4) == groups
    assert sorted(map(repr, findings)) == sorted(repr(member) for one in groups for member in one.members)


@pytest.mark.behaviour("20-no-false-corroboration")
@given(FINDINGS)
def test_every_pair_of_judges_in_a_group_reports_the_same_problem(findings: list[Finding]) -> None:
    for one in group_findings(findings, 4):
        assert all(is_same_problem(a, b) for a in one.members for b in one.members if a.seat != b.seat)


# The clerk

SHOP = """def pay(order):
    total = order.total
    charge(order.card, total)
    order.paid = True
    order.save()


def charge(card, total):
    gateway.post(card, total)
    log.info(card.number)


def refund(order):
    gateway.refund(order.id)
    order.paid = False
"""
SHOP_MATERIAL = Material({"src/shop.py": SHOP, "src/other.py": SHOP})
LINES = SHOP.splitlines()


def reported(seat: str, line: int, description: str, n: int = 1, path: str = "src/shop.py", **more: Any) -> Finding:
    fields = {
        "category": "bug",
        "location": f"{path}:{line}" if line else path,
        "quote": LINES[line - 1] if line else "",
    } | more
    row = {"severity": "significant", "description": description, **fields}
    return verify_finding(parse_finding(seat, row, f"{seat}.F{n}"), SHOP_MATERIAL)


TWICE = {
    "a": reported("a", 3, "A retry after a lost response bills the customer again."),
    "b": reported("b", 4, "The paid flag is only set afterwards, so a second click is charged."),
    "c": reported("c", 9, "`charge` and `pay` send no idempotency key."),
    "card": reported("a", 10, "The number ends up in a file.", n=2),
    "refund": reported("b", 14, "Nothing checks whether it was paid.", n=2),
    "other": reported("c", 3, "A retry bills again.", n=2, path="src/other.py"),
    "nowhere": reported("c", 0, "`pay` may run two times.", n=3),
    "again": reported(
        "c", 9, "A retry after a lost response bills again, because `pay` sends the customer no key.", n=5
    ),
    "lost": reported("c", 0, "Something is wrong with money.", n=4, location=""),
}


def by_clerk(*groups: str) -> list[FindingGroup]:
    """Group all findings with a clerk that names these groups, each as words of TWICE."""
    named = [
        ClerkGroup(tuple(TWICE[word].id if word in TWICE else word for word in group.split()), "d") for group in groups
    ]
    return group_findings(TWICE.values(), 3, {}, named)


def joined(groups: list[FindingGroup]) -> list[set[str]]:
    words = {finding.id: word for word, finding in TWICE.items()}
    return [{words[member.id] for member in one.members} for one in groups if len(one.members) > 1]


@pytest.mark.behaviour("20-clerk-groups", "20-clerk-checked")
@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((), []),  # it groups nothing
        (("a b",), [{"a", "b"}]),  # one definition
        (("a b c",), [{"a", "b"}]),  # two definitions, and the words differ
        (("a again",), [{"a", "again"}]),  # two definitions: one description names the other, and both are alike
        (("b nowhere",), [{"b", "nowhere"}]),  # a finding without a line that names the definition
        (("b card",), []),  # two definitions
        (("b other",), []),  # two files
        (("a card",), []),  # one judge with itself
        (("a refund other",), []),
        (("a b judge-9.F7",), [{"a", "b"}]),  # an unknown id
        (("a lost",), []),  # no file
        (("a b", "a b"), [{"a", "b"}]),
        (("a b card",), [{"a", "b"}]),
    ],
)
def test_a_group_of_the_clerk_is_followed_as_far_as_the_code_confirms_it(groups: Any, expected: Any) -> None:
    assert joined(by_clerk(*groups)) == expected


@pytest.mark.behaviour("20-clerk-groups")
def test_a_confirmed_group_has_the_words_of_the_clerk_and_the_rest_is_possibly_the_same() -> None:
    rows = {row["id"]: row for row in build_rows(by_clerk("a b refund"))}
    pair = next(row for row in rows.values() if len(row["found_by"]) == 2)
    assert (pair["grouped_by"], pair["defect"], pair["held_by"]) == ("clerk", "d", ["a", "b"])
    assert pair["possibly_same"] == [TWICE["refund"].id]
    assert rows[TWICE["refund"].id]["possibly_same"] == [pair["id"]]
    assert (rows[TWICE["refund"].id]["grouped_by"], rows[TWICE["refund"].id]["defect"]) == ("", "")


@pytest.mark.behaviour("20-possibly-same")
def test_two_groups_on_one_line_are_two_if_a_judge_reports_both() -> None:
    null = [found(seat, "src/auth.py:10", "A null order is refused", n=1) for seat in "ab"]
    number = [found(seat, "src/auth.py:10", "Unquoted digits no longer work", n=2) for seat in "ab"]
    named = [ClerkGroup(tuple(one.id for one in pair)) for pair in (null, number)]
    rows = build_rows(group_findings([*null, *number], 2, clerk=named))
    assert [(row["found_by"], row["possibly_same"]) for row in rows] == [(["a", "b"], []), (["a", "b"], [])]


@pytest.mark.behaviour("20-clerk-checked")
def test_a_clerk_that_groups_everything_joins_only_what_has_a_place_in_common() -> None:
    groups = by_clerk(" ".join(TWICE))
    for one in groups:
        assert len({member.file for member in one.members}) == 1
        assert len({member.seat for member in one.members}) == len(one.members)
    assert not any(one.possibly_same for one in groups if one.lead.id == TWICE["other"].id)
    assert [rows for _, rows in list_split_groups(groups, [ClerkGroup(tuple(one.id for one in TWICE.values()))])] == [
        len(groups)
    ]


@pytest.mark.behaviour("20-clerk-checked", "20-supports-join")
def test_a_support_confirms_a_group_of_the_clerk_in_one_file() -> None:
    named = [ClerkGroup((TWICE["b"].id, TWICE["card"].id)), ClerkGroup((TWICE["b"].id, TWICE["other"].id))]
    supports = {TWICE["card"].id: ["b"], TWICE["other"].id: ["b"]}
    assert joined(group_findings(TWICE.values(), 3, supports, named)) == [{"b", "card"}]


GROUPS = st.lists(st.lists(st.sampled_from([*TWICE, "judge-9.F7"]), min_size=1, max_size=8), max_size=6)


@pytest.mark.behaviour("20-clerk-checked")
@given(GROUPS, st.randoms())
@settings(max_examples=200)
def test_no_clerk_joins_files_or_a_judge_with_itself_or_loses_a_finding(named: list[list[str]], random: Any) -> None:
    findings = list(TWICE.values())
    clerk = [ClerkGroup(tuple(TWICE[word].id if word in TWICE else word for word in group)) for group in named]
    groups = group_findings(findings, 3, {}, clerk)
    assert group_findings(random.sample(findings, len(findings)), 3, {}, clerk) == groups
    assert sorted(finding.id for finding in findings) == sorted(member.id for one in groups for member in one.members)
    for one in groups:
        assert len({member.file for member in one.members}) == 1
        assert len({member.seat for member in one.members}) == len(one.members)
        assert (one.grouped_by == "") == (len(one.members) == 1)


@pytest.mark.behaviour("20-supports-join")
def test_three_judges_that_support_each_other_on_one_defect_are_one_row() -> None:
    a = reported("a", 3, "Retrying the charge bills the customer twice.")
    b = reported("b", 3, "No idempotency key: a second delivery is charged twice.")
    c = reported("c", 5, "A crash before this line means that the retry charges twice.")
    groups = group_findings([a, b, c], 3, {"a.F1": ["b", "c"], "b.F1": ["c"], "c.F1": ["a"]})
    assert [(one.found_by, one.held_by) for one in groups] == [(("a", "b", "c"), ("a", "b", "c"))]


# Order


@pytest.mark.behaviour("20-security-outweighs-style")
def test_security_findings_behind_a_fail_come_first_then_severity_then_count() -> None:
    security = found("f", "src/db.py:50", severity="significant", category="Security")
    critical = found("w", "src/db.py:10", severity="critical")
    shared = [found(seat, "src/auth.py:20", "The token is never checked for expiry") for seat in "fw"]
    alone = found("w", "src/auth.py:40")
    groups = sort_groups(group_findings([alone, *shared, critical, security], 2), failing=["f"])
    assert [one.lead.place.line for one in groups] == [50, 10, 20, 40]


def test_other_security_findings_are_sorted_like_the_rest() -> None:
    security = found("w", "src/db.py:50", severity="minor", category="security")
    critical = found("f", "src/db.py:10", severity="critical")
    groups = sort_groups(group_findings([security, critical], 2), failing=["f"])
    assert [one.lead.place.line for one in groups] == [10, 50]


# Fingerprints


def shown(description: str, location: str, files: dict[str, str], seat: str = "a") -> Finding:
    row = {"severity": "minor", "category": "style", "description": description, "location": location}
    return verify_finding(parse_finding(seat, row), Material(files))


@pytest.mark.behaviour("issue-3-fingerprints")
def test_a_fingerprint_does_not_change_when_lines_are_added_above() -> None:
    before = shown("No check at line 3", "a.py:3", {"a.py": "x\ny\n  f(1)\n"})
    after = shown("No check at line 5", "a.py:5", {"a.py": "n\nn\nx\ny\n    f(1)\n"})
    assert compute_fingerprint(FindingGroup((before,), 1)) == compute_fingerprint(FindingGroup((after,), 1))


@pytest.mark.behaviour("issue-3-fingerprints")
def test_another_file_code_or_description_changes_the_fingerprint() -> None:
    one = shown("No check", "a.py:1", {"a.py": "f(1)\n"})
    others = [
        replace(one, description="another matter"),
        replace(one, place=replace(one.place, path="b.py")),
        replace(one, place=replace(one.place, code="g(1)")),
    ]
    marks = {compute_fingerprint(FindingGroup((each,), 1)) for each in (one, *others)}
    assert len(marks) == 4


@pytest.mark.behaviour("issue-3-fingerprints")
def test_equal_fingerprints_in_one_report_are_numbered_by_location() -> None:
    files = {"a.py": "f(1)\n" * 90}
    twice = [shown("No check", f"a.py:{n}", files) for n in (80, 2)]
    marks = {row["location"]: row["fingerprint"] for row in build_rows(group_findings(twice, 1))}
    assert marks["a.py:80"] == f"{marks['a.py:2']}:2"


# The report's rows


def test_a_row_has_the_keys_of_the_report() -> None:
    words = "The token is never checked for expiry"
    (row,) = build_rows(group_findings([found("b", "db.py:3", words), found("a", "src/db.py:3", words)], 3))
    assert list(row) == [
        "severity", "category", "description", "location", "fix", "why", "ref", "recommendation", "found_by", "of",
        "verified", "fingerprint", "disputed", "disputed_by", "disputes", "id", "quote", "path", "line", "location_state", "location_note", "by_judge",
        "possibly_same", "held_by", "grouped_by", "defect",
    ]  # fmt: skip
    assert (row["location"], row["found_by"], row["of"], row["verified"]) == ("src/db.py:3", ["a", "b"], 3, True)


@pytest.mark.behaviour("20-locations-checked")
def test_an_unverified_location_is_shown_as_stated_with_its_file_and_the_reason() -> None:
    gone, past, wrong = (build_rows(group_findings([one], 1))[0] for one in (
        found("a", "src/gone.py:1"), found("a", "src/db.py:4000", quote=""), found("a", "src/db.py:4", quote="invented()")))  # fmt: skip
    keys = ("location", "path", "line", "verified", "location_state", "location_note")
    assert [tuple(row[key] for key in keys) for row in (gone, past, wrong)] == [
        ("src/gone.py:1", "", 0, False, "unlocated", "quote not found"),
        ("src/db.py:4000", "src/db.py", 0, False, "unlocated", ""),
        ("src/db.py:4", "src/db.py", 4, False, "located", "quote not found"),
    ]  # fmt: skip
