"""The command at a terminal: the live view, the rendered answer, Ctrl-C, other encodings and closed pipes."""

from __future__ import annotations

import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys

import pytest

from council.doors.cli import main
from tests.acceptance.helpers import EVERYONE, QUESTION, Terminal, Workspace, wait_until
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import Reply

TRIAD = ("--protocol", "triad")
ANSWER = "# Answer\n\n" + "Move the **archive** when its restores are rare, and count what each restore costs. " * 4
PRICES = '[prices."sim:*"]\ninput = 3.0\noutput = 15.0\n[budget]\nconfirm_above = 0.01\n'


def count(rows: list[str], words: str) -> int:
    return sum(words in f"{row} " for row in rows)


@pytest.mark.behaviour("50-markdown-at-terminal", "50-no-stale-rows", "50-quiet")
@pytest.mark.parametrize(("columns", "lines"), [(40, 24), (80, 24), (200, 50)])
def test_a_question_at_a_terminal(workspace: Workspace, columns: int, lines: int) -> None:
    workspace.answers.instead["chair"] = Reply(text=ANSWER, drip=0.001)
    gate = workspace.hold("merge")
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION, columns=columns, lines=lines, stdout=True)
    gate.wait()
    wait_until(lambda: count(terminal.draw(), "✓ draft 3/3"), "the table shows that the drafts are done")
    assert not terminal.is_echoing
    during = terminal.draw()
    for words in ("triad · run r", "✓ draft 3/3", *(f" {seat}  " for seat in EVERYONE)):
        assert count(during, words) == 1, (words, "\n".join(during))
    terminal.type_lines("typed while it runs", "")
    gate.release()
    done = terminal.wait_for_exit()
    rows = terminal.draw()
    (run,) = workspace.runs()
    assert done.code == 0
    assert all(len(row) <= columns for row in rows)
    assert "**" not in "\n".join(rows)
    title, rule = rows.index("Answer"), next(n for n, row in enumerate(rows) if set(row) == {"─"})
    assert title == 0, "the table is gone, and nothing else is above the answer"
    words = set(" ".join(rows[title + 1 : rule]).split())
    assert words == set(ANSWER.replace("*", "").split()) - {"#", "Answer"}
    after = " ".join(rows[rule + 1 :])
    tail, footer = after[: after.index("cost unknown")], after[after.index("cost unknown") :]
    assert tail.strip().startswith("Trust: ")
    assert re.fullmatch(rf'cost unknown · [\d.]+ s · {run} · council open · council -c "…"', footer), footer


@pytest.mark.behaviour("50-quiet", "50-verbose-rest")
def test_with_v_the_plan_the_table_and_the_paths_stay(workspace: Workspace) -> None:
    terminal = PseudoTerminal(workspace.folder, "-v", *TRIAD, QUESTION, columns=80, lines=24, stdout=True)
    assert terminal.wait_for_exit().code == 0
    rows = terminal.draw()
    (run,) = workspace.runs()
    for words in ("triad · run r", "✓ draft 3/3", *(f" {seat}  " for seat in EVERYONE), "The draft of beta", "Trust: "):
        assert count(rows, words) == 1, (words, "\n".join(rows))
    assert rows[0].startswith("4 calls · cost unknown")
    assert count(rows, "! alpha, beta and gamma use the same vendor (sim)") == 1
    assert count(rows, f"replay: council runs replay {run}") == 1
    assert any(row.split()[:1] == ["report"] for row in rows) and f" · {run} · council open" in rows[-1]


@pytest.mark.behaviour("50-plan-once")
def test_a_confirmed_plan_is_replaced_by_the_live_view(workspace: Workspace) -> None:
    workspace.configure(more=PRICES)
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION, columns=80, lines=24, stdout=True)
    assert "sim:alpha" in terminal.wait_for("Continue? [y/N]: ")
    terminal.type_lines("what")
    terminal.wait_for("Continue? [y/N]: ")
    terminal.type_lines("y")
    done = terminal.wait_for_exit()
    rows = terminal.draw()
    assert done.code == 0
    assert count(rows, "Continue?") == count(rows, "sim:alpha") == 0
    assert rows[0].startswith("The merge of chair"), "\n".join(rows)


