"""Machine-readable plan, report, error and events; output streams; exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import council as package
from tests.acceptance.helpers import PHASES, QUESTION, Json, Terminal, Workspace, mark
from tests.fake_provider import Reply

SCHEMAS = Path(package.__file__).parent / "data" / "schemas"


def fits(value: Json, kind: str) -> None:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(value)


@pytest.mark.behaviour("00-dry-run-plan", "00-words-choose-protocol")
@pytest.mark.parametrize(
    ("words", "protocol", "why", "question", "calls"),
    [
        ("which is better, REST or gRPC?", "adversarial", "which is better", "which is better, REST or gRPC?", (5, 7)),
        ("adversarial council: pick a queue", "adversarial", "adversarial council:", "pick a queue", (5, 7)),
        ("collaborative council: which is better", "collaborative", "collaborative council:", "which is better", (7, 7)),
        ("plan our offsite", "collaborative", "", "plan our offsite", (7, 7)),
        ("--protocol=triad which is better", "triad", "chosen by name", "which is better", (4, 4)),
    ],
)  # fmt: skip
def test_a_dry_run_prints_the_plan_and_spends_nothing(
    workspace: Workspace, council: Terminal, words: str, protocol: str, why: str, question: str, calls: tuple[int, int]
) -> None:
    flag, _, rest = words.partition(" ") if words.startswith("--") else ("", "", words)
    done = council("--dry-run", "--json", *filter(None, [flag]), rest)
    plan = done.json
    fits(plan, "plan")
    assert (done.code, done.err) == (0, "")
    assert (plan["protocol"], plan["question"]) == (protocol, question)
    assert why in plan["why"] and plan["why"]
    assert (plan["calls"]["min"], plan["calls"]["max"]) == calls
    assert [(phase["name"], phase["calls"], phase["parallel"]) for phase in plan["phases"]] == [
        (name, len(seats), len(seats) > 1) for name, seats in PHASES[protocol].items()
    ]
    assert [seat["model"] for seat in [*plan["seats"], plan["chair"]]] == [
        "sim:alpha", "sim:beta", "sim:gamma", "sim:chair",
    ]  # fmt: skip
    assert (workspace.provider.log, workspace.runs(), workspace.reports()) == ([], [], [])
    assert not (workspace.folder / ".agents").exists()


@pytest.mark.behaviour("00-dry-run-plan")
@pytest.mark.parametrize("protocol", ["advisors", "judges", "general", "ranking", "quick"])
def test_a_dry_run_of_other_protocols_has_a_plan(workspace: Workspace, council: Terminal, protocol: str) -> None:
    words = {"general": ["--no-search", QUESTION], "judges": ["council.toml"], "quick": ["council.toml"]}
    done = council("--dry-run", "--json", "--protocol", protocol, *words.get(protocol, [QUESTION]))
    fits(done.json, "plan")
    assert (done.code, done.json["protocol"], workspace.provider.log) == (0, protocol, [])


@pytest.mark.behaviour("00-reason-before-spending")
def test_protocol_and_reason_are_printed_before_anything_is_spent(workspace: Workspace) -> None:
    gate = workspace.hold("draft")
    process = workspace.process("-v", "which is better, REST or gRPC?")
    gate.wait(count=3)
    assert process.stderr and process.stdout
    line = process.stderr.readline()
    assert line.startswith("protocol adversarial:") and "which is better" in line
    gate.release()
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.behaviour("00-json-whatever-status", "00-schemas-published")
@pytest.mark.parametrize("protocol", PHASES)
@pytest.mark.parametrize("status", ["complete", "incomplete", "failed"])
def test_every_report_fits_the_published_schema(
    workspace: Workspace, council: Terminal, protocol: str, status: str
) -> None:
    silent = {"complete": (), "incomplete": ("chair",), "failed": ("alpha", "beta", "gamma")}[status]
    workspace.answers.instead |= dict.fromkeys(silent, Reply(status=401))
    done = council("--json", "--protocol", protocol, QUESTION)
    fits(done.json, "report")
    assert (done.json["status"], done.code) == (status, {"complete": 0, "incomplete": 3, "failed": 4}[status])
    assert list(done.json)[:5] == ["schema", "run", "name", "status", "task"]
    for arguments in (("report", "--json"), ("runs", "show", "--json"), ("runs", "replay", "--json")):
        again = council(*arguments)
        assert (again.code, again.json) == (0, done.json)


@pytest.mark.behaviour("00-jsonl")
def test_jsonl_streams_events_without_a_gap_in_their_numbers(workspace: Workspace) -> None:
    done = workspace.council("--jsonl", "--protocol", "adversarial", QUESTION)
    assert (done.code, done.err) == (0, "")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["seq"] for event in events if event["seq"]] == list(range(1, events[-1]["seq"] + 1))
    assert all(event["type"] in ("delta", "fetch") for event in events if not event["seq"])
    assert (events[0]["type"], events[-1]["type"], events[-1]["status"]) == ("convened", "closed", "complete")
    fits(events[0]["plan"], "plan")
    assert [event["phase"] for event in events if event["type"] == "phase"] == list(PHASES["adversarial"])
    streamed = "".join(event["text"] for event in events if event["type"] == "delta" and event["key"] == "draft/beta")
    assert streamed == f"The draft of beta: {mark('beta', 'draft')}."


@pytest.mark.behaviour("00-stdout-answer-only")
def test_standard_output_contains_only_the_answer(workspace: Workspace) -> None:
    done = workspace.council("-v", "--answer-only", "--protocol", "triad", QUESTION)
    assert done.code == 2
    done = workspace.council("--answer-only", "--protocol", "triad", QUESTION)
    assert done.out == f"The merge of chair: {mark('chair', 'merge')}.\n"
    assert "\x1b" not in done.out + done.err


@pytest.mark.behaviour("00-stdout-answer-only", "000-verbose")
def test_quiet_prints_no_progress_and_verbose_prints_every_statement(workspace: Workspace, council: Terminal) -> None:
    quiet = council("--quiet", "--protocol", "triad", QUESTION)
    assert (quiet.code, quiet.err) == (0, "")
    verbose = council("--verbose", "--protocol", "triad", QUESTION)
    by_words = council("--protocol", "triad", f"{QUESTION} show debate")
    assert mark("alpha", "draft") not in quiet.out
    assert all(mark(seat, "draft") in verbose.out for seat in ("alpha", "beta", "gamma"))
    assert verbose.out == by_words.out


@pytest.mark.behaviour("00-output-file")
def test_o_writes_the_answer_to_a_file(workspace: Workspace, council: Terminal) -> None:
    printed = council("--protocol", "triad", QUESTION)
    done = council("-o", "answer.md", "--protocol", "triad", QUESTION)
    assert (done.code, done.out) == (0, "")
    assert (workspace.folder / "answer.md").read_text() == printed.out
    sent = len(workspace.provider.log)
    refused = council("-o", "no/such/folder/answer.md", QUESTION)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "no/such/folder/answer.md" in refused.err
    assert len(workspace.provider.log) == sent


@pytest.mark.behaviour("00-json-errors")
@pytest.mark.parametrize(
    "arguments",
    [("--json", "--frobnicate", "x"), ("--json", "--protocol", "quorate", "x"), ("--json", ""), ("resume", "--json", "r99999"),
     ("report", "nope", "--json"), ("serve", "--json"), ("runz", "--json")],
)  # fmt: skip
def test_errors_are_one_object_with_json(workspace: Workspace, council: Terminal, arguments: tuple[str, ...]) -> None:
    done = council(*arguments)
    fits(done.json, "error")
    assert (done.code, done.json["exit"], done.err) == (2, 2, "")
    assert "\n" not in done.json["error"]
    assert workspace.runs() == []


@pytest.mark.behaviour("13-report-places")
def test_reports_of_questions_are_in_the_data_folder(workspace: Workspace, council: Terminal) -> None:
    first, second = (council("--json", QUESTION).json for _ in range(2))
    assert [path.name.partition("-collaborative-")[2] for path in workspace.reports()] == [
        "should-the-archive-move-to-cold-storage-2.md",
        "should-the-archive-move-to-cold-storage.md",
    ]
    assert second["report_path"] == first["report_path"].replace(".md", "-2.md")
    assert Path(first["report_path"]).parent == workspace.data / "reports"
    assert [path.name for path in workspace.folder.iterdir()] == ["council.toml"]
    listed = council("runs", "--json")
    assert [row["run"] for row in json.loads(listed.out)] == [second["run"], first["run"]]
