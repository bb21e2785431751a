"""The scripts a pipeline runs beside the action: GitLab's job, the hook before a push, the installation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from council.doors.cli.completion import script
from council.doors.cli.manage import management
from tests.acceptance.judges.bench import Court, finding, opinion
from tests.ci.runner import COMMANDS, ROOT
from tests.packet.conftest import commit, git

BUG = finding("critical", "src/auth/jwt.py:2", "Every token is accepted.")
Job = dict[str, Any]
SCRIPTS = sorted(path for path in (ROOT / "ci").iterdir() if path.suffix != ".yml")


# How they are written


@pytest.mark.behaviour("50-ci-scripts")
@pytest.mark.parametrize("path", SCRIPTS, ids=[path.name for path in SCRIPTS])
def test_every_script_is_clean_and_stops_at_the_first_error(path: Path) -> None:
    subprocess.run(["shellcheck", "-x", str(path)], cwd=ROOT, env={**os.environ, "PATH": COMMANDS}, check=True)
    text = path.read_text(encoding="utf-8")
    if path.name != "common.sh":
        assert text.startswith("#!/bin/sh\n")
        assert "\nset -eu" in text
        assert os.access(path, os.X_OK)


def test_the_completion_of_bash_is_clean_as_well() -> None:
    Path("council.bash").write_text(script("bash", management()), encoding="utf-8")
    subprocess.run(["shellcheck", "-s", "bash", "council.bash"], env={**os.environ, "PATH": COMMANDS}, check=True)


# GitLab


@pytest.fixture
def job(checkout: Path) -> Job:
    """The job as it is shipped, with the folder it comes in copied into the repository."""
    shutil.copytree(ROOT / "ci", checkout / "ci")
    found: Job = yaml.safe_load((checkout / "ci" / "gitlab.yml").read_text(encoding="utf-8"))["council"]
    return found


def run_job(job: Job, checkout: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Its commands in one shell, with the variables of a merge request."""
    known = {
        "CI_PROJECT_DIR": str(checkout), "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(checkout, "rev-parse", "origin/main").strip(),
        "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "shop/shop", "CI_MERGE_REQUEST_PROJECT_PATH": "shop/shop",
    }  # fmt: skip
    named = {name: Template(value).substitute(known) for name, value in job["variables"].items()}
    lines = "\n".join([*job["before_script"], *job["script"]])
    env = {**os.environ, "PATH": COMMANDS, "TMPDIR": str(tmp_path), **known, **named}
    return subprocess.run(
        ["sh", "-ec", lines], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.behaviour("50-ci-gitlab")
def test_the_job_of_gitlab_reviews_a_merge_request(court: Court, job: Job, checkout: Path, tmp_path: Path) -> None:
    court.bench.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    done = run_job(job, checkout, tmp_path)
    assert done.returncode == 10, done.stderr
    assert "## Council Consensus: FAIL" in done.stdout
    assert all((checkout / path).is_file() for path in job["artifacts"]["paths"])
    failures = ElementTree.parse(checkout / job["artifacts"]["reports"]["junit"]).getroot().findall(".//failure")
    assert any("Every token is accepted." in "".join([*one.attrib.values(), one.text or ""]) for one in failures)
    assert job["allow_failure"] == {"exit_codes": [3]}


def test_a_second_review_into_the_same_folder_leaves_nothing_of_the_first(
    court: Court, job: Job, checkout: Path, tmp_path: Path
) -> None:
    job["variables"] |= {"COUNCIL_BASE": "nowhere", "COUNCIL_OUT": str(tmp_path / "out")}
    for _ in range(2):
        assert run_job(job, checkout, tmp_path).returncode == 2
    assert (tmp_path / "out" / "outputs").read_text() == "verdict=none\n"
    assert (tmp_path / "out" / "summary.md").read_text().count("## Council") == 1


# Before a push


@pytest.fixture
def hooked(court: Court, checkout: Path) -> Court:
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    shutil.copy(ROOT / "ci" / "pre-push", hooks / "pre-push")
    return court


def push(checkout: Path, *what: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": COMMANDS, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", "push", "origin", *what], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120)  # fmt: skip


def there(checkout: Path) -> list[str]:
    return git(checkout, "ls-remote", "--heads", "origin").split()[1::2]


