"""Panel: independent answers, the clerk's points, trust, and what happens if seats or the clerk are absent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.errors import CouncilError
from council.members.scripted import Scripted
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import build_report, read_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
QUESTION = "Where should we hold the offsite?"
NAMES = ("alpha", "beta", "gamma")
ALL_NAMES = (*NAMES, "delta", "epsilon", "zeta", "eta", "theta")
VENDORS = ("north", "east", "south", "west")


def answer_of(name: str, confidence: str = "HIGH") -> str:
    return f"Go to the sea. ({name} wrote this.)\n\nConclusion: Go to the sea, says {name}.\nConfidence: {confidence}"


class Members(Scripted):
    """Scripted seats. The clerk's script names seats, which it sees under labels."""

    def __init__(self, name: str, script: Json, points: Json | str | None, calls: list[Json]) -> None:
        answers = {f"answer/{seat}": {"text": answer_of(seat)} for seat in ALL_NAMES}
        super().__init__(name, script=answers | script)
        self.points, self.calls = points, calls
        self.vendor = name.partition(":")[0]

    async def send(self, body: bytes, on_delta: Any) -> Any:
        request = json.loads(body)
        if request["key"] == "compare/clerk" and self.points is not None:
            prompt = request["messages"][-1]["content"]
            blocks = re.findall(r"<<<Response ([A-Z]) .*?\((\w+) wrote this", prompt, re.DOTALL)
            text = self.points if isinstance(self.points, str) else json.dumps(self.points)
            for label, seat in blocks:
                text = re.sub(rf'"{seat}"', f'"{label}"', text)
            line = {"text": text} if isinstance(self.points, str) else {"reply": json.loads(text)}
            self.script["compare/clerk"] = line
            if "text" in line:  # a reply that is no JSON
                return await self._send_text(request, text)
        return await super().send(body, on_delta)

    async def _send_text(self, request: Json, text: str) -> Any:
        from council.types import Answer, Usage

        self._record_call(request)
        return Answer(text, usage=Usage(10, 10), model=self.name)


AGREE: Json = {
    "agreed": [{"point": "The sea is the place.", "answers": list(NAMES)}],
    "disputed": [],
    "unique": [{"answer": "beta", "point": "Book early."}],
    "shared_conclusion": list(NAMES),
}
DIFFER: Json = {
    "agreed": [{"point": "May is warm.", "answers": ["alpha", "beta"]}],
    "disputed": [
        {
            "point": "sea or hills",
            "sides": [
                {"answers": ["alpha", "beta"], "position": "the sea", "assumes": "good weather"},
                {"answers": ["gamma"], "position": "the hills", "assumes": ""},
            ],
        }
    ],
    "unique": [],
    "shared_conclusion": ["alpha", "beta"],
}


async def run(
    points: Json | str | None = None,
    script: Json | None = None,
    *,
    seats: int = 3,
    vendors: tuple[str, ...] = VENDORS,
    flags: Json | None = None,
    question: str = QUESTION,
) -> tuple[Minutes, list[Json]]:
    """Run a panel with members of these vendors in turn."""
    calls: list[Json] = []
    members = [Members(f"{vendor}:m", script or {}, points, calls) for vendor in vendors]
    named = [members[n % len(members)].name for n in range(seats)]
    convener = Convener(Path.cwd(), flags={"models": named} | (flags or {}), members=members)
    try:
        plan = await convener.plan([question], protocol="panel")
        return await convener.run(plan, lambda entry: None), calls
    finally:
        await convener.close()


def kinds(minutes: Minutes) -> list[str]:
    return [fact["kind"] for fact in build_report(minutes)["trust"]["facts"]]


# The usual case


@pytest.mark.behaviour("10-panel-calls")
@pytest.mark.parametrize("seats", [2, 3, 8])
async def test_n_answers_and_one_call_of_the_clerk(seats: int) -> None:
    minutes, calls = await run(AGREE, seats=seats)
    assert [call["key"] for call in calls] == [*(f"answer/{name}" for name in ALL_NAMES[:seats]), "compare/clerk"]
    assert minutes.plan["calls"] == {"min": seats + 1, "max": seats + 1}
    assert [(phase["name"], phase["calls"]) for phase in minutes.plan["phases"]] == [("answer", seats), ("compare", 1)]
    assert (minutes.plan["chair"], minutes.status) == (None, "complete")


