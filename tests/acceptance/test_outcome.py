"""`council outcome`: how a decision turned out, the track records of members, and ballots weighted by them."""

from __future__ import annotations

import asyncio
import json

import pytest

from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.fake_provider import Reply, Seen

NOTES = {"agreed": [], "contested": [], "unique": [], "taken_from": [], "closest_draft": "alpha", "recommendation_shared_by": ["alpha", "beta"]}  # fmt: skip


def answer(seen: Seen) -> Reply:
    if seen.model == "chair":
        return Reply(text=f"Move it.\n\nAnswer: 42\n\n```council-notes\n{json.dumps(NOTES)}\n```")
    return Reply(text=f"My reasons are many.\n\nAnswer: {43 if seen.model == 'gamma' else 42}")


@pytest.mark.behaviour("evidence-outcome")
def test_an_outcome_says_which_seats_were_right_and_models_shows_the_record(
    workspace: Workspace, council: Terminal
) -> None:
    workspace.provider.answer = answer
    run = council("--protocol", "triad", QUESTION, "--json").json["run"]
    right = council("outcome", run, "right", "--note", "it moved in March")
    assert right.code == 0 and "right: alpha, beta; wrong: gamma" in right.out, right.err
    # If the answer was wrong, gamma's other answer may have been wrong too: it is not counted.
    wrong = council("outcome", run, "wrong", "--json").json
    assert [(seat["seat"], seat["right"]) for seat in wrong["seats"]] == [("alpha", False), ("beta", False)]
    # With the right value each seat is compared with it.
    value = council("outcome", run, "43", "--json").json
    assert value["label"] == "wrong"
    assert [(seat["seat"], seat["right"]) for seat in value["seats"]] == [("alpha", False), ("beta", False), ("gamma", True)]  # fmt: skip
    assert council("outcome", run, "--json").json["value"] == "43"
    records = {row["member"]: row.get("record") for row in council("models", "--json").json}
    assert {name: one["right"] for name, one in records.items() if one} == {"sim:alpha": 0, "sim:beta": 0, "sim:gamma": 1}  # fmt: skip
    assert "0 of 1" in council("models").out
    assert '"value": "43"' in council("runs", "export", run).out
    council("runs", "rm", run, "--yes")
    assert council("models", "--json").json[0]["record"]["labelled"] == 1  # the record stays, its texts do not


def test_a_value_labels_no_seat_whose_answer_does_not_tell(workspace: Workspace, council: Terminal) -> None:
    said = {"alpha": "Answer: Redis", "beta": "I would use Postgres, since we have it.", "gamma": "Answer: Postgres", "chair": "Postgres. It is there."}  # fmt: skip
    workspace.provider.answer = lambda seen: Reply(text=f"{said[seen.model]}")
    run = council("--protocol", "triad", QUESTION, "--json").json["run"]
    refused = council("outcome", run, "Postgres")
    assert refused.code == 2 and "say right or wrong" in refused.err
    said["chair"] = "Answer: Postgres"
    run = council("--protocol", "triad", QUESTION, "--json").json["run"]
    value = council("outcome", run, "Postgres", "--json").json
    assert value["label"] == "right"
    assert [(seat["seat"], seat["right"]) for seat in value["seats"]] == [("alpha", False), ("gamma", True)]


def test_an_outcome_needs_a_complete_run(workspace: Workspace, council: Terminal) -> None:
    workspace.provider.answer = lambda seen: Reply(status=500)
    failed = council("--protocol", "triad", QUESTION, "--json").json["run"]
    refused = council("outcome", failed, "right")
    assert refused.code == 2 and "has no answer to label" in refused.err
    assert council("outcome", "r99999", "right").code == 2
    assert "has no outcome" in council("outcome", failed).err


@pytest.mark.behaviour("evidence-weights")
def test_ballots_are_weighted_by_track_record_from_thirty_outcomes_on(workspace: Workspace, council: Terminal) -> None:
    def reply(seen: Seen) -> Reply:
        ballot = {
            "dispute": "",
            "reasons": [{"label": "A", "why": "-"}, {"label": "B", "why": "-"}],
            "order": ["A", "B"],
        }
        return Reply(text=json.dumps(ballot) if seen.schema else f"Use the archive, says {seen.model}.")

    workspace.provider.answer = reply
    command = ("--protocol", "ranking", "--weights", "track-record", QUESTION, "--json")
    first = council(*command)
    assert first.code == 0, first.err
    asyncio.run(label_members({"sim:alpha": 29, "sim:beta": 2}, count=30))
    second = council(*command)
    notes = [
        json.loads(body)["why"]
        for (body,) in workspace.rows("SELECT body FROM events WHERE type = 'note' ORDER BY at")
        if "track record" in body or "labelled outcomes" in body
    ]
    assert second.code == 0 and len(notes) == 2
    assert notes[0].startswith("no member has 30 labelled outcomes")
    assert notes[1] == "alpha 2.71, beta 0.00; others 1"


async def label_members(right: dict[str, int], count: int) -> None:
    convener = Convener()
    for n in range(count):
        seats = [{"seat": "x", "perspective": "", "member": name, "right": n < times, "confidence": None} for name, times in right.items()]  # fmt: skip
        await convener.store.save_outcome(f"r{n}", {"at": float(n), "label": "right", "value": "", "note": "", "seats": seats})  # fmt: skip
    await convener.close()
