"""Runs that earlier versions wrote: they are listed, shown, replayed, reported, forked, resumed and checked."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tarfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from council.engine.minutes import Minutes
from council.engine.patches import PatchFold
from council.events import Entry
from council.runs.service import Convener
from council.version import RULES, __version__
from tests.acceptance.helpers import Json, Terminal
from tests.doors.web.server import WebServer
from tests.engine.page_state import build, merge
from tests.fake_provider import FakeProvider
from tests.trusted_project import write_user_file

FOLDER = Path(__file__).parents[1] / "data" / "previous_version"
RUNS: dict[str, dict[str, dict[str, str]]] = {
    path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*/runs.toml"))
}  # the runs of each version by the way they ended and by name
STORED_FOLDERS = {"/tmp/project": Path.cwd, "/tmp/council-data": lambda: Path(os.environ["COUNCIL_DATA"])}
STORED_ENDPOINT = "http://127.0.0.1:8765/v1"
NEW_FIELDS = {
    "0.1.0": {
        *("leader", "leader_reason", "agreed", "contested", "rulings", "positions", "sections", "changed"),
        *("strongest", "tail", "stops", "trust", "opinions"),
    },
    "0.2.0": {"positions", "sections", "changed"},
}  # of the report as JSON, computed from the stored events
CHANGED_FIELDS = {
    "0.1.0": {"confidence"},
    "0.2.0": set[str](),
}  # of the report, which later versions compute differently
OPEN = {"collaborative": "incomplete"}  # status of the unfinished runs; those that were killed are stopped

pytestmark = pytest.mark.behaviour("11-previous-version")


def runs_of(version: str, *endings: str) -> list[str]:
    return [run for ending in endings or RUNS[version] for run in RUNS[version][ending].values()]


def each_run(*endings: str) -> pytest.MarkDecorator:
    """Run the test for each run of each version that ended like this."""
    rows = [
        pytest.param(version, run, id=f"{version} {ending} {name}")
        for version, runs in RUNS.items()
        for ending in endings
        for name, run in runs[ending].items()
    ]
    return pytest.mark.parametrize(("old", "run"), rows, indirect=["old"])


each_version = pytest.mark.parametrize("old", RUNS, indirect=True)


@dataclass
class OldStore:
    """A copy of the old store, moved to the folders of this test."""

    version: str
    database: Path

    @property
    def notice(self) -> str:
        return f"run made by council {self.version}: its earlier answers were asked with that version's prompts"

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(self.database)
        try:
            return db.execute(query, values).fetchall()
        finally:
            db.close()

    def report(self, run: str) -> Json:
        """Return the report that the old version stored."""
        value: Json = json.loads(self.rows("SELECT report FROM runs WHERE id = ?", run)[0][0])
        return value

    def answers(self, run: str) -> dict[str, str]:
        return dict(self.rows("SELECT key, body FROM results WHERE run = ?", run))

    def attempts(self, run: str) -> set[tuple[str, int]]:
        return {(key, n) for key, n in self.rows("SELECT key, n FROM intents WHERE run = ?", run)}

    def phases(self, run: str) -> list[str]:
        rows = self.rows("SELECT body FROM events WHERE run = ? AND type = 'phase' ORDER BY seq", run)
        return [json.loads(body)["phase"] for (body,) in rows]


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> OldStore:
    version: str = request.param
    with tarfile.open(FOLDER / version / "store.tar.xz") as packed:
        packed.extractall(tmp_path / "old", filter="data")
    work, data, stored = Path.cwd(), Path(os.environ["COUNCIL_DATA"]), tmp_path / "old"
    shutil.copytree(stored / "project", work, dirs_exist_ok=True)
    data.mkdir(mode=0o700)
    database = (stored / "council.db").rename(data / "council.db")
    if (stored / "reports").exists():
        (stored / "reports").rename(data / "reports")
    if (config := stored / "config.toml").exists():
        provider: FakeProvider = request.getfixturevalue("provider")
        write_user_file(config.read_text(encoding="utf-8").replace(STORED_ENDPOINT, provider.base_url))
    db = sqlite3.connect(database)
    for folder, now in STORED_FOLDERS.items():
        for table, column in (("runs", "folder"), ("runs", "setup"), ("runs", "report"), ("events", "body")):
            db.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (folder, str(now())))
    db.commit()
    db.close()
    return OldStore(version, database)


# Reading


@each_version
def test_every_run_is_listed_with_its_status(old: OldStore, council: Terminal) -> None:
    rows = council("runs", "list", "--json").json
    assert {row["run"]: row["status"] for row in rows} == {
        **dict.fromkeys(runs_of(old.version, "finished"), "complete"),
        **{run: OPEN.get(name, "stopped") for name, run in RUNS[old.version]["unfinished"].items()},
        **dict.fromkeys(runs_of(old.version, "failed"), "failed"),
    }
    assert all(run in council("runs", "list", "--limit", "0").out for run in runs_of(old.version))


@each_version
def test_the_list_has_the_trust_and_the_cost_of_the_stored_reports(old: OldStore, council: Terminal) -> None:
    rows = {row["run"]: row for row in council("runs", "list", "--json").json}
    for run in runs_of(old.version, "finished", "failed"):
        report = old.report(run)
        assert old.version == "0.1.0" or report["trust"]  # 0.1.0 stored none
        trust = (report.get("trust") or {}).get("level")
        assert (rows[run]["trust"], rows[run]["cost"]) == (trust, report["cost"]["usd"])
    for run in runs_of(old.version, "unfinished"):
        assert rows[run]["trust"] in (None, "LOW")


@pytest.mark.parametrize("old", ["0.2.0"], indirect=True)
def test_the_title_and_the_outcome_of_a_run_are_kept(old: OldStore, council: Terminal) -> None:
    run = RUNS[old.version]["finished"]["collaborative"]
    (row,) = [row for row in council("runs", "list", "--json").json if row["run"] == run]
    assert row["title"] == "Cold storage for the archive"
    labelled = council("outcome", run, "--json").json
    assert (labelled["label"], labelled["note"]) == ("right", "The bill fell by 80 %."), labelled
    assert "Cold storage for the archive" in council("runs", "list", "--limit", "0").out


@each_version
def test_a_search_finds_a_run_by_the_words_of_its_question_and_its_answer(old: OldStore, council: Terminal) -> None:
    finished = RUNS[old.version]["finished"]
    for name in ("triad", "adversarial", "ranking"):
        report = old.report(finished[name])
        for words in (report["question"], report["answer"].splitlines()[0]):
            found = council("runs", "search", words, "--json").json
            assert finished[name] in {row["run"] for row in found}, words


@each_run("finished", "unfinished", "failed")
def test_a_run_is_shown_exported_and_replayed(old: OldStore, council: Terminal, run: str) -> None:
    for more in ((), ("--verbose",), ("--show", "transcript")):
        shown = council("runs", "show", run, *more)
        assert (shown.code, run in shown.out) == (0, True), shown.err
    assert council("runs", "show", run, "--json").json["run"] == run
    assert council("runs", "export", run, "--json").json["results"].keys() == old.answers(run).keys()
    played = council("runs", "replay", run, "--speed", "0")
    assert (played.code, bool(played.out + played.err)) == (0, True)
    events = [json.loads(line) for line in council("runs", "replay", run, "--speed", "0", "--jsonl").out.splitlines()]
    told = {event["key"] for event in events if event["type"] == "statement"}
    looked_up = {key for key in old.answers(run) if key.rpartition("/")[2] in ("search", "look")}
    assert told == old.answers(run).keys() - looked_up


@each_run("finished", "failed")
def test_the_report_of_a_run_keeps_every_field_that_was_stored(old: OldStore, council: Terminal, run: str) -> None:
    before, now = old.report(run), council("report", run, "--json").json
    assert now["confidence"] in (before["confidence"], now["trust"]["level"])  # never above the trust level
    kept = before.keys() - CHANGED_FIELDS[old.version]
    if old.version == "0.1.0":  # the sentences that explain a gap have other words
        for report in (before, now):
            report["degraded"] = [row | {"reason": ""} for row in report["degraded"]]
    if now.pop("decision_outcome", None):  # recorded after the report was stored
        assert now["trust"]["in_favour"].pop(0) == "the answer turned out right"
        now["trust"]["facts"] = [fact for fact in now["trust"]["facts"] if fact["kind"] != "turned_out_right"]
    if before.get("trust", {}).get("level") == "HIGH":  # the limit that HIGH states has today's figures
        limits = [report["trust"]["in_favour"].pop() for report in (before, now)]
        for report, limit in zip((before, now), limits, strict=True):
            assert "share an error" in limit
            report["tail"] = [line.replace(limit, "") for line in report.get("tail") or ()]
    assert {name: now[name] for name in kept} == {name: before[name] for name in kept}
    assert now.keys() >= before.keys()
    assert now.keys() - before.keys() <= NEW_FIELDS[old.version]


@each_run("finished", "unfinished", "failed")
def test_a_report_is_written_in_every_format(old: OldStore, council: Terminal, run: str) -> None:
    names = ("md", "html", "json", "sarif", "junit", "github")
    formats = {name: council("report", run, "--format", name) for name in names}
    assert {name: done.code for name, done in formats.items()} == dict.fromkeys(formats, 0)
    question = json.loads(formats["json"].out)["question"]
    assert question in formats["md"].out
    assert "<html" in formats["html"].out
    assert json.loads(formats["sarif"].out)["version"] == "2.1.0"
    assert ElementTree.fromstring(formats["junit"].out).tag == "testsuites"


async def read_entries(runs: Sequence[str]) -> dict[str, tuple[Entry, ...]]:
    convener = Convener(Path.cwd())
    try:
        return {run: tuple((await convener.store.load(run)).entries) for run in runs}
    finally:
        await convener.close()


@each_version
def test_the_page_gets_the_minutes_of_every_run(old: OldStore, request: pytest.FixtureRequest) -> None:
    site = WebServer(Path.cwd(), os.environ, has_worker=False)
    request.addfinalizer(site.close)
    for run, entries in asyncio.run(read_entries(runs_of(old.version))).items():
        phases = site.get(f"/api/runs/{run}")["minutes"]["phases"]
        assert {phase["name"] for phase in phases} == set(old.phases(run))
        fold, state = PatchFold(), Json()
        for entry in entries:
            merge(state, json.loads(json.dumps(fold.apply(entry))))
        assert state == build(Minutes.fold(entries))


@pytest.mark.behaviour("11-older-rules")
@each_version
def test_the_store_of_an_old_version_has_no_problems(old: OldStore, council: Terminal) -> None:
    runs = runs_of(old.version)
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    assert checked.out == f"{len(runs)} runs, no problems\n"
    remark = (
        f"made by council {old.version}: the rules have changed since, so its report and verdict are not recomputed"
    )
    assert {f"{run}: {remark}" for run in runs} <= set(checked.err.splitlines())
    assert council("runs", "fsck", "--json").json["remarks"] == dict.fromkeys(runs, remark)


# Continuing


@each_run("unfinished")
def test_an_unfinished_run_is_resumed_and_nothing_answered_is_asked_again(
    old: OldStore, council: Terminal, run: str
) -> None:
    answers, attempts = old.answers(run), old.attempts(run)
    resumed = council("resume", run, "--json", "-v")
    assert (resumed.code, resumed.json["status"]) == (0, "complete"), resumed.err
    assert resumed.err.count(old.notice) == 1
    assert old.answers(run).items() >= answers.items()
    assert answers.keys().isdisjoint(key for key, _ in old.attempts(run) - attempts)
    assert resumed.json["calls"]["replayed"] == len(answers)
    assert {seat["state"] for seat in resumed.json["seats"]} == {"ok"}
    assert council("report", run, "--json").json["answer"] == resumed.json["answer"]
    checked = council("runs", "fsck", run)
    assert checked.code == 0, checked.out


@each_run("finished")
def test_a_fork_takes_the_answers_before_its_phase(old: OldStore, council: Terminal, run: str) -> None:
    last = [phase for phase in old.phases(run) if "/" not in phase][-1]
    fork = council("fork", run, "--from", last, "--json", "-v")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    reused = len(old.phases(run)) > 1
    assert fork.err.count(f"parent {old.notice}".replace("run", f"run {run}", 1)) == reused
    asked = {key for key, _ in old.attempts(fork.json["run"])}
    assert all(key.startswith(f"{last}/") for key in asked)
    assert asked or old.version != "0.1.0"  # the same words as now are not sent again
    taken = old.answers(run).keys() - asked
    assert fork.json["calls"]["replayed"] == len(taken)
    reasons = [row["reason"] for row in fork.json["degraded"]]
    assert len(reasons) == len(old.report(run)["degraded"]), reasons  # notices are renewed, not repeated
    checked = council("runs", "fsck", fork.json["run"])
    assert checked.code == 0, checked.out


@each_version
def test_a_fork_asks_another_chair(old: OldStore, council: Terminal) -> None:
    parent = RUNS[old.version]["finished"]["triad"]
    fork = council("fork", parent, "--from", "merge", "--seat", "chair=scripted:", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert {key for key, _ in old.attempts(fork.json["run"])} == {"merge/chair"}


@each_version
def test_an_unfinished_run_can_be_forked(old: OldStore, council: Terminal) -> None:
    fork = council("fork", RUNS[old.version]["unfinished"]["adversarial"], "--from", "attack", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err


@each_version
def test_a_run_can_be_continued_by_a_follow_up_question(old: OldStore, council: Terminal) -> None:
    done = council("--continue", RUNS[old.version]["finished"]["ranking"], "And what does it cost?", "--json")
    assert (done.code, done.json["protocol"], done.json["status"]) == (0, "ranking", "complete"), done.err


@each_version
def test_within_one_version_a_changed_step_is_still_an_error(old: OldStore, council: Terminal) -> None:
    run = RUNS[old.version]["unfinished"]["collaborative"]
    db = sqlite3.connect(old.database)
    ours = (__version__, RULES, run)
    db.execute("UPDATE runs SET setup = json_set(setup, '$.version', ?, '$.rules', ?) WHERE id = ?", ours)
    db.execute("UPDATE steps SET fingerprint = 'another' WHERE run = ?", (run,))
    db.commit()
    db.close()
    refused = council("resume", run)
    assert refused.code != 0
    assert f"`council fork {run}`" in refused.err
    assert old.notice not in refused.err
