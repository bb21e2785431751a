"""The table of `council packet`."""

from __future__ import annotations

import pytest

from council.doors.cli.packet_table import format_packet_table
from council.types import Packet, PacketFile, Skipped

DIFF = """\
diff --git a/old.py b/new.py
--- a/old.py
+++ b/new.py
@@ -1,2 +1,3 @@
 kept
-gone
+one
+two
"""


def rows(packet: Packet) -> list[str]:
    return [" ".join(line.split()) for line in format_packet_table(packet)]


@pytest.mark.parametrize(
    ("ranges", "shown"),
    [
        ((), "all 2"),
        (((1, 2),), "1-2 of 1,000"),
        (((7, 7), (9, 10)), "7, 9-10 of 1,000"),
        (((1, 1), (2, 2), (3, 3)), "1, 2, 3 of 1,000"),
        (((1, 1), (2, 2), (3, 3), (4, 4), (5, 5)), "1, 2, 3 and 2 more of 1,000"),
    ],
)
def test_a_file_has_its_included_lines(ranges: tuple[tuple[int, int], ...], shown: str) -> None:
    file = PacketFile("a.py", "one\ntwo\n", ranges, reason="named", lines=1000)
    assert f"a.py file {shown} " in f"{rows(Packet(files=(file,)))[1]} "


def test_a_diff_has_its_new_name_and_the_counts_of_its_lines() -> None:
    assert rows(Packet(diff=DIFF))[1].startswith("new.py diff +2 -1 ")


def test_texts_that_are_no_files_have_a_row_only_if_they_are_sent() -> None:
    packet = Packet(spec="a\nb", commits=("a1 one", "b2 two", "c3 three"), prior_decisions=("use tabs",))
    table = rows(packet)
    assert [line.split()[:3] for line in table[1:4]] == [
        ["spec", "spec", "2"],
        ["commits", "commits", "3"],
        ["decisions", "decisions", "1"],
    ]
    assert not any(line.startswith("environment") for line in table)
    assert rows(Packet(spec="a", spec_source="SPEC.md"))[1].startswith("SPEC.md spec 1 ")


def test_the_total_has_the_budget_if_there_is_one() -> None:
    assert rows(Packet())[-1] == "0 tokens, 0 bytes, 0 files"
    assert rows(Packet(budget=30_000, files=(PacketFile("a.py", "x\n"),)))[-1].endswith(" bytes, 1 file")
    assert " of 30,000 tokens, " in rows(Packet(budget=30_000))[-1]


def test_what_is_left_out_is_listed_and_a_hole_of_a_review_is_marked() -> None:
    packet = Packet(skipped=(Skipped("a.png", "binary"), Skipped("b.py", "too large", hole=True)))
    assert rows(packet)[-4:] == ["", "Not included:", "a.png: binary", "b.py: not reviewed: too large"]
