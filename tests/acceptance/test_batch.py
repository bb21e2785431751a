"""`council batch`: rows in, one line per row out, and no row or call twice, whatever happens in between."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import pytest

from tests.acceptance.helpers import SEATS, Json, Terminal, Workspace, kill, wait_for_exit
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import Gate, Reply
from tests.paths import ROOT
from tests.trusted_project import write_user_file

IN, OUT = 3.0, 15.0  # dollars per million tokens
CALLS = 4  # of one triad
TRIAD = ("--protocol", "triad")
SCHEMA = ROOT / "src" / "council" / "data" / "schemas" / "batch.json"


@pytest.fixture(autouse=True, params=["sqlite", pytest.param("postgres", marks=pytest.mark.sweep)])
def _database_in_use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the runs in SQLite, and in a sweep in PostgreSQL."""
    if request.param == "postgres":
        monkeypatch.setenv("COUNCIL_DATABASE", request.getfixturevalue("database"))


def write_rows(workspace: Workspace, count: int, name: str = "rows.jsonl", **fields: Any) -> str:
    rows = [{"id": f"q{n}", "question": f"Should archive {n} move?", **fields} for n in range(count)]
    (workspace.folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return name


def read_lines(workspace: Workspace, name: str = "out.jsonl") -> list[Json]:
    path = workspace.folder / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def ids(lines: Sequence[Json]) -> list[str]:
    return sorted((line["id"] for line in lines), key=lambda one: int(one[1:]))


def expected_ids(count: int) -> list[str]:
    return [f"q{n}" for n in range(count)]


def set_prices(workspace: Workspace) -> None:
    write_user_file(f'[prices."sim:*"]\ninput = {IN}\noutput = {OUT}\n')


@pytest.mark.behaviour("50-batch-lines", "50-batch-resume")
def test_each_row_gets_one_line_and_is_not_asked_again(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 5)
    first = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert first.code == 0 and first.out.startswith("5 of 5 rows complete\n"), first.err
    lines = read_lines(workspace)
    assert ids(lines) == expected_ids(5)
    for line in lines:
        assert {name: line[name] for name in ("status", "error")} == {"status": "complete", "error": None}
        read = council("report", line["run"], "--json").json
        assert {key: read[key] for key in line["report"] if key != "trust"} | {
            "trust": line["report"]["trust"]
        } == line["report"]
    with (workspace.folder / rows).open("a", encoding="utf-8") as file:
        file.write('{"id": "q5", "question": "And this one?", "options": {"protocol": "collaborative"}}\n')
    again = council("batch", rows, "-o", "out.jsonl", "--json", *TRIAD)
    assert again.code == 0
    jsonschema.validate(again.json, json.loads(SCHEMA.read_text(encoding="utf-8")))
    counts = {name: again.json[name] for name in ("rows", "already_done", "complete", "failed", "left")}
    assert counts == {"rows": 6, "already_done": 5, "complete": 1, "failed": 0, "left": 0}
    assert len(workspace.provider.log) == 5 * CALLS + 7
    assert read_lines(workspace)[:5] == lines
    assert not list(workspace.folder.glob("out.jsonl.*"))


@pytest.mark.behaviour("50-batch-bad-rows")
def test_a_bad_option_of_one_row_is_refused_before_anything_is_sent(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 3)
    with (workspace.folder / rows).open("a", encoding="utf-8") as file:
        file.write('{"id": "odd", "question": "Which?", "options": {"rounds": 9, "protocol": "advisors"}}\n')
        file.write('{"id": "typo", "question": "Which?", "options": {"members": "unknown:here"}}\n')
    refused = council("batch", rows, "-o", "out.jsonl")
    assert refused.code == 2
    first, second, last = refused.err.strip().split("\n")
    assert first.startswith('rows.jsonl: line 4 (id "odd"): rounds ') and "9" in first
    assert second.startswith('rows.jsonl: line 5 (id "typo"): ') and "unknown" in second
    assert last.startswith('council: 2 rows of "rows.jsonl" cannot be used, nothing was sent: ')
    assert not workspace.provider.log and not list(workspace.folder.glob("out.jsonl*"))


BAD_COMMANDS = {
    "no file": ((), "no file was given"),
    "no output": (("rows.jsonl",), "no output file was given"),
    "a missing file": (("none.jsonl", "-o", "out.jsonl"), '"none.jsonl" does not exist'),
    "no rows": (("empty.jsonl", "-o", "out.jsonl"), '"empty.jsonl" has no rows'),
    "the input as output": (("rows.jsonl", "-o", "rows.jsonl"), "is both the input and the output"),
    "a folder as output": (("rows.jsonl", "-o", "."), "is not a regular file"),
    "another file as output": (("rows.jsonl", "-o", "notes.txt"), 'line 1 of "'),
    "standard output": (("rows.jsonl", "-o", "-"), 'the output "-" is no file'),
    "no folder": (("rows.jsonl", "-o", "no/out.jsonl"), "is in a folder that does not exist"),
    "no concurrency": (("rows.jsonl", "-o", "out.jsonl", "--concurrency", "0"), '--concurrency "0" is out of range'),
    "an empty sample": (("rows.jsonl", "-o", "out.jsonl", "--sample", "0"), '--sample "0" is out of range'),
    "a negative limit": (("rows.jsonl", "-o", "out.jsonl", "--max-cost", "-1"), '--max-cost "-1" is out of range'),
    "no price": (("rows.jsonl", "-o", "out.jsonl", "--max-cost", "1"), 'no price for "sim:'),
    "a person": (("rows.jsonl", "-o", "out.jsonl", "--seat", "alpha=human"), 'seat "alpha" is a person'),
}


@pytest.mark.behaviour("50-batch-bad-rows", "00-bad-input-one-line")
@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_a_batch_that_cannot_start_says_why_in_one_line(workspace: Workspace, council: Terminal, case: str) -> None:
    write_rows(workspace, 2)
    (workspace.folder / "empty.jsonl").write_text("\n", encoding="utf-8")
    (workspace.folder / "notes.txt").write_text("my notes", encoding="utf-8")  # like a line that a crash has cut
    arguments, problem = BAD_COMMANDS[case]
    before = sorted(workspace.folder.iterdir())
    refused = council("batch", *arguments)
    assert refused.code == 2 and not refused.out
    assert problem in refused.err and refused.err.count("\n") == 1
    assert not workspace.provider.log and sorted(workspace.folder.iterdir()) == before
    assert (workspace.folder / "notes.txt").read_text(encoding="utf-8") == "my notes"


@pytest.mark.behaviour("50-batch-plan")
def test_a_dry_run_shows_the_cost_of_all_rows_and_sends_nothing(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 4, options={"protocol": "triad"})
    plan = council("--dry-run", "--json", *TRIAD, "Should archive 0 move?").json
    shown = council("batch", rows, "-o", "out.jsonl", "--dry-run", "--json")
    assert shown.code == 0 and not workspace.provider.log
    (group,) = shown.json["groups"]
    assert (group["protocol"], group["rows"], group["calls"]) == ("triad", 4, {"min": 4, "max": 4})
    assert shown.json["cost"]["expected"] == pytest.approx(4 * plan["cost"]["expected"])
    assert not (workspace.folder / "out.jsonl").exists()


@pytest.mark.behaviour("50-batch-changed-row")
def test_a_row_that_changed_after_its_answer_is_refused(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 2)
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    text = (workspace.folder / rows).read_text(encoding="utf-8")
    (workspace.folder / rows).write_text(text.replace("archive 1 move", "archive 1 stay"), encoding="utf-8")
    refused = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert refused.code == 2 and 'line 2: the row "q1" has a result in "out.jsonl", but' in refused.err
    kept = [line for line in (workspace.folder / "out.jsonl").read_text().splitlines() if '"id":"q1"' not in line]
    (workspace.folder / "out.jsonl").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert {line["id"]: line["report"]["question"] for line in read_lines(workspace)} == {
        "q0": "Should archive 0 move?",
        "q1": "Should archive 1 stay?",
    }


@pytest.mark.behaviour("50-batch-failures")
def test_rows_that_failed_are_listed_and_asked_again_by_the_next_run(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 4)
    workspace.answers.instead["chair"] = lambda seen: (
        Reply(status=401) if "archive 2 " in seen.prompt else None
    )  # the statements of the seats are kept
    first = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert first.code == 3
    assert first.out.startswith("3 of 4 rows complete, 1 incomplete\n")
    assert "! q2 (line 3): incomplete: " in first.out and "retry: run the same command again" in first.out
    (failed,) = (line for line in read_lines(workspace) if line["status"] != "complete")
    assert failed["id"] == "q2" and failed["error"] and failed["report"]["status"] == "incomplete"
    workspace.answers.instead.clear()
    sent = len(workspace.provider.log)
    second = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert second.code == 0, second.out
    assert workspace.asked(sent) == ["merge/chair"]
    lines = read_lines(workspace)
    assert ids(lines) == expected_ids(4) and {line["status"] for line in lines} == {"complete"}
    assert failed["run"] in {line["run"] for line in lines}


@pytest.mark.behaviour("50-batch-changed-row", "50-batch-failures")
def test_a_failed_row_can_be_corrected_and_a_removed_output_begins_again(
    workspace: Workspace, council: Terminal
) -> None:
    rows = write_rows(workspace, 2)
    text = (workspace.folder / rows).read_text(encoding="utf-8")
    (workspace.folder / rows).write_text(text.replace("archive 1", "no/file.py"), encoding="utf-8")
    workspace.answers.instead["chair"] = lambda seen: Reply(status=401) if "no/file.py" in seen.prompt else None
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 3
    (workspace.folder / rows).write_text(text, encoding="utf-8")
    assert council("batch", rows, "-o", "out.jsonl", "--sample", "2", *TRIAD).code == 0
    lines = {line["id"]: line for line in read_lines(workspace)}
    assert lines["q1"]["report"]["question"] == "Should archive 1 move?" and len(lines) == 2
    (workspace.folder / "out.jsonl").unlink()
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert not {line["run"] for line in lines.values()} & {line["run"] for line in read_lines(workspace)}


@pytest.mark.behaviour("50-batch-failures")
def test_a_row_whose_run_was_removed_is_asked_again_as_another_run(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 2)
    workspace.answers.instead["chair"] = Reply(status=401)
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 3
    removed = {line["run"] for line in read_lines(workspace)}
    assert council("runs", "rm", *removed, "--yes").code == 0
    workspace.answers.instead.clear()
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert not removed & {line["run"] for line in read_lines(workspace)}
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("50-batch-failures", "00-exit-no-access")
def test_a_batch_ends_if_every_row_fails_at_its_beginning(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 30)
    workspace.provider.answer = lambda seen: Reply(status=401)
    ended = council("batch", rows, "-o", "out.jsonl", "--concurrency", "2", *TRIAD)
    assert ended.code == 4
    assert "stopped, because every row so far has failed" in ended.out
    assert 10 <= len(read_lines(workspace)) <= 12


@pytest.mark.behaviour("50-batch-budget")
def test_the_limit_of_a_batch_is_never_exceeded(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 12)
    ended_rows = []
    for cap in (0.34, 0.36, 0.38, None):  # a row needs about 33 cents to start, and costs about one
        limit = () if cap is None else ("--max-cost", str(cap))
        ended = council("batch", rows, "-o", "out.jsonl", "--json", *limit, *TRIAD)
        billed = sum(seen.tokens["in"] * IN + seen.tokens["out"] * OUT for seen in workspace.provider.log) / 1e6
        spent = ended.json["cost"]["usd"] + ended.json["cost"]["before"]
        assert ended.json["cost"]["in_doubt"] == ended.json["incomplete"] == 0
        assert billed == pytest.approx(spent) and (cap is None or spent <= cap)
        assert ended.code == (0 if cap is None else 5)
        ended_rows.append(len(read_lines(workspace)))
    assert ended_rows[0] < ended_rows[1] < ended_rows[2] < 12
    assert ids(read_lines(workspace)) == expected_ids(12)
    assert len(workspace.provider.log) == 12 * CALLS


@pytest.mark.behaviour("50-batch-budget")
def test_a_row_whose_own_limit_cannot_cover_it_is_named_before_anything_is_sent(
    workspace: Workspace, council: Terminal
) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 3)
    with (workspace.folder / rows).open("a", encoding="utf-8") as file:
        file.write('{"id": "q3", "question": "Should archive 3 move?", "options": {"max_cost": 0.001}}\n')
    refused = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert (refused.code, workspace.provider.log, workspace.runs()) == (2, [], [])
    assert "line 4" in refused.err and "the cap of $0.0010 does not cover this council" in refused.err


