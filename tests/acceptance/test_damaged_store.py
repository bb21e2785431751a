"""Damaged, foreign, newer and older databases: one clear line, no file is lost or overwritten, and repair saves what
it can.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from council.store.sqlite import MIGRATIONS
from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace

PAGE = 4096
Damage = Callable[[Path], object]


@pytest.fixture(autouse=True)
def private_files() -> Iterator[None]:
    """Let the tests write private files, as Council does: the repair of open ones would be another line."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def flip(position: int, bit: int = 0, suffix: str = "") -> Damage:
    """Flip one bit of the database, or of its log; a negative position counts from the end."""

    def damage(path: Path) -> None:
        file = path.with_name(path.name + suffix)
        content = bytearray(file.read_bytes())
        content[position] ^= 1 << bit
        file.write_bytes(content)

    return damage


def overwrite(position: int, content: bytes) -> Damage:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(position)
            file.write(content)

    return damage


def truncate(size: Callable[[int], int]) -> Damage:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.truncate(size(path.stat().st_size))

    return damage


def replace_by(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def make_foreign(version: int) -> Damage:
    """Put the database of another program in its place."""

    def damage(path: Path) -> None:
        path.unlink()
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE photos (id INTEGER PRIMARY KEY, place TEXT)")
            db.execute(f"PRAGMA user_version = {version}")
        db.close()

    return damage


def set_version(version: int) -> Damage:
    def damage(path: Path) -> None:
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA user_version = {version}")
        db.close()

    return damage


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "kept").touch()


def lose_file_with_log(path: Path) -> None:
    """Empty the main file of a database whose rows are still in its log."""
    keep_log(path)
    path.write_bytes(b"")


