"""Runs written by version 0.1.0: they are listed, shown, replayed, reported, forked, resumed and checked."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from council.version import RULES, __version__
from tests.acceptance.helpers import Json, Terminal

STORE = Path(__file__).parents[1] / "data" / "previous_version" / "store.tar.xz"
OLD_FOLDER = "/tmp/project"
FINISHED = {
    "collaborative": "rqv758",
    "adversarial": "rd4yke",
    "triad": "rqrzwb",
    "advisors": "rxkpsz",
    "advisors, two rounds": "re4pnb",
    "ranking": "rzsbgp",
    "general": "rju88t",
    "judges": "ray5af",
}
UNFINISHED = {"collaborative": "r6wvqj", "adversarial": "ruy5p5", "judges": "r4mx65"}
EVERY_RUN = {*FINISHED.values(), *UNFINISHED.values()}
NOTICE = "run made by council 0.1.0: its earlier answers were asked with that version's prompts"

pytestmark = pytest.mark.behaviour("11-previous-version")


@dataclass
class OldStore:
    """A copy of the old store, moved to the folders of this test."""

    database: Path

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
def old(tmp_path: Path) -> OldStore:
    with tarfile.open(STORE) as packed:
        packed.extractall(tmp_path, filter="data")
    work, data = Path.cwd(), tmp_path / "data"
    shutil.copytree(tmp_path / "project", work, dirs_exist_ok=True)
    data.mkdir(mode=0o700)
    database = (tmp_path / "council.db").rename(data / "council.db")
    db = sqlite3.connect(database)
    db.execute("UPDATE runs SET folder = replace(folder, ?, ?)", (OLD_FOLDER, str(work)))
    db.execute("UPDATE events SET body = replace(body, ?, ?)", (OLD_FOLDER, str(work)))
    db.commit()
    db.close()
    return OldStore(database)


# Reading


def test_every_run_is_listed_with_its_status(old: OldStore, council: Terminal) -> None:
    listed = {row["run"]: row["status"] for row in council("runs", "list", "--json").json}
    assert listed == {
        **dict.fromkeys(FINISHED.values(), "complete"),
        **{
            UNFINISHED["collaborative"]: "incomplete",
            UNFINISHED["adversarial"]: "stopped",
            UNFINISHED["judges"]: "stopped",
        },
    }
    assert all(run in council("runs", "list").out for run in EVERY_RUN)


@pytest.mark.parametrize("run", sorted(EVERY_RUN))
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
    assert told == old.answers(run).keys()


def facts(report: Json) -> Json:
    """Return the fields that the previous version had, without the sentences that explain the gaps."""
    return {key: report[key] for key in report if key not in ("trust", "opinions")} | {
        "degraded": [row | {"reason": ""} for row in report["degraded"]]
    }


NEW_FIELDS = {
    "leader", "leader_reason", "agreed", "contested", "rulings", "positions", "sections", "changed", "strongest", "tail", "stops",
}  # computed from the stored events  # fmt: skip


@pytest.mark.parametrize("protocol", FINISHED)
def test_the_report_of_a_finished_run_keeps_its_facts(old: OldStore, council: Terminal, protocol: str) -> None:
    run = FINISHED[protocol]
    before = facts(old.report(run))
    report = council("report", run, "--json").json
    now = facts(report)
    assert now["confidence"] in (before["confidence"], report["trust"]["level"])  # never above the trust level
    assert {name: now[name] for name in before if name != "confidence"} == {
        name: value for name, value in before.items() if name != "confidence"
    }
    assert now.keys() - before.keys() <= NEW_FIELDS


@pytest.mark.parametrize("run", sorted(EVERY_RUN))
def test_a_report_is_written_in_every_format(old: OldStore, council: Terminal, run: str) -> None:
    formats = {
        name: council("report", run, "--format", name) for name in ("md", "html", "json", "sarif", "junit", "github")
    }
    assert {name: done.code for name, done in formats.items()} == dict.fromkeys(formats, 0)
    question = json.loads(formats["json"].out)["question"]
    assert question in formats["md"].out
    assert "<html" in formats["html"].out
    assert json.loads(formats["sarif"].out)["version"] == "2.1.0"
    assert ElementTree.fromstring(formats["junit"].out).tag == "testsuites"


@pytest.mark.behaviour("11-older-rules")
def test_the_store_of_the_old_version_has_no_problems(old: OldStore, council: Terminal) -> None:
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    assert checked.out == f"{len(EVERY_RUN)} runs, no problems\n"
    remark = "made by council 0.1.0: the rules have changed since, so its report and verdict are not recomputed"
    assert {f"{run}: {remark}" for run in EVERY_RUN} <= set(checked.err.splitlines())
    assert council("runs", "fsck", "--json").json["remarks"] == dict.fromkeys(EVERY_RUN, remark)


# Continuing


@pytest.mark.parametrize("protocol", UNFINISHED)
def test_an_unfinished_run_is_resumed_and_nothing_answered_is_asked_again(
    old: OldStore, council: Terminal, protocol: str
) -> None:
    run = UNFINISHED[protocol]
    answers, attempts = old.answers(run), old.attempts(run)
    resumed = council("resume", run, "--json", "-v")
    assert (resumed.code, resumed.json["status"]) == (0, "complete"), resumed.err
    assert resumed.err.count(NOTICE) == 1
    assert old.answers(run).items() >= answers.items()
    assert answers.keys().isdisjoint(key for key, _ in old.attempts(run) - attempts)
    assert resumed.json["calls"]["replayed"] == len(answers)
    assert {seat["state"] for seat in resumed.json["seats"]} == {"ok"}
    assert council("report", run, "--json").json["answer"] == resumed.json["answer"]
    checked = council("runs", "fsck", run)
    assert checked.code == 0, checked.out


@pytest.mark.parametrize("protocol", FINISHED)
def test_a_fork_takes_the_answers_before_its_phase(old: OldStore, council: Terminal, protocol: str) -> None:
    parent = FINISHED[protocol]
    last = old.phases(parent)[-1]
    fork = council("fork", parent, "--from", last, "--json", "-v")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert fork.err.count(f"parent {NOTICE}".replace("run", f"run {parent}", 1)) == 1
    asked = {key for key, _ in old.attempts(fork.json["run"])}
    assert asked and {key.partition("/")[0] for key in asked} == {last}
    taken = {key for key in old.answers(parent) if not key.startswith(f"{last}/")}
    assert fork.json["calls"]["replayed"] == len(taken)
    reasons = [row["reason"] for row in fork.json["degraded"]]
    assert len(reasons) == len(old.report(parent)["degraded"]), reasons  # notices are renewed, not repeated
    checked = council("runs", "fsck", fork.json["run"])
    assert checked.code == 0, checked.out


def test_an_unfinished_run_can_be_forked(old: OldStore, council: Terminal) -> None:
    fork = council("fork", UNFINISHED["adversarial"], "--from", "attack", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err


def test_a_run_can_be_continued_by_a_follow_up_question(old: OldStore, council: Terminal) -> None:
    done = council("--continue", FINISHED["ranking"], "And what does it cost?", "--json")
    assert (done.code, done.json["protocol"], done.json["status"]) == (0, "ranking", "complete"), done.err


def test_within_one_version_a_changed_step_is_still_an_error(old: OldStore, council: Terminal) -> None:
    run = UNFINISHED["collaborative"]
    db = sqlite3.connect(old.database)
    ours = (__version__, RULES, run)
    db.execute("UPDATE runs SET setup = json_set(setup, '$.version', ?, '$.rules', ?) WHERE id = ?", ours)
    db.execute("UPDATE steps SET fingerprint = 'another' WHERE run = ?", (run,))
    db.commit()
    db.close()
    refused = council("resume", run)
    assert refused.code != 0
    assert f"`council fork {run}`" in refused.err
    assert NOTICE not in refused.err
