"""Lines of the tail: the sentence of each outcome, the topic of a difference, and the reasons for trust."""

from __future__ import annotations

from typing import Any

import pytest

from council.engine.trust import Trust
from council.render.report import build_report
from council.render.tail import build_tail
from council.types import TrustFact, TrustFactKind
from council.wording import load_wording
from tests.render.runs import RunBuilder, drafts


def tail(**verdict: Any) -> list[str]:
    return build_report(drafts(RunBuilder()).close(**verdict).minutes)["tail"]


def outcome(kind: str, **more: Any) -> str:
    row = {"kind": kind, "seat": "alpha", "replaced_by": "beta", "word": "PASS", "count": 2, "total": 2, "changes": 0}
    return tail(result=row | more)[0]


@pytest.mark.parametrize(
    ("kind", "more", "line"),
    [
        ("stopped", {}, "stopped after 2 calls — alpha and beta reached the same conclusion"),
        ("stopped", {"count": 3, "total": 3}, "stopped after 3 calls — all 3 answers reach the same conclusion"),
        ("votes", {"count": 1, "total": 1}, "PASS — one judge"),
        ("votes", {"count": 1, "total": 2}, "PASS — 1 of 2 judges"),
        ("consensus", {}, "survived — both drafts agree, so neither was attacked"),
        ("consensus", {"total": 3}, "survived — all 3 drafts agree, so none was attacked"),
        ("overturned", {"replaced_by": ""}, "overturned — another answer replaced alpha's draft"),
        ("overturned", {}, "overturned — beta's alternative replaced alpha's draft"),
    ],
)
def test_the_outcome_is_told_by_its_numbers(kind: str, more: dict[str, Any], line: str) -> None:
    assert outcome(kind, **more) == f"Outcome: {line}"


@pytest.mark.parametrize(("on", "line"), [("answer", "recommend this"), ("conclusions", "reach the same conclusion")])
def test_what_all_seats_share_is_the_answer_or_only_its_conclusion(on: str, line: str) -> None:
    shown = tail(agreement="full", agreement_on=on, shared_by=["alpha", "beta", "gamma"])
    assert shown[0] == f"They agree: all 3 {line}"


def difference(point: str) -> str:
    sides = [{"seats": [seat], "position": said, "assumes": ""} for seat, said in (("alpha", "now"), ("beta", "later"))]
    return tail(differences=[{"point": point, "sides": sides}], agreement="none")[0]


def test_a_point_of_a_difference_is_shown_whole_up_to_its_longest_length() -> None:
    assert difference("t" * 90) == f"They differ: {'t' * 90}: now (alpha) or later (beta)"
    assert difference("Storage: S3, or disks") == "They differ: Storage: S3, or disks: now (alpha) or later (beta)"
    assert difference("t" * 91) == "They differ: now (alpha) or later (beta)"


def test_of_a_long_point_only_the_topic_is_shown() -> None:
    assert difference(f"When to move: {'x' * 90}") == "They differ: When to move: now (alpha) or later (beta)"
    assert difference(f"{'t' * 90}: {'x' * 90}") == f"They differ: {'t' * 90}: now (alpha) or later (beta)"


def test_reasons_beyond_the_third_are_counted() -> None:
    kinds: tuple[TrustFactKind, ...]
    kinds = ("disagree", "overturned", "contradictory_ruling", "contested", "no_seat")
    limits = tuple(TrustFact(kind) for kind in kinds)
    minutes = drafts(RunBuilder()).close().minutes
    four, five = (build_tail(minutes, Trust("LOW", limits[:n]), load_wording("en"))[-1] for n in (4, 5))
    assert four.endswith("; 1 more reason in the report") and five.endswith("; 2 more reasons in the report")
    assert "more reason" not in build_tail(minutes, Trust("LOW", limits[:3]), load_wording("en"))[-1]