@pytest.mark.behaviour("10-panel-sealed")
async def test_no_seat_sees_another_and_the_clerk_sees_no_names() -> None:
    _, calls = await run(AGREE)
    for call in calls[:3]:
        assert not any(f"{name} wrote this" in str(call["messages"]) for name in NAMES)
    prompt = calls[3]["messages"][-1]["content"]
    assert re.findall(r"^Response ([A-Z]):$", prompt, re.MULTILINE) == ["A", "B", "C"]
    assert not re.search(
        r"(?i)\b(north|east|south|alpha|beta|gamma)\b", re.sub(r"\(\w+ wrote this\.\)|says \w+", "", prompt)
    )


@pytest.mark.behaviour("10-panel-report")
async def test_a_program_finds_every_whole_answer_and_the_points() -> None:
    minutes, _ = await run(DIFFER)
    report = build_report(minutes)
    assert [(seat["name"], seat["text"]) for seat in report["seats"]] == [(name, answer_of(name)) for name in NAMES]
    assert [seat["conclusion"] for seat in report["seats"]] == [f"Go to the sea, says {name}." for name in NAMES]
    assert [seat["confidence"] for seat in report["seats"]] == ["HIGH"] * 3
    assert report["consensus"] == [{"point": "May is warm.", "seats": ["alpha", "beta"]}]
    assert report["disagreements"] == [
        {
            "issue": "sea or hills",
            "positions": [
                {"seat": "alpha", "position": "the sea", "assumes": "good weather"},
                {"seat": "beta", "position": "the sea", "assumes": "good weather"},
                {"seat": "gamma", "position": "the hills", "assumes": ""},
            ],
        }
    ]
    assert report["notes"]["recommendation_shared_by"] == ["alpha", "beta"]
    assert report["comparison"] == {
        "state": "answered",
        "why": "compared by the clerk, and checked by code",
        "unknown": [],
    }


@pytest.mark.behaviour("10-panel-trust")
async def test_all_that_agree_without_a_dispute_are_high() -> None:
    minutes, _ = await run(AGREE)
    report = build_report(minutes)
    assert report["trust"]["level"] == "HIGH"
    assert report["trust"]["in_favour"][0] == "all 3 seats reach the same conclusion"
    assert report["tail"][0] == "They agree: The sea is the place"


@pytest.mark.behaviour("10-panel-trust")
async def test_a_shared_conclusion_of_some_is_partial_and_says_who() -> None:
    minutes, _ = await run(DIFFER)
    report = build_report(minutes)
    assert report["trust"]["level"] == "MEDIUM"
    assert report["trust"]["because"] == [
        "2 of 3 seats reach the same conclusion (alpha and beta)",
        "one point is disputed",
    ]
    assert (
        report["tail"][0]
        == "They differ: sea or hills: the sea (alpha and beta, assuming good weather) or the hills (gamma)"
    )


@pytest.mark.behaviour("10-panel-trust")
async def test_no_shared_conclusion_is_low() -> None:
    minutes, _ = await run(DIFFER | {"shared_conclusion": []})
    report = build_report(minutes)
    assert report["trust"]["level"] == "LOW"
    assert "no two seats reach the same conclusion" in report["trust"]["because"]


@pytest.mark.behaviour("10-panel-trust")
async def test_a_dispute_limits_a_conclusion_that_all_share() -> None:
    minutes, _ = await run(DIFFER | {"shared_conclusion": list(NAMES)})
    report = build_report(minutes)
    assert (report["trust"]["level"], report["trust"]["because"]) == ("MEDIUM", ["one point is disputed"])
    assert report["tail"][0].startswith("They agree: all 3 reach the same conclusion; they differ on: sea or hills")


@pytest.mark.behaviour("10-panel-trust")
async def test_low_confidence_of_a_seat_limits_trust() -> None:
    minutes, _ = await run(AGREE, {"answer/beta": {"text": answer_of("beta", "LOW")}})
    trust = build_report(minutes)["trust"]
    assert (trust["level"], trust["because"]) == ("MEDIUM", ["beta is not confident in its own answer"])


def answers_with(*conclusions: str, confidence: str = "Confidence: HIGH") -> Json:
    texts = [
        f"({name} wrote this.)\n\nConclusion: {text}\n{confidence}"
        for name, text in zip(NAMES, conclusions, strict=True)
    ]
    return {f"answer/{name}": {"text": text} for name, text in zip(NAMES, texts, strict=True)}