@pytest.mark.behaviour("50-batch-budget")
def test_the_rest_of_a_day_starts_only_rows_that_can_finish(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    write_user_file(f'[prices."sim:*"]\ninput = {IN}\noutput = {OUT}\n[budget]\nmax_cost_per_day = 0.38\n')
    rows = write_rows(workspace, 12)
    ended = council("batch", rows, "-o", "out.jsonl", "--json", *TRIAD)
    assert (ended.code, ended.json["stopped"], ended.json["incomplete"], ended.json["failed"]) == (5, "budget", 0, 0)
    assert 0 < ended.json["complete"] < 12
    assert len(workspace.provider.log) == CALLS * ended.json["complete"]  # no request bought nothing


@pytest.mark.behaviour("50-batch-sample")
def test_a_sample_runs_first_and_estimates_the_cost_of_all_rows(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 8)
    first = council("batch", rows, "-o", "out.jsonl", "--sample", "2", *TRIAD)
    assert first.code == 0 and "all 8 rows, about $" in first.out
    lines = read_lines(workspace)
    again = council("batch", rows, "-o", "out.jsonl", "--sample", "2", "--json", *TRIAD)
    assert again.json["already_done"] == 2
    cost = sum(line["report"]["cost"]["usd"] for line in lines)
    assert again.json["cost"]["estimate"] == pytest.approx(cost * 4)
    assert read_lines(workspace) == lines
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert len(workspace.provider.log) == 8 * CALLS


@pytest.mark.behaviour("50-batch-one-writer", "50-batch-interrupt")
def test_a_second_batch_with_the_same_output_is_refused_and_an_interrupted_one_continues(
    workspace: Workspace, council: Terminal
) -> None:
    rows = write_rows(workspace, 6)
    gate = workspace.hold("merge")
    first = workspace.process("batch", rows, "-o", "out.jsonl", "--concurrency", "3", *TRIAD)
    gate.wait(count=3)
    refused = council("batch", rows, "-o", "out.jsonl", *TRIAD)
    assert refused.code == 2 and refused.err.count("\n") == 1
    assert "another batch is writing to " in refused.err
    os.kill(first.pid, signal.SIGINT)
    ended = wait_for_exit(first)
    assert ended.code == 130, ended.err
    assert "0 of 6 rows complete, 6 left" in ended.out
    assert "stopped: run the same command again to continue" in ended.out
    gate.release()
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert ids(read_lines(workspace)) == expected_ids(6)
    asked = Counter(workspace.asked())
    assert asked["merge/chair"] == 9  # the three that were interrupted are sent again
    assert {asked[f"draft/{seat}"] for seat in SEATS} == {6}


@pytest.mark.behaviour("50-batch-resume")
def test_a_line_that_a_crash_has_cut_is_written_again_without_a_call(workspace: Workspace, council: Terminal) -> None:
    rows = write_rows(workspace, 3)
    workspace.answers.instead["chair"] = lambda seen: Reply(status=401) if "archive 2 " in seen.prompt else None
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 3  # the batch is not complete
    workspace.answers.instead.clear()
    text = (workspace.folder / "out.jsonl").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if '"status":"complete"' in line]
    (workspace.folder / "out.jsonl").write_text(f"{lines[0]}\n{lines[1][:100]}", encoding="utf-8")
    sent = len(workspace.provider.log)
    assert council("batch", rows, "-o", "out.jsonl", *TRIAD).code == 0
    assert workspace.asked(sent) == ["merge/chair"]
    assert sorted(map(json.dumps, map(json.loads, lines))) == sorted(
        json.dumps(line) for line in read_lines(workspace) if line["id"] != "q2"
    )


