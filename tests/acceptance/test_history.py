"""Past runs: search, export, removal."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, mark, wait_for_exit
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.acceptance.test_worker import queue_run
from tests.fake_provider import Reply


def start_run(council: Terminal, question: str = QUESTION, protocol: str = "triad") -> str:
    return str(council("--json", "--protocol", protocol, question).json["run"])


# Search


@pytest.mark.behaviour("00-runs-search")
def test_a_run_is_found_by_words_of_its_question_its_statements_and_its_answer(
    workspace: Workspace, council: Terminal
) -> None:
    first, second = start_run(council), start_run(council, "Wie schnell läuft der Bär?")

    def search(*words: str) -> list[str]:
        return [row["run"] for row in council("runs", "search", *words, "--json").json]

    assert search("archive", "COLD") == [first]
    assert search("BÄR") == [second]
    assert search(mark("beta", "draft")) == search(mark("chair", "merge")) == [second, first]
    assert search("archive", "Bär") == search("100%") == []
    assert council("runs", "search", "archive").out.splitlines()[1].startswith(first)
    assert council("runs", "search", "no such word").out == 'no runs match "no such word"\n'
    assert council("runs", "search").code == 2


@pytest.mark.behaviour("00-runs-search-excerpt")
def test_a_search_shows_the_words_in_their_context(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair/merge"] = Reply(
        f"Move it.\n{'Nothing to see here. ' * 30}The \x1b[31mretention\x07 rules allow\na Deletion. {'More text. ' * 30}"
    )
    run = start_run(council)
    (row,) = council("runs", "search", "retention", "deletion", "--json").json
    assert row["run"] == run
    assert "The retention rules allow a Deletion. More text." in row["excerpt"]
    assert row["excerpt"].startswith("…") and row["excerpt"].endswith("…") and len(row["excerpt"]) < 160
    assert council("runs", "search", "archive", "--json").json[0]["excerpt"] == QUESTION
    shown = council("runs", "search", "retention").out
    _, first, excerpt = shown.splitlines()
    assert first.startswith(run) and excerpt.startswith("  …") and "The retention rules" in excerpt
    assert not {"\x1b", "\x07"} & set(shown)
    assert "excerpt" not in council("runs", "--json").json[0]


@pytest.mark.behaviour("00-runs-search-excerpt")
def test_only_a_terminal_shows_the_words_in_bold(workspace: Workspace, council: Terminal) -> None:
    start_run(council)

    def search(**env: str) -> str:
        terminal = PseudoTerminal(workspace.folder, "runs", "search", "ARCHIVE", "cold", columns=80, stdout=True, **env)
        terminal.wait_for_exit()
        return terminal.screen

    assert "\x1b[1marchive\x1b[0m move to \x1b[1mcold\x1b[0m" in search()
    assert "\x1b[1m" not in search(NO_COLOR="1")


# Names


def test_empty_name_never_matches_a_run(workspace: Workspace, council: Terminal) -> None:
    run = start_run(council)
    assert council("runs", "show", run[:3]).code == 0
    for command in ("cancel", "fork"):
        refused = council(command, "")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert workspace.runs() == [run]


# Export


@pytest.mark.behaviour("00-runs-export")
def test_an_export_holds_record_events_and_the_exact_requests(workspace: Workspace, council: Terminal) -> None:
    run = start_run(council)
    assert council("runs", "export", run, "-o", "run.json").out == ""
    whole = json.loads(Path("run.json").read_text())
    assert Path("run.json").stat().st_mode & 0o077 == 0
    assert (whole["schema"], whole["run"], whole["status"]) == ("council.run/1", run, "complete")
    assert [event["seq"] for event in whole["events"]] == list(range(1, len(whole["events"]) + 1))
    sent = {base64.b64decode(one["request"]) for one in whole["attempts"]}
    assert sent == {seen.raw for seen in workspace.provider.log}
    assert {one["result"]["finish"] for one in whole["attempts"]} == {"stop"}
    stored, read = json.loads(whole["report"]), council("report", run, "--json").json
    assert read.keys() - stored.keys() == {"positions", "sections", "changed"}  # computed for readers
    assert {key: read[key] for key in stored if key != "trust"} | {"trust": stored["trust"]} == stored
    assert json.loads(council("runs", "export", run).out) == whole


def test_failed_export_is_a_one_line_error(workspace: Workspace, council: Terminal) -> None:
    run = start_run(council)
    for arguments in ((run, "-o", "nowhere/run.json"), ("r2222",)):
        refused = council("runs", "export", *arguments)
        assert (refused.code, refused.err.count("\n")) == (2, 1)


# Removal


@pytest.mark.behaviour("00-runs-rm")
def test_removed_run_leaves_only_its_spending_rows(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(more='[prices."sim:*"]\ninput = 1\noutput = 1\n')
    gone, kept = start_run(council), start_run(council, "Another question?")
    spent = council("spend", "--json").json
    paths = {run: Path(council("report", run, "--json").json["report_path"]) for run in (gone, kept)}
    assert council("runs", "rm", gone).out == f"removed {gone}\n"
    assert [row["run"] for row in council("runs", "--json").json] == [kept]
    for name in ("events", "steps", "results", "intents", "phases", "live_parts", "asks"):
        assert workspace.rows(f"SELECT count(*) FROM {name} WHERE run = ?", gone) == [(0,)]
    assert not (workspace.data / "locks" / f"{gone}.lock").exists()
    assert (paths[gone].exists(), paths[kept].exists()) == (False, True)
    after = council("spend", "--json").json
    assert after["members"] == spent["members"]
    for name in ("usd", "estimated", "in_doubt", "calls", "unpriced", "tokens", "cached_saving"):
        assert after["total"][name] == spent["total"][name]
    assert b"mark-alpha" not in b"".join(
        body.encode() for (body,) in workspace.rows("SELECT body FROM settled WHERE run = ?", gone)
    )
    assert council("runs", "show", gone).code == 2
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("00-runs-rm")
def test_runs_from_before_a_day_are_removed_and_newer_ones_are_not(workspace: Workspace, council: Terminal) -> None:
    old, new = start_run(council), start_run(council)
    _age(workspace, old, days=40)
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() - 30 * 86400))
    refused = council("runs", "rm", "--before", day)
    assert (refused.code, refused.err.count("\n"), len(workspace.runs())) == (2, 1, 2)
    assert "1 run in this folder would be removed, nothing was removed: pass --yes" in refused.err
    done = council("runs", "rm", "--before", day, "--yes", "--json").json
    assert (done["removed"], done["kept"]) == ([old], {})
    assert workspace.runs() == [new]
    assert council("runs", "rm", "--before", day).out == "no runs before that day\n"


def _age(workspace: Workspace, run: str, days: int) -> None:
    with sqlite3.connect(workspace.data / "council.db") as db:
        db.execute("UPDATE runs SET created = created - ? WHERE id = ?", (days * 86400, run))


@pytest.mark.behaviour("00-runs-rm")
def test_running_or_queued_run_is_kept(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft")
    there = workspace.process("--protocol", "triad", QUESTION)
    gate.wait(count=3)
    (run,) = workspace.runs()
    waiting = queue_run()
    kept = council("runs", "rm", run, waiting)
    assert kept.code == 2
    assert f"kept {run}: run {run} is running in another process" in kept.out
    assert (
        f"kept {waiting}: run {waiting} is queued, so it was not removed: run `council cancel {waiting}` first"
        in kept.out
    )
    gate.release()
    assert wait_for_exit(there).code == 0
    council("cancel", waiting)
    assert council("runs", "rm", run, waiting).code == 0


@pytest.mark.behaviour("00-runs-rm")
def test_run_with_an_unfinished_fork_is_kept(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.seat_of["other"] = "chair"
    run = start_run(council)
    gate = workspace.hold("merge")
    forking = workspace.process("fork", run, "--seat", "chair=sim:other")
    gate.wait()
    kill(forking)
    gate.release()
    fork = workspace.runs()[1]
    kept = council("runs", "rm", run)
    assert kept.code == 2
    assert f"the unfinished fork {fork} uses its answers" in kept.out
    assert council("resume", fork).code == 0
    assert council("runs", "rm", run).code == 0
    assert council("runs", "fsck").code == 0


@pytest.mark.parametrize(
    "arguments", [(), ("r2222", "--before", "2026-01-01"), ("--before", "yesterday"), ("r2222", "--here")]
)
def test_removal_requires_a_run_or_a_date(workspace: Workspace, council: Terminal, arguments: tuple[str, ...]) -> None:
    refused = council("runs", "rm", *arguments)
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_unknown_run_cannot_be_removed(workspace: Workspace, council: Terminal) -> None:
    refused = council("runs", "rm", "r2222")
    assert (refused.code, refused.out) == (2, 'kept r2222: there is no run "r2222": `council runs` lists them\n')
