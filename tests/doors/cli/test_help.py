"""Help pages: `council --help`, `council --help-all` and `council COMMAND --help`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import click
import pytest

from council.doors.cli import run
from council.doors.cli.ask import ask_command
from council.doors.cli.help import (
    COMMAND_GROUPS,
    COMMANDS_FILE,
    EXAMPLES,
    FLAG_GROUPS,
    PACKET_FLAGS,
    RARE_COMMANDS,
    TASKS,
    USUAL_FLAGS,
    describe_commands,
)
from council.doors.cli.management import management_group
from council.doors.cli.params import ALIASES, COMMON_FLAGS, CURRENT_COMMANDS, OLD_WORDS, VERBS, protocol_flags
from tests.paths import ROOT

MAX_WORDS = 450
HEAVY = ("pydantic", "aiohttp", "jinja2", "rich", "asyncio", "sqlite3", "council.settings")


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> Iterator[object]:
    def show(*arguments: str) -> str:
        assert run(list(arguments)) == 0
        return capsys.readouterr().out

    yield show


def listed_flags(text: str) -> set[str]:
    """Return the flags at the start of a line."""
    starts = (line.split("  ")[0] for line in map(str.strip, text.splitlines()) if line.startswith("-"))
    return {word.rstrip(",") for start in starts for word in start.split() if word.startswith("-")}


def all_commands(commands: dict[str, click.Command], parent: str = "council") -> Iterator[tuple[str, click.Command]]:
    for name, command in commands.items():
        yield f"{parent} {name}", command
        if isinstance(command, click.Group):
            yield from all_commands(command.commands, f"{parent} {name}")


def shown_options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


# Groups


@pytest.mark.behaviour("13-help-short")
def test_every_command_has_one_group() -> None:
    groups = Counter(word for words in COMMAND_GROUPS.values() for word in words)
    assert set(CURRENT_COMMANDS) == set(groups), "add the command to a row of COMMAND_GROUPS in doors/cli/help.py"
    assert set(groups.values()) == {1}


@pytest.mark.behaviour("13-help-all")
def test_every_common_flag_has_one_group() -> None:
    groups = Counter(name for names in FLAG_GROUPS.values() for name in names)
    common = {flag["name"] for flag in COMMON_FLAGS} | {"help", "help_all", "version"}
    assert common == set(groups), "add the flag to a row of FLAG_GROUPS in doors/cli/help.py"
    assert set(groups.values()) == {1}


def test_usual_flags_and_packet_flags_exist() -> None:
    known = {option.name for option in ask_command().params}
    assert set(USUAL_FLAGS) <= known
    assert len(USUAL_FLAGS) == 10
    assert set(PACKET_FLAGS) - known == set()


# Short page


@pytest.mark.behaviour("13-help-short")
def test_short_help_has_usage_examples_usual_flags_and_the_usual_commands(page) -> None:  # type: ignore[no-untyped-def]
    text = page("--help")
    assert len(text.split()) <= MAX_WORDS
    assert text.startswith("Usage: council [FLAGS] [ask|validate|brainstorm|research] WORDS…\n")
    assert [len(line) for line in text.splitlines() if len(line) > 79] == []
    options = {option.name: option for option in ask_command().params}
    assert listed_flags(text) == {flag for name in USUAL_FLAGS for flag in options[name].opts}
    usual = [word for words in COMMAND_GROUPS.values() for word in words if word not in RARE_COMMANDS]
    places = [text.index(f"\n  {word} ") for word in usual]
    assert places == sorted(places)
    assert [word for word in (*RARE_COMMANDS, *OLD_WORDS) if f"\n  {word} " in text] == []
    assert "--help-all" in text
    assert page("-h") == text


# Complete page


@pytest.mark.behaviour("13-help-all")
def test_full_help_and_the_reference_list_every_flag(page) -> None:  # type: ignore[no-untyped-def]
    text, reference = page("--help-all"), (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    common, _, rest = text.partition("\ncouncil ")
    for option in shown_options(ask_command()):
        assert {*option.opts, *option.secondary_opts} <= listed_flags(common)
        assert f"`{option.opts[-1]}`" in reference
    sections = {part.partition(":\n")[0]: part for part in f"council {rest}".split("\n\n")}
    for path, command in all_commands(management_group(*CURRENT_COMMANDS).commands):
        if command.hidden:
            continue
        assert f"# {path}\n" in reference
        for option in shown_options(command):
            assert set(option.opts) <= listed_flags(sections[path]), path
            assert f"`{option.opts[-1]}`" in reference


@pytest.mark.behaviour("13-help-all", "13-old-words")
def test_full_help_names_the_other_names_of_flags_and_the_words_of_earlier_versions(page) -> None:  # type: ignore[no-untyped-def]
    lines = [re.split(r"  +", line.strip()) for line in page("--help-all").splitlines()]
    assert all([alias, meaning] in lines for alias, meaning in ALIASES.items())
    assert all([f"council {word}", now] in lines for word, now in OLD_WORDS.items())


@pytest.mark.behaviour("13-help-all")
def test_the_generated_table_of_commands_is_current() -> None:
    stored = json.loads(COMMANDS_FILE.read_text(encoding="utf-8"))
    assert stored == describe_commands(management_group().commands), "run python scripts/make_flags.py"


# Pages of tasks


@pytest.mark.behaviour("13-help-task")
def test_the_help_of_a_task_lists_the_flags_that_matter_for_it(page) -> None:  # type: ignore[no-untyped-def]
    options = {option.name: option for option in ask_command().params}
    assert set(TASKS) == set(VERBS)
    for name, task in TASKS.items():
        text = page(name, "--help")
        assert text.startswith(f"Usage: council {name} ")
        assert listed_flags(text) == {flag for row in task.flags for flag in options[row].opts}
        assert page("--json", name, "-h") == page("help", name) == page(name.upper(), "--help") == text
    assert "--base" in page("validate", "-h") and "--base" not in page("brainstorm", "-h")
    assert "--technique" in page("brainstorm", "-h") and "--technique" not in page("validate", "-h")


@pytest.mark.behaviour("13-help-task")
def test_the_complete_help_of_a_task_is_that_of_every_flag(page) -> None:  # type: ignore[no-untyped-def]
    assert page("validate", "--help-all") == page("--help-all")
    assert page("explore", "--help") == page("--help"), "only the four tasks have a page"


# Pages of commands


@pytest.mark.behaviour("13-help-command")
def test_every_command_has_a_page_with_its_flags(page) -> None:  # type: ignore[no-untyped-def]
    for path, command in all_commands(management_group().commands):
        if command.hidden:
            continue
        words = path.split()[1:]
        text = page(*words, "--help")
        assert text.startswith(f"Usage: {path}")
        assert listed_flags(text) == {flag for option in shown_options(command) for flag in option.opts}
        assert page(*words, "-h") == page("--help", *words) == page(*words, "--help-all") == text
        for example, _ in EXAMPLES.get(" ".join(words), ()):
            assert example in text


@pytest.mark.behaviour("13-help-command")
def test_packet_lists_the_flags_that_change_the_packet_and_accepts_the_others(page) -> None:  # type: ignore[no-untyped-def]
    shown = listed_flags(page("packet", "--help"))
    assert {"--spec", "--redact", "--protocol", "--json"} <= shown
    assert not {"--timeout", "--max-cost", "--detach", "--verbose", "--rounds"} & shown
    assert sum(flag.startswith("--") for flag in shown) <= 20
    seats = [flag for seat in ("alpha", "beta", "gamma", "chair") for flag in ("--seat", f"{seat}=scripted:")]
    page("packet", "--timeout", "5", "--verbose", *seats, "Tabs?")


@pytest.mark.behaviour("13-help-command")
@pytest.mark.parametrize("command", ["runs show", "runs export", "report", "runs replay", "replay", "gate", "cancel"])
def test_config_is_not_listed_where_it_has_no_effect(page, command: str) -> None:  # type: ignore[no-untyped-def]
    assert "--config" not in page(*command.split(), "--help")


def test_help_after_two_dashes_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "search", "--", "--help"]) == 0
    assert capsys.readouterr().out == 'no runs match "--help"\n'


def test_examples_belong_to_commands() -> None:
    paths = {path.partition(" ")[2] for path, _ in all_commands(management_group().commands)}
    assert set(EXAMPLES) <= {"", *paths}


def test_every_flag_of_a_protocol_belongs_to_a_protocol() -> None:
    assert all(flag["owners"] for flag in protocol_flags())


@pytest.mark.behaviour("13-help-light")
def test_no_help_page_imports_a_heavy_module() -> None:
    lines = [["--help"], ["--help-all"], ["runs", "--help"], ["packet", "--help"], ["serve", "-h"], ["validate", "-h"]]
    code = (
        f"import sys; from council.doors.cli import run; codes = [run(line) for line in {lines!r}]; "
        f"print('\\n', codes, [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "[0, 0, 0, 0, 0, 0] []"