@pytest.mark.behaviour("50-batch-progress")
def test_a_terminal_shows_a_bar_with_rate_cost_and_time_left(workspace: Workspace) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 3)
    gate = workspace.provider.hold(lambda seen: "archive 2 " in seen.prompt)
    screen = PseudoTerminal(workspace.folder, "batch", rows, "-o", "out.jsonl", "--concurrency", "1", "--yes", *TRIAD)
    screen.wait_for("2/3 · ")
    line = screen.wait_for(" left")
    assert re.search(r"rows/(s|min) · \$", line)
    gate.release()
    ended = screen.wait_for_exit()
    assert ended.code == 0 and ended.out.startswith("3 of 3 rows complete\n")
    assert not any("rows/" in row for row in screen.draw())


@pytest.mark.behaviour("50-batch-csv")
def test_rows_can_be_piped_in(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, council: Terminal) -> None:
    piped = workspace.folder / "piped"
    piped.write_text("question,protocol\nShould archive 9 move?,triad\n", encoding="utf-8")
    with piped.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert council("batch", "-", "-o", "out.jsonl").code == 0
    (line,) = read_lines(workspace)
    assert line["report"]["protocol"] == "triad"


# Crashes


def list_answered(workspace: Workspace) -> set[bytes]:
    """Return the requests whose answers are committed."""
    query = """SELECT i.body FROM intents i JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n
               WHERE s.body LIKE '%"finish"%'"""
    return {bytes(body) for (body,) in workspace.rows(query)}


