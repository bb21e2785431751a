"""Lists of runs, removal by rule, retention, and the places of reports."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from council.doors.cli.history_commands import format_runs
from council.render.text_layout import text_width
from council.runs.service import Convener
from council.store.interface import RunRow, list_fields
from council.store.sqlite import RunLock, SqliteStore
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, wait_for_exit, wait_until
from tests.doors.cli.terminal import TerminalProcess
from tests.fake_provider import Reply
from tests.trusted_project import trust_project

DAY = 86400
AddRun = Callable[..., str]


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore(Path(os.environ["COUNCIL_DATA"]))
    yield opened
    opened.close()


@pytest.fixture
def add_run(store: SqliteStore) -> AddRun:
    """Return a function that stores a run without making one."""

    def add(
        run: str, status: str = "complete", *, days: float = 0, folder: str = "", size: int = 0, **setup: Any
    ) -> str:
        about = {"protocol": "triad", "question": {"task": "ask", "text": f"Question {run}?"}, "material": "x" * size}
        row = (f"council-{run}", folder or str(Path.cwd()), time.time() - days * DAY, "seed", json.dumps(about | setup))
        rows: list[Any] = [("queue" if status == "queued" else "run", row)]
        if status not in ("queued", "running"):
            rows.append(("close", (status, "")))
        asyncio.run(store.write(run, rows))
        return run

    return add


def stored() -> set[str]:
    with sqlite3.connect(Path(os.environ["COUNCIL_DATA"]) / "council.db") as db:
        return {run for (run,) in db.execute("SELECT id FROM runs")}


def listed(council: Terminal, *flags: str) -> list[str]:
    """Return the ids in the table, without its header."""
    return [line.split()[0] for line in council("runs", "list", *flags).out.splitlines()[1:]]


# List


@pytest.fixture
def history(add_run: AddRun) -> list[str]:
    """Return runs in the expected order."""
    add_run("rold22", days=9)
    add_run("rinc22", "incomplete", days=8)
    add_run("rque22", "queued", days=7)
    add_run("rsto22", "running", days=6)  # no process has it: stopped
    add_run("rfai22", "failed", days=3)
    add_run("rels22", days=2, folder="/srv/other")
    add_run("rnew22", days=1)
    return ["rsto22", "rque22", "rinc22", "rnew22", "rels22", "rfai22", "rold22"]


@pytest.mark.behaviour("13-runs-list")
def test_unfinished_runs_are_first_then_the_newest_and_failed_ones_among_them(
    history: list[str], council: Terminal
) -> None:
    assert listed(council) == history
    assert [row["run"] for row in council("runs", "--json").json] == history
    assert [line.split()[0] for line in council("runs").out.splitlines()] == ["RUN", *history]


@pytest.mark.behaviour("13-runs-list")
@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        (["--here"], ["rsto22", "rque22", "rinc22", "rnew22", "rfai22", "rold22"]),
        (["--status", "failed"], ["rfai22"]), (["--status", "stopped"], ["rsto22"]), (["--status", "Queued"], ["rque22"]),
        (["--status", "unfinished"], ["rsto22", "rque22", "rinc22"]), (["--status", "running"], []),
        (["--here", "--status", "complete"], ["rnew22", "rold22"]),
        (["--here", "--status", "complete", "--limit", "1"], ["rnew22"]), (["--limit", "0"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_filters_combine(history: list[str], council: Terminal, flags: list[str], runs: list[str] | None) -> None:
    expected = history if runs is None else runs
    if expected:
        assert listed(council, *flags) == expected
    else:
        assert council("runs", "list", *flags).out == f"no runs with status {flags[1]}\n"
    assert [row["run"] for row in council("runs", *flags, "--json").json] == expected
    assert [row["run"] for row in council("--json", "runs", *flags, "list").json] == expected


@pytest.mark.behaviour("13-runs-list", "13-one-run-row")
def test_a_long_list_says_how_many_more_there_are(add_run: AddRun, council: Terminal) -> None:
    for number in range(25):
        add_run(f"r{number:05}")
    shown = council("runs")
    assert len(shown.out.splitlines()) == 21
    assert shown.err == "5 more: use --limit 25, or --limit 0 for all\n"
    assert (len(listed(council, "--limit", "30")), council("runs", "--limit", "30").err) == (25, "")
    rows = council("runs", "--json").json
    assert (len(rows), list(rows[0])) == (25, [field.name for field in list_fields(RunRow)])
    assert council("runs", "--limit", "-1").code == 2


@pytest.mark.behaviour("13-runs-list")
def test_the_folder_is_shown_unless_it_is_this_one(history: list[str], council: Terminal) -> None:
    lines = council("runs", "list").out.splitlines()
    assert lines[0].split() == ["RUN", "STARTED", "STATUS", "PROTOCOL", "TRUST", "COST", "FOLDER", "QUESTION"]
    (elsewhere,) = [line for line in lines if line.startswith("rels22")]
    assert elsewhere.split()[5:] == ["/srv/other", "Question", "rels22?"]
    assert "FOLDER" not in council("runs", "list", "--here").out


@pytest.mark.parametrize(
    "text", ["How should we store the archive of the last ten years? ", "アーカイブをどこに保存しますか"]
)
@pytest.mark.parametrize("width", [50, 60, 80, 120, 250])
@pytest.mark.parametrize("here", [False, True])
def test_a_list_fits_a_terminal(width: int, here: bool, text: str) -> None:
    run = {
        "run": "r2345x", "created": 1.0, "status": "complete", "detached": False, "folder": "/srv/" + "long-name/" * 9,
        "protocol": "collaborative", "question": text * 9, "title": None, "trust": "MEDIUM", "cost": 0.25, "estimated": True,
    }  # fmt: skip
    assert "My title" in format_runs([run | {"title": "My title"}], here=here, width=width)[1]
    lines = format_runs([run], here=here, width=width)
    assert lines[0].index("QUESTION") == lines[1].index(text[:5])
    assert width - 2 <= max(map(text_width, lines)) <= width
    assert ("FOLDER" in lines[0]) is (not here and width >= 60)
    assert ("MEDIUM" in lines[1]) is (width >= (60 if here else 80))
    assert ("about $0.25" in lines[1]) is (width >= (80 if here else 120))


def test_an_empty_list_says_how_to_start(council: Terminal) -> None:
    assert council("runs").out == 'no runs yet: start one with council "…"\n'
    assert council("runs", "--here").out == "no runs of this folder\n"
    refused = council("runs", "--status", "faild")
    assert (refused.code, 'did you mean "failed"?' in refused.err) == (2, True)


# Prune


@pytest.mark.behaviour("13-runs-prune")
@pytest.mark.parametrize(
    ("flags", "gone"),
    [
        (["--older-than", "5d"], {"rold22"}), (["--older-than", "1w"], {"rold22"}), (["--older-than", "10d"], set()),
        (["--keep", "1"], {"rels22", "rfai22", "rold22"}), (["--keep", "9"], set()),
        (["--keep", "0"], {"rnew22", "rels22", "rfai22", "rold22"}), (["--older-than", "2w", "--keep", "1"], set()),
        (["--older-than", "36h", "--keep", "2"], None), (["--older-than", "2d", "--keep", "2"], {"rfai22", "rold22"}),
        (["--keep", "1", "--here"], {"rfai22", "rold22"}), ([], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_prune_removes_finished_runs_by_age_and_number(
    history: list[str], council: Terminal, flags: list[str], gone: set[str] | None
) -> None:
    planned = council("runs", "prune", *flags, "--dry-run", "--json")
    assert stored() == set(history)
    done = council("runs", "prune", *flags, "--yes", "--json")
    if gone is None:
        assert (done.code, stored()) == (2, set(history))
        return
    assert {row["run"] for row in planned.json} == set(done.json["removed"]) == gone
    assert (done.code, done.json["kept"], stored()) == (0, {}, set(history) - gone)


@pytest.mark.behaviour("13-runs-confirm")
def test_a_removal_by_rule_needs_yes_off_a_terminal(history: list[str], council: Terminal) -> None:
    for command in (["prune", "--older-than", "1d"], ["rm", "--before", time.strftime("%Y-%m-%d")]):
        refused = council("runs", *command)
        assert (refused.code, refused.out, refused.err.count("\n"), stored()) == (2, "", 1, set(history))
        assert "runs in 2 folders would be removed, nothing was removed: pass --yes" in refused.err
        assert council("runs", *command, "--dry-run").err.endswith(" runs in 2 folders would be removed\n")
    assert council("runs", "rm", "--before", time.strftime("%Y-%m-%d"), "--here", "--yes").code == 0
    assert stored() == {"rque22", "rels22"}, "a queued run is kept"


@pytest.mark.behaviour("13-runs-confirm")
def test_removal_asks_at_a_terminal(history: list[str], council: Terminal) -> None:
    asked = TerminalProcess("runs", "rm", "rold22", "rels22")
    shown = asked.until("Remove 2 runs in 2 folders? [y/N]")
    assert all(word in shown for word in ("rold22", "/srv/other", "Question rels22?"))
    asked.type("n\n")
    assert (asked.end(), stored()) == (130, set(history))
    pruning = TerminalProcess("runs", "prune", "--older-than", "8d")
    pruning.until("Remove 1 run in this folder? [y/N]")
    pruning.type("y\n")
    assert (pruning.end(), stored()) == (0, set(history) - {"rold22"})
    assert "removed 1 run in this folder" in pruning.shown
    quiet = TerminalProcess("runs", "rm", "--yes", "rels22")
    assert (quiet.end(), "[y/N]" in quiet.shown, "rels22" in stored()) == (0, False, False)


@pytest.mark.behaviour("13-runs-prune")
def test_a_run_that_a_process_holds_is_kept(history: list[str], store: SqliteStore, council: Terminal) -> None:
    with RunLock(store.folder / "locks" / "rold22.lock"):
        done = council("runs", "prune", "--older-than", "1d", "--yes")
    assert "kept rold22: run rold22 is running in another process" in done.out
    assert stored() & {"rold22", "rfai22"} == {"rold22"}


@pytest.mark.parametrize("age", ["90", "d", "-3d", "3m", "soon", ""])
def test_an_invalid_age_is_one_line(council: Terminal, age: str) -> None:
    refused = council("runs", "prune", f"--older-than={age}")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f'--older-than "{age}" is not an age: use days or weeks, for example --older-than 90d or 12w' in refused.err


# Retention


SCRIPTED = '[models]\ndefault = "scripted:"\n'


def run_council() -> str:
    """Make one run with scripted members and close the convener."""

    async def work() -> str:
        seats = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")
        convener = Convener(Path.cwd(), os.environ, flags={"seats": seats})
        try:
            return (await convener.run(await convener.plan([QUESTION], protocol="triad"), lambda entry: None)).run
        finally:
            await convener.close()

    return asyncio.run(work())


@pytest.mark.behaviour("13-keep-days")
@pytest.mark.parametrize(
    ("place", "days", "gone"),
    [
        ("user", 5, {"rold22", "rall22"}), ("user", 2, {"rold22", "rall22", "rfai22", "rels22"}), ("project", 5, {"rold22"}), ("", 0, set()),
    ],
)  # fmt: skip
def test_keep_days_removes_older_finished_runs_after_a_run(
    history: list[str], add_run: AddRun, council: Terminal, place: str, days: int, gone: set[str]
) -> None:
    add_run("rall22", days=30, folder="/srv/other")
    files = {"user": Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "config.toml", "project": Path("council.toml")}
    if place:
        files[place].parent.mkdir(parents=True, exist_ok=True)
        files[place].write_text(f"[store]\nkeep_days = {days}\n")
    assert council("runs").code == 0
    assert stored() == {*history, "rall22"}, "only a run removes others"
    run = run_council()
    assert stored() == {*history, "rall22", run} - gone


@pytest.mark.behaviour("13-keep-days")
def test_keep_days_removes_a_few_runs_at_a_time_and_prune_the_rest(add_run: AddRun, council: Terminal) -> None:
    for number in range(30):
        add_run(f"r{number:05}", days=50 + number)
    Path("council.toml").write_text("[store]\nkeep_days = 10\n")
    trust_project()
    run = run_council()
    assert len(stored()) == 11
    assert council("runs", "prune", "--yes").code == 0
    assert stored() == {run}


@pytest.mark.parametrize("value", ["0", "-1", '"90"', "1.5", "true"])
def test_an_invalid_number_of_days_is_one_line(council: Terminal, value: str) -> None:
    Path("council.toml").write_text(f"[store]\nkeep_days = {value}\n")
    trust_project()
    refused = council("runs")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "store.keep_days" in refused.err and "a whole number of days from 1 to 36500" in refused.err


@pytest.mark.behaviour("13-keep-days")
def test_the_worker_applies_keep_days_too(add_run: AddRun, detached: Workspace, council: Terminal) -> None:
    add_run("rold22", days=50)
    add_run("rinc22", "incomplete", days=50)
    detached.configure(more="[store]\nkeep_days = 10\n")
    run = council("--detach", "--protocol", "triad", "--json", QUESTION).json["run"]
    wait_until(lambda: stored() == {"rinc22", run}, "the worker removed the old run")


# The file of the store


@pytest.mark.behaviour("13-store-shrinks")
@pytest.mark.parametrize("is_new", [True, False], ids=["this version's file", "an older version's file"])
def test_the_file_shrinks_after_a_removal_beside_a_reader_and_a_writer(
    add_run: AddRun, store: SqliteStore, council: Terminal, is_new: bool
) -> None:
    if not is_new:
        with sqlite3.connect(store.path) as db:
            db.execute("PRAGMA auto_vacuum = 0")
            db.execute("VACUUM")
    for number in range(20):
        add_run(f"r{number:05}", days=10, size=200_000)
    add_run("rnew22")
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM runs").fetchone() == (21,)
    done = council("runs", "prune", "--older-than", "5d", "--yes", "--json")
    assert len(done.json["removed"]) == 20
    assert reader.execute("SELECT count(*), sum(length(setup)) > 4000000 FROM runs").fetchone() == (21, 1)
    reader.close()
    add_run("rmor22", size=1000)
    assert council("runs", "rm", "rmor22").code == 0
    assert store.path.stat().st_size < 500_000
    assert stored() == {"rnew22"}
    assert council("runs", "fsck", "--json").json["problems"].keys() <= {"rnew22"}
    assert asyncio.run(store.check_integrity()) == []


@pytest.mark.behaviour("13-store-shrinks", "13-runs-prune")
def test_a_run_that_another_process_writes_is_complete_afterwards(
    add_run: AddRun, store: SqliteStore, workspace: Workspace, council: Terminal
) -> None:
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA auto_vacuum = 0")
        db.execute("VACUUM")
    for number in range(20):
        add_run(f"r{number:05}", days=10, size=200_000)
    gate = workspace.hold("draft", "alpha")
    process = workspace.process("--protocol", "triad", "--json", QUESTION)
    gate.wait()
    assert council("runs", "prune", "--keep", "0", "--yes").out.startswith("removed 20 runs in this folder")
    gate.release()
    done = wait_for_exit(process)
    assert (done.code, stored()) == (0, {done.json["run"]})
    assert council("runs", "fsck").out == "1 run, no problems\n"


# Places of reports


@pytest.mark.behaviour("13-report-places")
def test_a_flag_or_a_setting_names_the_folder_of_reports(workspace: Workspace, council: Terminal) -> None:
    triad = ("--protocol", "triad", "--json", QUESTION)
    assert council("--report-dir", "mine", *triad).json["report_path"].startswith("mine/")
    workspace.configure()
    text = (workspace.folder / "council.toml").read_text()
    (workspace.folder / "council.toml").write_text(f'report_dir = "theirs"\n{text}')
    trust_project(workspace.folder)
    assert Path(council(*triad).json["report_path"]).parent == Path("theirs")
    assert council("--report-dir", "mine", *triad).json["report_path"].startswith("mine/")
    quick = ("--quick", "--json", "--seat", "judge-1=scripted:", "validate", "council.toml")
    assert Path(council(*quick).json["report_path"]).parent == Path("theirs")
    assert not Path(".agents").exists()
    assert not list(Path("mine").glob(".gitignore"))


@pytest.mark.behaviour("13-report-not-failed")
def test_a_failed_run_writes_no_report_and_a_later_success_does(workspace: Workspace, council: Terminal) -> None:
    workspace.provider.answer = lambda seen: Reply(status=401)
    failed = council("--protocol", "triad", "--json", QUESTION)
    assert (failed.code, failed.json["status"], failed.json["report_path"]) == (4, "failed", None)
    assert (workspace.reports(), [path.name for path in workspace.folder.iterdir()]) == ([], ["council.toml"])
    assert "report " not in council("--protocol", "triad", QUESTION).err
    workspace.provider.answer = workspace.answers
    resumed = council("resume", "--json", failed.json["run"])
    assert (resumed.code, [str(path) for path in workspace.reports()]) == (0, [resumed.json["report_path"]])
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("13-names-latin")
def test_names_are_transliterated(workspace: Workspace, council: Terminal) -> None:
    report = council("--protocol", "triad", "--json", "Wie schnell läuft der Bär?").json
    assert report["name"].endswith("-wie-schnell-laeuft-der-baer")
    assert report["report_path"].endswith("-triad-wie-schnell-laeuft-der-baer.md")


@pytest.mark.behaviour("13-runs-prune")
def test_a_failed_fork_is_removed_with_its_parent_and_an_unfinished_one_keeps_it(
    add_run: AddRun, council: Terminal
) -> None:
    add_run("rpar22", days=20)
    add_run("rpar33", days=20)
    add_run("rfor22", "failed", days=19, fork={"run": "rpar22", "from": "merge"})
    add_run("rfor33", "incomplete", days=19, fork={"run": "rpar33", "from": "merge"})
    done = council("runs", "prune", "--older-than", "10d", "--yes")
    assert "kept rpar33: run rpar33 was not removed, because the unfinished fork rfor33 uses its answers" in done.out
    assert stored() == {"rpar33", "rfor33"}
