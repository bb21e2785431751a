"""Following a run: what a follower has seen, and when a run without a process counts as dead."""

from __future__ import annotations

from council import events as ev
from council.events import Entry
from council.runs.history import MAX_ORPHAN_POLLS, FollowCursor


def list_pieces(cursor: FollowCursor, entries: list[Entry], live: dict[str, str]) -> list[str]:
    found = [entry.event for entry in cursor.iter_new(entries, live)]
    return [f"{event.seat}: {event.text}" for event in found if isinstance(event, ev.Delta)]


def test_only_the_new_text_of_a_statement_is_sent() -> None:
    cursor = FollowCursor()
    assert list_pieces(cursor, [], {"draft/alpha": "He"}) == ["alpha: He"]
    assert list_pieces(cursor, [], {"draft/alpha": "He"}) == []
    assert list_pieces(cursor, [], {"draft/alpha": "Hello", "draft/beta": "B"}) == ["alpha: llo", "beta: B"]


def test_a_new_attempt_of_a_statement_is_sent_from_its_beginning() -> None:
    cursor = FollowCursor(streamed={"draft/alpha": 9})
    again = Entry(4, 1.0, ev.Attempted("draft/alpha", "alpha", 2, "scripted:"))
    assert list_pieces(cursor, [again], {"draft/alpha": "Again"}) == ["alpha: Again"]
    assert cursor.seq == 4


def test_a_started_run_is_dead_after_too_many_polls_in_a_row_without_a_process() -> None:
    cursor = FollowCursor()
    polls = [cursor.is_orphan(False, "running") for _ in range(MAX_ORPHAN_POLLS + 1)]
    assert polls == [False] * MAX_ORPHAN_POLLS + [True]
    assert [cursor.is_orphan(owned, status) for owned, status in ((True, "running"), (False, "running"))] == [
        False,
        False,
    ]
    cursor.orphan_polls = MAX_ORPHAN_POLLS
    assert not cursor.is_orphan(False, "queued")
