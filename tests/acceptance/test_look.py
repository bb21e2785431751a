"""`council --look`: seats read the project before they answer, through the gate and the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from council.protocols.common.lookups import can_look
from council.types import Seat
from tests.acceptance.helpers import Json, Terminal, Workspace, check_store, kill, mark
from tests.fake_provider import Reply
from tests.trusted_project import write_user_file

QUESTION = "Should we split the billing module?"
KEY = "-".join(["sk", "proj", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"])
FILES = {
    "src/billing/invoice.py": "def invoice(order):\n    return order.total * 1.2\n",
    "src/billing/rates.py": "RATE = 0.2\n",
    "src/billing/tax.py": "".join(f"line {n}\n" for n in range(1, 51)),
    "src/settings.py": f'API_KEY = "{KEY}"\n',
    ".env": "TOKEN=1\n",
    "README.md": "The shop.\n",
}
FIRST: Json = {
    "files": [
        {"path": "src/billing/invoice.py", "first": 0, "last": 0},
        {"path": "src/billing/rates.py"},
        "src/billing/tax.py:10-12",
        {"path": "../outside.txt", "first": 0, "last": 0},
        {"path": ".env", "first": 0, "last": 0},
    ],
    "names": [],
    "patterns": [r"order\.\w+"],
}


@pytest.fixture
def project(workspace: Workspace) -> Workspace:
    for name, text in FILES.items():
        path = workspace.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (workspace.folder.parent / "outside.txt").write_text("not yours\n", encoding="utf-8")
    return workspace


def looked_up(workspace: Workspace) -> list[Json]:
    rows = workspace.rows("SELECT body FROM events WHERE type = 'lookup' ORDER BY seq")
    return [json.loads(body) for (body,) in rows]


@pytest.mark.behaviour("look-gated", "look-events", "look-resume", "look-report", "look-plan")
def test_a_seat_reads_the_project_and_a_resumed_run_reads_nothing_twice(project: Workspace, council: Terminal) -> None:
    plan = council("--look", "--dry-run", "--json", QUESTION).json
    assert plan["look"] == {"hops": 3, "lookups": 12, "seats": ["alpha", "beta", "gamma"]}
    assert (plan["calls"], plan["phases"][0]["calls"]) == ({"min": 10, "max": 16}, 12)
    project.answers.instead["alpha/look"] = [Reply(text=f"I need these:\n```json\n{json.dumps(FIRST)}\n```\nThanks.")]
    gate = project.hold("draft", "alpha")
    process = project.process("--look", "--json", QUESTION)
    gate.wait()
    first = project.prompt("draft/alpha")
    kill(process)
    gate.release()
    assert "2|     return order.total * 1.2" in first and "1| RATE = 0.2" in first
    assert "File src/billing/tax.py, lines 10 to 12 of 50:\n10| line 10\n11| line 11\n12| line 12\n" in first
    assert "src/billing/invoice.py:2:     return order.total * 1.2" in first
    assert "File ../outside.txt: not shown: " in first and "not yours" not in first
    assert "File .env: not shown: secret found at .env:1 (secret file name)" in first and "TOKEN" not in first
    events = looked_up(project)
    assert [(one["seat"], one["found"], bool(one["why"])) for one in events] == [
        ("alpha", 1, False), ("alpha", 1, False), ("alpha", 1, False), ("alpha", 0, True), ("alpha", 0, True), ("alpha", 1, False),
    ]  # fmt: skip
    assert all(json.loads(one["what"])["files"] or json.loads(one["what"])["patterns"] for one in events)
    (project.folder / "src/billing/rates.py").write_text("RATE = 0.9\n", encoding="utf-8")
    since = len(project.provider.log)
    done = project.council("resume", "--json")
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    assert "look/alpha" not in project.asked(since)
    (again,) = [seen for seen in project.provider.log[since:] if project.answers.who(seen) == ("alpha", "draft")]
    assert again.prompt == first  # the file has changed, the request has not
    assert looked_up(project) == events
    check_store(council)
    alpha = next(seat for seat in done.json["seats"] if seat["name"] == "alpha")
    assert [row["what"] for row in alpha["looked_up"]] == [
        "src/billing/invoice.py", "src/billing/rates.py", "src/billing/tax.py:10-12", "../outside.txt", ".env", '"order\\.\\w+"',
    ]  # fmt: skip
    assert [row["found"] for row in alpha["looked_up"]] == [1, 1, 1, 0, 0, 1]
    report = Path(done.json["report_path"]).read_text(encoding="utf-8")
    assert "## What the Seats Read" in report and "| alpha | .env | not shown: secret found at .env:1" in report


@pytest.mark.behaviour("look-imperfect-requests", "look-gated")
def test_seats_that_ask_badly_still_answer(project: Workspace, council: Terminal) -> None:
    many = [f"src/billing/part{n}.py" for n in range(40)]
    project.answers.instead |= {
        "alpha/look": [
            Reply(text=json.dumps({"files": many, "names": [], "patterns": []})),
        ],
        "beta/look": [
            Reply(text="I do not need any files. Splitting modules by team usually works best, so go ahead.")
        ],
        "gamma/look": [
            Reply(text=json.dumps({"files": [{"path": "src/settings.py", "start_line": 1, "end_line": 9}]})),
            Reply(text='First {"files": ["src/settings.py:1-9", "README.md"]} and then {"names": ["*.py"]}, please.'),
            Reply(text=json.dumps({"files": [], "names": ["nothing-like-this"], "patterns": ["class Invoice"]})),
        ],
    }
    done = council("--look", "--json", QUESTION)
    report = done.json
    assert (done.code, report["status"], {row["state"] for row in report["degraded"]}) == (0, "complete", {"notice"})
    asked = [key for key in project.asked() if key.startswith("look/")]
    assert sorted(asked) == ["look/alpha", "look/beta", *["look/gamma"] * 3]  # alpha has used all of its look-ups
    alpha, beta, gamma = report["seats"]
    assert len(alpha["looked_up"]) == 12 and not any(row["found"] for row in alpha["looked_up"])
    assert "looked_up" not in beta and "# What you read" not in project.prompt("draft/beta")
    assert [row["what"] for row in gamma["looked_up"]] == [
        "src/settings.py:1-9", "README.md", "*.py", "nothing-like-this", '"class Invoice"',
    ]  # fmt: skip
    assert gamma["looked_up"][0]["why"].startswith("secret found at src/settings.py:1")
    second = [seen.prompt for seen in project.provider.log if project.answers.who(seen) == ("gamma", "look")][2]
    assert "1 request not repeated: the results are above." in second and "src/billing/rates.py" in second
    draft = project.prompt("draft/gamma")
    assert "1| The shop." in draft and 'Lines that match "class Invoice":\nnone' in draft
    assert mark("gamma", "draft") in project.prompt("improve/alpha")
    assert KEY not in "".join(seen.prompt for seen in project.provider.log)


@pytest.mark.behaviour("look-gated")
def test_redact_masks_secrets_in_looked_up_files(project: Workspace, council: Terminal) -> None:
    project.answers.instead["alpha/look"] = [Reply(text='{"files": ["src/settings.py"]}')]
    assert council("--look", "--redact", "--protocol", "triad", QUESTION).code == 0
    assert "1| API_KEY = " in project.prompt("draft/alpha") and KEY not in project.prompt("draft/alpha")


@pytest.mark.behaviour("look-protocols", "look-members")
def test_ranking_refuses_look_and_members_with_tools_of_their_own_do_not_look(
    project: Workspace, council: Terminal
) -> None:
    done = council("--look", "--protocol", "ranking", QUESTION)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "council: the protocol ranking does not allow --look, because its seats answer blind: drop it, or choose another protocol\n"
    )
    plan = council("--look", "--dry-run", "--json", "-m", "local:smollm2", QUESTION).json
    assert "look" not in plan and any(line.startswith("--look has no effect") for line in plan["warnings"])
    assert not can_look(Seat("alpha", member="cli:claude")) and not can_look(Seat("alpha", member="human"))
    assert can_look(Seat("alpha", member="anthropic:claude-opus-4.6"))
    assert project.provider.log == []


@pytest.mark.behaviour("look-limits")
def test_a_seat_that_cannot_look_still_answers_and_a_silent_one_is_dropped(
    project: Workspace, council: Terminal
) -> None:
    project.answers.instead |= {
        "alpha/look": [Reply(status=500)] * 3,
        "beta/look": [Reply(text='{"files": [{"path": "src/a'), Reply(text='{"files": [{"path": "src/a')],
        "gamma/look": Reply(hang=True),
    }
    done = council("--look", "--grace", "0.2", "--json", "--protocol", "triad", QUESTION)
    rows = [(row["seat"], row["phase"], row["state"]) for row in done.json["degraded"] if row["seat"]]
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    assert sorted(rows) == [
        ("alpha", "draft/alpha/look-1", "failed(server)"), ("beta", "draft/beta/look-1", "unread"),
        ("gamma", "draft/gamma/look-1", "timed_out"),
    ]  # fmt: skip
    assert [seat["state"] for seat in done.json["seats"]] == ["ok", "ok", "timed_out"]
    assert done.json["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    report = Path(done.json["report_path"]).read_text(encoding="utf-8")
    assert "alpha did not answer in look-up 1" in report and "It answered later." in report


@pytest.mark.behaviour("look-protocols", "look-report")
def test_judges_look_and_their_verdicts_count(project: Workspace, council: Terminal) -> None:
    done = council("--look", "--json", "-m", "scripted:", "validate", "src/billing")
    assert done.code in (0, 3), done.err
    assert {seat["verdict"] for seat in done.json["seats"]} <= {"PASS", "WARN", "FAIL"}
    assert all(seat["looked_up"] for seat in done.json["seats"])
    assert "## What the Seats Read" in (project.folder / done.json["report_path"]).read_text(encoding="utf-8")


@pytest.mark.behaviour("look-limits", "look-plan")
def test_the_budget_covers_look_ups(project: Workspace, council: Terminal) -> None:
    write_user_file('[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n')
    plain, looking = (council(*flags, "--dry-run", "--json", "--protocol", "triad", QUESTION).json["cost"] for flags in ((), ("--look",)))  # fmt: skip
    assert plain["low"] < looking["low"] and plain["expected"] < looking["expected"]
    results = (
        3 * 3 * 20_000 / 1e6
    )  # three seats, the three requests that repeat the results, at a dollar per million tokens
    assert looking["worst"] - plain["worst"] > 2 * results  # each request may be retried once
    for seat in ("alpha", "beta", "gamma"):
        project.answers.instead[f"{seat}/look"] = [Reply(text='{"files": ["README.md"]}')]
    flags = ("--look", "--json", "--protocol", "triad", QUESTION)
    refused = council("--max-cost", "0.05", *flags)
    needed = refused.json["details"]["needed"]
    assert refused.code == 2 and needed > results and project.asked() == []
    done = council("--max-cost", str(needed), *flags)
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    assert {"draft/alpha", "draft/beta", "draft/gamma", "merge/chair"} < set(project.asked())
    assert [row["what"] for seat in done.json["seats"] for row in seat["looked_up"]] == ["README.md"] * 3
