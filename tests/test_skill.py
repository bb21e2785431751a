"""The skill: its format, its content, and every command in it runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from council.doors.cli import run as command
from council.doors.cli.ask import ask_command
from council.doors.cli.management import management_group
from council.doors.cli.params import COMMAND_HELP
from council.doors.cli.service_commands import skill_source
from council.engine.layout import STATE_DESCRIPTIONS
from council.protocols.common.perspectives import list_presets
from council.runs import outcome
from council.types import OK_STATES
from tests.acceptance.judges.project import FILES
from tests.fork_server import command_path
from tests.packet.conftest import commit, git, write
from tests.paths import ROOT

SKILL = ROOT / "skills" / "council"
PAGES = sorted(path.relative_to(SKILL).as_posix() for path in SKILL.rglob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MAY_HAVE = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


@cache
def text(page: str) -> str:
    return (SKILL / page).read_text(encoding="utf-8")


def front_matter(page: str) -> tuple[dict[str, Any], str]:
    _, matter, body = text(page).split("---\n", 2)
    return yaml.safe_load(matter), body


# Format


@pytest.mark.behaviour("50-skill-format")
def test_the_front_matter_follows_the_format() -> None:
    matter, body = front_matter("SKILL.md")
    assert matter["name"] == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", matter["name"])
    assert len(matter["name"]) <= 64
    assert 1 <= len(matter["description"]) <= 400
    assert "<" not in matter["description"]
    assert len(matter["compatibility"]) <= 500
    assert set(matter) <= MAY_HAVE
    assert all(isinstance(value, str) for value in matter.values())
    assert len(body.splitlines()) < 500


@pytest.mark.behaviour("50-skill-format")
def test_the_description_says_when_to_use_it_and_when_not() -> None:
    description = front_matter("SKILL.md")[0]["description"]
    assert "Use for" in description
    assert "Not for" in description


@pytest.mark.behaviour("50-skill-format")
def test_the_skill_links_directly_to_each_of_its_files() -> None:
    linked = set(LINK.findall(text("SKILL.md")))
    assert linked == {page for page in PAGES if page != "SKILL.md"}
    assert {path.suffix for path in SKILL.rglob("*") if path.is_file()} == {".md"}


@pytest.mark.behaviour("50-skill-format")
@pytest.mark.parametrize("page", PAGES)
def test_links_are_relative_and_exist(page: str) -> None:
    for link in LINK.findall(text(page)):
        assert (SKILL / page).parent.joinpath(link).is_file(), link
    assert re.findall(r"(?<![\w.:/~])/(?:usr|etc|opt|var|tmp|Users)\b|[A-Z]:\\", text(page)) == []


@pytest.mark.behaviour("50-skill-format")
def test_the_command_file_passes_the_words_through() -> None:
    matter, body = front_matter("commands/council.md")
    assert set(matter) <= {"description", "argument-hint", "allowed-tools"}
    assert body.count("council $ARGUMENTS") == 1


# Content

NOT_FOR = (
    "simple factual lookups", "only one perspective", "quick one-liner answers",
    "one-line fixes", "where a file is", "speed matters more than depth",
    "trivial", "one step", "arithmetic", "command syntax", "one-line rewrites", "narrow yes or no", "one obvious path",
)  # fmt: skip


@pytest.mark.behaviour("000-complexity-gate", "001-not-for")
def test_it_starts_with_when_not_to_convene() -> None:
    first = text("SKILL.md").split("\n## ")[1]
    assert [phrase for phrase in NOT_FOR if phrase not in first] == []
    assert "If the person asks for a council, convene one" in first


@pytest.mark.behaviour("50-skill-honest")
def test_it_forbids_hiding_degradation_and_breaking_ties() -> None:
    skill = text("SKILL.md")
    assert "Never hide degradation" in skill
    assert "Do not break the tie yourself" in skill
    assert "never turn a run that did not happen into a PASS" in skill


def test_every_exit_code_is_explained() -> None:
    line = text("SKILL.md").partition("Exit codes:")[2].partition("\n")[0]
    codes = {code for name, code in vars(outcome).items() if name.startswith("EXIT_")}
    assert {int(part.split()[0]) for part in line.split("·")} == codes


def test_every_field_it_names_is_in_the_report_schema() -> None:
    schema = json.loads((ROOT / "src/council/data/schemas/report.json").read_text(encoding="utf-8"))
    table = text("SKILL.md").partition("Read the fields in this order")[2].partition("\n\nExit codes")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert named <= set(schema["properties"])


def test_every_state_it_names_is_a_seat_state() -> None:
    table = text("references/cost-and-failure.md").partition("| state |")[2].partition("\n\n")[0]
    named = {state for row in table.splitlines()[2:] for state in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert named
    assert named <= {*STATE_DESCRIPTIONS, *OK_STATES}


def test_every_preset_is_named() -> None:
    assert {name for name in list_presets() if f"`{name}`" in text("references/judging.md")} == set(list_presets())


# Commands


def flags_of(found: click.Command) -> Iterator[str]:
    yield from (name for one in found.params if isinstance(one, click.Option) for name in one.opts)
    if isinstance(found, click.Group):
        for inner in found.commands.values():
            yield from flags_of(inner)


@pytest.mark.behaviour("50-skill-runs")
@pytest.mark.parametrize("page", PAGES)
def test_every_flag_it_names_exists(page: str) -> None:
    known = {*flags_of(ask_command()), *flags_of(management_group()), "--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text(page))) <= known


def examples() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for kind, body in FENCE.findall(text(page)):
            assert kind == "sh", f"{page}: a code block that is not tested"
            yield from ((page, line) for line in body.splitlines())


LINES = list(dict.fromkeys(line for _, line in examples()))
MANAGING = [line for line in LINES if line.split()[1] in COMMAND_HELP]
CONVENING = [line for line in LINES if line not in MANAGING]
SCRIPTED = "\n".join(
    [
        "[models]", *(f'{tier} = "scripted:"' for tier in ("default", "strong", "fast", "other")),
        *(f'[seats.{seat}]\nmodel = "scripted:"' for seat in ("alpha", "beta", "gamma", "generalist", "skeptic", "domain_expert")),
        '[chair]\nmodel = "scripted:"\nfallback = []\n',
    ]
)  # fmt: skip


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on a branch with the files the commands name, a staged change and an unstaged one."""
    root = Path.cwd()
    git(root, "init", "-q", "-b", "main")
    commit(root, FILES | {"docs/plan.md": "# Plan\n\nBackups are kept for 30 days.\n"}, "begin")
    git(root, "switch", "-q", "-c", "feature")
    for n in range(3):
        commit(root, {f"src/step{n}.py": f"step = {n}\n"})
    write(root, {"src/app.py": "print('staged')\n"})
    git(root, "add", "src/app.py")
    write(root, {"README.md": "# Shop\n\nSells more.\n"})
    (tmp_path / "council.toml").write_text(SCRIPTED, encoding="utf-8")
    monkeypatch.setenv("COUNCIL_CONFIG", str(tmp_path / "council.toml"))
    return root