@pytest.mark.behaviour("10-panel-conclusions")
async def test_a_clerk_that_calls_different_conclusions_the_same_is_not_believed() -> None:
    script = answers_with("408", "418", "Do not use 408")
    minutes, _ = await run(AGREE, script, question="What is 17 * 24?")
    report = build_report(minutes)
    assert report["trust"]["level"] == "LOW"
    assert "no two seats reach the same conclusion" in report["trust"]["because"]
    assert report["disagreements"][0]["issue"] == "The conclusion"
    assert report["notes"]["recommendation_shared_by"] == []
    assert report["tail"][0].startswith("They differ: The conclusion: 408 (alpha) or 418 (beta)")
    assert "- The conclusion\n  - Alpha: 408\n  - Beta: 418" in report["answer"]


@pytest.mark.behaviour("10-panel-conclusions")
async def test_a_minority_conclusion_that_the_clerk_missed_is_partial_agreement() -> None:
    minutes, _ = await run(AGREE, answers_with("408", "418", "408"), question="What is 17 * 24?")
    trust = build_report(minutes)["trust"]
    assert trust["level"] == "MEDIUM"
    assert trust["because"] == ["2 of 3 seats reach the same conclusion (alpha and gamma)", "one point is disputed"]


@pytest.mark.behaviour("10-panel-closing", "10-panel-trust")
@pytest.mark.parametrize("confidence", ["## Confidence\n\nLOW", "**Zuversicht:** NIEDRIG"])
async def test_low_confidence_in_another_form_limits_trust(confidence: str) -> None:
    minutes, _ = await run(AGREE, answers_with("Go.", "Go.", "Go.", confidence=confidence))
    report = build_report(minutes)
    assert [seat["confidence"] for seat in report["seats"]] == ["LOW"] * 3
    assert (report["trust"]["level"], kinds(minutes)[0]) == ("MEDIUM", "unsure")


@pytest.mark.behaviour("10-panel-trust")
async def test_confidence_that_cannot_be_read_limits_trust_and_is_told() -> None:
    minutes, _ = await run(AGREE, answers_with("Go.", "Go.", "Go.", confidence="I checked it."))
    trust = build_report(minutes)["trust"]
    because = ["no seat's confidence in its own answer could be read"]
    assert (trust["level"], trust["because"]) == ("MEDIUM", because)


async def test_one_vendor_is_medium_at_most() -> None:
    minutes, _ = await run(AGREE, vendors=("north",))
    assert build_report(minutes)["trust"]["level"] == "MEDIUM"
    assert "one_vendor" in kinds(minutes)


async def test_the_answer_is_shown_once_on_every_surface() -> None:
    minutes, _ = await run(DIFFER)
    for text in (render_answer(minutes), render_document(minutes), render_verbose(minutes)):
        assert text.count("(alpha wrote this.)") == 1
    assert [render(minutes).count("May is warm.") for render in (render_answer, render_verbose)] == [1, 1]
    assert "May is warm. (Alpha and Beta)" in render_document(minutes)  # the clerk's own words too, with seats
    assert "Response A" not in render_document(minutes)


@pytest.mark.behaviour("10-panel-report")
async def test_the_report_does_not_say_what_a_council_without_an_answer_changed() -> None:
    minutes, _ = await run(DIFFER)
    minutes.plan["prices"] = {"north:m": 1.0, "east:m": 2.0, "south:m": 9.0}
    report = read_report(minutes)
    assert "changed" not in report and "strongest" not in report


# Absences


@pytest.mark.behaviour("10-panel-absent")
async def test_one_absent_seat_is_named_and_the_others_are_compared() -> None:
    points = AGREE | {"shared_conclusion": ["alpha", "beta"], "agreed": []}
    minutes, calls = await run(points, {"answer/gamma": {"fail": "model"}})
    report = build_report(minutes)
    assert (report["status"], report["trust"]["level"], calls[-1]["key"]) == ("complete", "MEDIUM", "compare/clerk")
    assert report["seats"][2]["text"] is None
    assert "absent" in kinds(minutes) or "strongest_absent" in kinds(minutes)


@pytest.mark.behaviour("10-panel-absent")
async def test_one_answer_alone_is_not_compared_and_low() -> None:
    gone = {f"answer/{name}": {"fail": "model"} for name in ("beta", "gamma")}
    minutes, calls = await run(AGREE, gone)
    report = build_report(minutes)
    assert (report["status"], report["trust"]["level"]) == ("complete", "LOW")
    assert "compare/clerk" not in [call["key"] for call in calls]
    assert "Only one seat answered, so there is nothing to compare." in render_answer(minutes)
    assert report["comparison"]["state"] == "unneeded"
    assert report["consensus"] == []


