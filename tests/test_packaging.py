"""The distribution: its metadata and the wheel, installed in a new virtual environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from council.version import __version__
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*command: str | Path, **env: str) -> str:
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel. Its dependencies are those of the tests, so nothing is downloaded."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", place)
    pip = [sys.executable, "-m", "pip", "--python", str(place), "-q", "--disable-pip-version-check"]
    run(*pip, "install", "--no-deps", "--no-index", wheel)
    (packages,) = place.glob("lib/*/site-packages")
    folders = [name for name in sys.path if Path(name).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("\n".join([*folders, ""]))  # searched after the environment
    return place


def list_sources(folder: str) -> set[str]:
    listed = run("git", "-C", ROOT, "ls-files", "-z", folder)
    return {name for name in listed.split("\0") if name and not name.endswith(".gitignore")}


@pytest.mark.behaviour("issue-13-wheel")
def test_the_wheel_contains_every_source_file_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {name.removeprefix("src/") for name in list_sources("src/council")}
    skill = {name.replace("skills/council", "council/data/skill") for name in list_sources("skills/council")}
    assert names == sources | skill
    kinds = {
        "council/py.typed", "council/data/flags.json", "council/data/models.toml", "council/data/triggers.toml", "council/data/domains.toml",
        "council/protocols/judges/prompts/validate.md", "council/data/schemas/report.json",
        "council/store/migrations/sqlite/01_tables.sql", "council/store/migrations/postgres/01_tables.sql",
    }  # fmt: skip
    assert kinds <= names


@pytest.mark.behaviour("issue-13-wheel")
def test_the_wheel_has_its_license_and_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"model_council-{__version__}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    head, _, text = metadata.partition("\n\n")
    assert {"Name: model-council", f"Version: {__version__}", "License-Expression: Apache-2.0"} <= set(
        head.splitlines()
    )
    assert {"Classifier: Typing :: Typed", "Provides-Extra: local", "Provides-Extra: dev"} <= set(head.splitlines())
    assert text.startswith("# Council")


@pytest.mark.behaviour("issue-13-wheel", "50-skill-install")
def test_the_wheel_works_in_a_new_environment(environment: Path, tmp_path: Path) -> None:
    folder = {"PYTHONPATH": "", "HOME": str(tmp_path)}
    for command in ("council", "model-council"):
        assert run(environment / "bin" / command, "--version", **folder) == f"council {__version__}\n"
    code = (
        "import council, importlib.metadata as m; from council.members.scripted import Scripted;"
        "seats = dict.fromkeys(('alpha', 'beta', 'gamma', 'chair'), 'scripted:');"
        "report = council.convene_sync('Tabs or spaces?', protocol='triad', members=[Scripted()], seats=seats);"
        "print(council.__file__, m.version('model-council'), report['status'], sep='\\n')"
    )
    place, version, status = run(environment / "bin" / "python", "-c", code, **folder).splitlines()
    assert (Path(place).is_relative_to(environment), version, status) == (True, __version__, "complete")
    run(environment / "bin" / "council", "skill", "install", "--agent", "claude", "--user", **folder)
    assert (tmp_path / ".claude" / "skills" / "council" / "SKILL.md").is_file()


@pytest.mark.behaviour("issue-13-distribution-name")
def test_every_message_and_page_names_the_distribution() -> None:
    wrong = re.compile(
        r"""(?<![-\w./])council\[(?:local|pdf|keys|mcp|web|pai|dev)|(?:pip|pipx|uv tool) install ['"]?council\b"""
    )
    tracked = [name for part in ("src", "docs", "skills", "ci", "README.md", "action.yml", "server.json", "pyproject.toml") for name in list_sources(part)]  # fmt: skip
    texts = {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in tracked}
    assert {name: found[0] for name, text in texts.items() if (found := wrong.search(text))} == {}
    assert json.loads(texts["server.json"])["packages"][0]["identifier"] == PROJECT["name"]
    assert f'wanted="{PROJECT["name"]}==$COUNCIL_VERSION"' in texts["ci/install.sh"]


def test_the_changelog_has_a_section_of_this_version() -> None:
    titles = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip
    versions = [title for title, _ in titles]
    assert versions[:2] == ["Unreleased", __version__]
    assert all(day for _, day in titles[1:])