def plan_of(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    shown = [] if "--json" in line or "--format" in line else ["--json"]
    code = command([*shlex.split(line)[1:], "--dry-run", *shown])
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    plan: dict[str, Any] = json.loads(captured.out) if captured.out.startswith("{") else {}
    return plan


@pytest.mark.behaviour("50-skill-runs")
@pytest.mark.usefixtures("scratch")
def test_every_question_command_makes_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(CONVENING) > 40
    for line in (line for line in CONVENING if "|" not in line):
        plan_of(line, capsys)
    for line in (line for line in CONVENING if "|" in line):
        env = {**os.environ, "PATH": command_path()}
        subprocess.run(f"{line} --dry-run", shell=True, check=True, capture_output=True, env=env)


@pytest.mark.behaviour("50-skill-runs")
@pytest.mark.usefixtures("scratch")
def test_every_management_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Use a run whose chair failed, so that there is something to resume."""
    (tmp_path / "lost.toml").write_text('["synthesise/chair"]\nfail = "server"\n', encoding="utf-8")
    assert command(["--seat", f"chair=scripted:{tmp_path / 'lost.toml'}", "--json", "Who should own it?"]) == 3
    run = json.loads(capsys.readouterr().out)["run"]
    assert len(MANAGING) > 10
    for line in MANAGING:
        code = command(shlex.split(line.replace("RUN", run))[1:])
        captured = capsys.readouterr()
        assert code in (0, 3), f"{line}: {captured.out}{captured.err}"


@pytest.mark.behaviour("50-skill-runs")
@pytest.mark.usefixtures("scratch")
def test_the_table_has_the_right_number_of_calls(capsys: pytest.CaptureFixture[str]) -> None:
    table = text("SKILL.md").partition("| goal |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    assert len(rows) == 11
    for _, line, calls in rows:
        plan = plan_of(line.strip("`").replace("…", "caching").replace("TARGET", "src/auth"), capsys)
        low, high = plan["calls"]["min"], plan["calls"]["max"]
        expected = f"{low}" if low == high else f"{low} to {high}"
        assert calls in (expected, f"{low} or more"), f"{line}: {expected} calls"


def test_the_installed_skill_is_the_one_of_the_repository() -> None:
    assert skill_source() == SKILL
