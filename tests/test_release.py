"""The release script: what it checks, what it builds, and that it keeps and uploads nothing in a dry run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

import release
from council.version import __version__
from tests.packet.conftest import begin, commit, git
from tests.paths import ROOT

CHANGELOG = "# Changelog\n\n## [Unreleased]\n{unreleased}\n## [1.2.0] - 2026-11-16\n\n- One.\n\n## [1.1.0] - 2026-11-15\n\n- Two.\n"
READY = {
    "CHANGELOG.md": CHANGELOG.format(unreleased=""),
    "src/council/version.py": '"""Version."""\n\n__version__ = "1.2.0"\n',
    "server.json": json.dumps({"version": "1.2.0", "packages": [{"version": "1.2.0"}]}),
    "pyproject.toml": '[project.urls]\nRepository = "https://github.com/shop/council"\n',
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that state a version, ready for a release."""
    root = tmp_path / "repository"
    root.mkdir()
    begin(root, READY, "begin")
    git(root, "tag", "v1.2.0")
    monkeypatch.setattr(release, "ROOT", root)
    return root


def copy_checkout(place: Path) -> Path:
    """Copy the files of this repository into a new one, and commit them."""
    place.mkdir()
    names = filter(None, git(ROOT, "ls-files", "-z").split("\0"))
    for name in (name for name in names if (ROOT / name).is_file()):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)
    begin(place, {}, "begin")
    commit(place, {}, "copy")
    return place


def run_script(checkout: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "scripts/release.py"), *arguments]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


@pytest.mark.behaviour("release-dry-run")
def test_a_dry_run_builds_checks_and_installs_both_files_and_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    checkout = copy_checkout(tmp_path / "checkout")
    done = run_script(checkout, TMPDIR=str(tmp_path / "temp"), GNUPGHOME=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert f"version:   {__version__}" in lines
    assert f"installed: council {__version__}" in lines
    assert re.search(r"^contents:  \d+ files in the sdist, \d+ in the wheel$", done.stdout, re.MULTILINE)
    files = re.findall(r"^[0-9a-f]{64}  (\S+)$", done.stdout, re.MULTILINE)
    assert files == [f"model_council-{__version__}.tar.gz", f"model_council-{__version__}-py3-none-any.whl"]
    assert lines[-1] == "Dry run: nothing was kept or uploaded."
    assert list((tmp_path / "temp").iterdir()) == []
    assert git(checkout, "status", "--porcelain", "--ignored") == ""


@pytest.mark.sweep
@pytest.mark.behaviour("release-write")
def test_a_release_keeps_the_files_with_sums_and_a_signature_and_the_same_commit_gives_the_same_bytes(
    tmp_path: Path, keyring: Path
) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    changelog = (checkout / "CHANGELOG.md").read_text("utf-8")
    emptied = re.sub(r"(?<=^## \[Unreleased\]\n).*?(?=^## \[)", "\n", changelog, flags=re.MULTILINE | re.DOTALL)
    address = (checkout / "pyproject.toml").read_text("utf-8").replace("OWNER/council", "shop/council")
    commit(checkout, {"CHANGELOG.md": emptied, "pyproject.toml": address}, "prepare")
    git(checkout, "tag", f"v{__version__}")
    first = run_script(checkout, "--write", str(tmp_path / "dist"), GNUPGHOME=str(keyring))
    assert first.returncode == 0, first.stdout + first.stderr
    assert "signed:    SHA256SUMS.asc, by gpg" in first.stdout
    rows = (line.split("  ") for line in (tmp_path / "dist/SHA256SUMS").read_text().splitlines())
    sums = {name: value for value, name in rows}
    assert {name: hashlib.sha256((tmp_path / "dist" / name).read_bytes()).hexdigest() for name in sums} == sums
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == sorted(
        [*sums, "SHA256SUMS", "SHA256SUMS.asc"]
    )
    git(tmp_path, "clone", "-q", str(checkout), "clone")
    again = run_script(tmp_path / "clone", "--write", str(tmp_path / "again"), GNUPGHOME=str(tmp_path))
    assert again.returncode == 0, again.stdout + again.stderr
    assert (tmp_path / "again/SHA256SUMS").read_bytes() == (tmp_path / "dist/SHA256SUMS").read_bytes()


# State


@pytest.mark.behaviour("release-write")
def test_a_repository_that_is_ready_has_neither_problems_nor_steps_to_do(repository: Path) -> None:
    assert release.check_state() == release.State("1.2.0", [], [])


@pytest.mark.behaviour("release-dry-run")
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"notes.txt": "later\n"}, "1 uncommitted files, such as notes.txt: commit or remove them"),
        ({"server.json": json.dumps({"version": "1.1.0", "packages": []})}, "server.json has the version 1.1.0: set 1.2.0"),
        (
            {"src/council/version.py": '__version__ = "1.3.0"\n'},
            "CHANGELOG.md has no section of 1.3.0 and nothing under Unreleased: add one",
        ),
        (
            {"CHANGELOG.md": READY["CHANGELOG.md"].replace("1.2.0] - 2026-11-16", "1.2.0]")},
            "the section of 1.2.0 in CHANGELOG.md has no date",
        ),
    ],
)  # fmt: skip
def test_a_problem_of_the_state_is_named_with_its_remedy(
    repository: Path, changes: dict[str, str], problem: str
) -> None:
    for name, text in changes.items():
        (repository / name).write_text(text, encoding="utf-8")
    if "notes.txt" not in changes:
        git(repository, "commit", "-qam", "change")
    assert problem in release.check_state().problems


