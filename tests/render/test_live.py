"""The live table, drawn to a console of fixed width."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from council import events as ev
from council.events import Entry
from council.render.live import LiveView
from tests.render.runs import RunBuilder, collaborative, consensus, one_absent, plan, seat


def console(width: int = 120, **more: object) -> Console:
    return Console(file=StringIO(), width=width, height=40, force_terminal=True, color_system=None, **more)  # type: ignore[arg-type]


def draw(builder: RunBuilder, width: int = 120, later: float = 0.0, ascii: bool = False) -> list[str]:
    """Draw the table `later` seconds after the last entry."""
    view = LiveView(console(width), ascii=ascii)
    for entry in builder.entries:
        view.on_event(entry)
    view.tick(builder.at + later)
    paper = console(width)
    paper.print(view.build_view())
    view.close()
    return [line.rstrip() for line in paper.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def row(lines: list[str], name: str) -> str:
    return " ".join(next(line for line in lines if f" {name} " in f"{line} ").split()[1:])


@pytest.mark.behaviour("50-live-table")
def test_header_shows_protocol_seats_run_and_reason() -> None:
    builder = RunBuilder(plan("adversarial", why='the words "which is better"'))
    assert draw(builder)[0] == 'adversarial · 3 seats, 1 family · run r7k2 · the words "which is better"'


@pytest.mark.behaviour("50-live-table")
def test_phase_bar_shows_done_running_and_pending_phases() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a")
    assert draw(builder)[1] == "▸ draft ████░░░░░░░░ 1/3 0:01   · improve   · synthesise"
    assert draw(collaborative())[1] == "✓ draft 3/3 0:04   ✓ improve 3/3 0:04   ✓ synthesise 1/1 0:02"


@pytest.mark.behaviour("50-live-table")
def test_streaming_statement_shows_words_growing_with_their_rate() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").stream("alpha", "one two three")
    assert row(draw(builder, later=1), "alpha") == "alpha scripted:m1 writing 3 words 2/s 0:02"
    builder.stream("alpha", " four fi").stream("alpha", "ve six")
    assert "6 words" in row(draw(builder), "alpha")


@pytest.mark.behaviour("50-silence-shown")
def test_a_request_without_output_shows_its_time_and_its_limit() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", seconds=300.0)
    assert row(draw(builder, later=5), "alpha") == "alpha scripted:m1 asked 0:05"
    assert row(draw(builder, later=70), "alpha") == "alpha scripted:m1 asked 1:10 of 5:00 no output yet"
    builder.stream("alpha", "one two")
    assert " of 5:00" not in row(draw(builder, later=70), "alpha")


def test_complete_statement_shows_words_and_seconds() -> None:
    builder = RunBuilder().phase("draft").answer("alpha", "one two", seconds=62.4)
    assert row(draw(builder), "alpha") == "alpha scripted:m1 ok 2 words 1:02 in draft"


@pytest.mark.behaviour("50-trouble-in-words")
def test_retry_fallback_and_absence_are_described() -> None:
    builder = RunBuilder().phase("draft").ask("beta").fault("beta", "rate", "429 slow down", wait=6.0)
    assert row(draw(builder), "beta").endswith("next try in 6 s after rate: 429 slow down")
    builder.retry("beta", 2, "fallback after rate", member="sim:m2")
    assert row(draw(builder), "beta").endswith("attempt 2 on sim:m2: fallback after rate")
    builder.answer("beta", "here", served_by="sim:m2")
    assert row(draw(builder), "beta").endswith("sim:m2 in place of scripted:m1")
    assert row(draw(one_absent()), "beta").endswith("failed(server) absent in draft: 500 from the server")


@pytest.mark.behaviour("50-trouble-in-words")
def test_trouble_is_on_a_separate_line_on_a_narrow_terminal() -> None:
    lines = draw(one_absent(), width=80)
    assert "     beta absent in draft: 500 from the server" in lines


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("seats", [3, 7, 12])
def test_table_fits_its_terminal_with_three_to_twelve_seats(width: int, seats: int) -> None:
    names = tuple(f"judge-{n}" for n in range(1, seats + 1))
    members = [seat(name, model="google:gemini-3-pro-preview-with-a-long-name") for name in names]
    builder = RunBuilder(plan("judges", seats=members)).phase("r1").ask(*names).stream(names[0], "word " * 1234)
    lines = draw(builder, width, later=2)
    assert all(len(line) <= width for line in lines)
    assert [name for name in names if any(f" {name} " in f"{line} " for line in lines)] == list(names)
    assert any("1,234" in line for line in lines)


def test_phase_is_never_broken_in_two_lines() -> None:
    assert draw(collaborative(), width=40)[1:3] == ["✓ draft 3/3 0:04   ✓ improve 3/3 0:04", "✓ synthesise 1/1 0:02"]


@pytest.mark.behaviour("50-fetch-shown")
def test_weights_fetch_is_a_bar_with_megabytes() -> None:
    view = LiveView(console())
    view.on_event(Entry(0, 5.0, ev.Fetching("SmolLM2", 46_500_000, 93_000_000)))
    paper = console()
    paper.print(view.build_view())
    assert paper.file.getvalue().split() == ["fetching", "SmolLM2", "█" * 12 + "░" * 12, "46", "of", "93", "MB"]  # type: ignore[attr-defined]


def test_notes_are_below_the_table() -> None:
    assert draw(consensus())[-1] == "· attack skipped: consensus detected"


@pytest.mark.behaviour("50-ascii")
def test_ascii_table_has_only_ascii_characters() -> None:
    builder = (
        RunBuilder(plan(why="die Wörter „was ist besser“")).phase("draft").ask("alpha", "beta").answer("alpha", "a")
    )
    builder.fault("beta", "server", "übel…", wait=1)
    assert all(line.isascii() for width in (60, 120) for line in draw(builder, width, ascii=True))


@pytest.mark.behaviour("40-terminal-sequences")
def test_model_text_cannot_control_the_terminal_or_rich() -> None:
    builder = RunBuilder().phase("draft").ask("beta").fault("beta", "server", "[bold]not markup[/bold] \x1b[2Jgone\x07")
    line = row(draw(builder), "beta")
    assert line.endswith("failed: server: [bold]not markup[/bold] gone")


@pytest.mark.behaviour("50-resume-summary-line")
def test_earlier_entries_of_a_resumed_run_are_counted_in_the_header() -> None:
    view = LiveView(console())
    view.catch_up(one_absent().entries[:-1])
    paper = console()
    paper.print(view.build_view())
    assert "run r7k2 · 5 statements from the ledger ·" in paper.file.getvalue()  # type: ignore[attr-defined]


def test_plain_console_gets_the_final_table_once() -> None:
    stream = StringIO()
    view = LiveView(stream, color=False)
    for entry in collaborative().entries:
        view.on_event(entry)
    view.close()
    view.close()
    assert stream.getvalue().count("run r7k2") == 1
    assert "\x1b" not in stream.getvalue()


def test_standard_output_is_not_redirected() -> None:
    before = sys.stdout
    view = LiveView(console())
    view.on_event(RunBuilder().entries[0])
    assert sys.stdout is before
    view.close()


@pytest.mark.parametrize("module", ["report", "plain", "terminal", "markdown"])
def test_only_the_live_view_imports_rich(module: str) -> None:
    code = f"import sys, council.render.{module}; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_council_without_seats_can_still_be_drawn() -> None:
    assert draw(RunBuilder(plan(seats=[], chair=None)))[0].startswith("collaborative · 0 seats")


@pytest.mark.behaviour("50-live-table")
def test_a_long_name_leaves_room_for_the_rest_of_its_row() -> None:
    name = "a-seat-whose-name-is-very-very-long-for-as-long-as-a-roster-allows"
    builder = (
        RunBuilder(plan(seats=[seat(name), seat("beta")])).phase("draft").ask(name, "beta").answer("beta", "one two")
    )
    lines = draw(builder, width=80)
    assert row(lines, "beta") == "beta scripted:m1 ok 2 words 0:03"
    assert any(" a-seat-whose-name-is-ve…  scripted:m1  asked " in line for line in lines)
