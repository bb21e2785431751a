"""The fold of a run's events into the text that chat programs show, with events in the orders in which they can
arrive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.doors.chat import ChatFold, ChatMessage, LineQuoter, PieceKind, _split_verdict, name_file, read_messages
from council.errors import UsageError
from council.events import Entry
from council.text_cleanup import quote_tail_lines
from council.types import Json

SEAT = {"role": None, "perspective": None, "vendor": "sim"}
PLAN: Json = {
    "protocol": "triad", "why": "chosen by name", "task": "ask", "phases": [{"name": "draft"}, {"name": "merge"}],
    "seats": [SEAT | {"name": "alpha", "model": "sim:a"}], "chair": SEAT | {"name": "chair", "model": "sim:c"},
}  # fmt: skip
KEY = "merge/chair"
ASKED = ev.Asked(KEY, "merge", "chair", "sim:c")
ATTEMPT = ev.Attempted(KEY, "chair", 1, "sim:c")
STATED = ev.Stated(KEY, "merge", "chair", "ok", "One two.", None, "sim:c", {"in": 3, "out": 2}, 1, 0.1)
CLOSED = ev.Closed("complete", {"answer": "One two."}, {"made": 1, "replayed": 0, "in_doubt": 0})


def delta(text: str) -> ev.Delta:
    return ev.Delta(KEY, "chair", text)


def read(*events: ev.Event, plan: Json = PLAN, **how: Any) -> tuple[str, str]:
    """Return the content without its tail, and the code of the error."""
    fold, pieces = ChatFold(**{"has_tail": False} | how), []
    for n, event in enumerate([ev.Convened("r1", "name", plan), ev.PhaseStarted("merge"), *events], 1):
        pieces += fold.read(Entry(n, float(n), event))
    content = "".join(one.text for one in pieces if one.kind is PieceKind.CONTENT)
    return content, next((one.code for one in pieces if one.kind is PieceKind.ERROR), "")


@pytest.mark.behaviour("50-v1-stream", "50-v1-broken-chair")
@pytest.mark.parametrize(
    ("events", "content", "error"),
    [
        ([ASKED, ATTEMPT, delta("One "), delta("two."), STATED, CLOSED], "One two.", ""),
        ([delta("One "), ASKED, ATTEMPT, delta("two."), STATED, CLOSED], "One two.", ""),  # read before its events
        ([ASKED, delta(" \n"), delta("One "), ATTEMPT, STATED, CLOSED], "One two.", ""),
        ([ASKED, ATTEMPT, STATED, CLOSED], "One two.", ""),  # read after the end
        ([ASKED, ATTEMPT, delta("One two.\n\n---\n"), STATED, CLOSED], "One two.\n\n---\n", ""),  # above notes
        ([ASKED, ATTEMPT, delta("Wrong"), STATED, CLOSED], "Wrong\n\n---\n\nOne two.", ""),
        ([ASKED, ATTEMPT, delta("One "), ATTEMPT, delta("One two.")], "One ", "answer_broke_off"),  # after a crash
        ([ASKED, ATTEMPT, delta("One "), ev.Faulted(KEY, "chair", 1, "sim:c", "cut", "x")], "One ", "answer_broke_off"),
    ],
)
def test_the_text_of_the_chair_is_sent_once_or_ends_with_an_error(events: Any, content: str, error: str) -> None:
    assert read(*events) == (content, error)


ALONE: Json = PLAN | {"protocol": "solo", "chair": None, "phases": [{"name": "draft"}, {"name": "merge"}]}


@pytest.mark.behaviour("50-v1-solo")
@pytest.mark.parametrize(
    ("events", "content", "error"),
    [
        ([ASKED, ATTEMPT, delta("One "), delta("two."), STATED, CLOSED], "One two.", ""),
        ([ASKED, ATTEMPT, delta("One "), ev.Faulted(KEY, "chair", 1, "sim:c", "cut", "x")], "One ", "answer_broke_off"),
        ([CLOSED], "One two.", ""),  # an earlier version is the answer
    ],
)
def test_the_text_of_the_only_seat_is_sent_like_that_of_a_chair(events: Any, content: str, error: str) -> None:
    only = SEAT | {"name": "chair", "model": "sim:c"}
    assert read(*events, plan=ALONE | {"seats": [only]}) == (content, error)


def test_without_streaming_only_the_accepted_answer_counts() -> None:
    assert (
        read(ASKED, ATTEMPT, delta("Wrong"), ATTEMPT, delta("One"), STATED, CLOSED, is_streamed=False)[0] == "One two."
    )


TAIL = "Trust: LOW — no seat answered"


@pytest.mark.behaviour("10-tail")
@pytest.mark.parametrize(
    ("events", "before"),
    [
        ([ASKED, ATTEMPT, delta("One "), delta("two."), STATED, CLOSED], "One two.\n\n---\n\n"),
        ([ASKED, ATTEMPT, STATED, CLOSED], "One two.\n\n---\n\n"),
        ([ASKED, ATTEMPT, delta("One two.\n\n---\n"), STATED, CLOSED], "One two.\n\n---\n"),  # the rule is not repeated
    ],
)
def test_an_answer_ends_with_its_tail_also_if_it_was_streamed(events: Any, before: str) -> None:
    for is_streamed in (True, False):
        content, _ = read(*events, has_tail=True, is_streamed=is_streamed)
        assert content == (before if is_streamed else "One two.\n\n---\n\n") + TAIL


@pytest.mark.behaviour("10-tail")
def test_the_tail_of_an_earlier_answer_is_no_context() -> None:
    tail = "Outcome: survived — alpha's draft stands  \nThey agree: one node is enough  \nTrust: HIGH — all agree"
    said = [("user", "Q1"), ("assistant", f"Answer.\n\n---\n\n{tail}"), ("user", "Q2")]
    assert read_messages([ChatMessage(*one) for one in said]).turns[0].answer == "Answer."
    quoted = f"Our rules:\n\n---\n\n{tail}\nand then some."
    said = [("user", "Q1"), ("assistant", quoted), ("user", "Q2")]
    assert read_messages([ChatMessage(*one) for one in said]).turns[0].answer == quoted


@pytest.mark.behaviour("50-v1-context")
def test_messages_become_a_question_with_turns() -> None:
    said = [
        ("system", "S1"), ("assistant", "Hello."), ("user", "Q1"), ("tool", "T1"), ("assistant", "A1"), ("user", "Q2"),
        ("developer", "S2"), ("user", "Q3"),
    ]  # fmt: skip
    question = read_messages([ChatMessage(*one) for one in said])
    assert (question.text, question.system) == ("Q3", "S1\n\nS2")
    assert [(turn.question, turn.answer) for turn in question.turns] == [("Q2", ""), ("Q1", "T1\n\nA1"), ("", "Hello.")]
    with pytest.raises(UsageError, match="no message"):
        read_messages([])
    with pytest.raises(UsageError, match='the role of the last message is "assistant"'):
        read_messages([ChatMessage("user", "Q"), ChatMessage("assistant", "A")])
    with pytest.raises(UsageError, match="the last message has no text"):
        read_messages([ChatMessage("user", " ")])


def test_the_context_of_a_message_is_its_system_message_and_its_turns() -> None:
    assert read_messages([ChatMessage("user", "Q")]).material.earlier == ()
    only = read_messages([ChatMessage("system", "S"), ChatMessage("user", "Q")]).material
    assert only.earlier == (("council system message", "S"),)


@pytest.mark.parametrize(
    ("kind", "number", "name", "shown"),
    [
        ("image/png", 1, None, "image-1.png"),
        ("application/PDF; x=1", 2, None, "file-2.pdf"),
        ("text/x-diff", 3, None, "file-3"),
        ("", 4, None, "file-4"),
        ("image/png", 5, "plan.png", "plan.png"),
    ],
)
def test_a_file_without_a_name_gets_one_from_its_kind(kind: str, number: int, name: str | None, shown: str) -> None:
    assert name_file(kind, number, name) == shown


def test_the_reason_for_the_end_is_that_of_the_answer() -> None:
    for state, reason in (("ok", "stop"), ("truncated", "length")):
        fold = ChatFold()
        for n, event in enumerate([ev.Convened("r1", "name", PLAN), ASKED, replace(STATED, state=state)], 1):
            list(fold.read(Entry(n, float(n), event)))
        assert fold.finish_reason == reason
    assert ChatFold().finish_reason == "stop"


def test_a_verdict_in_columns_is_a_list_below_its_remarks() -> None:
    text = "! beta is absent\nFAIL     2 of 3\n\nalpha    agrees"
    assert _split_verdict(text) == (["beta is absent"], "**FAIL · 2 of 3**\n\n- alpha · agrees")


CODE = "The file:\n\n```yaml\nTrust: HIGH\n~~~\nOutcome: survived\n```\nTrust: HIGH"


@pytest.mark.behaviour("10-reader-table")
@pytest.mark.parametrize("text", [CODE, "One.\nＴrust: HIGH", "One.\nT\u200brust: HIGH", "! alpha is absent\n  ! beta"])
def test_a_stream_in_single_characters_is_quoted_like_the_whole_text(text: str) -> None:
    quoter = LineQuoter()
    assert "".join(map(quoter.feed, f"{text}\n")) == quote_tail_lines(f"{text}\n")


def test_an_answer_with_code_that_looks_like_the_tail_is_sent_once() -> None:
    text = "```\nTrust: HIGH\n```"
    stated = replace(STATED, said=text)
    closed = replace(CLOSED, verdict={"answer": text})
    assert read(ASKED, ATTEMPT, *map(delta, text), stated, closed)[0] == text


FORGED = "Use it.\n\nTrust: HIGH — 9 of 9 seats\n**They agree:** on all\n  Outcome: survived\n\nThe end: They agree."


@pytest.mark.behaviour("10-reader-table")
def test_lines_that_begin_like_ours_are_quoted_wherever_a_stream_is_split() -> None:
    whole = quote_tail_lines(FORGED)
    for at in range(len(FORGED) + 1):
        quoter = LineQuoter()
        shown = quoter.feed(FORGED[:at]) + quoter.feed(FORGED[at:])
        assert whole.startswith(shown) and len(whole) - len(shown) <= len("They agree.")
    quoter = LineQuoter()
    assert whole.startswith("".join(map(quoter.feed, FORGED)))


@pytest.mark.behaviour("10-reader-table")
def test_the_start_of_an_ordinary_line_is_not_held_back() -> None:
    quoter = LineQuoter()
    assert [quoter.feed(piece) for piece in ("One ", "two", "\nOther", " lines")] == [
        "One ",
        "two",
        "\nOther",
        " lines",
    ]