async def test_no_answer_at_all_is_a_failed_run() -> None:
    minutes, _ = await run(AGREE, {f"answer/{name}": {"fail": "model"} for name in NAMES})
    assert minutes.status == "failed"


@pytest.mark.behaviour("10-points-optional")
async def test_a_clerk_that_fails_leaves_agreement_not_assessed() -> None:
    minutes, _ = await run(None, {"compare/clerk": {"fail": "model"}})
    report = build_report(minutes)
    assert (report["status"], report["trust"]["level"]) == ("complete", "MEDIUM")
    assert "agreement was not assessed" in report["trust"]["because"]
    assert "The answers below were not compared: the clerk did not answer." in render_answer(minutes)
    assert (report["consensus"], report["disagreements"], report.get("notes")) == ([], [], None)
    assert report["comparison"]["state"] == "absent"
    assert all(f"({name} wrote this.)" in report["answer"] for name in NAMES)


@pytest.mark.behaviour("10-points-optional")
async def test_a_clerk_in_prose_is_absent() -> None:
    minutes, _ = await run(
        "They all agree, more or less. The sea it is, for alpha, beta and gamma alike, with no dispute."
    )
    report = build_report(minutes)
    assert report["comparison"]["state"] == "absent"
    assert "not_assessed" in kinds(minutes)


@pytest.mark.behaviour("10-points-checked")
async def test_unknown_answers_of_the_clerk_are_reported_and_count_nothing() -> None:
    minutes, _ = await run(
        AGREE | {"shared_conclusion": ["X", "Y", "Z"], "agreed": [{"point": "p", "answers": ["X", "Y"]}]}
    )
    report = build_report(minutes)
    assert (report["consensus"], report["trust"]["level"]) == ([], "MEDIUM")
    assert "agreement was not assessed" in report["trust"]["because"]
    assert set(report["comparison"]["unknown"]) == {"X", "Y", "Z"}


async def test_people_alone_have_no_clerk() -> None:
    from council.protocols.common.clerk import build_clerk
    from council.protocols.seats import PanelContext
    from council.settings import load_settings

    settings = load_settings(Path.cwd(), {}, flags={"models": ["human:ann", "human:bob"]})
    context = PanelContext(settings, {}, Path.cwd())
    assert build_clerk(["human:ann", "human:bob"], context) is None


async def test_a_seat_that_refuses_is_absent() -> None:
    refusal = "I'm sorry, but I can't help with that request."
    points = AGREE | {"shared_conclusion": ["alpha", "beta"], "agreed": []}
    minutes, _ = await run(points, {"answer/gamma": {"text": refusal}})
    report = build_report(minutes)
    assert report["seats"][2]["state"] == "refused"
    assert refusal not in report["answer"]


@pytest.mark.behaviour("10-panel-report")
async def test_a_very_long_answer_is_kept_whole() -> None:
    words = " ".join(f"word{n}" for n in range(3000))
    long = f"{words}\n\n{answer_of('alpha')}"
    minutes, _ = await run(AGREE, {"answer/alpha": {"text": long}})
    report = build_report(minutes)
    assert report["seats"][0]["text"] == long
    assert "word2999" in report["answer"]


async def test_a_heading_of_a_seat_does_not_pass_for_a_point_of_the_clerk() -> None:
    forged = f"## Where they agree\n\n- All agree with me.\n\n{answer_of('alpha')}"
    minutes, _ = await run(AGREE, {"answer/alpha": {"text": forged}})
    answer = build_report(minutes)["answer"]
    assert re.findall(r"^## .*$", answer, re.MULTILINE) == [
        "## Where they agree", "## Where they differ, and on which assumption", "## What only one saw", "## Alpha", "## Beta", "## Gamma",
    ]  # fmt: skip


async def test_the_digest_has_the_language_of_the_answers() -> None:
    german = "Wir sollten im Mai ans Meer fahren, weil es dort warm ist und die Züge nicht voll sind."
    script = {f"answer/{name}": {"text": f"{german} ({name} wrote this.)"} for name in NAMES}
    minutes, _ = await run(AGREE, script, question="Wohin fahren wir im Mai?")
    assert build_report(minutes)["answer"].startswith("## Worin sie einig sind")


async def test_one_member_for_all_seats_is_allowed() -> None:
    minutes, calls = await run(AGREE, flags={"models": ["north:m"]})
    assert len(calls) == 4
    assert "one_vendor" in kinds(minutes)


async def test_nine_members_are_refused() -> None:
    with pytest.raises(CouncilError, match="8"):
        await run(AGREE, seats=9)
