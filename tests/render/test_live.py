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

from .entries import Story, collaborative, consensus, one_absent, plan, seat


def console(width: int = 120, **more: object) -> Console:
    return Console(file=StringIO(), width=width, height=40, force_terminal=True, color_system=None, **more)  # type: ignore[arg-type]


def drawn(story: Story, width: int = 120, later: float = 0.0, ascii: bool = False) -> list[str]:
    """The picture after the story, `later` seconds on."""
    view = LiveView(console(width), ascii=ascii)
    for entry in story.entries:
        view.hear(entry)
    view.tick(story.at + later)
    paper = console(width)
    paper.print(view.picture())
    view.close()
    return [line.rstrip() for line in paper.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def row(lines: list[str], name: str) -> str:
    return " ".join(next(line for line in lines if f" {name} " in f"{line} ").split()[1:])


@pytest.mark.behaviour("50-live-table")
def test_head_says_protocol_seats_run_and_why() -> None:
    story = Story(plan("adversarial", why='the words "which is better"'))
    assert drawn(story)[0] == 'adversarial · 3 seats, 1 family · run r7k2 · the words "which is better"'


@pytest.mark.behaviour("50-live-table")
def test_phase_bar_shows_done_running_and_coming_phases() -> None:
    story = Story().phase("draft").asked("alpha", "beta", "gamma").said("alpha", "a")
    assert drawn(story)[1] == "▸ draft ████░░░░░░░░ 1/3 0:01   · improve   · synthesise"
    assert drawn(collaborative())[1] == "✓ draft 3/3 0:04   ✓ improve 3/3 0:04   ✓ synthesise 1/1 0:02"


@pytest.mark.behaviour("50-live-table")
def test_streaming_statement_shows_words_growing_with_their_rate() -> None:
    story = Story().phase("draft").asked("alpha").streamed("alpha", "one two three")
    assert row(drawn(story, later=1), "alpha") == "alpha scripted:m1 writing 3 words 2/s 0:02"
    story.streamed("alpha", " four fi").streamed("alpha", "ve six")
    assert "6 words" in row(drawn(story), "alpha")


def test_complete_statement_shows_words_and_seconds() -> None:
    story = Story().phase("draft").said("alpha", "one two", seconds=62.4)
    assert row(drawn(story), "alpha") == "alpha scripted:m1 ok 2 words 1:02 in draft"


@pytest.mark.behaviour("50-trouble-in-words")
def test_retry_fallback_and_absence_are_said_in_words() -> None:
    story = Story().phase("draft").asked("beta").faulted("beta", "rate", "429 slow down", wait=6.0)
    assert row(drawn(story), "beta").endswith("next try in 6 s after rate: 429 slow down")
    story.again("beta", 2, "fallback after rate", member="sim:m2")
    assert row(drawn(story), "beta").endswith("attempt 2 on sim:m2: fallback after rate")
    story.said("beta", "here", served_by="sim:m2")
    assert row(drawn(story), "beta").endswith("sim:m2 in place of scripted:m1")
    assert row(drawn(one_absent()), "beta").endswith("failed(server) absent in draft: 500 from the server")


@pytest.mark.behaviour("50-trouble-in-words")
def test_trouble_stands_in_a_line_of_its_own_on_a_narrower_terminal() -> None:
    lines = drawn(one_absent(), width=80)
    assert "     beta absent in draft: 500 from the server" in lines


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("seats", [3, 7, 12])
def test_table_fits_its_terminal_with_three_to_twelve_seats(width: int, seats: int) -> None:
    names = tuple(f"judge-{n}" for n in range(1, seats + 1))
    members = [seat(name, model="google:gemini-3-pro-preview-with-a-long-name") for name in names]
    story = Story(plan("judges", seats=members)).phase("r1").asked(*names).streamed(names[0], "word " * 1234)
    lines = drawn(story, width, later=2)
    assert all(len(line) <= width for line in lines)
    assert [name for name in names if any(f" {name} " in f"{line} " for line in lines)] == list(names)
    assert any("1,234" in line for line in lines)


def test_phase_is_never_broken_in_two_lines() -> None:
    assert drawn(collaborative(), width=40)[1:3] == ["✓ draft 3/3 0:04   ✓ improve 3/3 0:04", "✓ synthesise 1/1 0:02"]


@pytest.mark.behaviour("50-fetch-shown")
def test_weights_fetch_is_a_bar_with_megabytes() -> None:
    view = LiveView(console())
    view.hear(Entry(0, 5.0, ev.Fetching("SmolLM2", 46_500_000, 93_000_000)))
    paper = console()
    paper.print(view.picture())
    assert paper.file.getvalue().split() == ["fetching", "SmolLM2", "█" * 12 + "░" * 12, "46", "of", "93", "MB"]  # type: ignore[attr-defined]


def test_notes_stand_below_the_table() -> None:
    assert drawn(consensus())[-1] == "· attack skipped: consensus detected"


@pytest.mark.behaviour("50-ascii")
def test_ascii_picture_has_nothing_but_ascii() -> None:
    story = Story(plan(why="die Wörter „was ist besser“")).phase("draft").asked("alpha", "beta").said("alpha", "a")
    story.faulted("beta", "server", "übel…", wait=1)
    assert all(line.isascii() for width in (60, 120) for line in drawn(story, width, ascii=True))


@pytest.mark.behaviour("40-terminal-sequences")
def test_foreign_text_cannot_drive_the_terminal_or_rich() -> None:
    story = Story().phase("draft").asked("beta").faulted("beta", "server", "[bold]not markup[/bold] \x1b[2Jgone\x07")
    line = row(drawn(story), "beta")
    assert line.endswith("failed: server: [bold]not markup[/bold] gone")


@pytest.mark.behaviour("50-resume-summary-line")
def test_earlier_entries_of_a_resumed_run_are_told_in_the_head() -> None:
    view = LiveView(console())
    view.catch_up(one_absent().entries[:-1])
    paper = console()
    paper.print(view.picture())
    assert "run r7k2 · 5 statements from the ledger ·" in paper.file.getvalue()  # type: ignore[attr-defined]


def test_plain_console_gets_the_last_picture_once() -> None:
    stream = StringIO()
    view = LiveView(stream, color=False)
    for entry in collaborative().entries:
        view.hear(entry)
    view.close()
    view.close()
    assert stream.getvalue().count("run r7k2") == 1
    assert "\x1b" not in stream.getvalue()


def test_standard_output_is_left_to_the_answer() -> None:
    before = sys.stdout
    view = LiveView(console())
    view.hear(Story().entries[0])
    assert sys.stdout is before
    view.close()


@pytest.mark.parametrize("module", ["report", "plain", "terminal", "markdown"])
def test_rich_is_imported_by_the_live_view_alone(module: str) -> None:
    code = f"import sys, council.render.{module}; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_council_without_seats_can_still_be_drawn() -> None:
    assert drawn(Story(plan(seats=[], chair=None)))[0].startswith("collaborative · 0 seats")


@pytest.mark.behaviour("50-live-table")
def test_a_long_name_leaves_room_for_the_rest_of_its_row() -> None:
    name = "a-seat-whose-name-goes-on-and-on-for-as-long-as-a-roster-allows"
    story = Story(plan(seats=[seat(name), seat("beta")])).phase("draft").asked(name, "beta").said("beta", "one two")
    lines = drawn(story, width=80)
    assert row(lines, "beta") == "beta scripted:m1 ok 2 words 0:03"
    assert any(" a-seat-whose-name-goes-…  scripted:m1  asked " in line for line in lines)
