"""Words of earlier versions: they run as before, and say on standard error what to use instead."""

from __future__ import annotations

import json

import pytest

from council.doors.cli import run
from council.doors.cli.params import OLD_WORDS, OLD_WORDS_WITHOUT_NOTICE
from council.protocols.common.perspectives import list_presets
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.acceptance.pseudo_terminal import PseudoTerminal


def at_terminal(workspace: Workspace, *arguments: str, **env: str) -> str:
    """Return what a command writes to a terminal."""
    terminal = PseudoTerminal(workspace.folder, *arguments, stdout=True, **env)
    terminal.wait_for_exit()
    return terminal.screen


PAIRS = [
    (["presets"], ["list", "presets"]),
    (["presets", "show", "security-audit"], ["list", "presets", "--show", "security-audit"]),
    (["presets", "show", "nope"], ["list", "presets", "--show", "nope"]),
    (["rosters", "--json"], ["list", "rosters", "--json"]),
    (["rosters", "show", "executives"], ["list", "rosters", "--show", "executives"]),
    (["protocols"], ["list", "protocols"]),
    (["protocols", "triad", "--json"], ["list", "protocols", "--show", "triad", "--json"]),
    (["models", "--price"], ["list", "models", "--price"]),
    (["tokens"], ["serve", "tokens"]),
    (["tokens", "revoke", "nobody"], ["serve", "tokens", "revoke", "nobody"]),
    (["replay", "--jsonl"], ["runs", "replay", "--jsonl"]),
]


@pytest.mark.behaviour("13-old-words")
@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[" ".join(old) for old, _ in PAIRS])
def test_an_old_word_prints_the_same_and_ends_with_the_same_code(
    old: list[str], new: list[str], workspace: Workspace, council: Terminal
) -> None:
    council("--protocol", "triad", QUESTION)
    before, now = council(*old), council(*new)
    assert (before.code, before.out) == (now.code, now.out)
    word = old[0]
    notice = "" if word in OLD_WORDS_WITHOUT_NOTICE else f"council {word} is now {OLD_WORDS[word]}\n"
    assert before.err == notice + now.err


@pytest.mark.behaviour("13-old-words")
def test_the_notice_is_on_standard_error_and_quiet_silences_it(council: Terminal, workspace: Workspace) -> None:
    shown = council("presets", "--json")
    assert {row["name"] for row in json.loads(shown.out)} == set(list_presets())
    assert shown.err == "council presets is now council list presets\n"
    for words in (["presets"], ["presets", "show", "security-audit"], ["tokens", "list"], ["rosters"]):
        quiet = council(*words, "-q")
        assert (quiet.code, quiet.err) == (0, ""), words
    assert "is now" in council("advise", QUESTION).err
    for word in OLD_WORDS_WITHOUT_NOTICE:
        assert council(word, "--help").err == ""


@pytest.mark.behaviour("13-old-words")
def test_the_notice_is_dim_at_a_terminal(workspace: Workspace) -> None:
    line = "council presets is now council list presets"
    assert f"\x1b[2m{line}\x1b[0m" in at_terminal(workspace, "presets")
    assert line in at_terminal(workspace, "presets", NO_COLOR="1")
    assert "\x1b[2m" not in at_terminal(workspace, "presets", NO_COLOR="1")


@pytest.mark.behaviour("13-old-words")
def test_the_help_of_an_old_word_is_its_own_page(capsys: pytest.CaptureFixture[str]) -> None:
    for word in OLD_WORDS:
        assert run([word, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: council {word}")


# The new words


@pytest.mark.behaviour("13-list")
def test_list_shows_each_kind_with_its_number_and_the_command(workspace: Workspace, council: Terminal) -> None:
    rows = council("list", "--json").json
    assert [row["kind"] for row in rows] == ["protocols", "models", "presets", "rosters"]
    for row in rows:
        listed = council(*row["command"].split()[1:], "--json").json
        assert row["count"] == len(listed)
    models = council("list", "models", "--json").json
    assert rows[1]["available"] == sum(row["available"] for row in models)
    lines = council("list").out.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [[row["kind"], str(row["count"])] for row in rows]
    assert all(line.endswith(row["command"]) for line, row in zip(lines, rows, strict=True))
    assert workspace.provider.log == [] and workspace.runs() == []


@pytest.mark.behaviour("13-list")
def test_list_with_more_words_is_a_question(council: Terminal, workspace: Workspace) -> None:
    for question in ("list three ways to cache", "list presets for my team"):
        assert council("--dry-run", "--json", *question.split()).json["question"] == question


@pytest.mark.behaviour("13-serve-commands")
def test_a_flag_before_a_command_inside_of_serve_is_refused(council: Terminal) -> None:
    refused = council("serve", "--port", "0", "tokens")
    assert (refused.code, refused.out) == (2, "")
    assert "--port" in refused.err and "council serve tokens" in refused.err
    assert council("--json", "serve", "tokens").json == []
