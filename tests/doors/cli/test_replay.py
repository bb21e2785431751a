"""The pace of a replay."""

from __future__ import annotations

import asyncio

import pytest

from council import events as ev
from council.doors.cli.views import NoView, replay_entries
from council.events import Entry

pytestmark = pytest.mark.anyio


class TimedView(NoView):
    """Keeps the times at which it is drawn, and the numbers of the events."""

    def __init__(self) -> None:
        self.seen: list[int | float | str] = []

    def on_event(self, entry: Entry) -> None:
        self.seen.append(entry.seq)

    def tick(self, now: float) -> None:
        self.seen.append(now)


ENTRIES = [
    Entry(1, 100.0, ev.Convened("r2345", "a run", {})),
    *(Entry(n, 97.0 + 3 * n, ev.Noted("r2 skipped", "why")) for n in (2, 3)),
]


async def test_a_view_is_drawn_during_the_pauses_of_a_replay() -> None:
    view = TimedView()

    async def do_other_work() -> None:
        await asyncio.sleep(0)
        view.seen.append("other work")

    work = asyncio.create_task(do_other_work())
    await replay_entries(ENTRIES, view, 10)
    await work
    assert view.seen.index("other work") < view.seen.index(2)
    drawn = [time for time in view.seen if isinstance(time, float)]
    assert drawn == sorted(drawn) and 100 < drawn[0] < 103 < drawn[-1] <= 106
    assert [number for number in view.seen if isinstance(number, int)] == [1, 2, 3]


async def test_a_replay_without_pauses_draws_the_view_after_each_event() -> None:
    view = TimedView()
    await replay_entries(ENTRIES, view, 0)
    assert view.seen == [1, 100.0, 2, 103.0, 3, 106.0]
