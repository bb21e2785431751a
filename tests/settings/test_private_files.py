"""Private folders and files: how they are created, and the repair of those that other users can open."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from council.settings.private_files import (
    describe_changes,
    describe_failures,
    make_named_folder,
    make_private_folder,
    open_named_file,
    open_private_file,
    repair_folder,
)
from council.store.interface import StoreAddress
from council.store.shared import open_store
from tests.acceptance.helpers import Terminal, wait_for_exit
from tests.fork_server import Process
from tests.system_faults import DiskFault, start_with_fault


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def make_open(folder: Path, *files: str) -> Path:
    """Create a folder and files in it as an older version did with umask 022."""
    with umask(0o022):
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("text")
    return folder


@pytest.mark.behaviour("40-private-files")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o177, 0o277, 0o777], ids=oct)
def test_private_ignores_the_umask_and_named_follows_it(mask: int, tmp_path: Path) -> None:
    with umask(mask):
        make_private_folder(tmp_path / "own" / "reports")
        open_private_file(tmp_path / "own" / "a").close()
        make_named_folder(tmp_path / "named" / "plots")
        open_named_file(tmp_path / "named" / "a").close()
    assert [mode(tmp_path / name) for name in ("own", "own/reports", "own/a")] == [0o700, 0o700, 0o600]
    named = [mode(tmp_path / name) for name in ("named", "named/plots", "named/a")]
    folder_mode = 0o775 & ~mask | 0o700  # without the rights of its owner, nothing could be created in it
    assert named == [folder_mode, folder_mode, 0o664 & ~mask]


def test_a_folder_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    before = mode(tmp_path / "there")
    make_private_folder(tmp_path / "there")
    assert mode(tmp_path / "there") == before
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


# Repair


@pytest.mark.behaviour("40-private-files-repaired")
def test_open_folders_of_an_older_version_become_private_with_one_notice(tmp_path: Path, council: Terminal) -> None:
    home = tmp_path / "home"
    data = make_open(home / ".local/share/council", "reports/a.md", "evals/b.json", "council.db-checked", "worker.log")
    config = make_open(home / ".config/council", "keys.json", "presets/mine.txt")
    env: dict[str, Any] = dict.fromkeys(("COUNCIL_DATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"), "") | {
        "HOME": str(home),
        "COUNCIL_CACHE": str(tmp_path / "cache"),
    }
    done = wait_for_exit(Process(["list", "presets"], tmp_path / "work", trusts=False, **env))
    assert done.err == (
        f'council: other users could read what is in "{data}" and "{config}": 4 folders and 5 files are private now\n'
    )
    private = [data, data / "reports", data / "evals", config]
    files = [data / "reports/a.md", data / "evals/b.json", data / "worker.log", config / "keys.json"]
    assert [mode(path) for path in private] == [0o700] * 4
    assert [mode(path) for path in files] == [0o600] * 4
    assert mode(config / "presets/mine.txt") == 0o644, "the user wrote it"
    assert mode(home / ".config") == 0o755, "other programs use it"
    again = wait_for_exit(Process(["list", "presets"], tmp_path / "work", trusts=False, **env))
    assert (again.code, again.err) == (0, "")


@pytest.mark.behaviour("40-private-files-repaired")
@pytest.mark.parametrize("permissions", [0o1777, 0o755])
@pytest.mark.parametrize("content", [(), ("worker.log",), ("reports/2026-01-31-sales.md",)], ids=repr)
def test_a_named_folder_without_a_store_keeps_its_permissions(
    tmp_path: Path, permissions: int, content: tuple[str, ...]
) -> None:
    """It may be /tmp, or a project with reports of its own."""
    folder = make_open(tmp_path / "named", *content)
    folder.mkdir(exist_ok=True)
    folder.chmod(permissions)
    repair_folder(folder, is_named=True)
    assert mode(folder) == permissions
    assert all(mode(folder / name) == 0o644 for name in content if name != "worker.log")


@pytest.mark.behaviour("40-private-files-repaired")
def test_a_folder_for_all_users_is_never_closed(tmp_path: Path) -> None:
    folder = make_open(tmp_path / "named", "council.db", "worker.log")
    folder.chmod(0o1777)
    repair_folder(folder, is_named=True)
    assert (mode(folder), mode(folder / "council.db"), mode(folder / "worker.log")) == (0o1777, 0o600, 0o600)


@pytest.mark.behaviour("40-private-files-repaired")
def test_a_folder_that_the_user_named_keeps_its_permissions_if_it_has_other_things(tmp_path: Path) -> None:
    report = "reports/2026-11-01-review-login.md"
    folder = make_open(tmp_path / "documents", "letter.txt", "reports.txt", "council.db", report)
    repair = repair_folder(folder, is_named=True)
    assert (repair.folders, repair.files) == (1, 2)
    assert [mode(folder / name) for name in ("council.db", "reports", report)] == [0o600, 0o700, 0o600]
    assert [mode(path) for path in (folder, folder / "letter.txt", folder / "reports.txt")] == [0o755, 0o644, 0o644]
    (folder / "letter.txt").unlink()
    (folder / "reports.txt").unlink()
    assert repair_folder(folder, is_named=True).folders == 1
    assert mode(folder) == 0o700


@pytest.mark.behaviour("40-private-files-repaired")
def test_files_of_a_named_folder_that_may_be_the_users_are_left_alone(tmp_path: Path) -> None:
    names = (
        "letter.txt",
        "reports/site.html",
        "evals/data.csv",
        "servers/app.py",
        "worker.py",
        "council.dbml",
        "m.gguf",
    )
    folder = make_open(tmp_path / "home", *names, "reports/2026-11-01-review-login.md", "council.db")
    repair = repair_folder(folder, is_named=True)
    assert (repair.folders, repair.files) == (0, 1)
    assert {mode(folder / name) for name in names} == {0o644}


@pytest.mark.behaviour("40-private-files-repaired")
def test_a_file_with_another_name_elsewhere_is_left_alone(tmp_path: Path) -> None:
    theirs = make_open(tmp_path / "theirs", "notes.md")
    folder = make_open(tmp_path / "data", "locks/a.lock")
    os.link(theirs / "notes.md", folder / "trust.json")
    assert repair_folder(folder, is_named=False).files == 1
    assert mode(theirs / "notes.md") == 0o644


@pytest.mark.behaviour("40-private-files-repaired")
def test_no_link_is_followed(tmp_path: Path) -> None:
    theirs = make_open(tmp_path / "theirs", "a.md", "council.db")
    folder = make_open(tmp_path / "data", "locks/a.lock")
    (folder / "reports").symlink_to(theirs)
    (folder / "council.db").symlink_to(theirs / "council.db")
    (folder / "locks" / "b.lock").symlink_to(theirs / "a.md")
    assert (repair := repair_folder(folder, is_named=False)).failed == 0
    assert (repair.folders, repair.files) == (2, 1)
    assert [mode(path) for path in (theirs, theirs / "a.md", theirs / "council.db")] == [0o755, 0o644, 0o644]
    (tmp_path / "link").symlink_to(theirs)
    assert repair_folder(tmp_path / "link", is_named=False).folders == 0
    assert mode(theirs) == 0o755


@pytest.mark.behaviour("40-private-files-repaired")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_what_belongs_to_another_user_is_left_alone(tmp_path: Path) -> None:
    folder = make_open(tmp_path / "data", "council.db", "reports/a.md")
    os.chown(folder / "council.db", 12345, -1)
    os.chown(folder / "reports", 12345, -1)
    assert repair_folder(folder, is_named=False).files == 0
    assert [mode(folder / name) for name in ("council.db", "reports", "reports/a.md")] == [0o644, 0o755, 0o644]
    os.chown(folder, 12345, -1)
    folder.chmod(0o755)
    assert repair_folder(folder, is_named=False).folders == 0
    assert mode(folder) == 0o755


@pytest.mark.behaviour("40-private-files-repaired")
def test_a_file_system_without_permissions_is_one_notice_a_day_and_no_failure(tmp_path: Path) -> None:
    data = make_open(tmp_path / "data", "locks/a.lock")
    fault = DiskFault(data, first=1, count=0, error=errno.EPERM, operations=("chmod",))
    line = f'council: "{data}" cannot be made private, because the system refuses it: other users may read it\n'
    env: dict[str, Any] = {"COUNCIL_DATA": str(data), "COUNCIL_CACHE": str(tmp_path / "cache")}
    wait_for_exit(Process(["runs"], tmp_path / "work", **env))  # creates the store, by which the folder is known
    for expected in (line, ""):
        done = wait_for_exit(start_with_fault(fault, ["runs", "--json"], tmp_path / "work", **env))
        assert (done.code, json.loads(done.out), done.err) == (0, [], expected)


@pytest.mark.behaviour("40-private-files-repaired")
def test_a_program_that_uses_the_library_finds_the_notice_in_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = make_open(tmp_path / "data", "reports/a.md")
    with caplog.at_level(logging.WARNING, "council"):
        open_store(StoreAddress(data)).close()
        open_store(StoreAddress(data)).close()
    assert caplog.messages == [f'other users could read what is in "{data}": 2 folders and 1 file are private now']
    assert mode(data / "reports" / "a.md") == 0o600


@pytest.mark.behaviour("40-private-files-repaired")
def test_files_of_a_private_folder_are_repaired_without_a_notice(tmp_path: Path) -> None:
    folder = make_open(tmp_path / "data", "worker.log", "reports/a.md")
    folder.chmod(0o700)
    repair = repair_folder(folder, is_named=False)
    assert describe_changes([repair]) == "", "no other user could open them"
    assert [mode(folder / name) for name in ("worker.log", "reports", "reports/a.md")] == [0o600, 0o700, 0o600]


def test_one_change_is_worded_as_one(tmp_path: Path) -> None:
    repair = repair_folder(make_open(tmp_path / "data", "mine.txt", "worker.log"), is_named=True)
    assert describe_changes([repair]).endswith('data": 1 file is private now')
    assert describe_changes([]) == describe_failures([repair]) == ""