def hold_from(workspace: Workspace, number: int) -> Gate:
    """Hold all requests from this number on, so that a batch cannot end before it is killed."""
    return workspace.provider.hold(lambda seen: seen.n >= number)


def kill_batch(workspace: Workspace, council: Terminal, count: int, kills: int, seed: int) -> dict[str, int]:
    """Kill a batch at random moments, then run it to its end, and check that nothing was lost or bought twice."""
    rows, chance = write_rows(workspace, count), random.Random(seed)
    moments = sorted(chance.sample(range(5, count * CALLS), kills))
    committed: list[tuple[int, set[bytes]]] = []
    for moment in moments:
        gate = hold_from(workspace, moment)
        process = workspace.process("batch", rows, "-o", "out.jsonl", "--quiet", *TRIAD)
        gate.wait(timeout=300)
        kill(process)
        gate.release()
        committed.append((len(workspace.provider.log), list_answered(workspace)))
    ended = wait_for_exit(workspace.process("batch", rows, "-o", "out.jsonl", "--quiet", *TRIAD))
    assert ended.code == 0, ended.out + ended.err
    lines = read_lines(workspace)
    assert ids(lines) == expected_ids(count)
    assert {line["status"] for line in lines} == {"complete"}
    assert len({line["run"] for line in lines}) == len(workspace.runs()) == count
    log = workspace.provider.log
    bought_again = [seen for sent, answered in committed for seen in log[sent:] if seen.raw in answered]
    assert not bought_again
    repeated = sum(times - 1 for times in Counter(seen.raw for seen in log).values())
    assert len(log) - repeated == count * CALLS
    checked = council("runs", "fsck")
    assert checked.code == 0, checked.out
    return {
        "rows": count,
        "kills": kills,
        "calls": len(log),
        "in_flight_again": repeated,
        "bought_twice": len(bought_again),
    }


