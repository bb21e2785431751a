"""Check a release: the state of the repository, the sdist, the wheel, their sums and a signature. Uploads nothing.

    python scripts/release.py                 # dry run: build into a temporary folder, check the files, remove them
    python scripts/release.py --write dist    # a release: also refuse what is not ready, and keep the files in dist/

RELEASING.md has the steps.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^## \[(?P<title>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?$\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)  # fmt: skip
PLACEHOLDER = re.compile(r"/OWNER/")
SUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """A step failed, so the later steps cannot run."""


@dataclass(frozen=True)
class State:
    version: str
    problems: list[str]  # wrong at any time
    todo: list[str]  # has to be done before a release


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the output of a command, or raise ReleaseError with its last line."""
    try:
        done = subprocess.run(command, cwd=cwd or ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    except FileNotFoundError:
        raise ReleaseError(f'"{command[0]}" not found: install it') from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise ReleaseError(f"`{' '.join(map(str, command))}` failed: {said[-1]}")
    return done.stdout


# State


def read_version() -> str:
    found = re.search(r'^__version__ = "([^"]+)"$', (ROOT / "src/council/version.py").read_text("utf-8"), re.MULTILINE)
    if not found:
        raise ReleaseError("src/council/version.py has no __version__")
    return found[1]


def check_state() -> State:
    version = read_version()
    problems, todo = check_changelog(version)
    if changed := run("git", "status", "--porcelain").splitlines():
        problems.append(f"{len(changed)} uncommitted files, such as {changed[0][3:]}: commit or remove them")
    listed = json.loads((ROOT / "server.json").read_text("utf-8"))
    versions = {listed["version"], *(package["version"] for package in listed["packages"])}
    if versions != {version}:
        problems.append(f"server.json has the version {', '.join(sorted(versions))}: set {version}")
    if f"v{version}" not in run("git", "tag", "--points-at", "HEAD").split():
        todo.append(f"tag this commit: git tag -s v{version}")
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    if not urls or any(PLACEHOLDER.search(f"{url}/") for url in urls.values()):
        todo.append("replace OWNER by the address of the repository: see RELEASING.md")
    return State(version, problems, todo)


def check_changelog(version: str) -> tuple[list[str], list[str]]:
    """Return what is wrong with the changelog, and what it needs before a release."""
    sections = [found.groupdict() for found in SECTION.finditer((ROOT / "CHANGELOG.md").read_text("utf-8"))]
    unreleased = next((section["body"].strip() for section in sections if section["title"] == "Unreleased"), "")
    newest = next((section for section in sections if section["title"] != "Unreleased"), None)
    problems, todo = [], []
    if unreleased:
        todo.append(f"move the lines under Unreleased in CHANGELOG.md to a section of the new version, and set it in src/council/version.py ({version} now)")  # fmt: skip
    elif newest is None or newest["title"] != version:
        problems.append(f"CHANGELOG.md has no section of {version} and nothing under Unreleased: add one")
    if newest and newest["title"] == version and not newest["day"]:
        problems.append(f"the section of {version} in CHANGELOG.md has no date")
    return problems, todo


# Files


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, so that both are known to be complete.

    The same commit gives the same bytes.
    """
    env = {**os.environ, "SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").strip()}
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, env=env)
    (sdist,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist) as archive:
            archive.extractall(place, filter="data")
        (sources,) = Path(place).iterdir()
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=sources, env=env)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> str:
    """Compare the files of the sdist and of the wheel with those of the repository."""
    tracked = set(filter(None, run("git", "ls-files", "-z").split("\0")))
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    compare(sdist.name, packed, tracked | {"PKG-INFO"})
    sources = {name.removeprefix("src/") for name in tracked if name.startswith("src/council/")}
    skill = {name.replace("skills/council", "council/data/skill") for name in tracked if name.startswith("skills/council/")}  # fmt: skip
    with zipfile.ZipFile(wheel) as wheel_file:
        installed = {name for name in wheel_file.namelist() if ".dist-info/" not in name}
    compare(wheel.name, installed, sources | skill)
    return f"{len(packed)} files in the sdist, {len(installed)} in the wheel"


def compare(archive: str, names: set[str], expected: set[str]) -> None:
    for problem, different in (("lacks", expected - names), ("has the unexpected file", names - expected)):
        if different:
            raise ReleaseError(f"{archive} {problem} {min(different)} ({len(different)} in total)")


def check_metadata(sdist: Path, wheel: Path, version: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        written = Parser().parsestr(archive.read(name).decode())
        points = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
        has_license = name.replace("METADATA", "licenses/LICENSE") in archive.namelist()
    wrong = [*find_metadata_problems(written, version)]
    wrong += ["no license file"] * (not has_license)
    wrong += ["no command council"] * ("\ncouncil = " not in points)
    if wrong:
        raise ReleaseError(f"{wheel.name}: {'; '.join(wrong)}")
    if importlib.util.find_spec("twine"):
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
        return "complete, and `twine check` passed"
    return "complete; twine is not installed, so the description was not rendered"


def find_metadata_problems(written: Message, version: str) -> Iterable[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    expected = {
        "Name": project["name"], "Version": version, "Summary": project["description"],
        "Requires-Python": project["requires-python"], "License-Expression": project["license"],
        "Description-Content-Type": "text/markdown",
    }  # fmt: skip
    yield from (f"{key} is {written[key]!r}, not {value!r}" for key, value in expected.items() if written[key] != value)
    lists = {
        "Classifier": set(project["classifiers"]),
        "Project-URL": {f"{name}, {url}" for name, url in project["urls"].items()},
    }
    yield from (f"{key} differs from pyproject.toml" for key, rows in lists.items() if set(written.get_all(key) or []) != rows)  # fmt: skip
    if not str(written.get_payload()).startswith("# "):
        yield "no description"


def check_installation(wheel: Path, version: str) -> str:
    """Install the wheel into a new virtual environment.

    Its dependencies are those of this one: nothing is downloaded.
    """
    with tempfile.TemporaryDirectory() as place:
        run(sys.executable, "-m", "venv", "--without-pip", place)
        pip = [sys.executable, "-m", "pip", "--python", place, "--quiet", "--disable-pip-version-check"]
        run(*pip, "install", "--no-deps", "--no-index", wheel)
        (packages,) = Path(place).glob("lib/*/site-packages")
        folders = [name for name in sys.path if Path(name).name in ("site-packages", "dist-packages")]
        (packages / "dependencies.pth").write_text("\n".join([*folders, ""]), encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        said = run(Path(place, "bin", "council"), "--version", cwd=Path(place), env=env).strip()
        loaded = run(Path(place, "bin", "python"), "-c", "import council; print(council.__file__)", cwd=Path(place), env=env).strip()  # fmt: skip
        if said != f"council {version}" or not Path(loaded).resolve().is_relative_to(Path(place).resolve()):
            raise ReleaseError(f'the installed wheel printed "{said}" from {loaded}')
    return said


# Sums and signature


def write_sums(files: Iterable[Path], folder: Path) -> Path:
    rows = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / SUMS).write_text("".join(rows), encoding="utf-8")
    return folder / SUMS


def sign(sums: Path, *, dry_run: bool) -> str:
    """Sign the sums with gpg or sigstore, and say in one line how, or what is missing."""
    if shutil.which("gpg") and "sec:" in run("gpg", "--batch", "--list-secret-keys", "--with-colons"):
        quiet = ["--pinentry-mode", "error"] if dry_run else []  # a dry run asks for no passphrase
        signature = sums.with_suffix(".asc")
        try:
            run("gpg", "--yes", *quiet, "--armor", "--output", signature, "--detach-sign", sums)
            run("gpg", "--batch", "--verify", signature, sums)
        except ReleaseError as error:
            return f"no: {error}"
        return f"{signature.name}, by gpg"
    if shutil.which("sigstore"):
        if dry_run:
            return "not in a dry run; --write signs with sigstore"
        bundle = sums.with_name(f"{SUMS}.sigstore.json")
        try:
            run("sigstore", "sign", "--bundle", bundle, sums)
        except ReleaseError as error:
            return f"no: {error}"
        return f"{bundle.name}, by sigstore"
    return "no: gpg has no secret key, and sigstore is not installed"


# The command


def make(folder: Path, version: str, *, dry_run: bool) -> None:
    sdist, wheel = build(folder)
    print("built:    ", ", ".join(f"{file.name} ({file.stat().st_size / 1e6:.1f} MB)" for file in (sdist, wheel)))
    print("contents: ", check_contents(sdist, wheel))
    print("metadata: ", check_metadata(sdist, wheel, version))
    print("installed:", check_installation(wheel, version))
    sums = write_sums((sdist, wheel), folder)
    print("signed:   ", sign(sums, dry_run=dry_run))
    print(sums.read_text(encoding="utf-8"), end="")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Check, build and sign a release. Uploads nothing.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--dry-run", action="store_true", help="build into a temporary folder and remove it (the default)"
    )
    mode.add_argument("--write", type=Path, metavar="FOLDER", help="refuse what is not ready, and keep the files in FOLDER")  # fmt: skip
    return parser


def main(arguments: list[str] | None = None) -> int:
    folder: Path | None = make_parser().parse_args(arguments).write
    try:
        state = check_state()
        print("version:  ", state.version)
        for problem in state.problems:
            print("problem:  ", problem)
        for step in state.todo:
            print("to do:    ", step)
        if folder is None:
            with tempfile.TemporaryDirectory() as place:
                make(Path(place), state.version, dry_run=True)
            print("Dry run: nothing was kept or uploaded.")
            return 1 if state.problems else 0
        if state.problems or state.todo:
            raise ReleaseError("not ready for a release: see above")
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ReleaseError(f'"{folder}" is not empty: remove its files')
        make(folder, state.version, dry_run=False)
        print(f"The files are in {folder}. Nothing was uploaded.")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
