"""Rules of the flow and of the verdict: the question, agreement, and the next step."""

from __future__ import annotations

from typing import Any

import pytest

from council.protocols.judges.findings import Finding
from council.protocols.judges.flow import phrase_question
from council.protocols.judges.groups import FindingGroup
from council.protocols.judges.locations import Place
from council.protocols.judges.rules import Vote, cap_verdict, decide_by_corroboration, measure_agreement, merge_voices
from council.protocols.judges.verdict import format_next_step
from council.types import Packet, PacketFile, Question, VerdictWord

CODE = Packet((PacketFile("src/shop/a.py", "x"),))
DIFF = Packet(diff="+x")
TEXT = Packet((PacketFile("PLAN.md", "x"),))


@pytest.mark.behaviour("20-real-question")
@pytest.mark.parametrize(
    ("words", "target", "packet", "asked"),
    [
        ("src/shop", "src/shop", CODE, "Is the code in src/shop fit to release?"),
        ("PLAN.md", "PLAN.md", TEXT, "Is the text in PLAN.md fit to be acted on?"),
        ("recent", "recent", DIFF, "Are the recent changes fit to be merged?"),
        ("main..HEAD", "main..HEAD", DIFF, "Are the changes in main..HEAD fit to be merged?"),
        ("what changed", None, DIFF, "Are these changes fit to be merged?"),
        (
            "the changes in the work tree",
            "the changes in the work tree",
            DIFF,
            "Are the changes in the work tree fit to be merged?",
        ),
        ("-", "-", DIFF, "Are the changes from standard input fit to be relied on?"),
        ("the text from standard input", "-", TEXT, "Is the text from standard input fit to be relied on?"),
        ("the attached files", None, TEXT, "Are the attached files fit to be relied on?"),
        (
            "the auth system",
            None,
            CODE,
            'The review was requested with the words "the auth system". Is the material fit to go ahead?',
        ),
        (
            "the retry path",
            None,
            DIFF,
            'The review was requested with the words "the retry path". Are these changes fit to go ahead?',
        ),
        ("our plan", None, Packet(), 'The review was requested with the words "our plan". Is this fit to go ahead?'),
        ("Is it safe?", "src/shop", CODE, "Is it safe?"),
    ],
)
def test_a_judge_is_asked_a_question(words: str, target: str | None, packet: Packet, asked: str) -> None:
    assert phrase_question(Question(words, "validate", target), packet) == asked


@pytest.mark.behaviour("20-critical-excludes-pass")
def test_a_standing_critical_finding_excludes_pass_only() -> None:
    assert [cap_verdict(word, [], False, critical=True) for word in ("PASS", "WARN", "FAIL")] == [
        "WARN",
        "WARN",
        "FAIL",
    ]


def vote(seat: str, verdict: VerdictWord, voice: str = "") -> Vote:
    return Vote(seat, "x", verdict, "HIGH", "ok", voice)


@pytest.mark.behaviour("20-one-voice")
def test_equal_verdicts_of_one_voice_are_one_vote() -> None:
    shared = [vote("a", "FAIL", "m"), vote("b", "FAIL", "m"), vote("c", "FAIL", "m")]
    assert measure_agreement([one.verdict for one in merge_voices(shared)]) == ""
    mixed = [vote("a", "FAIL", "m"), vote("b", "FAIL", "m"), vote("c", "PASS")]
    assert measure_agreement([one.verdict for one in merge_voices(mixed)]) == "none"
    own = [vote("a", "FAIL"), vote("b", "FAIL"), vote("c", "PASS")]
    assert measure_agreement([one.verdict for one in merge_voices(own)]) == "partial"
    assert measure_agreement(["PASS", "PASS"]) == "full"


@pytest.mark.behaviour("20-one-voice")
def test_a_fallback_of_the_first_family_does_not_corroborate_its_fail() -> None:
    def failing(seat: str, voice: str) -> Vote:
        return Vote(seat, seat, "FAIL", "HIGH", "ok", voice)

    assert decide_by_corroboration([failing("a", "m"), failing("b", "m")], mixed=True).verdict == "WARN"
    assert decide_by_corroboration([failing("a", ""), failing("b", "")], mixed=True).verdict == "FAIL"


def group(**fields: Any) -> FindingGroup:
    place = Place("verified", "src/db.py", 7, 7, 7, "x", "found")
    described = {"description": "The name is put into the SQL"} | fields
    return FindingGroup((Finding("critical", "security", seat="a", place=place, **described),), 3)


@pytest.mark.behaviour("20-opinions-shown")
@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"recommendation": "Bind the name as a parameter."}, "Bind the name as a parameter."),
        ({"fix": "cur.execute(sql, (name,))"}, "Resolve this: The name is put into the SQL."),
        ({"fix": "Pass the name as a parameter"}, "Pass the name as a parameter."),
        ({}, "Resolve this: The name is put into the SQL."),
        (
            {"description": f"{'The name of every customer ' * 12}is put into the SQL."},
            "Resolve the critical finding there.",
        ),
        (
            {"description": "The name is put into the SQL. It comes from the form."},
            "Resolve this: The name is put into the SQL.",
        ),
        ({"recommendation": f"Bind the name. {'Then test it with a quote. ' * 12}"}, "Bind the name."),
    ],
)
def test_the_next_step_is_a_sentence_and_never_code(fields: Any, advice: str) -> None:
    assert format_next_step(group(**fields)) == f"Start at src/db.py:7. {advice} (critical, found by 1 of 3: a)"


@pytest.mark.parametrize("text", ["x = 1", "Use f(x) here now", "if a:\n  b", "rename it", "`a` to the b"])
def test_code_and_fragments_are_no_next_step(text: str) -> None:
    assert "Resolve this: The name is put into the SQL." in format_next_step(group(recommendation=text))
