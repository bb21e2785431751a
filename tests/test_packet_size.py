"""Size of packets: what is cut first, what is a hole, and how a large diff is split."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.packet_blocks import number_file
from council.packet_size import IN_ANOTHER_PART, measure_changes, split_packet, truncate_packet
from council.types import Packet, PacketFile, PacketPart, estimate_tokens
from council.unified_diff import parse_diff


def diff_of(path: str, lines: int = 3, hunks: int = 1) -> str:
    rows = [f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}"]
    for n in range(hunks):
        rows += [f"@@ -{n * 1000 + 1},0 +{n * 1000 + 1},{lines} @@"]
        rows += [f"+{path} hunk {n} line {line} with some words in it" for line in range(lines)]
    return "".join(f"{row}\n" for row in rows)


def lines_of(name: str, count: int = 20) -> str:
    return "".join(f"{name} line {n} of the file\n" for n in range(1, count + 1))


def context(part: PacketPart, path: str = "", reason: str = "") -> PacketFile:
    return PacketFile(path or f"{part}.py", lines_of(part), ((11, 30),), part, reason, 40)


PARTS: tuple[PacketPart, ...] = ("rest", "types", "tests", "callers", "definitions", "rules")  # in the order of cutting
CHANGED = Packet(
    tuple(map(context, PARTS)),
    diff_of("a.py"),
    prior_decisions=("JWT",),
    commits=("1234567 Change a",),
    target="recent",
)


# Truncation


@pytest.mark.behaviour("packet-cut-order")
def test_context_is_cut_before_the_rules_and_the_diff_is_cut_last() -> None:
    lost: list[str] = []
    for tokens in range(CHANGED.tokens, 84, -8):
        small = truncate_packet(CHANGED, tokens)
        assert small.tokens <= tokens and small.diff == CHANGED.diff and small.commits == CHANGED.commits
        kept = {file.part for file in small.files if file in CHANGED.files}
        lost += [part for part in PARTS if part not in kept and part not in lost]
        assert {item.path for item in small.skipped} == {f"{part}.py" for part in PARTS if part not in kept}
        assert small.holes == ()  # the diff is shown
    assert lost == list(PARTS)
    assert truncate_packet(CHANGED, 30).holes == ("a.py",)


@pytest.mark.behaviour("packet-cut-order")
def test_a_file_that_fits_exactly_is_not_cut() -> None:
    rules, rest = context("rules"), context("rest")
    size = estimate_tokens(rules.path) + estimate_tokens(rules.content)
    assert truncate_packet(Packet((rules, rest)), size).files == (rules,)
    (cut,) = truncate_packet(Packet((rules, rest)), size - 1).files
    assert cut.path == rules.path and cut.content != rules.content


@pytest.mark.behaviour("packet-cut-order")
def test_a_part_of_a_file_that_is_cut_keeps_its_numbers() -> None:
    packet = replace(CHANGED, files=(context("callers"),))
    (file,) = truncate_packet(packet, packet.tokens - 30).files
    ((first, last),) = file.ranges
    assert first == 11 and 11 < last < 30
    assert file.number_lines()[-1] == (last, f"callers line {last - 10} of the file")
    assert list(number_file(file))[-1] == f"… lines {last + 1}-40 not shown …"


@pytest.mark.behaviour("packet-fit")
def test_a_cut_of_changed_material_is_a_hole_and_one_of_its_context_is_not() -> None:
    listed = "diff --git a/new.py b/new.py\nnew file mode 100644\n"
    files = (
        PacketFile("new.py", lines_of("new")),
        PacketFile("a.py", lines_of("a")),
        PacketFile("b.py", lines_of("b")),
    )
    packet = Packet((*files, context("callers")), diff_of("a.py") + listed)
    small = truncate_packet(packet, measure_changes(packet) + 5)
    assert small.files[0] == files[0] and small.diff == packet.diff
    assert small.holes == ("b.py",)  # named, and its changes are not shown
    assert [item.path for item in small.skipped] == ["a.py", "b.py", "callers.py"]
    assert truncate_packet(packet, 90).holes == ("new.py", "b.py")
    assert truncate_packet(packet, 20).holes == ("a.py", "new.py", "b.py")


def test_a_diff_is_cut_at_a_row_and_stays_a_diff() -> None:
    packet = Packet(diff=diff_of("a.py") + diff_of("b.py", lines=40))
    small = truncate_packet(packet, packet.tokens // 2)
    a, b = parse_diff(small.diff)
    assert a == parse_diff(packet.diff)[0]
    assert 0 < len(b.hunks[0].rows) < 40 and b.hunks[0].header == f"@@ -1,0 +1,{len(b.hunks[0].rows)} @@"
    assert small.holes == ("b.py",)


@given(st.text(max_size=200), st.lists(st.text(max_size=60), max_size=4), st.integers(0, 150))
def test_a_truncated_packet_of_any_text_fits(diff: str, texts: list[str], tokens: int) -> None:
    files = tuple(PacketFile(f"{n}.py", text, part="callers" if n % 2 else "") for n, text in enumerate(texts))
    packet = Packet(files, diff, spec_source="s.md", spec=diff, environment=diff, commits=tuple(texts))
    assert truncate_packet(packet, tokens).tokens <= tokens


# Splitting


def changed_rows(packet: Packet) -> list[str]:
    return [row for section in parse_diff(packet.diff) for hunk in section.hunks for row in hunk.rows]


@pytest.mark.behaviour("20-large-diff-split")
def test_a_diff_within_the_budget_is_not_split() -> None:
    assert split_packet(CHANGED) == (CHANGED,)  # no limit
    packet = replace(CHANGED, budget=measure_changes(CHANGED))
    assert split_packet(packet) == (packet,)


@pytest.mark.behaviour("20-large-diff-split")
def test_a_large_diff_is_split_by_files_and_each_part_has_its_own_context() -> None:
    names = [f"m{n}.py" for n in range(6)]
    files = [context("definitions", name) for name in names]
    files += [context("callers", f"uses_{name}", f"calls {name[:2]}") for name in names]
    packet = Packet(
        tuple(files), "".join(diff_of(name, 20) for name in names), commits=("1234567 Change",), budget=1000
    )
    parts = split_packet(packet)
    assert len(parts) == 3
    assert all(part.tokens <= packet.budget and not part.holes and part.commits for part in parts)
    assert [row for part in parts for row in changed_rows(part)] == changed_rows(packet)
    for n, part in enumerate(parts):
        own = names[2 * n : 2 * n + 2]
        assert [one.path for one in parse_diff(part.diff)] == own
        defined = [file.path for file in part.files if file.part == "definitions"]
        assert defined and set(defined) <= set(own)
        called = [file.path for file in part.files if file.part == "callers"]
        assert not called or called[0] == f"uses_{own[0]}"
        others = [item.path for item in part.skipped if item.why == IN_ANOTHER_PART]
        assert others == [name for name in names if name not in own]


@pytest.mark.behaviour("20-large-diff-split")
def test_the_context_of_a_part_begins_with_the_files_that_name_its_changes() -> None:
    callers = [context("callers", f"uses_{name}.py", f"calls {name}") for name in ("m0", "m1")]
    packet = Packet(tuple(callers), diff_of("m0.py", 60) + diff_of("m1.py", 60), budget=1400)
    first, second = split_packet(packet)
    assert [file.path for file in first.files] == ["uses_m0.py", "uses_m1.py"]
    assert [file.path for file in second.files] == ["uses_m1.py", "uses_m0.py"]


@pytest.mark.behaviour("20-large-diff-split")
def test_a_file_over_the_budget_is_split_by_hunks_and_a_hunk_by_lines() -> None:
    packet = Packet(diff=diff_of("a.py", 20, hunks=6), budget=1000)
    parts = split_packet(packet)
    assert len(parts) > 1 and [row for part in parts for row in changed_rows(part)] == changed_rows(packet)
    assert all(len(hunk.rows) == 20 for part in parts for one in parse_diff(part.diff) for hunk in one.hunks)
    one_hunk = Packet(diff=diff_of("a.py", 200), budget=1000)
    parts = split_packet(one_hunk)
    numbers = [line.number for part in parts for hunk in parse_diff(part.diff)[0].hunks for line in hunk.list_lines()]
    assert len(parts) > 2 and numbers == list(range(1, 201))
    assert all(part.tokens <= 1000 for part in parts)


@pytest.mark.behaviour("20-large-diff-split")
def test_a_new_file_over_the_budget_is_split_by_its_lines() -> None:
    listed = "diff --git a/new.py b/new.py\nnew file mode 100644\n"
    packet = Packet((PacketFile("new.py", lines_of("new", 200)),), listed, budget=500)
    parts = split_packet(packet)
    numbers = [number for part in parts for file in part.files for number, _ in file.number_lines()]
    assert len(parts) > 2 and numbers == list(range(1, 201)) and all(part.diff == listed for part in parts)


@pytest.mark.behaviour("20-large-diff-split")
def test_a_line_longer_than_the_budget_is_a_part_of_its_own() -> None:
    long = "diff --git a/min.js b/min.js\n--- a/min.js\n+++ b/min.js\n@@ -1 +1 @@\n-a\n+" + "x" * 2_000_000 + "\n"
    packet = Packet(diff=diff_of("a.py") + long + diff_of("b.py"), budget=1000)
    parts = split_packet(packet)
    assert [row for part in parts for row in changed_rows(part)] == changed_rows(packet)
    assert sum(part.tokens > 1000 for part in parts) == 1 and not any(part.holes for part in parts)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(1, 4), st.integers(50, 2000))
def test_no_changed_line_is_lost_or_sent_twice(sizes: list[int], hunks: int, budget: int) -> None:
    packet = Packet(diff="".join(diff_of(f"f{n}.py", size, hunks) for n, size in enumerate(sizes)), budget=budget)
    parts = split_packet(packet)
    assert [row for part in parts for row in changed_rows(part)] == changed_rows(packet)
    assert (len(parts) == 1) == (estimate_tokens(packet.diff) <= budget) or len(changed_rows(packet)) == 1
    assert not any(part.holes for part in parts)
