"""Standard input: piped text is material, or the question if there are no words."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from pathlib import Path

import click
import pytest

from council.doors.cli import params
from council.doors.cli.params import read_stdin
from council.errors import PacketRefused, UsageError
from council.members.scripted import Scripted
from council.planning.plan import Material, Plan
from council.runs.service import Convener

PLAN = "Move the queue to Redis in March."
SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def make_convener(member: Scripted | None = None) -> Convener:
    return Convener(Path.cwd(), flags={"seats": SEATS}, members=[member or Scripted()])


def make_plan(words: list[str], piped: str | None, protocol: str | None = None, **flags: object) -> Plan:
    return asyncio.run(make_convener().plan(words, flags, protocol=protocol, material=Material(stdin=piped)))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n')


@pytest.mark.parametrize(
    "words", [(), ("Adopt it?",), ("validate", "recent"), ("-",), ("ask", "-"), ("red - or blue?",)]
)
@pytest.mark.behaviour("00-stdin-never-dropped")
def test_piped_text_is_read_with_and_without_a_dash(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, "caf\xe9".encode("latin-1"))
    assert read_stdin(words) == "caf\udce9"


@pytest.mark.parametrize(
    "words", [("-",), ("validate", "-"), ("explain -",), ("- explain",), ("validate", "-", "now"), ("validate - now",), ("ask", "explain this: -")]
)  # fmt: skip
def test_a_dash_at_an_edge_needs_standard_input(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"")
    assert read_stdin(words) == ""
    with pytest.raises(click.UsageError, match="--no-stdin ignores it: drop one of the two"):
        read_stdin(words, ignore=True)
    for stdin in (Terminal(), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(click.UsageError, match="nothing is piped in"):
            read_stdin(words)


@pytest.mark.parametrize("words", [(), ("validate", "recent"), ("red - or blue?",), ("a-b",), ("--",)])
def test_a_terminal_and_empty_input_are_no_input(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin in (Terminal(), None, io.TextIOWrapper(io.BytesIO(b" \n"))):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert read_stdin(words) is None
    pipe(monkeypatch, b"text")
    assert read_stdin(words, ignore=True) is None


def test_input_over_the_limit_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"x" * (params.MAX_STDIN_BYTES + 1))
    with pytest.raises(click.UsageError, match="standard input is over 4 MB, nothing was spent: pipe less"):
        read_stdin(())


def test_a_folder_as_standard_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    with Path(os.devnull).open(encoding="utf-8") as stream:
        os.dup2(handle, stream.fileno())
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(click.UsageError, match=r"cannot be read \(Is a directory\): pipe text"):
            read_stdin(())
    os.close(handle)


@pytest.mark.behaviour("00-stdin-waiting")
def test_a_silent_pipe_is_announced_and_then_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(params, "STDIN_NOTICE_S", 0.0)
    read, write = os.pipe()
    os.set_blocking(read, False)
    monkeypatch.setattr(sys, "stdin", os.fdopen(read))
    announced = threading.Event()
    monkeypatch.setattr(click, "echo", lambda text, err: (print(text, file=sys.stderr), announced.set()))

    def feed() -> None:
        announced.wait(5)
        for part in (b"one ", b"two"):
            os.write(write, part)
        os.close(write)

    thread = threading.Thread(target=feed)
    thread.start()
    assert read_stdin(()) == "one two"
    thread.join()
    assert "waiting for standard input" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "protocol", "task", "question", "files"),
    [
        (["Should we adopt this plan?"], "collaborative", "ask", "Should we adopt this plan?", ["stdin"]),
        (["Should we adopt this plan?", "-"], "collaborative", "ask", "Should we adopt this plan?", ["stdin"]),
        (["explain this: -"], "collaborative", "ask", "explain this:", ["stdin"]),
        (["ask", "which is better?"], "adversarial", "ask", "which is better?", ["stdin"]),
        ([], "collaborative", "ask", PLAN, []),
        (["-"], "collaborative", "ask", PLAN, []),
        (["ask", "-"], "collaborative", "ask", PLAN, []),
        (["ask"], "collaborative", "ask", PLAN, []),
        (["validate", "-"], "judges", "validate", "the text from standard input", ["stdin"]),
        (["validate"], "judges", "validate", "the text from standard input", ["stdin"]),
        (["review", "this"], "judges", "validate", "review this", ["stdin"]),
        (["improve this paragraph"], "judges", "validate", "improve this paragraph", ["stdin"]),
        (["research"], "judges", "research", "the text from standard input", ["stdin"]),
        (["validate", "notes.md", "-"], "judges", "validate", "notes.md", ["stdin", "notes.md"]),
        (["validate", "notes.md"], "judges", "validate", "notes.md", ["stdin", "notes.md"]),
    ],
)  # fmt: skip
@pytest.mark.behaviour("00-stdin-never-dropped")
def test_piped_text_is_the_material_or_the_question(
    words: list[str], protocol: str, task: str, question: str, files: list[str]
) -> None:
    Path("notes.md").write_text("Notes.\n")
    plan = make_plan(words, f"{PLAN}\n")
    assert (plan.protocol.name, plan.question.task, plan.question.text) == (protocol, task, question)
    assert [file.path for file in plan.packet.files] == files


def test_a_flag_of_the_judges_reviews_the_piped_text() -> None:
    plan = make_plan([], PLAN, count=2)
    assert (plan.question.task, [file.path for file in plan.packet.files]) == ("validate", ["stdin"])
    assert make_plan([], PLAN, protocol="adversarial").question.text == PLAN


@pytest.mark.parametrize("words", [["-"], ["ask", "-"]])
def test_an_empty_pipe_is_no_question(words: list[str]) -> None:
    with pytest.raises(UsageError, match="standard input is empty, and no question was given"):
        make_plan(words, "")


@pytest.mark.parametrize("words", [["Adopt it?"], [], ["validate", "-"], ["-"]])
def test_piped_secrets_and_binary_are_refused_in_every_form(words: list[str]) -> None:
    with pytest.raises(PacketRefused, match="secrets found at"):
        make_plan(words, "token: ghp_" + "a1B2" * 9)
    with pytest.raises(UsageError, match="standard input is binary, nothing was sent"):
        make_plan(words, "\x7fELF\0\0")
    with pytest.raises(UsageError, match="standard input is over 256 KB, nothing was sent"):
        make_plan(words, "x" * 300_000)


@pytest.mark.behaviour("00-stdin-never-dropped")
def test_the_piped_plan_is_in_every_draft_request() -> None:
    member = Scripted()

    async def run() -> None:
        convener = make_convener(member)
        plan = await convener.plan(["Should we adopt this plan?"], material=Material(stdin=PLAN))
        await convener.run(plan, lambda entry: None)
        await convener.close()

    asyncio.run(run())
    drafts = [call for call in member.calls if call["key"].startswith("draft/")]
    assert len(drafts) == 3
    for call in drafts:
        (user,) = (message["content"] for message in call["messages"] if message["role"] == "user")
        packet = user[user.index("<<<Packet") :]
        assert f"### stdin\n1| {PLAN}" in packet
        assert "Should we adopt this plan?" in user