@pytest.mark.behaviour("50-ci-pre-push")
def test_a_fail_stops_the_push_and_a_pass_lets_it_through(hooked: Court, checkout: Path) -> None:
    hooked.bench.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    stopped = push(checkout, "feature")
    assert stopped.returncode != 0
    assert "Every token is accepted." in stopped.stderr + stopped.stdout
    assert "nothing was pushed" in stopped.stderr
    assert there(checkout) == ["refs/heads/main"]
    prompt = hooked.provider.log[0].prompt
    assert "src/auth/jwt.py" in prompt
    assert "src/api/routes.py" not in prompt  # the origin has it
    hooked.bench.said = {}
    commit(checkout, {"src/auth/jwt.py": "def check(token, key):\n    return token == key\n"})
    passed = push(checkout, "feature")
    assert passed.returncode == 0, passed.stderr
    assert there(checkout) == ["refs/heads/feature", "refs/heads/main"]


@pytest.mark.behaviour("50-ci-pre-push")
def test_what_is_no_clear_pass_is_told_and_stops_the_push_only_where_that_was_said(
    hooked: Court, checkout: Path
) -> None:
    (checkout / ".git" / "config.council").write_text("[council]\n\tstrict = true\n", encoding="utf-8")
    git(checkout, "config", "include.path", "config.council")
    git(checkout, "config", "council.failOn", "worse")
    stopped = push(checkout, "feature")
    assert (stopped.returncode != 0, "no clear PASS (exit 2 of council)" in stopped.stderr) == (True, True)
    git(checkout, "config", "council.strict", "false")
    passed = push(checkout, "feature")
    assert (passed.returncode, "no clear PASS (exit 2 of council)" in passed.stderr) == (0, True)


@pytest.mark.behaviour("50-ci-pre-push")
def test_a_branch_that_is_deleted_is_not_reviewed(hooked: Court, checkout: Path) -> None:
    git(checkout, "push", "-q", "--no-verify", "origin", "feature")
    assert push(checkout, "--delete", "feature").returncode == 0
    assert hooked.provider.log == []


# Installing


@pytest.mark.behaviour("50-ci-scripts")
def test_it_installs_the_sources_it_came_with_in_an_environment_of_its_own(tmp_path: Path) -> None:
    told = tmp_path / "path"
    plain = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not Path(part, "council").exists())
    here = subprocess.run([sys.executable, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True)  # fmt: skip
    env = {
        **os.environ,
        "PATH": plain,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_PATH": str(told),
        "PYTHONPATH": here.stdout.strip(),
    }
    env |= {
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_IGNORE_INSTALLED": "1",
    }  # pip reads the second backwards
    done = subprocess.run(["sh", str(ROOT / "ci" / "install.sh")], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("council ")
    place = tmp_path / "council-venv"
    assert told.read_text(encoding="utf-8") == f"{place}/bin\n"
    assert list(place.glob("lib/*/site-packages/council/data/skill/SKILL.md"))


@pytest.mark.behaviour("50-ci-scripts")
def test_a_council_that_is_there_is_used() -> None:
    env = {**os.environ, "PATH": COMMANDS, "TMPDIR": os.devnull}
    done = subprocess.run(["sh", str(ROOT / "ci" / "install.sh")], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("council is there already")


# What the page shows


@pytest.mark.behaviour("50-ci-action")
def test_the_workflow_on_the_page_speaks_of_inputs_and_outputs_that_there_are() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    action: Job = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    workflow: Job = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (step,) = (step for step in workflow["jobs"]["review"]["steps"] if step.get("id") == "council")
    assert set(step["with"]) <= set(action["inputs"])
    assert set(re.findall(r"steps\.council\.outputs\.([\w-]+)", page)) <= set(action["outputs"])
    assert workflow[True] == "pull_request"  # YAML reads the word "on" so
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in page
    variables = set(re.findall(r"COUNCIL_[A-Z_]+", page))
    told = (ROOT / "ci" / "review.sh").read_text(encoding="utf-8").partition("\nset ")[0]
    assert variables <= set(re.findall(r"COUNCIL_[A-Z_]+", told))


@pytest.mark.behaviour("50-ci-pre-push")
@pytest.mark.parametrize("strict", [False, True])
def test_without_a_member_of_ones_own_nothing_is_reviewed_and_nobody_pretends(
    hooked: Court, checkout: Path, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNCIL_CONFIG")
    git(checkout, "config", "council.strict", str(strict).lower())
    done = push(checkout, "feature")
    assert "nothing was reviewed, no member can be called here" in done.stderr
    assert (done.returncode != 0) == strict
    assert hooked.provider.log == []