@pytest.mark.behaviour("50-batch-crash")
def test_a_killed_batch_ends_with_every_row_once_and_buys_nothing_twice(
    workspace: Workspace, council: Terminal
) -> None:
    kill_batch(workspace, council, 30, 3, seed=1)


@pytest.mark.behaviour("50-batch-budget", "50-batch-crash")
def test_a_killed_batch_stays_within_its_limit(workspace: Workspace, council: Terminal) -> None:
    set_prices(workspace)
    rows = write_rows(workspace, 16)
    for moment in (6, 17, 30):
        gate = hold_from(workspace, moment)
        process = workspace.process("batch", rows, "-o", "out.jsonl", "--quiet", "--max-cost", "20", *TRIAD)
        gate.wait()
        kill(process)
        gate.release()
    reserved = workspace.rows("SELECT sum(coalesce(charged, reserved)) FROM spending")[0][0] / 1e9
    for cap in (reserved + 0.05, 50.0):
        ended = council("batch", rows, "-o", "out.jsonl", "--json", "--max-cost", str(cap), *TRIAD)
        spent = workspace.rows("SELECT sum(coalesce(charged, reserved)) FROM spending WHERE key <> ''")[0][0] / 1e9
        billed = sum(seen.tokens["in"] * IN + seen.tokens["out"] * OUT for seen in workspace.provider.log) / 1e6
        assert billed <= spent <= cap
        cost = ended.json["cost"]
        assert cost["usd"] + cost["in_doubt"] + cost["before"] == pytest.approx(spent)
        assert ended.code in (0, 5)  # if the kill came late, the rest may fit
    assert ended.code == 0
    assert ids(read_lines(workspace)) == expected_ids(16)


@pytest.mark.sweep
@pytest.mark.behaviour("50-batch-crash")
def test_a_batch_of_a_thousand_rows_survives_five_kills(
    workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    sweep_figures("batch", **kill_batch(workspace, council, 1000, 5, seed=2))
