"""CI scripts besides the action: the GitLab job, the pre-push hook and the installation."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion
from tests.fork_server import command_path
from tests.packet.conftest import commit, git
from tests.paths import ROOT

BUG = finding("critical", "src/auth/jwt.py:2", "Every token is accepted.", quote="return True")
Job = dict[str, Any]
SCRIPTS = sorted(path for path in (ROOT / "ci").iterdir() if path.suffix != ".yml")


# Linting


@pytest.mark.behaviour("50-ci-scripts")
@pytest.mark.parametrize("path", SCRIPTS, ids=[path.name for path in SCRIPTS])
def test_every_script_passes_shellcheck_and_stops_at_the_first_error(path: Path) -> None:
    subprocess.run(["shellcheck", "-x", str(path)], cwd=ROOT, env={**os.environ, "PATH": command_path()}, check=True)
    text = path.read_text(encoding="utf-8")
    if path.name != "common.sh":
        assert text.startswith("#!/bin/sh\n")
        assert "\nset -eu" in text
        assert os.access(path, os.X_OK)


# GitLab


@pytest.fixture
def job(checkout: Path) -> Job:
    """The shipped job, with the folder ci/ copied into the repository."""
    shutil.copytree(ROOT / "ci", checkout / "ci")
    found: Job = yaml.safe_load((checkout / "ci" / "gitlab.yml").read_text(encoding="utf-8"))["council"]
    return found


def run_job(job: Job, checkout: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of the job in one shell with the variables of a merge request."""
    known = {
        "CI_PROJECT_DIR": str(checkout), "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(checkout, "rev-parse", "origin/main").strip(),
        "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "shop/shop", "CI_MERGE_REQUEST_PROJECT_PATH": "shop/shop",
    }  # fmt: skip
    named = {name: Template(value).substitute(known) for name, value in job["variables"].items()}
    lines = "\n".join([*job["before_script"], *job["script"]])
    env = {**os.environ, "PATH": command_path(), "TMPDIR": str(tmp_path), **known, **named}
    return subprocess.run(
        ["sh", "-ec", lines], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.behaviour("50-ci-gitlab")
def test_the_gitlab_job_reviews_a_merge_request(
    judges: JudgesWorkspace, job: Job, checkout: Path, tmp_path: Path
) -> None:
    judges.judge_answers.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    done = run_job(job, checkout, tmp_path)
    assert done.returncode == 10, done.stderr
    assert "## Council Consensus: FAIL" in done.stdout
    assert all((checkout / path).is_file() for path in job["artifacts"]["paths"])
    failures = ElementTree.parse(checkout / job["artifacts"]["reports"]["junit"]).getroot().findall(".//failure")
    assert any("Every token is accepted." in "".join([*one.attrib.values(), one.text or ""]) for one in failures)
    assert job["allow_failure"] == {"exit_codes": [3]}


def test_a_second_review_into_the_same_folder_leaves_nothing_of_the_first(
    judges: JudgesWorkspace, job: Job, checkout: Path, tmp_path: Path
) -> None:
    job["variables"] |= {"COUNCIL_BASE": "nowhere", "COUNCIL_OUT": str(tmp_path / "out")}
    for _ in range(2):
        assert run_job(job, checkout, tmp_path).returncode == 2
    assert (tmp_path / "out" / "outputs").read_text() == "verdict=none\n"
    assert (tmp_path / "out" / "summary.md").read_text().count("## Council") == 1


# Pre-push hook


@pytest.fixture
def hooked(judges: JudgesWorkspace, checkout: Path) -> JudgesWorkspace:
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    shutil.copy(ROOT / "ci" / "pre-push", hooks / "pre-push")
    return judges


def push(checkout: Path, *refs: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": command_path(), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", "push", "origin", *refs], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120)  # fmt: skip


def remote_heads(checkout: Path) -> list[str]:
    return git(checkout, "ls-remote", "--heads", "origin").split()[1::2]