@pytest.mark.behaviour("40-second-interrupt")
def test_a_second_ctrl_c_ends_at_once_and_names_the_command_to_resume(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft")
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    gate.wait(count=3)
    terminal.wait_for("asked")
    lock = sqlite3.connect(workspace.data / "council.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")  # the first Ctrl-C waits for the store
    terminal.press("\x03")
    terminal.wait_for("stopping")
    terminal.press("\x03")
    terminal.wait_for("resume: council resume ")
    wait_until(lambda: terminal.is_echoing, "typed keys are shown again")
    rows = terminal.draw()
    done = terminal.wait_for_exit()
    lock.close()
    (run,) = workspace.runs()
    assert (done.code, rows) == (130, [f"resume: council resume {run}"])
    assert council("runs", "fsck").code == 0
    gate.release()
    assert council("resume", "--json").json["status"] == "complete"


@pytest.mark.behaviour("50-grouped-by-cause")
def test_one_wrong_address_is_one_line_during_the_run_and_one_warning_after_it(workspace: Workspace) -> None:
    workspace.configure(base_url=workspace.provider.base_url + "/wrong")
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION, columns=80, lines=24, stdout=True)
    done = terminal.wait_for_exit()
    rows = terminal.draw()
    assert done.code == 1
    assert "alpha, beta and gamma absent in draft: " in terminal.screen  # during the run
    assert count(rows, "404: Not Found") == 1, "after it, the cause is only in the warning"
    warnings = [row for row in rows if row.startswith("! ")]
    assert len(warnings) == 2, "\n".join(rows)
    assert warnings[0].startswith("! FAILED: no seat answered")
    assert warnings[1].startswith("! alpha, beta and gamma did not answer in draft (base_url")


@pytest.mark.behaviour("40-replay-asks-nobody")
def test_a_replay_at_a_terminal_uses_the_same_view(workspace: Workspace) -> None:
    assert workspace.council(*TRIAD, QUESTION).code == 0
    sent = len(workspace.provider.log)
    terminal = PseudoTerminal(workspace.folder, "runs", "replay", "--speed", "50", columns=80, lines=24, stdout=True)
    done = terminal.wait_for_exit()
    rows = terminal.draw()
    assert (done.code, len(workspace.provider.log)) == (0, sent)
    assert " · run r" in terminal.screen and "✓ draft 3/3" in terminal.screen
    assert rows[0].startswith("The merge of chair"), "\n".join(rows)


@pytest.mark.behaviour("50-markdown-at-terminal")
def test_raw_prints_markdown_as_it_is_and_past_runs_are_rendered_too(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.answers.instead["chair"] = Reply(text=ANSWER)
    assert council(*TRIAD, QUESTION).out.startswith(f"{ANSWER.strip()}\n\n---\n\nTrust: ")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    raw = council("--raw", *TRIAD, QUESTION).out
    assert raw.startswith(f"{ANSWER.strip()}\n\n---\n\nTrust: ")
    for command in (["runs", "show"], ["report"], ["runs", "replay", "--speed", "0"]):
        rendered, printed = council(*command).out, council(*command, "--raw").out
        assert "**archive**" in printed and "**archive**" not in rendered
        assert "\x1b" in rendered and "\x1b" not in printed
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", council(*command, "--no-color").out)
    monkeypatch.setenv("TERM", "dumb")
    assert "**archive**" in council("runs", "show").out


# Other outputs


def run_main(monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: str) -> tuple[int, bytes, bytes]:
    """Run the command with outputs in this encoding."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    written = [stream.buffer.getvalue() for stream in streams]  # type: ignore[attr-defined]
    assert isinstance(ended.value.code, int)
    return ended.value.code, written[0], written[1]


@pytest.mark.behaviour("50-any-encoding")
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp437", "utf-16"])
def test_an_answer_is_written_in_any_encoding(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    workspace.answers.instead["chair"] = Reply(text="Größe → 日本 “so” — ☃ end.")
    code, out, err = run_main(monkeypatch, encoding, *TRIAD, QUESTION)
    assert code == 0
    answer, _, tail = out.decode(encoding).partition("\n\n---\n")
    assert answer.startswith("Gr") and answer.endswith("end.") and "Trust: " in tail
    assert "draft 3/3 " in err.decode(encoding)
    code, out, _ = run_main(monkeypatch, encoding, "report", "--format", "json")
    assert '"answer": "Gr' in out.decode(encoding)


@pytest.mark.behaviour("50-ascii")
def test_ascii_applies_to_the_plan_the_answer_and_the_footer(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair"] = Reply(text="Größe → 日本 “so” — ☃ end.")
    done = council("--ascii", *TRIAD, QUESTION)
    assert (done.code, done.out.partition("\n")[0]) == (0, 'Grosse -> ?? "so" - ? end.')
    assert done.out.isascii() and done.err.isascii()
    assert council("--ascii", "-v", *TRIAD, QUESTION).err.isascii()


@pytest.mark.behaviour("50-closed-pipe")
def test_a_reader_that_takes_one_line_leaves_a_complete_run_and_no_traceback(workspace: Workspace) -> None:
    workspace.answers.instead["chair"] = Reply(text="\n\n".join(f"Line {n} of the answer." for n in range(4_000)))
    command = shlex.join([sys.executable, "-m", "council", *TRIAD, QUESTION])
    done = subprocess.run(
        f"{command} | head -1", shell=True, capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout == "Line 0 of the answer.\n"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert "resume: " not in done.stderr
    assert workspace.rows("SELECT status FROM runs") == [("complete",)]
