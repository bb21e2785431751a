"""Text on standard output and error: where it goes, and what happens if nobody reads it."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from council import events as ev
from council.doors.cli.tables import fit_table, format_bytes, format_folder, format_table
from council.doors.cli.views import (
    NoView,
    PipeSafeView,
    TerminalKeyboard,
    is_same_file,
    join_parts,
    write_lines,
    write_parts,
    write_status,
)
from council.events import Entry
from council.render.markdown import TextPart


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class BrokenView(NoView):
    """A view whose terminal is gone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def on_event(self, entry: Entry) -> None:
        raise OSError(self.number, "gone")


class ListingView(NoView):
    """A view that lists what it is told to show."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def catch_up(self, entries: Sequence[Entry]) -> None:
        self.calls.append([entry.seq for entry in entries])

    def on_event(self, entry: Entry) -> None:
        self.calls.append(entry.seq)

    def tick(self, now: float) -> None:
        self.calls.append(now)

    def show_stopping(self) -> None:
        self.calls.append("stopping")

    def close(self) -> None:
        self.calls.append("closed")


CONVENED = Entry(1, 100.0, ev.Convened("r2345", "a run", {}))
NOTED = Entry(2, 100.0, ev.Noted("r2 skipped", "why"))


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.EBADF])
def test_a_run_continues_without_its_view_when_the_terminal_is_gone(number: int) -> None:
    calls: list[str] = []
    view = PipeSafeView(BrokenView(number), lambda: calls.append("gone"), TerminalKeyboard(None))
    view.on_event(NOTED)
    view.on_event(NOTED)
    assert calls == ["gone"]


def test_everything_reaches_the_view() -> None:
    shown = ListingView()
    view = PipeSafeView(shown, lambda: None, TerminalKeyboard(None))
    view.catch_up([CONVENED, NOTED])
    view.on_event(NOTED)
    view.tick(3.5)
    view.show_stopping()
    view.close()
    assert shown.calls == [[1, 2], 2, 3.5, "stopping", "closed"]


def test_another_fault_of_a_view_is_raised() -> None:
    view = PipeSafeView(BrokenView(errno.ENOSPC), lambda: None, TerminalKeyboard(None))
    with pytest.raises(OSError, match="gone"):
        view.on_event(NOTED)


def test_a_view_knows_the_run_from_its_first_event() -> None:
    for show in (lambda view: view.on_event(CONVENED), lambda view: view.catch_up([CONVENED, NOTED])):
        view = PipeSafeView(NoView(), lambda: None, TerminalKeyboard(None))
        view.on_event(NOTED)
        assert view.run == ""
        show(view)
        assert view.run == "r2345"


def test_two_streams_are_the_same_at_one_terminal_and_in_one_file(tmp_path: Path) -> None:
    one, other = (tmp_path / "one").open("w"), (tmp_path / "other").open("w")
    again = (tmp_path / "one").open("a")
    with one, other, again:
        assert is_same_file(one, again)
        assert not is_same_file(one, other)
        assert is_same_file(Screen(), Screen())
        assert not is_same_file(Screen(), one)
        assert not is_same_file(one, Screen())
        assert not is_same_file(io.StringIO(), one)


def test_dim_lines_are_dim_only_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for screen, shown in ((Screen(), "\x1b[2mone\x1b[0m\n\n\x1b[2mtwo\x1b[0m\n"), (io.StringIO(), "one\n\ntwo\n")):
        monkeypatch.setattr(sys, "stderr", screen)
        write_status("one\n\ntwo", is_dim=True)
        assert screen.getvalue() == shown


def test_parts_have_a_blank_line_between_them_and_empty_ones_none() -> None:
    parts = [TextPart("\none\n"), TextPart("\n"), TextPart("two\n\nthree")]
    assert join_parts(parts) == "one\n\ntwo\n\nthree"


def test_markdown_is_rendered_at_a_terminal_unless_it_is_wanted_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for raw, has_marks in ((False, False), (True, True)):
        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        write_parts([TextPart("**bold** café")], raw=raw)
        assert ("**" in screen.getvalue()) is has_marks
        assert screen.getvalue().endswith("\n") and not screen.getvalue().endswith("\n\n")
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    write_parts([TextPart("**bold** “x”")], raw=True, ascii=True)
    assert screen.getvalue() == '**bold** "x"\n'


# Tables


def test_columns_are_aligned_and_those_of_numbers_to_the_right() -> None:
    rows = [("a", "1", "x"), ("bbb", "1000", "")]
    assert format_table(("name", "n", "note"), rows, right=(1,)) == [
        "name     n  note",
        "a        1  x",
        "bbb   1000",
    ]


def test_a_table_is_cut_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "x" * 60
    assert fit_table([line], io.StringIO()) == [line]
    (cut,) = fit_table([line], Screen())
    assert len(cut) == 40


def test_folders_are_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/people/ann")
    assert format_folder(str(tmp_path)) == "."
    assert format_folder("/people/ann") == "~"
    assert format_folder("/people/ann/work") == "~/work"
    assert format_folder("/srv/annual") == "/srv/annual"
    assert format_folder("/srv/twelve-12", width=60) == "…v/twelve-12"
    assert format_folder("/srv/twelve-12", width=84) == "/srv/twelve-12"
    assert format_folder("/srv/twelve", width=60) == "/srv/twelve"


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 kB"), (99_400, "99 kB"), (100_000, "0.1 MB"), (2_550_000, "2.5 MB")]
)
def test_sizes_are_in_kilobytes_and_megabytes(size: int, shown: str) -> None:
    assert format_bytes(size) == shown


def test_text_keeps_its_characters_unless_ascii_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    for screen in (Screen(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(sys, "stdout", screen)
        write_status("“one”")
        write_status("“two”", ascii=True)
        write_lines("“three”")
        write_lines("“four”", ascii=True)
        write_parts([TextPart("“five”")], raw=True)
        assert screen.getvalue() == '“one”\n"two"\n“three”\n"four"\n“five”\n'


def test_a_rendered_answer_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    write_parts([TextPart("“word” " * 30)], raw=False, ascii=True, color=False)
    lines = screen.getvalue().rstrip("\n").split("\n")
    assert 30 < max(len(line.rstrip()) for line in lines) <= 40
    assert all(line.isascii() and "\x1b" not in line for line in lines)