@pytest.mark.behaviour("50-ci-pre-push")
def test_a_fail_stops_the_push_and_a_pass_lets_it_through(hooked: JudgesWorkspace, checkout: Path) -> None:
    hooked.judge_answers.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    stopped = push(checkout, "feature")
    assert stopped.returncode != 0
    assert "Every token is accepted." in stopped.stderr + stopped.stdout
    assert "nothing was pushed" in stopped.stderr
    assert remote_heads(checkout) == ["refs/heads/main"]
    prompt = hooked.provider.log[0].prompt
    assert "src/auth/jwt.py" in prompt
    assert "src/api/routes.py" not in prompt  # already on the remote
    hooked.judge_answers.said = {}
    commit(checkout, {"src/auth/jwt.py": "def check(token, key):\n    return token == key\n"})
    passed = push(checkout, "feature")
    assert passed.returncode == 0, passed.stderr
    assert remote_heads(checkout) == ["refs/heads/feature", "refs/heads/main"]


@pytest.mark.behaviour("50-ci-pre-push")
def test_an_unclear_result_is_reported_and_stops_the_push_only_in_strict_mode(
    hooked: JudgesWorkspace, checkout: Path
) -> None:
    (checkout / ".git" / "config.council").write_text("[council]\n\tstrict = true\n", encoding="utf-8")
    git(checkout, "config", "include.path", "config.council")
    git(checkout, "config", "council.failOn", "worse")
    stopped = push(checkout, "feature")
    assert (stopped.returncode != 0, "not a clear PASS (council exit code 2)" in stopped.stderr) == (True, True)
    git(checkout, "config", "council.strict", "false")
    passed = push(checkout, "feature")
    assert (passed.returncode, "not a clear PASS (council exit code 2)" in passed.stderr) == (0, True)


@pytest.mark.behaviour("50-ci-pre-push")
def test_a_branch_that_is_deleted_is_not_reviewed(hooked: JudgesWorkspace, checkout: Path) -> None:
    git(checkout, "push", "-q", "--no-verify", "origin", "feature")
    assert push(checkout, "--delete", "feature").returncode == 0
    assert hooked.provider.log == []


# pre-commit

HOOKS_FILE = ROOT / ".pre-commit-hooks.yaml"


