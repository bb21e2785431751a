"""What `council batch` prints: the estimate, the progress and the summary."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest

from council.doors.cli.batch_command import HEARTBEAT_S, ProgressBar, format_estimate, format_summary
from council.render.screen import Symbols
from council.runs.batch_output import BatchFailure, EndedRow, Estimate, Progress, Summary


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def make_progress(*, seconds: float = 10.0, **counts: Any) -> Progress:
    counts = {"rows": 100, "selected": 100, "already_done": 0, **counts}
    return Progress(started=time.monotonic() - seconds, **counts)


def summarize(stopped: str = "", **counts: Any) -> list[str]:
    return format_summary(Summary(make_progress(**counts), Path("out.jsonl"), stopped))


def test_a_complete_batch_has_its_counts_cost_and_file() -> None:
    lines = summarize(complete=90, already_done=10, usd=1.5, usd_before=0.5)
    assert lines == ["100 of 100 rows complete", "cost: $1.50, $2.00 with earlier runs; 10 s", "results: out.jsonl"]


def test_rows_that_are_not_complete_are_named_with_what_to_do() -> None:
    failures = [
        BatchFailure(id="a", line=7, run="r2k4p", status="failed", reason="no key"),
        BatchFailure(id="b", line=8, run=None, status="incomplete", reason="stopped"),
    ]
    lines = summarize(complete=50, failed=1, incomplete=1, failures=failures, in_doubt=0.25, usd=1.0)
    assert lines[0] == "50 of 100 rows complete, 1 incomplete, 1 failed, 48 left"
    assert lines[1] == "cost: $0.75, at most $0.25 more in doubt; 10 s"
    assert lines[2:4] == ["! a (line 7): failed: no key (run r2k4p)", "! b (line 8): incomplete: stopped"]
    assert lines[4] == "retry: run the same command again; rows that failed may be corrected first"


@pytest.mark.parametrize(
    ("failed", "more"), [(20, None), (21, "! and 1 row more, which"), (30, "! and 10 rows more, which")]
)
def test_at_most_twenty_failures_are_listed(failed: int, more: str | None) -> None:
    failures = [BatchFailure(id=str(n), line=n, run=None, status="failed", reason="why") for n in range(failed)]
    lines = summarize(failed=failed, failures=failures)
    listed = [line for line in lines if line.startswith("! ")]
    assert len(listed) == 20 + bool(more)
    assert more is None or listed[-1].startswith(more)


def test_a_stopped_batch_says_how_to_continue_only_if_rows_are_left() -> None:
    assert "stopped at the cost limit: run the same command again with a higher --max-cost" in summarize(
        "budget", complete=5
    )
    assert not any("stopped" in line for line in summarize("budget", complete=100))
    assert not any("retry" in line for line in summarize("interrupted", failed=1))


@pytest.mark.parametrize("counts", [{"failed": 1}, {"incomplete": 1}])
def test_rows_that_failed_or_are_incomplete_can_be_asked_again(counts: dict[str, int]) -> None:
    assert any(line.startswith("retry: ") for line in summarize(complete=99, **counts))


def test_an_unknown_or_estimated_cost_is_no_exact_one() -> None:
    assert summarize(unknown_cost=True)[1] == "cost: $0.00, without members that have no price; 10 s"
    assert summarize(usd=1.5, estimated_cost=True)[1].startswith("cost: about $1.50; ")


def test_a_sample_ends_with_the_cost_of_all_rows() -> None:
    lines = summarize(selected=10, complete=10, usd=1.0)
    assert "all 100 rows, about $10.00: run the same command without --sample" in lines
    assert "all 100 rows: run the same command without --sample" in summarize(
        selected=10, complete=10, unknown_cost=True
    )
    assert not any("--sample" in line for line in summarize(selected=10, complete=9))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(59.4, "59 s"), (60.0, "1 min"), (59 * 60, "59 min"), (60 * 60, "1 h 00 min"), (125 * 60, "2 h 05 min")],
)
def test_long_times_are_in_minutes_and_hours(seconds: float, shown: str) -> None:
    assert summarize(complete=100, seconds=seconds)[1].endswith(f"; {shown}")


def test_an_estimate_names_the_sample_what_is_done_and_the_limit() -> None:
    progress = make_progress(selected=20, already_done=5, usd_before=0.5)
    lines = format_estimate(Estimate((), progress, 2.0))
    assert lines[0] == "20 rows (a sample of 100), 5 of them done"
    assert "limit: $2.00, $0.50 of it spent" in lines
    assert format_estimate(Estimate((), make_progress(), None))[0] == "100 rows"


def make_bar(progress: Progress, *, is_drawn: bool, ascii: bool = False) -> tuple[ProgressBar, Screen]:
    screen = Screen(is_drawn)
    return ProgressBar(progress, screen, Symbols(ascii)), screen


def test_a_terminal_shows_one_line_that_is_drawn_again_when_it_changes() -> None:
    progress = make_progress(complete=20, failed=5, usd=0.5, seconds=5.0)
    bar, screen = make_bar(progress, is_drawn=True)
    bar.tick(0.0)
    shown = screen.getvalue()
    assert shown.startswith("\r██████░░")
    assert "25/100 · 5.0 rows/s · $0.50 · 5 not complete · 15 s left" in shown
    bar.close()
    assert screen.getvalue() == shown + "\r\x1b[K"
    bar.close()
    assert screen.getvalue() == shown + "\r\x1b[K"


def test_a_slow_batch_shows_rows_per_minute_and_a_done_one_no_time_left() -> None:
    bar, screen = make_bar(make_progress(complete=1, seconds=120.0), is_drawn=True, ascii=True)
    bar.tick(0.0)
    assert "#" not in screen.getvalue()
    assert "1/100 - 0.5 rows/min - " in screen.getvalue()
    bar, screen = make_bar(make_progress(complete=50, seconds=100.0), is_drawn=True)
    bar.tick(0.0)
    assert "0.5 rows/s" in screen.getvalue()
    bar, screen = make_bar(make_progress(complete=100), is_drawn=True)
    bar.tick(0.0)
    assert "left" not in screen.getvalue()
    bar, screen = make_bar(make_progress(), is_drawn=True)
    bar.tick(0.0)
    assert "0/100 · 0.0 rows/s" in screen.getvalue()


def test_off_a_terminal_failures_are_lines_and_progress_comes_from_time_to_time() -> None:
    bar, screen = make_bar(make_progress(complete=10, seconds=1.0), is_drawn=False)
    bar.tick(0.0)
    assert screen.getvalue() == ""
    bar.on_row(EndedRow("a", None, "failed", error="no key"))
    bar.on_row(EndedRow("b", "r2k4p", "complete"))
    assert screen.getvalue() == "a failed: no key\n"
    bar._last -= HEARTBEAT_S
    bar.tick(0.0)
    bar.tick(0.0)
    assert screen.getvalue().count("10/100") == 1
    bar.show_stopping()
    assert screen.getvalue().endswith("stopping; press Ctrl-C again to exit at once\n")


def test_a_drawn_bar_is_erased_before_another_line_and_lists_no_failures() -> None:
    bar, screen = make_bar(make_progress(complete=10), is_drawn=True)
    bar.tick(0.0)
    bar.on_row(EndedRow("a", None, "failed", error="no key"))
    assert "no key" not in screen.getvalue()
    with bar.suspend():
        assert screen.getvalue().endswith("\r\x1b[K")


def test_a_quiet_batch_shows_nothing() -> None:
    bar = ProgressBar(make_progress(), None, Symbols(ascii=True))
    bar.tick(0.0)
    bar.on_row(EndedRow("a", None, "failed", error="no key"))
    bar.show_stopping()
    bar.close()


def test_a_long_check_shows_how_far_it_is() -> None:
    bar, screen = make_bar(make_progress(), is_drawn=True)
    bar.show_checked(5)
    assert screen.getvalue() == ""
    bar._last -= 1.0
    bar.show_checked(1234)
    assert screen.getvalue() == "\rchecking row 1,234\x1b[K"
