"""The live table, drawn to a console of fixed width."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console
from rich.segment import SegmentLines

from council import events as ev
from council.events import Entry
from council.render.live import LiveView
from council.render.screen import Line, Symbols
from council.render.terminal import Trouble, group_troubles
from tests.render.runs import NAMES, RunBuilder, collaborative, consensus, one_absent, plan, seat
from tests.render.terminal_screen import Screen, TestTerminal


def console(width: int = 120, height: int = 40) -> Console:
    return Console(file=StringIO(), width=width, height=height, force_terminal=True, color_system=None)


def make_view(width: int = 120, height: int = 40, ascii: bool = False) -> LiveView:
    """Return a view that builds the lines for a terminal of this size, and draws none."""
    view = LiveView(StringIO(), ascii=ascii)
    view.console = Console(file=StringIO(), width=width, height=height, color_system=None)
    return view


def draw(builder: RunBuilder, width: int = 120, later: float = 0.0, ascii: bool = False, height: int = 40) -> list[str]:
    """Draw the table `later` seconds after the last entry."""
    view = make_view(width, height, ascii)
    for entry in builder.entries:
        view.on_event(entry)
    view.tick(builder.at + later)
    paper = console(width)
    paper.print(SegmentLines(view.build_lines(), new_lines=True), end="")
    view.close()
    return [line.rstrip() for line in paper.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def row(lines: list[str], name: str) -> str:
    return " ".join(next(line for line in lines if f" {name} " in f"{line} ").split()[1:])


@pytest.mark.behaviour("50-live-table")
def test_header_shows_protocol_highest_price_run_and_reason() -> None:
    cost = {"low": 0.05, "expected": 0.13, "worst": 0.48}
    builder = RunBuilder(plan("adversarial", why='the words "which is better"', cost=cost))
    assert draw(builder)[0] == 'adversarial · at most $0.48 · run r7k2 · the words "which is better"'
    free = RunBuilder(plan("adversarial", why="chosen by name"))
    assert draw(free)[0] == "adversarial · run r7k2 · chosen by name"


@pytest.mark.behaviour("50-live-table")
def test_a_long_header_is_cut_after_a_word() -> None:
    builder = RunBuilder(plan("adversarial", why='the choice "keep Postgres or move to Cassandra"'))
    assert draw(builder, width=40)[:2] == [
        "adversarial · run r7k2 · the choice",
        '"keep Postgres or move to Cassandra"',
    ]
    longer = RunBuilder(plan("adversarial", why='the choice "keep Postgres for everything or move the log"'))
    assert draw(longer, width=40)[1] == '"keep Postgres for everything or move …'


def test_rounds_are_named_in_words() -> None:
    builder = (
        RunBuilder(plan("advisors")).phase("r2").ask("alpha").mark_absent("alpha", "timed_out", "no answer in 90 s")
    )
    lines = draw(builder, width=80)
    assert any("round 2" in line for line in lines) and not any("r2" in line for line in lines)
    assert "timed out" in row(lines, "alpha")


@pytest.mark.behaviour("50-live-table")
def test_phase_bar_shows_done_running_and_pending_phases() -> None:
    builder = RunBuilder().phase("draft").ask("alpha", "beta", "gamma").answer("alpha", "a")
    assert draw(builder)[1] == "▸ draft ████░░░░░░░░ 1/3 0:01   · improve   · synthesise"
    assert draw(collaborative())[1] == "✓ draft 3/3 0:04   ✓ improve 3/3 0:04   ✓ synthesise 1/1 0:02"


@pytest.mark.behaviour("50-live-table")
def test_streaming_statement_shows_words_growing_with_their_rate() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").stream("alpha", "one two three")
    assert row(draw(builder, later=1, width=80), "alpha") == "alpha scripted:m1 writing 3 words 2/s 0:02"
    builder.stream("alpha", " four fi").stream("alpha", "ve six")
    assert "6 words" in row(draw(builder), "alpha")
    assert row(draw(builder, width=80), "beta") == "beta scripted:m1 waiting"


def test_the_spinner_shows_eight_frames_a_second() -> None:
    frames = [Symbols(ascii=False).spinner_frame(n / 8) for n in range(11)]
    assert (len(set(frames)), frames[10]) == (10, frames[0])
    assert [Symbols(ascii=True).spinner_frame(n / 8) for n in range(6)] == ["|", "/", "-", "\\", "|", "/"]


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
    assert row(draw(builder, later=2.2), "beta").endswith("next try in 4 s after rate: 429 slow down")
    assert row(draw(builder, later=7), "beta").endswith("next try now after rate: 429 slow down")
    builder.retry("beta", 2, "fallback after rate", member="sim:m2")
    assert row(draw(builder), "beta").endswith("attempt 2 on sim:m2: fallback after rate")
    builder.answer("beta", "here", served_by="sim:m2")
    assert row(draw(builder), "beta").endswith("sim:m2 in place of scripted:m1")
    assert row(draw(one_absent()), "beta").endswith("failed absent in draft: 500 from the server")


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
    assert draw(collaborative(), width=40)[2:4] == ["✓ draft 3/3 0:04   ✓ improve 3/3 0:04", "✓ synthesise 1/1 0:02"]


@pytest.mark.behaviour("50-fetch-shown")
def test_weights_fetch_is_a_bar_with_megabytes() -> None:
    view = make_view()
    view.on_event(Entry(0, 5.0, ev.Fetching("SmolLM2", 46_500_000, 93_000_000)))
    paper = console()
    paper.print(SegmentLines(view.build_lines(), new_lines=True))
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
    view = make_view()
    view.catch_up(one_absent().entries[:-1])
    paper = console()
    paper.print(SegmentLines(view.build_lines(), new_lines=True))
    assert "run r7k2 · 5 statements from the ledger ·" in paper.file.getvalue()  # type: ignore[attr-defined]


def test_nothing_is_drawn_where_no_terminal_is() -> None:
    stream = StringIO()
    view = LiveView(stream, color=False)
    for entry in collaborative().entries:
        view.on_event(entry)
    view.close()
    assert stream.getvalue() == ""


def test_standard_output_is_not_redirected() -> None:
    before = sys.stdout
    view = make_view()
    view.on_event(RunBuilder().entries[0])
    assert sys.stdout is before
    view.close()


def test_rich_is_imported_only_for_a_terminal() -> None:
    modules = ("render.report", "render.plain", "render.terminal", "render.markdown", "render.text_layout")
    names = ", ".join(f"council.{module}" for module in (*modules, "doors.cli.runner", "doors.cli.history_commands"))
    code = f"import sys, {names}; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_council_without_seats_can_still_be_drawn() -> None:
    assert draw(RunBuilder(plan(seats=[], chair=None)))[0].startswith("collaborative · run r7k2")


@pytest.mark.behaviour("50-live-table")
def test_a_long_name_leaves_room_for_the_rest_of_its_row() -> None:
    name = "a-seat-whose-name-is-very-very-long-for-as-long-as-a-roster-allows"
    builder = (
        RunBuilder(plan(seats=[seat(name), seat("beta")])).phase("draft").ask(name, "beta").answer("beta", "one two")
    )
    lines = draw(builder, width=80)
    assert row(lines, "beta") == "beta scripted:m1 ok 2 words 0:03"
    assert any(" a-seat-whose-name-is-ve…  scripted:m1  asked " in line for line in lines)


# Grouping by cause


@pytest.mark.behaviour("50-grouped-by-cause")
@pytest.mark.parametrize(
    ("troubles", "lines"),
    [
        ([], []),
        ([("a", "absent in draft: ", "404", None)], ["a absent in draft: 404"]),
        (
            [("a", "absent in draft: ", "404", None), ("b", "absent in draft: ", "404", None)],
            ["a, b absent in draft: 404"],
        ),
        (
            [("a", "absent in draft: ", "404", None), ("b", "absent in r2: ", "404", None), ("c", "absent in draft: ", "500", None)],
            ["a absent in draft: 404", "b absent in r2: 404", "c absent in draft: 500"],
        ),
        ([("a", "", "rate", 3.2), ("b", "", "rate", 1.9)], ["a, b next try in 2 s after rate"]),
        ([("a", "", "rate", 0.2)], ["a next try now after rate"]),
    ],
)  # fmt: skip
def test_seats_with_the_same_cause_share_a_line(
    troubles: list[tuple[str, str, str, float | None]], lines: list[str]
) -> None:
    groups = group_troubles(Trouble(seat, what, cause, "red", wait) for seat, what, cause, wait in troubles)
    assert [f"{', '.join(names)} {text}" for names, text, _ in groups] == lines


@pytest.mark.behaviour("50-grouped-by-cause")
@pytest.mark.parametrize("width", [80, 140])
def test_one_wrong_address_is_one_line_with_its_seats(width: int) -> None:
    builder = RunBuilder().phase("draft").ask(*NAMES)
    for name in NAMES:
        builder.mark_absent(
            name, "failed(endpoint)", "404: base_url does not look like a chat endpoint; is /v1 missing?"
        )
    lines = draw(builder, width)
    (cause,) = (line for line in lines if "base_url" in line)
    assert cause.strip().startswith("alpha, beta and gamma absent in draft: 404: base_url does not look like")


# Text while it is written


@pytest.mark.behaviour("50-last-lines")
def test_the_last_line_of_each_writing_seat_is_shown_below_it() -> None:
    builder = RunBuilder().phase("draft").ask(*NAMES).stream("alpha", "First line.\nThe second").stream("beta", "b\n\n")
    builder.answer("gamma", "done")
    lines = draw(builder, width=80)
    below = {name: lines[next(n for n, line in enumerate(lines) if f" {name} " in line) + 1] for name in NAMES}
    assert below["alpha"] == "     The second"
    assert below["beta"] == "     b"
    assert " chair " in below["gamma"]
    assert row(draw(builder, width=120), "alpha").endswith(" The second")


@pytest.mark.behaviour("50-last-lines")
def test_a_long_last_line_shows_its_end_at_a_word() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").stream("alpha", "word " * 40 + "end")
    lines = draw(builder, width=60)
    assert any(line.startswith("     …word word") and line.endswith("word end") for line in lines)
    assert all(len(line) <= 60 for line in lines)


@pytest.mark.behaviour("50-chair-streams")
def test_the_text_of_the_chair_is_shown_while_it_writes() -> None:
    builder = (
        RunBuilder()
        .phase("synthesise")
        .ask("chair")
        .stream("chair", "# Answer\n\nUse spaces, ")
        .stream("chair", "never tabs.")
    )
    assert draw(builder, width=80)[-4:] == ["", "Answer", "", "Use spaces, never tabs."]
    assert sum("never tabs." in line for line in draw(builder, width=140)) == 1
    builder.retry("chair", 2, "after server: 500")
    assert "never" not in "".join(draw(builder, width=80))


@pytest.mark.behaviour("50-chair-streams")
def test_the_end_of_a_long_text_fits_below_the_table_and_no_word_is_split() -> None:
    text = " ".join(f"word-{n}" for n in range(400))
    builder = RunBuilder().phase("synthesise").ask("chair").stream("chair", text)
    lines = draw(builder, width=80, height=24)
    assert len(lines) == 23
    assert lines[-1].endswith("word-399")
    assert len([line for line in lines if line.startswith("word-")]) >= 14, "there is room to read"
    assert all(word.startswith("word-") for line in lines[-10:] for word in line.split())


@pytest.mark.behaviour("50-chair-streams")
def test_a_typed_reply_shows_its_words_and_not_its_text() -> None:
    builder = RunBuilder(plan("adversarial")).phase("triage")
    builder.add(ev.Asked(builder.key("chair"), "triage", "chair", "scripted:m1", [], "Triage"))
    builder.stream("chair", '{"leader": "alpha", "reason": "it is best"')
    lines = draw(builder, width=80)
    assert not any("leader" in line for line in lines)
    assert "writing 6 words" in row(lines, "chair")


@pytest.mark.behaviour("40-terminal-sequences")
def test_streamed_text_cannot_control_the_terminal() -> None:
    builder = RunBuilder().phase("draft").ask("alpha").stream("alpha", "a \x1b[2J\x1b]0;title\x07b\x9b31m\u202ec")
    assert "     a bc" in draw(builder, width=80)
    chair = RunBuilder().phase("synthesise").ask("chair").stream("chair", "a \x1b[2J\x1b]0;title\x07b\r\nc")
    assert draw(chair, width=80)[-2:] == ["a b", "c"]


@pytest.mark.parametrize("height", [5, 10, 24])
def test_the_view_is_never_taller_than_the_terminal(height: int) -> None:
    names = tuple(f"judge-{n}" for n in range(1, 13))
    builder = RunBuilder(plan("judges", names)).phase("r1").ask(*names)
    for name in names:
        builder.stream(name, "text of it")
    lines = draw(builder, width=80, height=height)
    assert len(lines) <= height - 1
    assert ("more rows: the terminal is too short" in lines[-1]) == (height < 16)


# On a real terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestTerminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    terminal = TestTerminal(120, 30)
    yield terminal
    terminal.close()


def check_once(screen: Screen, *names: str) -> None:
    """Check that the header and each seat are on the screen once."""
    for name in ("run r7k2", *(f" {name} " for name in names)):
        assert sum(name in f"{line} " for line in screen.text) == 1, "\n".join(screen.text)


@pytest.mark.behaviour("50-no-stale-rows")
def test_no_row_is_left_over_after_resizes(terminal: TestTerminal) -> None:
    terminal.stream.write("$ council\n")
    view, builder = LiveView(terminal.stream), RunBuilder().phase("draft").ask(*NAMES).stream("alpha", "word " * 50)
    for entry in builder.entries:
        view.on_event(entry)
    for n, (columns, lines) in enumerate([(60, 30), (200, 50), (80, 24), (61, 24), (120, 40)]):
        terminal.resize(columns, lines)
        view.tick(builder.at + n)
        check_once(terminal.update(), "alpha", "beta", "gamma", "chair")
        assert all(len(line) <= columns for line in terminal.screen.text)
    assert terminal.screen.text[0] == "$ council"
    view.close()
    assert terminal.update().is_cursor_shown


@pytest.mark.behaviour("50-no-stale-rows")
def test_no_row_is_left_over_if_the_terminal_is_resized_while_the_view_is_built(terminal: TestTerminal) -> None:
    sizes = [(60, 30)]

    class View(LiveView):
        def build_lines(self) -> list[Line]:
            lines = super().build_lines()
            if builder.entries[-1].at < self.now and sizes:
                terminal.resize(*sizes.pop())
            return lines

    builder = RunBuilder().phase("draft").ask(*NAMES).stream("alpha", "word " * 50)
    view = View(terminal.stream)
    for entry in builder.entries:
        view.on_event(entry)
    view.tick(builder.at + 1)
    assert not sizes
    check_once(terminal.update(), "alpha", "beta", "gamma", "chair")
    assert all(len(line) <= 60 for line in terminal.screen.text)
    view.close()


@pytest.mark.behaviour("50-no-stale-rows")
def test_rows_that_a_smaller_terminal_moved_into_its_history_are_removed(terminal: TestTerminal) -> None:
    terminal.resize(80, 24)
    terminal.stream.write("$ council\n")
    view, builder = LiveView(terminal.stream), RunBuilder().phase("synthesise").ask("chair")
    for entry in builder.stream("chair", "word " * 400).entries:
        view.on_event(entry)
    for n, (columns, lines) in enumerate([(80, 24), (60, 15), (60, 15), (100, 30), (40, 12), (200, 50)]):
        terminal.resize(columns, lines)
        view.tick(builder.at + n)
        screen = terminal.update()
        assert sum("collaborative ·" in line for line in screen.rows[screen.top :]) == 1, "\n".join(screen.text)
    check_once(terminal.screen, *NAMES, "chair")
    assert terminal.screen.text[0] == "$ council"
    view.close()


@pytest.mark.behaviour("50-no-color")
@pytest.mark.parametrize("color", [True, False])
def test_the_table_has_colours_unless_they_are_switched_off(terminal: TestTerminal, color: bool) -> None:
    view = LiveView(terminal.stream, color=color)
    for entry in one_absent().entries:
        view.on_event(entry)
    view.close()
    terminal.update()
    assert ("\x1b[32m" in terminal.raw and "\x1b[31m" in terminal.raw) == color
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", terminal.raw)) == color


@pytest.mark.behaviour("50-no-stale-rows")
def test_the_text_of_the_chair_leaves_no_rows_behind(terminal: TestTerminal) -> None:
    view, builder = LiveView(terminal.stream, stays=True), RunBuilder().phase("synthesise").ask("chair")
    for n in range(60):
        builder.stream("chair", f"word-{n} ")
    for entry in builder.entries:
        view.on_event(entry)
        view.tick(entry.at)
    assert "word-59" in " ".join(terminal.update().text)
    assert not terminal.screen.is_cursor_shown
    for entry in builder.answer("chair", "done").end_phase().close().entries[-3:]:
        view.on_event(entry)
    view.close()
    check_once(terminal.update(), "chair")
    assert "word-" not in " ".join(terminal.screen.text)


@pytest.mark.behaviour("50-quiet", "50-no-stale-rows")
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_table_is_gone_when_it_is_closed(terminal: TestTerminal, columns: int) -> None:
    terminal.resize(columns, 24)
    terminal.stream.write("$ council\n")
    view = LiveView(terminal.stream)
    for entry in collaborative().entries:
        view.on_event(entry)
    assert "run r7k2" in " ".join(terminal.update().text)
    view.close()
    terminal.stream.write("The answer.\n")
    terminal.stream.flush()
    assert terminal.update().text == ["$ council", "The answer."]
    assert terminal.screen.is_cursor_shown
    view.close()
    assert terminal.update().text == ["$ council", "The answer."]


@pytest.mark.behaviour("50-no-stale-rows")
def test_a_prompt_keeps_its_lines_and_the_table_continues_below(terminal: TestTerminal) -> None:
    view, builder = LiveView(terminal.stream), RunBuilder().phase("draft").ask(*NAMES)
    for entry in builder.entries:
        view.on_event(entry)
    with view.suspend():
        assert terminal.update().is_cursor_shown
        terminal.stream.write("Your seat is beta.\n")
        view.tick(builder.at + 1)
    view.tick(builder.at + 2)
    view.tick(builder.at + 3)
    text = terminal.update().text
    assert text.count("Your seat is beta.") == 1
    assert next(n for n, line in enumerate(text) if "run r7k2" in line) < text.index("Your seat is beta.")
    assert sum("run r7k2" in line for line in text[text.index("Your seat is beta.") :]) == 1
    view.close()


def test_a_run_that_is_being_stopped_says_so_in_the_header_until_it_has_ended() -> None:
    view = make_view()
    view.on_event(RunBuilder().entries[0])

    def header() -> str:
        return " ".join(text.plain for text in view._build_header())

    assert "stopping" not in header()
    view.show_stopping()
    assert "stopping; Ctrl-C again ends at once" in header()
    view.close()
    assert "stopping" not in header()
