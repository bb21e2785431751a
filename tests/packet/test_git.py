"""Safe git calls: no repository can make git run a program, read other files or write."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from council.errors import UsageError
from council.packet import build
from council.packet import git as packet_git
from council.packet.lookups import look
from council.packet.targets import has_changes
from tests.packet.conftest import commit, git, write


def configure(repo: Path, canary: Path, settings: dict[str, str]) -> None:
    script = repo.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    script.chmod(0o755)
    for name, value in settings.items():
        git(repo, "config", name, value.format(evil=script, folder=repo.parent))


def call_everything(repo: Path) -> None:
    for target in ("", "recent", "staged", "HEAD~1..HEAD", "src", "src/*.py", "the auth system"):
        build(target, repo, task="validate")
    build("", repo, task="validate", base="HEAD~1")
    look(repo, {"files": ["src/app.py"], "names": ["app"], "patterns": ["x.*1"]})
    has_changes(repo)


HOSTILE = {
    "fsmonitor": {"core.fsmonitor": "{evil}"},
    "external diff": {"diff.external": "{evil}"},
    "diff driver": {"diff.bad.command": "{evil}"},
    "textconv": {"diff.bad.textconv": "{evil}", "diff.bad.cachetextconv": "true"},
    "clean filter": {"filter.bad.clean": "{evil}", "filter.bad.smudge": "{evil}", "filter.bad.required": "true"},
    "process filter": {"filter.bad.process": "{evil}", "filter.bad.required": "true"},
    "filter with an equals sign": {"filter.a=b.clean": "{evil}", "filter.a=b.required": "true"},
    "pager": {"core.pager": "{evil}", "pager.diff": "{evil}", "pager.ls-files": "{evil}"},
    "ssh": {"core.sshCommand": "{evil}", "core.gitProxy": "{evil}", "core.askPass": "{evil}"},
    "hooks": {"core.hooksPath": "{folder}/hooks"},
    "signatures": {"gpg.program": "{evil}", "log.showSignature": "true"},
}  # fmt: skip


@pytest.mark.behaviour("packet-git-hostile-config")
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_configuration_runs_no_program(kind: str, history: Callable[[int], Path], tmp_path: Path) -> None:
    repo, canary = history(4), tmp_path / "canary"
    commit(repo, {".gitattributes": "*.py diff=bad filter=bad\n*.md filter=a=b\n"})
    configure(repo, canary, HOSTILE[kind])
    hooks = tmp_path / "hooks"
    for folder in (hooks, repo / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
            shutil.copy(tmp_path / "evil.sh", folder / hook)
    write(repo, {"src/app.py": "x = 12\n", "README.md": "# New\n", "src/new.py": "y = 1\n"})
    os.utime(repo / "src/step1.py", (1, 1))  # git would refresh its index
    call_everything(repo)
    assert not canary.exists()
    assert "+x = 12" in build("", repo, task="validate").diff


@pytest.mark.behaviour("packet-git-hostile-config")
@pytest.mark.parametrize("url", ["ext::{evil}", "file://{folder}", "ssh://host/{folder}"])
def test_missing_object_is_not_fetched(url: str, history: Callable[[int], Path], tmp_path: Path) -> None:
    repo, canary = history(4), tmp_path / "canary"
    settings = {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": url, "remote.origin.uploadpack": "{evil}", "protocol.ext.allow": "always",
        "protocol.file.allow": "always", "core.sshCommand": "{evil}",
    }  # fmt: skip
    oid = git(repo, "rev-parse", "HEAD:src/step3.py").strip()
    configure(repo, canary, settings)
    (repo / ".git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(UsageError, match="git failed"):
        build("HEAD~2..HEAD", repo, task="validate")
    assert not canary.exists()


@pytest.mark.behaviour("packet-git-hostile-config")
def test_redirected_work_tree_shows_no_other_files(repo: Path, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/README.md": "private thoughts\n"})
    git(repo, "config", "core.worktree", str(tmp_path / "elsewhere"))
    packet = build("", repo, task="validate")
    assert "private thoughts" not in str(packet)


@pytest.mark.behaviour("packet-git-environment")
def test_git_variables_of_the_caller_are_dropped(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    configure(repo, canary, {})
    evil = str(tmp_path / "evil.sh")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_ASKPASS"):
        monkeypatch.setenv(name, evil)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    write(repo, {"src/app.py": "x = 2\n"})
    assert "+x = 2" in build("", repo, task="validate").diff
    assert not canary.exists() and not (tmp_path / "trace").exists()


@pytest.mark.behaviour("packet-git-hostile-ref")
@pytest.mark.parametrize(
    "ref",
    [
        "--output=x",
        "-Oevil",
        "--ext-diff",
        "nope",
        "HEAD:README.md",
        "HEAD~99",
        "@{-9}",
        "a b",
        "",
        "--end-of-options",
        "--upload-pack=x",
    ],
)
def test_hostile_or_unknown_ref_is_a_one_line_error(ref: str, repo: Path) -> None:
    with pytest.raises(UsageError) as error:
        build("", repo, task="validate", base=ref)
    assert "revision" in str(error.value) and "\n" not in str(error.value)
    assert not (repo / "x").exists()


@pytest.mark.behaviour("packet-git-hostile-ref")
@pytest.mark.parametrize(
    "span", ["--output=x..HEAD", "HEAD..--output=x", "nope..HEAD", "HEAD..nope", "--output=x...HEAD"]
)
def test_hostile_range_is_a_one_line_error(span: str, repo: Path) -> None:
    with pytest.raises(UsageError, match="revision"):
        build(span, repo, task="validate")
    assert not (repo / "x").exists()


@pytest.mark.behaviour("packet-git-none")
@pytest.mark.parametrize("target", ["recent", "staged", "main..HEAD"])
def test_git_targets_outside_a_repository_are_rejected(target: str, root: Path) -> None:
    with pytest.raises(UsageError, match="needs a git repository, but this folder is not in one"):
        build(target, root, task="validate")


@pytest.mark.behaviour("packet-git-none")
def test_without_a_repository_files_and_folders_still_work(root: Path) -> None:
    write(root, {"src/a.py": "a = 1\n", "src/deep/b.py": "b = 1\n", "node_modules/x.js": "x"})
    assert [file.path for file in build("src/", root, task="validate").files] == ["src/a.py", "src/deep/b.py"]
    assert [file.path for file in build("src/*.py", root, task="validate").files] == ["src/a.py"]
    assert [file.path for file in build(".", root, task="validate").files] == ["src/a.py", "src/deep/b.py"]
    assert build("", root, task="validate").note == "no changes to review"
    assert not has_changes(root)


def test_missing_git_program_is_a_one_line_error(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git cannot be started"):
        build("recent", repo, task="validate")


def test_hanging_git_is_killed(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(packet_git, "GIT_TIMEOUT_S", 0.3)
    with pytest.raises(UsageError, match="git took longer"):
        build("recent", repo, task="validate")


def test_git_with_too_much_output_is_killed(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec yes\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(UsageError, match="over 16 MB"):
        build("recent", repo, task="validate")


@pytest.mark.parametrize(
    "setting", ["diff.noprefix", "diff.mnemonicPrefix", "color.ui", "diff.relative", "diff.suppressBlankEmpty"]
)
def test_a_diff_looks_the_same_under_every_configuration(setting: str, repo: Path) -> None:
    write(repo, {"src/app.py": "x = 2\n"})
    before = build("", repo, task="validate").diff
    git(repo, "config", setting, "always" if setting == "color.ui" else "true")
    assert build("", repo, task="validate").diff == before
    assert before.startswith("diff --git a/src/app.py b/src/app.py\n")


def test_broken_repository_is_a_one_line_error(root: Path) -> None:
    write(root, {".git/HEAD": "nonsense", "a.py": "a = 1\n"})
    with pytest.raises(UsageError) as error:
        build("recent", root, task="validate")
    assert "\n" not in str(error.value)
    assert [file.path for file in build(".", root, task="validate").files] == ["a.py"]


def test_linked_work_tree_works_like_any_repository(history: Callable[[int], Path], tmp_path: Path) -> None:
    repo = history(4)
    git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    write(tmp_path / "other", {"src/app.py": "x = 2\n"})
    assert "+x = 2" in build("", tmp_path / "other", task="validate").diff
    assert not has_changes(repo)


def test_a_submodule_is_not_entered(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "inner")
    commit(tmp_path / "inner", {"a.py": "a = 1\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "inner"), "inner")
    commit(repo, {})
    canary = tmp_path / "canary"
    configure(repo / "inner", canary, {"core.fsmonitor": "{evil}", "filter.bad.clean": "{evil}"})
    write(repo, {"inner/a.py": "a = 2\n", "inner/.gitattributes": "* filter=bad\n"})
    call_everything(repo)
    assert not canary.exists()


@pytest.mark.behaviour("packet-git-stream")
def test_output_is_read_as_it_arrives_and_git_ends_with_the_reader(history: Callable[[int], Path]) -> None:
    repo = packet_git.find_history(history(3))
    assert repo
    args = ("log", "-z", "--format=%s%x00%an")
    assert list(repo.stream(*args)) == [b"change", b"Ada"] * 4
    stream = repo.stream(*args)
    assert next(stream) == b"change"
    stream.close()
    assert list(stream) == []
    with pytest.raises(packet_git.GitFailed, match="git failed: "):
        list(repo.stream("log", "--format=%s", "no-such-branch", "--"))


@pytest.mark.behaviour("packet-git-stream")
def test_a_history_is_found_in_a_work_tree_and_in_a_bare_repository(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    commits = [found.list_commits(5) for place in (repo / "src", tmp_path / "bare.git") if (found := packet_git.find_history(place))]  # fmt: skip
    assert len(commits) == 2
    assert commits[0] == commits[1] != []
    assert packet_git.find_history(tmp_path) is None