@pytest.mark.behaviour("issue-18-pre-commit")
def test_the_hooks_follow_the_format_and_stop_only_at_the_gate(judges: JudgesWorkspace, checkout: Path) -> None:
    from pre_commit.clientlib import load_manifest

    hooks = {hook["id"]: hook for hook in load_manifest(str(HOOKS_FILE))}
    assert {name: hook["stages"] for name, hook in hooks.items()} == {"council-push": ["pre-push"], "council-commit": ["pre-commit"]}  # fmt: skip
    assert all(not hook["pass_filenames"] and hook["language"] == "python" for hook in hooks.values())
    judges.judge_answers.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    refs = {"PRE_COMMIT_FROM_REF": "origin/main", "PRE_COMMIT_TO_REF": "HEAD"}
    for hook, more, code, words in (
        (hooks["council-push"], refs, 1, "Every token is accepted."),
        (hooks["council-push"], {}, 0, "there is no remote commit to compare with"),
        (hooks["council-commit"] | {"args": ["--fail-on", "worse"]}, {}, 0, "worse"),
    ):
        command = [*shlex.split(hook["entry"]), *hook["args"]]
        env = {**os.environ, "PATH": command_path(), **more}
        done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, words in done.stdout + done.stderr) == (code, True), done.stderr
    assert "src/api/routes.py" not in judges.provider.log[0].prompt  # already on the remote


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-pre-commit")
def test_real_pre_commit_installs_the_hook_and_runs_it_at_a_push(
    judges: JudgesWorkspace, checkout: Path, tmp_path: Path
) -> None:
    source = tmp_path / "council"
    for name in ("src", "skills"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, source / name)
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "council")
    here = subprocess.run([sys.executable, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True)  # fmt: skip
    env = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "hooks"), "PYTHONPATH": here.stdout.strip()}
    env |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_IGNORE_INSTALLED": "1"}  # as in the test below
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com"}
    run = [sys.executable, "-m", "pre_commit"]
    revision = git(source, "rev-parse", "HEAD").strip()
    config = {"repos": [{"repo": str(source), "rev": revision, "hooks": [{"id": "council-push"}]}]}
    (checkout / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    subprocess.run([*run, "install", "--hook-type", "pre-push", "--install-hooks"], cwd=checkout, env=env, check=True)
    judges.judge_answers.said = {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    for verdict in ("FAIL", "PASS"):
        judges.judge_answers.said = (
            {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)} if verdict == "FAIL" else {}
        )
        done = subprocess.run(["git", "push", "origin", "feature"], cwd=checkout, env=env, capture_output=True, text=True, check=False)  # fmt: skip
        assert (done.returncode != 0) == (verdict == "FAIL"), done.stdout + done.stderr
        assert ("Every token is accepted." in done.stdout) == (verdict == "FAIL")
    assert remote_heads(checkout) == ["refs/heads/feature", "refs/heads/main"]


# Installing


@pytest.mark.behaviour("50-ci-scripts")
def test_it_installs_its_own_sources_in_a_separate_environment(tmp_path: Path) -> None:
    path_file = tmp_path / "path"
    plain = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not Path(part, "council").exists())
    here = subprocess.run([sys.executable, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True)  # fmt: skip
    env = {
        **os.environ,
        "PATH": plain,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_PATH": str(path_file),
        "PYTHONPATH": here.stdout.strip(),
    }
    env |= {
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_IGNORE_INSTALLED": "1",
    }  # pip inverts NO_BUILD_ISOLATION
    done = subprocess.run(["sh", str(ROOT / "ci" / "install.sh")], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("council ")
    place = tmp_path / "council-venv"
    assert path_file.read_text(encoding="utf-8") == f"{place}/bin\n"
    assert list(place.glob("lib/*/site-packages/council/data/skill/SKILL.md"))


@pytest.mark.behaviour("50-ci-scripts")
def test_an_installed_council_is_reused() -> None:
    env = {**os.environ, "PATH": command_path(), "TMPDIR": os.devnull}
    done = subprocess.run(["sh", str(ROOT / "ci" / "install.sh")], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("council is already installed")


# Documentation


@pytest.mark.behaviour("50-ci-action")
def test_the_documented_workflow_uses_existing_inputs_and_outputs() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    action: Job = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    workflow: dict[Any, Any] = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    (step,) = (step for step in workflow["jobs"]["review"]["steps"] if step.get("id") == "council")
    assert set(step["with"]) <= set(action["inputs"])
    assert set(re.findall(r"steps\.council\.outputs\.([\w-]+)", page)) <= set(action["outputs"])
    assert workflow[True] == "pull_request"  # YAML parses the key "on" as true
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in page
    variables = set(re.findall(r"COUNCIL_[A-Z_]+", page))
    header = (ROOT / "ci" / "review.sh").read_text(encoding="utf-8").partition("\nset ")[0]
    assert variables <= set(re.findall(r"COUNCIL_[A-Z_]+", header))


@pytest.mark.behaviour("50-ci-pre-push")
@pytest.mark.parametrize("strict", [False, True])
def test_without_an_available_member_nothing_is_reviewed_and_that_is_reported(
    hooked: JudgesWorkspace, checkout: Path, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNCIL_CONFIG")
    git(checkout, "config", "council.strict", str(strict).lower())
    done = push(checkout, "feature")
    assert "nothing was reviewed: no model is available" in done.stderr
    assert (done.returncode != 0) == strict
    assert hooked.provider.log == []
