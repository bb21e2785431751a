"""The files for contributors: workflows, issue forms, pre-commit hooks, and the address of the repository."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import release
from tests.paths import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
ADDRESS = PROJECT["urls"]["Repository"]
OWNER_AND_NAME = ADDRESS.removeprefix("https://github.com/")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
YAML_FILES = [*sorted((ROOT / ".github").rglob("*.yml")), *(ROOT / name for name in ("action.yml", "ci/gitlab.yml", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml"))]  # fmt: skip
Node = dict[str, Any]


class Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a key that occurs twice, which YAML parsers otherwise accept. `on` stays a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Node:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key occurs twice, line {node.start_mark.line + 1}"
        return {key if isinstance(key, str) else "on": value for key, value in super().construct_mapping(node, deep).items()}  # fmt: skip


@cache
def load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader)


def jobs() -> Iterator[tuple[str, Node]]:
    for path in WORKFLOWS:
        yield from ((f"{path.name}: {name}", job) for name, job in load(path)["jobs"].items())


def steps() -> Iterator[Node]:
    for _, job in jobs():
        yield from job["steps"]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Workflows


@pytest.mark.behaviour("project-ci")
@pytest.mark.parametrize("path", YAML_FILES, ids=relative)
def test_every_file_is_valid_yaml(path: Path) -> None:
    assert load(path)


@pytest.mark.behaviour("project-ci")
def test_ci_runs_on_the_python_versions_of_the_classifiers_and_of_requires_python() -> None:
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"])
    versions = [match[1] for match in found if match]
    matrices = {
        name: job["strategy"]["matrix"]["python"] for name, job in jobs() if "matrix" in job.get("strategy", {})
    }
    assert matrices == dict.fromkeys(["ci.yml: lint", "ci.yml: tests", "ci.yml: macos"], versions)
    required = SpecifierSet(PROJECT["requires-python"])
    minors = [f"3.{minor}" for minor in range(int(versions[-1].partition(".")[2]) + 1)]
    assert list(required.filter(minors)) == versions
    assert PYPROJECT["tool"]["mypy"]["python_version"] == versions[0]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{versions[0].replace('.', '')}"


@pytest.mark.behaviour("project-ci")
@pytest.mark.parametrize("path", WORKFLOWS, ids=relative)
def test_a_workflow_may_only_read_and_only_the_publishing_job_gets_a_token(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert rights == ({"publish": {"id-token": "write"}} if path.name == "release.yml" else {})
    assert "pull_request_target" not in workflow["on"]
    assert "secrets." not in path.read_text(encoding="utf-8")
    checkouts = [step for job in workflow["jobs"].values() for step in job["steps"] if "checkout" in step.get("uses", "")]  # fmt: skip
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert all(0 < job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


@pytest.mark.behaviour("project-ci")
def test_a_new_push_to_a_pull_request_cancels_its_older_run_and_no_other() -> None:
    concurrency = load(ROOT / ".github/workflows/ci.yml")["concurrency"]
    assert concurrency == {
        "group": "ci-${{ github.event.pull_request.number || github.run_id }}",
        "cancel-in-progress": True,
    }


@pytest.mark.behaviour("project-ci")
def test_every_action_is_pinned_to_one_major_version() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*WORKFLOWS, *(ROOT / "docs").glob("*.md"))]
    used = {row for text in texts for row in re.findall(r"uses: (\S+)@(\S+)", text) if row[0] != OWNER_AND_NAME}
    assert {action for action, _ in used} >= {"actions/checkout", "actions/setup-python"}
    assert [row for row in used if not re.fullmatch(r"(release/)?v\d+", row[1])] == []
    assert len(used) == len({action for action, _ in used}), f"two versions of one action: {sorted(used)}"


def commands() -> Iterator[list[str]]:
    """Yield each command of the workflows, with the first Python of the matrix."""
    for step in steps():
        text = step.get("run", "").replace("${{ matrix.python }}", "3.11")
        yield from (shlex.split(line, comments=True) for line in text.splitlines() if line.strip())


@pytest.mark.behaviour("project-ci")
@pytest.mark.parametrize("command", list(commands()), ids=shlex.join)
def test_every_command_of_a_workflow_exists(command: list[str]) -> None:
    program, *arguments = command
    if program == "python" and arguments[0] == "-m":
        assert importlib.util.find_spec(arguments[1])
    elif program == "python" and arguments[0] == "scripts/release.py":
        release.make_parser().parse_args(arguments[1:])
    elif "/" in program:
        assert (ROOT / program).stat().st_mode & 0o100
    else:
        place = shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)
        assert place, f'"{program}" is not installed by the extra dev'
    assert [name for name in arguments if name.startswith(("tests", "scripts")) and not (ROOT / name).exists()] == []
    for argument in arguments:
        if extra := re.fullmatch(r"\.\[(\w+)\]", argument):
            assert extra[1] in PROJECT["optional-dependencies"]


@pytest.mark.behaviour("project-ci")
@pytest.mark.parametrize(
    "command", [["ruff", "check", "--output-format", "github", "--help"], ["mypy", "--python-version", "3.14", "--help"]], ids=shlex.join
)  # fmt: skip
def test_the_linters_know_the_flags_of_the_workflow(command: list[str]) -> None:
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)


def test_the_suites_that_run_on_macos_use_nothing_of_linux_alone() -> None:
    (command,) = (command for command in commands() if command[0] == "pytest" and "tests/engine" in command)
    linux = re.compile(r"Path\(f?\"/proc/|listdir\(\"/proc|from tests\.system_faults|LD_PRELOAD|pidfd_open")
    files = [file for name in command if name.startswith("tests/") for file in ((ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name])]  # fmt: skip
    assert len(files) > 100
    assert [relative(file) for file in files if linux.search(file.read_text(encoding="utf-8"))] == []


# Forms


@pytest.mark.behaviour("project-reports")
@pytest.mark.parametrize("path", FORMS, ids=relative)
def test_an_issue_form_has_the_fields_of_github(path: Path) -> None:
    form = load(path)
    assert set(form) == {"name", "description", "labels", "body"}
    ids = [field.get("id", "") for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) and all(ids)
    for field in form["body"]:
        assert set(field) <= {"type", "id", "attributes", "validations"}
        assert field["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        attributes = {"markdown": {"value"}}.get(field["type"], {"label", "description", "placeholder", "render"})
        assert set(field["attributes"]) <= attributes
        assert set(field.get("validations", {})) <= {"required"}


@pytest.mark.behaviour("project-reports")
def test_vulnerabilities_are_reported_in_private() -> None:
    config = load(ROOT / ".github/ISSUE_TEMPLATE/config.yml")
    assert config["blank_issues_enabled"] is False
    assert [link["url"] for link in config["contact_links"]] == [f"{ADDRESS}/security/policy"]
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"({ADDRESS}/security/advisories/new)" in policy
    assert "](../SECURITY.md)" in (ROOT / "docs/security.md").read_text(encoding="utf-8")
    bug = (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text(encoding="utf-8")
    assert "SECURITY.md" in bug


# pre-commit


@pytest.mark.parametrize(
    ("check", "name"),
    [("validate-config", ".pre-commit-config.yaml"), ("validate-manifest", ".pre-commit-hooks.yaml")],
)
def test_pre_commit_accepts_the_file(check: str, name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pre_commit", check, str(ROOT / name)]
    done = subprocess.run(command, env={"PRE_COMMIT_HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_hooks_of_contributors_are_the_linters_of_ci_and_download_nothing() -> None:
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    in_ci = {" ".join(command[: 2 if command[0] == "ruff" else 1]) for command in commands() if command[0] in ("ruff", "mypy")}  # fmt: skip
    assert {hook["name"] for hook in repository["hooks"]} == in_ci
    assert all(hook["entry"].startswith(hook["name"]) for hook in repository["hooks"])
    names = {Requirement(text).name for text in PROJECT["optional-dependencies"]["dev"]}
    assert {"pre-commit", "ruff", "mypy"} <= names


# The address of the repository

# Files with the address, and what they have of it.
PLACES = {
    "README.md": [f"git clone {ADDRESS}.git"],
    "SECURITY.md": [ADDRESS],
    "docs/quickstart.md": [f"git clone {ADDRESS}.git"],
    "docs/install.md": [f"git clone {ADDRESS}.git"],
    "docs/ci.md": [f"uses: {OWNER_AND_NAME}@", f"repo: {ADDRESS}\n"],
    "mkdocs.yml": [f"repo_url: {ADDRESS}\n"],
    ".github/ISSUE_TEMPLATE/config.yml": [ADDRESS],
}
ANY_ADDRESS = re.compile(r"github\.com[/:]([\w-]+/council)\b|io\.github\.([\w-]+/council)\b|uses: ([\w-]+/council)@|\b(OWNER/council)\b")  # fmt: skip


@pytest.mark.behaviour("project-address")
@pytest.mark.parametrize("name", PLACES)
def test_a_file_has_the_address_of_the_project(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [part for part in PLACES[name] if part not in text] == [], "RELEASING.md says how to change the address"


@pytest.mark.behaviour("project-address")
def test_the_package_and_the_mcp_server_have_the_address_of_the_project() -> None:
    assert re.fullmatch(r"https://github\.com/[\w-]+/[\w.-]+", ADDRESS)
    assert set(PROJECT["urls"]) == {"Repository", "Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url == ADDRESS or url.startswith(f"{ADDRESS}/") for url in PROJECT["urls"].values())
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert server["repository"] == {"url": ADDRESS, "source": "github"}
    assert server["name"] == f"io.github.{OWNER_AND_NAME}"


@pytest.mark.behaviour("project-address")
def test_no_file_has_another_address_of_the_project() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in listed.split("\0") if name.endswith((".md", ".yml", ".yaml", ".toml", ".json", ".svg", ".ipynb")) and not name.startswith("tests/data/")]  # fmt: skip
    found = {
        (name, address)
        for name in files
        if (ROOT / name).is_file() and name != "RELEASING.md"  # its command names the placeholder
        for match in ANY_ADDRESS.findall((ROOT / name).read_text(encoding="utf-8"))
        for address in match
        if address and address != OWNER_AND_NAME
    }
    assert found == set()