def keep_log(path: Path) -> None:
    """Leave the log of a process that was killed, with all rows."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = [table for table in tables if not table.startswith("search_index")]
    rows = {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    for table, found in rows.items():
        if not found:
            continue
        marks = ", ".join("?" * len(found[0]))
        db.execute(f"DELETE FROM {table}")
        db.executemany(f"INSERT INTO {table} VALUES ({marks})", found)
    files = {suffix: path.with_name(path.name + suffix).read_bytes() for suffix in ("", "-wal")}
    db.close()
    for suffix, content in files.items():
        path.with_name(path.name + suffix).write_bytes(content)


@dataclass(frozen=True)
class Case:
    """A damage, a part of the line that is printed about it, and whether repair brings back all runs."""

    damage: Damage
    line: str
    keeps_runs: bool = True
    is_repaired: bool = True


DAMAGED, OTHER = "is damaged (", "is a database of another program, and was not changed"
CASES = {
    "a bit of the file's mark": Case(flip(3), DAMAGED),
    "the page size": Case(flip(16, 3), DAMAGED),
    "the schema format": Case(flip(47, 4), DAMAGED),
    "the text encoding": Case(flip(59, 1), DAMAGED),
    "a smaller schema version": Case(set_version(0), DAMAGED),
    "the list of tables": Case(overwrite(100, bytes(PAGE - 100)), DAMAGED),
    "the whole first page": Case(overwrite(0, b"\xff" * PAGE), DAMAGED),
    "a page of events": Case(overwrite(4 * PAGE, b"\xff" * PAGE), DAMAGED, keeps_runs=False),
    "cut to one page less": Case(truncate(lambda size: size - PAGE), DAMAGED, keeps_runs=False),
    "cut to half": Case(truncate(lambda size: size // 2), DAMAGED, keeps_runs=False),
    "cut inside its header": Case(truncate(lambda size: 50), DAMAGED, keeps_runs=False),
    "empty, with its rows in the log": Case(lose_file_with_log, DAMAGED),
    "a text file": Case(replace_by(b"Not a database.\n" * 400), DAMAGED, keeps_runs=False),
    "only zeros": Case(replace_by(bytes(8 * PAGE)), DAMAGED, keeps_runs=False),
    "a folder": Case(make_folder, "is a folder: move it away", is_repaired=False),
    "another program's database": Case(make_foreign(0), OTHER, is_repaired=False),
    "another program's database with our version": Case(make_foreign(len(MIGRATIONS)), OTHER, is_repaired=False),
    "another program's database with a newer version": Case(make_foreign(99), OTHER, is_repaired=False),
    "a newer version": Case(set_version(len(MIGRATIONS) + 1), "was written by a newer council", is_repaired=False),
}


class Shelf:
    """A data folder with two finished runs, copied for each trial."""

    def __init__(self, workspace: Workspace, council: Terminal, folder: Path) -> None:
        self.workspace, self.council, self.saved, self.trials = workspace, council, folder, 0
        for _ in range(2):
            assert council("--quiet", "--protocol", "triad", QUESTION).code == 0
        self.runs = workspace.runs()
        workspace.data.rename(folder)

    @property
    def path(self) -> Path:
        return self.workspace.data / "council.db"

    def restore(self) -> None:
        """Copy the data folder to a new place, because a process checks a database once in ten minutes."""
        shutil.rmtree(self.workspace.data, ignore_errors=True)
        self.trials += 1
        os.environ["COUNCIL_DATA"] = str(self.saved.with_name(f"data-{self.trials}"))
        shutil.copytree(self.saved, self.workspace.data)

    def contents(self) -> set[bytes]:
        """Return the contents of the database, and of those that repair has kept."""
        files = [file for file in self.workspace.data.glob("council.db*") if not file.name.endswith("-shm")]
        return {file.read_bytes() for file in files if file.is_file()}

    def refuses(self, *arguments: str) -> str:
        """Run a command that has to print one line and send nothing. Return the line."""
        sent = len(self.workspace.provider.log)
        done = self.council(*arguments)
        check_line(done)
        assert len(self.workspace.provider.log) == sent
        return done.err


def check_line(done: Result) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1), done
    assert "internal error" not in done.err


@pytest.fixture
def shelf(workspace: Workspace, council: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("COUNCIL_DATA", os.environ["COUNCIL_DATA"])  # restored after the test
    return Shelf(workspace, council, tmp_path / "saved")


def check_case(shelf: Shelf, name: str) -> None:
    case = CASES[name]
    shelf.restore()
    case.damage(shelf.path)
    before = shelf.contents()
    said = shelf.refuses(QUESTION)
    assert case.line in said and str(shelf.path) in said, f"{name}: {said}"
    assert shelf.contents() == before, f"{name}: the file was changed"
    repaired = shelf.council("runs", "fsck", "--repair")
    assert before <= shelf.contents(), f"{name}: the file was lost"
    if not case.is_repaired:
        check_line(repaired)
        assert case.line in repaired.err and shelf.contents() == before, f"{name}: {repaired}"
        return
    assert "repaired: store: " in repaired.err and "internal error" not in repaired.err, f"{name}: {repaired}"
    if case.keeps_runs:
        assert (repaired.code, shelf.workspace.runs()) == (0, shelf.runs), f"{name}: {repaired}"
    assert shelf.council("--quiet", "--protocol", "triad", QUESTION).code == 0, name
    assert shelf.council("runs").code == 0, name


@pytest.mark.behaviour(
    "40-corrupt-database", "40-newer-database", "40-foreign-database", "40-damage-noticed", "40-repair"
)
def test_an_unusable_database_gives_one_line_and_is_never_lost(shelf: Shelf) -> None:
    for name in CASES:
        check_case(shelf, name)


@pytest.mark.behaviour("40-repair")
def test_a_linked_database_is_used_and_repaired_in_its_place(shelf: Shelf, tmp_path: Path) -> None:
    shelf.restore()
    file = tmp_path / "elsewhere" / "runs.db"
    file.parent.mkdir()
    shelf.path.rename(file)
    shelf.path.symlink_to(file)
    assert shelf.council("--quiet", "--protocol", "triad", QUESTION).code == 0
    lose_file_with_log(file)
    assert DAMAGED in shelf.refuses(QUESTION)
    assert shelf.council("runs", "fsck", "--repair").code == 0
    assert shelf.path.is_symlink() and len(shelf.workspace.runs()) == 3
    assert len(list(file.parent.glob("runs.db.damaged-*-wal"))) == 1


@pytest.mark.behaviour("40-corrupt-database", "40-repair")
def test_the_log_of_another_database_is_noticed_or_repaired(shelf: Shelf, tmp_path: Path) -> None:
    """SQLite cannot tell whose log it is, and applies it: the result is reported as damage, or is consistent."""
    other = tmp_path / "other"
    shutil.copytree(shelf.saved, other)
    with sqlite3.connect(other / "council.db", isolation_level=None) as db:
        db.execute("DELETE FROM events WHERE run = ?", (shelf.runs[0],))
        db.execute("VACUUM")
    db.close()
    keep_log(other / "council.db")
    shelf.restore()
    shutil.copyfile(other / "council.db-wal", shelf.path.with_name("council.db-wal"))
    for arguments in (("runs",), ("runs", "fsck"), ("--quiet", "--protocol", "triad", QUESTION)):
        done = shelf.council(*arguments)
        assert "internal error" not in done.err + done.out, done
        assert done.code == 0 or done.err.count("\n") <= 1, done
    shelf.council("runs", "fsck", "--repair")
    assert shelf.council("--quiet", "--protocol", "triad", QUESTION).code == 0


# Damage at random places


def damage_randomly(chance: random.Random, path: Path) -> str:
    """Change a few bits of the database or of its log. Return what was done."""
    if chance.random() < 0.3:
        keep_log(path)
    files = [path, *([log] if (log := path.with_name(f"{path.name}-wal")).exists() else [])]
    file = chance.choice(files)
    content = bytearray(file.read_bytes())
    start = chance.randrange(len(content) if chance.random() < 0.7 else 100)
    length = chance.choice((1, 1, 1, 4, 64, PAGE))
    for position in range(start, min(start + length, len(content))):
        content[position] ^= 1 << chance.randrange(8) if length == 1 else chance.randrange(1, 256)
    file.write_bytes(content)
    return f"{length} bytes of {file.name} from {start}"


def survive_damage(shelf: Shelf, seed: int) -> dict[str, int]:
    """Damage the database, use it, repair it and use it again. Return the figures of the trial."""
    chance = random.Random(seed)
    shelf.restore()
    what = f"seed {seed}: {damage_randomly(chance, shelf.path)}"
    before = shelf.path.read_bytes()
    for arguments in (
        ("runs",),
        ("show", shelf.runs[0]),
        ("runs", "fsck"),
        ("--quiet", "--protocol", "triad", QUESTION),
    ):
        done = shelf.council(*arguments)
        assert "internal error" not in done.err + done.out, f"{what}: {arguments}: {done}"
        assert done.code == 0 or done.err.count("\n") <= 1, f"{what}: {arguments}: {done}"
    repaired = shelf.council("runs", "fsck", "--repair")
    assert "internal error" not in repaired.err + repaired.out, f"{what}: {repaired}"
    if "was written by a newer council" in repaired.err:  # a bit of its version: it may be true
        assert shelf.path.read_bytes() == before, what
        return {"trials": 1, "taken_for_newer": 1}
    if "copied to a new database" in repaired.err:
        kept = [file for file in shelf.workspace.data.glob("council.db.damaged-*") if file.suffix != "-wal"]
        assert kept, what
    assert shelf.council("--quiet", "--protocol", "triad", QUESTION).code == 0, what
    checked = shelf.council("runs", "fsck")
    assert "internal error" not in checked.err + checked.out, f"{what}: {checked}"
    lost = len(set(shelf.runs) - set(shelf.workspace.runs()))
    return {
        "trials": 1,
        "noticed": int(before != shelf.path.read_bytes() and "repaired: " in repaired.err),
        "clean_after_repair": int(checked.code == 0),
        "runs_lost": lost,
    }


@pytest.mark.behaviour("40-corrupt-database", "40-repair")
def test_damage_at_random_places_never_ends_in_an_internal_error(shelf: Shelf) -> None:
    for seed in range(6):
        survive_damage(shelf, seed)


@pytest.mark.sweep
@pytest.mark.behaviour("40-corrupt-database", "40-repair")
def test_damage_at_many_random_places(shelf: Shelf, sweep_figures: Callable[..., None]) -> None:
    for seed in range(6, 406):
        sweep_figures("damaged-store", **survive_damage(shelf, seed))
