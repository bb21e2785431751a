"""Negative control: fsck reports a damaged record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, mark
from tests.fake_provider import Reply
from tests.stored_rows import expand_texts

Damage = Callable[[sqlite3.Connection], object]


def sql(statement: str) -> Damage:
    return lambda db: db.execute(statement)


def forge_verdict(db: sqlite3.Connection) -> None:
    """Change the answer in both the last event and the report, to look consistent."""
    old, new = mark("chair", "verdict"), mark("chair", "forgery")
    db.execute("UPDATE events SET body = replace(body, ?, ?) WHERE type = 'closed'", (old, new))
    db.execute("UPDATE runs SET report = replace(report, ?, ?)", (old, new))


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a result is gone, its event is left": (
        sql("DELETE FROM results WHERE key = 'draft/beta'"), 'the statement "draft/beta" has no result'
    ),
    "a result without a statement": (
        sql("UPDATE results SET key = 'draft/delta' WHERE key = 'draft/beta'"), 'the result "draft/delta" has no step'
    ),
    "a gap in the events": (sql("DELETE FROM events WHERE seq = 5"), "the events have a gap: number 5 is missing"),
    "a changed report": (
        sql("UPDATE runs SET report = replace(report, 'MODIFIED', 'SURVIVED')"),
        "the report rebuilt from the ledger differs from the stored one",
    ),
    "a changed verdict": (forge_verdict, "the verdict recomputed from the statements differs from the stored one"),
    "a changed ruling": (
        sql("UPDATE results SET body = replace(body, 'MODIFIED', 'SURVIVED') WHERE key = 'verdict/chair'"),
        "the verdict recomputed from the statements differs from the stored one",
    ),
    "an intent is gone": (
        sql("DELETE FROM intents WHERE key = 'attack/gamma'"), 'the result "attack/gamma" has no attempt with an answer'
    ),
    "an answer is gone": (
        sql("DELETE FROM settled WHERE key = 'draft/alpha'"), 'the result "draft/alpha" has no attempt with an answer'
    ),
    "asked again after its result": (
        sql("INSERT INTO intents SELECT run, key, 2, member, body, at FROM intents WHERE key = 'draft/alpha'"),
        '"draft/alpha" was asked again after its result was stored',
    ),
    "a step is gone": (sql("DELETE FROM steps WHERE key = 'draft/alpha'"), 'the result "draft/alpha" has no step'),
    "the end of a phase is gone": (
        sql("DELETE FROM phases WHERE phase = 'draft'"), 'the end of the phase "draft" has an event or a row, but not both'
    ),
    "a status without an end": (
        sql("DELETE FROM events WHERE type = 'closed'"), 'the run has the status "complete", but its last event is not "closed"'
    ),
}  # fmt: skip


@pytest.mark.behaviour("40-fsck-negative-control")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_ledger_is_reported(workspace: Workspace, council: Terminal, damage: str) -> None:
    assert council("--protocol", "adversarial", QUESTION).code == 0
    assert council("runs", "fsck").code == 0
    sent = len(workspace.provider.log)
    (run,) = workspace.runs()
    break_it, told = DAMAGES[damage]
    with sqlite3.connect(workspace.data / "council.db") as db:
        expand_texts(db)
        break_it(db)
    db.close()
    done = council("runs", "fsck")
    assert done.code == 1
    assert f"{run}: {told}" in done.out.splitlines()
    named = council("runs", "fsck", run, "--json")
    assert (named.code, told in named.json["problems"][run]) == (1, True)
    assert len(workspace.provider.log) == sent


@pytest.mark.behaviour("40-fsck-negative-control")
def test_fsck_finds_the_one_broken_run_among_good_ones(workspace: Workspace, council: Terminal) -> None:
    for _ in range(3):
        council("--protocol", "triad", QUESTION)
    broken = workspace.runs()[1]
    with sqlite3.connect(workspace.data / "council.db") as db:
        db.execute("DELETE FROM events WHERE run = ? AND seq = 3", (broken,))
    db.close()
    done = council("runs", "fsck", "--json")
    assert (done.code, list(done.json["problems"]), len(done.json["checked"])) == (1, [broken], 3)
    (workspace.data / "draft.tmp").touch()
    assert "leftover file: draft.tmp" in council("runs", "fsck", "--json").json["problems"]["store"]


@pytest.mark.behaviour("40-fsck-negative-control")
def test_a_call_paid_twice_is_visible_to_the_crash_suite(workspace: Workspace, council: Terminal) -> None:
    """Delete the answers of a finished run: resume asks again, which the crash tests would detect."""
    council("--json", "--protocol", "triad", QUESTION)
    with sqlite3.connect(workspace.data / "council.db") as db:
        for name in ("results", "settled"):
            db.execute(f"DELETE FROM {name} WHERE key LIKE 'draft/%'")
        db.execute("UPDATE runs SET status = 'running'")
    db.close()
    sent = len(workspace.provider.log)
    council("resume", "--json")
    assert sorted(workspace.asked(sent)) == [f"draft/{seat}" for seat in SEATS]
    assert council("runs", "fsck").code == 1


@pytest.mark.behaviour("40-ledger-mismatch")
def test_run_with_changed_prompts_is_not_resumed(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair"] = Reply(status=500)
    assert council("--protocol", "triad", QUESTION).code == 3
    with sqlite3.connect(workspace.data / "council.db") as db:
        (setup,) = db.execute("SELECT setup FROM runs").fetchone()
        setup = json.loads(setup)
        setup["question"]["text"] = "Another question?"
        db.execute("UPDATE runs SET setup = ?", (json.dumps(setup),))
    db.close()
    sent = len(workspace.provider.log)
    done = council("resume", "--json")
    assert (done.code, done.json["schema"]) == (1, "council.error/1")
    assert "council fork" in done.json["error"]
    assert len(workspace.provider.log) == sent


@pytest.mark.behaviour("40-fsck")
def test_run_of_another_version_is_not_checked_against_the_current_prompts(
    workspace: Workspace, council: Terminal
) -> None:
    assert council("--protocol", "triad", QUESTION).code == 0
    (run,) = workspace.runs()
    for change, code in (("report = 'in other words'", 1), ("setup = json_set(setup, '$.version', '0.0.1')", 0)):
        with sqlite3.connect(workspace.data / "council.db") as db:
            db.execute(f"UPDATE runs SET {change}")
        assert council("runs", "fsck", run).code == code


REPAIRS: dict[str, tuple[str, str]] = {
    "a changed report": (
        "UPDATE runs SET report = replace(report, 'MODIFIED', 'SURVIVED')", "its report was built again from the ledger"
    ),
    "a changed status": ("UPDATE runs SET status = 'failed'", 'its status was "failed": now "complete"'),
    "a status without an end": (
        "DELETE FROM events WHERE type = 'closed'", 'its status was "complete", but it has no end: it can be resumed now'
    ),
}  # fmt: skip


@pytest.mark.behaviour("40-repair")
def test_repair_makes_derived_data_again(workspace: Workspace, council: Terminal) -> None:
    assert council("--protocol", "adversarial", QUESTION).code == 0
    (run,) = workspace.runs()
    sent = len(workspace.provider.log)
    for damage, told in REPAIRS.values():
        with sqlite3.connect(workspace.data / "council.db") as db:
            db.execute(damage)
        db.close()
        assert council("runs", "fsck").code == 1
        done = council("runs", "fsck", "--repair", "--json")
        assert (done.code, done.json["repaired"]) == (0, [f"{run}: {told}"]), done.out
    path = Path(council("resume", run, "--json").json["report_path"])
    assert len(workspace.provider.log) == sent  # every answer is stored
    text = path.read_text()
    path.unlink()
    assert council("runs", "fsck", run, "--repair").err == f'repaired: {run}: its report "{path}" was written again\n'
    assert path.read_text() == text


@pytest.mark.behaviour("40-fsck-negative-control", "40-calls-of-all-processes")
def test_a_wrong_count_of_calls_is_reported(workspace: Workspace, council: Terminal) -> None:
    assert council("--protocol", "triad", QUESTION).code == 0
    (run,) = workspace.runs()
    with sqlite3.connect(workspace.data / "council.db") as db:
        db.execute("UPDATE events SET body = json_set(body, '$.calls.made', 3) WHERE type = 'closed'")
    db.close()
    done = council("runs", "fsck")
    assert f"{run}: the run has 4 calls made in its ledger, but its report says 3" in done.out.splitlines()
    repaired = council("runs", "fsck", "--repair")
    assert repaired.code == 1  # an event is never changed


@pytest.mark.behaviour("40-damage-noticed")
def test_a_run_without_its_first_event_cannot_be_continued(workspace: Workspace, council: Terminal) -> None:
    assert council("--protocol", "triad", QUESTION).code == 0
    (run,) = workspace.runs()
    with sqlite3.connect(workspace.data / "council.db") as db:
        db.execute("DELETE FROM events WHERE seq = 1")
    db.close()
    done = council("resume", run)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"council: run {run} is damaged: its first event is missing")
    assert done.err.count("\n") == 1


@pytest.mark.behaviour("40-damage-noticed", "40-repair")
def test_a_damaged_store_is_noticed_by_a_new_run_and_repaired(workspace: Workspace, council: Terminal) -> None:
    for _ in range(2):
        assert council("--protocol", "triad", QUESTION).code == 0
    path, sent = workspace.data / "council.db", len(workspace.provider.log)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'settled'").fetchone()
    db.close()
    content = path.read_bytes()
    path.write_bytes(content[: (page - 1) * 4096] + b"\xff" * 4096 + content[page * 4096 :])
    refused = workspace.council(QUESTION)
    assert (refused.code, refused.err.count("\n"), len(workspace.provider.log)) == (1, 1, sent)
    assert "is damaged" in refused.err and "council runs fsck --repair" in refused.err
    repaired = council("runs", "fsck", "--repair")
    assert "repaired: store: the readable rows were copied to a new database" in repaired.err
    assert workspace.council("--protocol", "triad", QUESTION).code == 0
    assert len(workspace.runs()) == 3