@pytest.mark.behaviour("release-write")
@pytest.mark.parametrize(
    ("name", "text", "step"),
    [
        ("CHANGELOG.md", CHANGELOG.format(unreleased="\n- Three.\n"), "move the lines under Unreleased"),
        ("pyproject.toml", '[project.urls]\nRepository = "https://github.com/OWNER/council"\n', "replace OWNER"),
        ("pyproject.toml", "[project]\n", "replace OWNER"),
        ("README.md", "new\n", "tag this commit: git tag -s v1.2.0"),
    ],
)
def test_a_release_that_is_not_ready_is_refused_and_builds_nothing(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, step: str
) -> None:
    commit(repository, {name: text}, "change")
    assert release.main(["--write", str(tmp_path / "dist")]) == 1
    printed = capsys.readouterr()
    assert step in printed.out
    assert printed.err == "release: not ready for a release: see above\n"
    assert not (tmp_path / "dist").exists()


@pytest.mark.behaviour("release-write")
def test_files_of_an_earlier_release_are_not_mixed_with_new_ones(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").touch()
    assert release.main(["--write", str(tmp_path / "dist")]) == 1
    assert "is not empty: remove its files" in capsys.readouterr().err


# Files


@pytest.mark.behaviour("release-dry-run")
def test_a_file_too_many_or_too_few_is_named() -> None:
    with pytest.raises(release.ReleaseError, match=r"^it\.whl lacks a\.py \(1 in total\)$"):
        release.compare("it.whl", {"b.py"}, {"a.py", "b.py"})
    with pytest.raises(release.ReleaseError, match=r"^it\.whl has the unexpected file key\.pem \(2 in total\)$"):
        release.compare("it.whl", {"a.py", "z.txt", "key.pem"}, {"a.py"})


def test_metadata_that_differs_from_the_project_is_named() -> None:
    problems = list(release.find_metadata_problems(Message(), __version__))
    assert "Name is None, not 'model-council'" in problems
    assert {"Classifier differs from pyproject.toml", "Project-URL differs from pyproject.toml", "no description"} <= set(problems)  # fmt: skip


# Signature


@pytest.fixture
def keyring() -> Iterator[Path]:
    """The folder of gpg with a new key. The path is short, because gpg puts a socket there."""
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    folder = Path(tempfile.mkdtemp(prefix="gpg-"))
    env = {**os.environ, "GNUPGHOME": str(folder)}
    key = ["--quick-generate-key", "Ada <ada@example.org>", "ed25519", "sign", "never"]
    subprocess.run(["gpg", "--batch", "--passphrase", "", *key], env=env, check=True, capture_output=True)
    yield folder
    subprocess.run(["gpgconf", "--kill", "all"], env=env, check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.behaviour("release-write")
def test_the_sums_are_signed_with_the_key_of_gpg(
    keyring: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", str(keyring))
    (tmp_path / "it.whl").write_bytes(b"wheel")
    sums = release.write_sums([tmp_path / "it.whl"], tmp_path)
    assert release.sign(sums, dry_run=True) == "SHA256SUMS.asc, by gpg"
    sums.write_text("changed\n")
    with pytest.raises(release.ReleaseError):
        release.run("gpg", "--batch", "--verify", tmp_path / "SHA256SUMS.asc", sums)


@pytest.mark.behaviour("release-dry-run")
def test_without_a_tool_one_line_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        release.sign(tmp_path / "SHA256SUMS", dry_run=True)
        == "no: gpg has no secret key, and sigstore is not installed"
    )
