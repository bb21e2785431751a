"""Shell completion, tested in real shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from council.doors.cli.ask import ask_command
from council.doors.cli.completion import COMPLETERS, CommandLine
from council.doors.cli.management import management_group
from council.doors.cli.params import CURRENT_COMMANDS, LIST_KINDS, SERVE_COMMANDS, VERBS
from council.extensions import FORMATS
from council.protocols import protocol_names
from council.protocols.common.perspectives import list_presets
from tests.acceptance.helpers import Terminal
from tests.doors.cli.terminal import TerminalProcess
from tests.fork_server import command_path

INSTALLED = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
FAIL_ON = {"fail", "warn", "critical", "significant", "never"}
RUNS = set(management_group().commands["runs"].commands)  # type: ignore[attr-defined]
SHOWN = [option for option in ask_command().params if isinstance(option, click.Option) and not option.hidden]
ONE_WORD = {"-h", "--help"} | {flag for option in SHOWN for flag in option.opts}


def shell(name: str, text: str, *arguments: str) -> str:
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    done = subprocess.run(
        [name, *quiet, "-c", text, name, *arguments], env={**os.environ, "PATH": command_path()}, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def script(name: str) -> str:
    return COMPLETERS[name](CommandLine(), {}, "council", "_COUNCIL_COMPLETE").source()


def in_bash(line: str) -> set[str]:
    """Return the completions of bash for a line."""
    return {word for offered in bash_lines(line) for word in offered.split()}


def bash_lines(line: str) -> set[str]:
    """Return the same as whole lines. Readline splits the line at blanks and `=`; LISTING is the kind of completion."""
    words = [word for part in line.split(" ") for word in re.split(r"(=)", part) if word or part == ""]
    Path("council.bash").write_text(script("bash"), encoding="utf-8")
    asked = (
        "source ./council.bash; compopt() { COMPREPLY+=(+files); }; "  # it works only inside a completion
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=${LISTING-9}; _council_completion council; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return set(shell("bash", asked, *words).splitlines()) - {""}


def offered_by_command(*words: str) -> set[str]:
    """Return what the command offers to any shell for the last word."""
    completer = COMPLETERS["bash"](CommandLine(), {}, "council", "_COUNCIL_COMPLETE")
    return {item.value for item in completer.get_completions(list(words[:-1]), words[-1])}


def write_fish() -> str:
    Path("council.fish").write_text(script("fish"), encoding="utf-8")
    return "source ./council.fish"


def in_fish(line: str) -> set[str]:
    output = shell("fish", f"{write_fish()}; complete -C '{line}'")
    return {offered.partition("\t")[0].rpartition("=")[2] for offered in output.splitlines()}


OFFERED = [
    ("council ", {*VERBS, *CURRENT_COMMANDS}),
    ("council ru", {"runs"}),
    ("council runs ", RUNS),
    ("council --quiet runs s", {word for word in RUNS if word.startswith("s")}),
    ("council --config council.toml presets ", {"show"}),
    ("council presets show ", set(list_presets())),
    ("council list ", set(LIST_KINDS)),
    ("council list presets --show sec", {"security-audit"}),
    ("council serve ", set(SERVE_COMMANDS)),
    ("council serve tokens ", {"add", "list", "revoke"}),
    ("council completion ", set(COMPLETERS)),
    ("council validate recent --fail-on ", FAIL_ON),
    ("council validate recent --fail-on=", FAIL_ON),
    ("council gate --fail-on=wa", {"warn"}),
    ("council report --fail-on=wa", {"warn"}),
    ("council --format ", set(FORMATS.names)),
    ("council --preset sec", {"security-audit"}),
    ("council --protocol ", set(protocol_names())),
    ("council -m so", {"sonnet"}),
    ("council -m sonnet --model claude-h", {"claude-haiku-4.5", "claude-haiku-5.5"}),
    ("council validate --fo", {"--format"}),
    ("council report --f", {"--format", "--fail-on"}),
    ("council runs show --sh", {"--show"}),
]


@pytest.mark.behaviour("50-completion")
@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=[line for line, _ in OFFERED])
def test_words_flags_and_values_are_offered_where_they_fit(line: str, offered: set[str]) -> None:
    assert in_bash(line) == offered


@pytest.mark.behaviour("50-completion")
@pytest.mark.parametrize(("line", "offered"), OFFERED[2::3], ids=[line for line, _ in OFFERED[2::3]])
def test_fish_offers_the_same_and_files(line: str, offered: set[str]) -> None:
    assert offered <= in_fish(line)


@pytest.mark.behaviour("50-completion")
def test_every_flag_of_every_command_is_offered() -> None:
    assert in_bash("council -") == ONE_WORD
    for name in CURRENT_COMMANDS:
        command = management_group().commands[name]
        shown = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        flags = {flag for option in shown for flag in option.opts}
        assert offered_by_command(name, "-") == flags | {"-h", "--help"}
    assert in_bash("council doctor -") == offered_by_command("doctor", "-")


@pytest.mark.behaviour("50-completion")
def test_runs_are_offered_by_name(council: Terminal) -> None:
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n', encoding="utf-8")
    council("--quick", "validate", "council.toml")
    (run,) = (row["run"] for row in council("runs", "--json").json)
    assert in_bash("council resume ") == {run}
    assert run in in_fish("council runs show ")


@pytest.mark.behaviour("50-completion-titles")
def test_a_list_of_runs_has_their_titles(council: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n', encoding="utf-8")
    questions = ["Which queue fits *us*?", "Is Kafka,  or Redis [better]?"]
    runs = {council("--protocol", "triad", "--json", question).json["run"]: question for question in questions}
    titles = {run: " ".join(question.split()) for run, question in runs.items()}
    fish = shell("fish", f"{write_fish()}; complete -C 'council runs show r'")
    assert {f"{run}\t{title}" for run, title in titles.items()} <= set(fish.splitlines())
    assert bash_lines("council resume r") == set(runs), "the tab key inserts an id"
    monkeypatch.setenv("LISTING", "63")
    assert bash_lines("council resume r") == {f"{run}  {title}" for run, title in titles.items()}
    run = next(iter(runs))
    assert bash_lines(f"council resume {run}") == {run}, "a single one is inserted"


@pytest.mark.behaviour("50-completion")
@pytest.mark.parametrize(
    "line", ["council validate ", "council why does ", "council --spec ", "council runs show --config "]
)
def test_only_files_are_offered_where_a_path_may_follow(line: str) -> None:
    assert in_bash(line) == {"+files"}


@pytest.mark.behaviour("50-completion")
@pytest.mark.parametrize("line", ["council --decision ", "council --timeout ", "council -- "])
def test_nothing_is_offered_where_free_text_is_expected(line: str) -> None:
    assert in_bash(line) == set()


@pytest.mark.behaviour("50-completion")
@pytest.mark.parametrize(
    ("start", "load"),
    [
        (["bash", "--norc"], "source <(council completion bash)"),
        (["zsh", "-f"], "autoload -Uz compinit; compinit -u -D; source <(council completion zsh)"),
    ],
    ids=["bash", "zsh"],
)
def test_the_tab_key_completes_in_the_shell_itself(
    start: list[str], load: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which(start[0]):
        pytest.skip(f"{start[0]} is not installed")
    monkeypatch.setenv("PATH", INSTALLED)
    terminal = TerminalProcess(program=[*start, "-i"])
    terminal.type(f"PS1=; {load}; echo load''ed\n")
    terminal.until("loaded")
    terminal.type("council comp\tba\t\n")
    terminal.until("complete -o nosort -F _council_completion council")
    terminal.type("exit\n")
    assert terminal.end() == 0


@pytest.mark.parametrize("name", COMPLETERS)
def test_every_shell_parses_its_script_without_errors(name: str) -> None:
    Path("script").write_text(script(name), encoding="utf-8")
    assert shell(name, f"{name} -n script") == ""


def test_the_script_needs_neither_pydantic_nor_aiohttp_nor_rich() -> None:
    code = "import sys; from council.doors.cli import run; run(['completion', 'bash']); print([m for m in ('pydantic', 'aiohttp', 'jinja2', 'rich') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()[-1] == "[]"  # fmt: skip
