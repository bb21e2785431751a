"""Refine: phases, rulings, the choice, the check, and replies as models really write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.members.scripted import Scripted
from council.protocols.refine.flow import SETTLED
from council.render.report import build_report
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
NAMES = ("alpha", "beta", "gamma")
QUESTION = "Where should we hold the offsite?"
VENDOR = {"alpha": "north", "beta": "east", "gamma": "south", "chair": "west"}
DRAFT = "Go to the sea in May. It costs 4,000 euros for ten people. Book the train early."


def draft_of(name: str) -> str:
    return f"{DRAFT} ({name} wrote this first.)"


def version_of(name: str) -> str:
    return f"Go to the sea in June. It costs 5,000 euros for ten people. Book the train early. ({name} wrote this.)"


AUTHOR = {text(name): name for text in (draft_of, version_of) for name in NAMES}


def error(severity: str = "MAJOR", **fields: str) -> Json:
    return {
        "severity": severity,
        "hits": "It costs 4,000 euros",
        "flaw": "The train is not counted.",
        "correction": "It costs 5,000 euros.",
        "harm": "The budget is exceeded.",
        **fields,
    }


def attack(*errors: Json, same: bool | str = True) -> Json:
    return {"reply": {"errors": list(errors), "same_conclusion": same}}


def rulings(*landed: bool) -> list[Json]:
    return [{"issue": f"error-{n}", "landed": one, "why": "Checked."} for n, one in enumerate(landed, 1)]


def fix(*edits: tuple[str, str], landed: tuple[bool, ...] = (True,)) -> Json:
    """Return a correction: the n-th edit belongs to the n-th error."""
    rows = [{"issue": f"error-{n}", "find": find, "replace": new} for n, (find, new) in enumerate(edits, 1)]
    return {"reply": {"rulings": rulings(*landed), "edits": rows}}


def rewrite(name: str, *landed: bool, changed: bool = False) -> Json:
    return {"reply": {"rulings": rulings(*landed), "answer": version_of(name), "changed_conclusion": changed}}


SCRIPT = {
    **{f"draft/{name}": {"text": draft_of(name)} for name in NAMES},
    **{f"attack/{name}/{name}": attack(error()) for name in NAMES},
    **{f"rewrite/{name}/{name}": rewrite(name, True) for name in NAMES},
    **{f"check/{name}": {"reply": {"errors": []}} for name in NAMES},
}


class Readers(Scripted):
    """Scripted seats; `orders` maps each reader of versions to the authors in its order, whatever the labels are."""

    def __init__(self, orders: dict[str, tuple[str, ...]], script: Json) -> None:
        super().__init__(script=SCRIPT | script)
        self.orders = orders
        self.differences: list[Json] = []

    async def send(self, body: bytes, on_delta: Any) -> Any:
        request = json.loads(body)
        key = request["key"]
        if key.startswith("choose/") and key not in self.script:
            reader = key.rpartition("/")[2]
            self.script = {**self.script, key: {"reply": self.vote(request, self.orders.get(reader, NAMES))}}
        return await super().send(body, on_delta)

    def vote(self, request: Json, order: tuple[str, ...]) -> Json:
        words = request["messages"][-1]["content"]
        found = re.findall(r"<<<Response ([A-Z]+) (\w+)\n(.*?)\n\2>>>", words, re.DOTALL)
        label = {AUTHOR[text]: label for label, _, text in found}
        ranked = [label[author] for author in order if author in label]
        differences = [
            {
                **point,
                "sides": [{"label": label[side["seat"]], **side} for side in point["sides"] if side["seat"] in label],
            }
            for point in self.differences
        ]
        reasons = [{"label": one, "why": "It is clear."} for one in ranked]
        return {"dispute": "", "reasons": reasons, "order": ranked, "differences": differences}


async def run(
    script: Json | None = None,
    orders: dict[str, tuple[str, ...]] | None = None,
    seats: tuple[str, ...] = NAMES,
    differences: list[Json] | None = None,
) -> tuple[Minutes, Readers]:
    member = Readers(orders or {}, script or {})
    member.differences = differences or []
    names = {"models": ["scripted:"] * len(seats)} if len(seats) != 3 else {}
    flags = names or {"seats": dict.fromkeys((*seats, "chair"), "scripted:")}
    convener = Convener(Path.cwd(), flags=flags, members=[member])
    try:
        plan = await convener.plan([QUESTION], protocol="refine")
        minutes = await convener.run(plan, lambda entry: None)
        assert await convener.audit(minutes.run) == []
        return minutes, member
    finally:
        await convener.close()


def phases(member: Readers) -> list[str]:
    return list(dict.fromkeys(call["key"].split("/")[0] for call in member.calls))


def words_for(member: Readers, key: str) -> str:
    return next(call["messages"][-1]["content"] for call in member.calls if call["key"] == key)


def facts(minutes: Minutes) -> dict[str, Json]:
    return {fact["kind"]: fact for fact in build_report(minutes)["trust"]["facts"]}


# Phases


@pytest.mark.behaviour("10-refine-phases")
async def test_draft_attack_rewrite_choose_check_in_that_order() -> None:
    minutes, member = await run()
    assert phases(member) == ["draft", "attack", "rewrite", "choose", "check"]
    counts = [sum(call["key"].startswith(f"{phase}/") for call in member.calls) for phase in phases(member)]
    assert counts == [3, 3, 3, 3, 2]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", version_of("alpha"))


@pytest.mark.behaviour("10-refine-sealed")
async def test_a_drafter_sees_no_other_words_and_has_no_role() -> None:
    _, member = await run()
    for name in NAMES:
        words = words_for(member, f"draft/{name}")
        assert not any(other in words.lower() for other in NAMES)


@pytest.mark.behaviour("10-refine-ring")
async def test_each_draft_is_attacked_by_one_other_seat_and_its_author_rules_without_a_name() -> None:
    _, member = await run({"attack/alpha/alpha": attack(error(flaw="It rains there."))})
    targets = {}
    for name in NAMES:
        words = words_for(member, f"attack/{name}/{name}")
        shown = [other for other in NAMES if f"({other} wrote this first.)" in words.split("# Your own draft")[0]]
        assert (len(shown), shown != [name]) == (1, True)
        targets[name] = shown[0]
    assert sorted(targets.values()) == sorted(NAMES)
    victim = targets["alpha"]
    words = words_for(member, f"rewrite/{victim}/{victim}")
    assert ("It rains there." in words, "error-1" in words, "Alpha" in words) == (True, True, False)
    others = [name for name in NAMES if name != victim]
    assert not any("It rains there." in words_for(member, f"rewrite/{name}/{name}") for name in others)


@pytest.mark.behaviour("10-refine-blind-choice")
async def test_a_reader_ranks_the_other_versions_without_names() -> None:
    _, member = await run()
    for name in NAMES:
        words = words_for(member, f"choose/{name}/{name}")
        assert version_of(name) not in words
        assert all(version_of(other) in words for other in NAMES if other != name)


@pytest.mark.behaviour("10-refine-check-reads-text-alone")
async def test_the_checkers_are_two_other_seats_that_get_only_question_and_text() -> None:
    _, member = await run(orders=dict.fromkeys(NAMES, ("beta", "alpha", "gamma")))
    checkers = [call["key"] for call in member.calls if call["key"].startswith("check/")]
    assert sorted(checkers) == ["check/alpha", "check/gamma"]
    words = words_for(member, "check/alpha")
    assert (QUESTION in words, version_of("beta") in words, "wrote this first" in words) == (True, True, False)
    assert version_of("alpha") not in words


@pytest.mark.behaviour("10-refine-fix")
async def test_the_author_corrects_what_is_right_and_the_tail_says_so() -> None:
    fixed = version_of("alpha").replace("5,000", "6,000")
    script = {
        "check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}},
        "check/gamma": {"reply": {"errors": [error("MINOR", hits="Book the train early", flaw="How early?")]}},
        "fix/alpha": fix(("5,000", "6,000"), landed=(True, False)),
    }
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == fixed
    rows = build_report(minutes)["check"]["errors"]
    assert [(row["id"], row["state"]) for row in rows] == [("beta-1", "corrected"), ("gamma-1", "dismissed")]
    tail = build_report(minutes)["tail"]
    assert tail[0] == (
        "Outcome: alpha's answer — first on 2 of 2 ballots; checked by beta and gamma: 2 errors found, 1 corrected"
    )
    assert facts(minutes)["error_corrected"]["count"] == 1


@pytest.mark.behaviour("10-refine-second-check")
async def test_a_fatal_error_that_was_right_gets_one_more_check_and_no_third() -> None:
    fixed = version_of("alpha").replace("sea", "hills")
    again = fixed.replace("hills", "lake")
    fatal = error("FATAL", hits="Go to the sea in June")
    script = {
        "check/beta": {"reply": {"errors": [fatal]}},
        "fix/alpha": fix(("sea", "hills")),
        "check-again/beta": {"reply": {"errors": [error("FATAL", hits="Go to the hills in June")]}},
        "check-again/gamma": {"reply": {"errors": []}},
        "fix-again/alpha": fix(("hills", "lake")),
    }
    minutes, member = await run(script)
    assert phases(member)[-4:] == ["check", "fix", "check-again", "fix-again"]
    assert minutes.verdict["answer"] == again
    assert facts(minutes)["error_corrected"]["count"] == 1
    assert minutes.verdict["shared_by"] is None  # the conclusion is no longer that of the draft
    assert len(member.calls) <= minutes.plan["calls"]["max"]


@pytest.mark.behaviour("10-refine-settled")
@pytest.mark.parametrize("seats", [NAMES, NAMES[:2]])
async def test_drafts_that_agree_and_survive_their_attacks_are_not_rewritten(seats: tuple[str, ...]) -> None:
    script = {f"attack/{name}/{name}": attack() for name in seats}
    minutes, member = await run(script, seats=seats)
    assert phases(member) == ["draft", "attack", "choose"]
    assert minutes.verdict["answer"] == draft_of("alpha")
    assert SETTLED in [note.why for note in minutes.notes]
    assert minutes.verdict["agreement"] == "full"
    assert "checked" in facts(minutes)  # by its attacker


async def test_a_small_error_of_a_settled_draft_is_corrected_by_its_author() -> None:
    script = {f"attack/{name}/{name}": attack(error("MINOR")) for name in NAMES}
    fixed = draft_of("alpha").replace("4,000", "5,000")
    script["fix/alpha"] = fix(("4,000", "5,000"))
    minutes, member = await run(script)
    assert phases(member) == ["draft", "attack", "choose", "fix"]
    assert minutes.verdict["answer"] == fixed


async def test_one_small_error_without_agreement_is_reason_enough_to_rewrite() -> None:
    script = {f"attack/{name}/{name}": attack(same=name != "alpha") for name in NAMES}
    _, member = await run(script)
    assert "rewrite" in phases(member)


# The choice


@pytest.mark.behaviour("10-refine-two-seats")
async def test_with_two_seats_the_chair_chooses_and_one_seat_checks() -> None:
    minutes, member = await run(seats=NAMES[:2], orders={"chair": ("beta", "alpha")})
    assert [call["key"] for call in member.calls if call["key"].startswith("choose/")] == ["choose/chair"]
    assert [call["key"] for call in member.calls if call["key"].startswith("check/")] == ["check/alpha"]
    assert minutes.verdict["answer"] == version_of("beta")
    assert build_report(minutes)["tail"][0].startswith("Outcome: beta's answer — chosen by the chair")


@pytest.mark.behaviour("10-refine-tie")
async def test_ballots_in_a_circle_are_decided_by_the_chair() -> None:
    circle = {
        "alpha": ("beta", "gamma", "alpha"),
        "beta": ("gamma", "alpha", "beta"),
        "gamma": ("alpha", "beta", "gamma"),
        "chair": ("gamma", "alpha", "beta"),
    }
    minutes, _ = await run(orders=circle)
    assert minutes.verdict["answer"] == version_of("gamma")
    assert "ballots_differ" not in facts(minutes)  # all drafts agree, so the order is a matter of taste


async def test_a_tie_without_a_chair_takes_the_first_seat_and_says_so() -> None:
    circle = {
        "alpha": ("beta", "gamma", "alpha"),
        "beta": ("gamma", "alpha", "beta"),
        "gamma": ("alpha", "beta", "gamma"),
    }
    minutes, _ = await run({"choose/chair": {"fail": "server"}}, orders=circle)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", version_of("alpha"))
    assert any("the ballots tie" in note.why for note in minutes.notes)


async def test_unreadable_ballots_are_absent_and_the_rest_decide() -> None:
    script = {"choose/alpha/alpha": {"reply": "They are all fine."}, "choose/beta/beta": {"reply": "No opinion."}}
    minutes, _ = await run(script, orders={"gamma": ("beta", "alpha", "gamma"), "chair": ("beta", "alpha")})
    assert minutes.verdict["answer"] == version_of("beta")
    assert {row["seat"] for row in build_report(minutes)["degraded"] if row["phase"] == "choose"} == {"alpha", "beta"}


@pytest.mark.behaviour("10-refine-differences")
async def test_what_others_decided_differently_is_in_the_tail_and_not_in_the_text() -> None:
    point = {
        "point": "When to go",
        "sides": [
            {"seat": "alpha", "position": "June", "assumes": "school holidays do not matter"},
            {"seat": "beta", "position": "September", "assumes": ""},
        ],
    }
    minutes, _ = await run(differences=[point])
    assert minutes.verdict["answer"] == version_of("alpha")
    line = build_report(minutes)["tail"][1]
    assert "When to go" in line
    assert "June (alpha, assuming school holidays do not matter) or September (beta)" in line


# Bad input


@pytest.mark.behaviour("10-refine-author-absent")
async def test_the_next_in_rank_corrects_the_text_if_its_author_is_absent() -> None:
    fixed = version_of("alpha").replace("5,000", "6,000")
    script = {
        "check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}},
        "fix/alpha": {"fail": "server"},
        "fix/beta": fix(("5,000", "6,000")),
    }
    orders = dict.fromkeys(NAMES, ("alpha", "beta", "gamma"))
    minutes, member = await run(script, orders=orders)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", fixed)
    assert build_report(minutes)["check"]["author"] == "beta"
    assert "Another member wrote the text" in words_for(member, "fix/beta")


async def test_errors_stay_open_and_are_told_if_no_seat_corrects_the_text() -> None:
    script = {"check/beta": {"reply": {"errors": [error("FATAL", hits="It costs 5,000 euros")]}}}
    script |= {f"fix/{name}": {"fail": "server"} for name in NAMES}
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == version_of("alpha")
    assert build_report(minutes)["trust"]["level"] == "CONTESTED"
    assert "1 still open" in build_report(minutes)["tail"][0]


async def test_a_new_answer_instead_of_errors_is_no_attack_and_the_draft_is_still_rewritten() -> None:
    essay = "I would rather go to the mountains, because the air is better and the train is faster. " * 20
    minutes, member = await run({"attack/alpha/alpha": {"reply": essay}})
    assert minutes.status == "complete"
    assert [row["seat"] for row in build_report(minutes)["degraded"] if row["phase"] == "attack"] == ["alpha"]
    without = [name for name in NAMES if "error-1" not in words_for(member, f"rewrite/{name}/{name}")]
    assert len(without) == 1
    assert essay[:80] not in words_for(member, f"rewrite/{without[0]}/{without[0]}")


async def test_a_counter_proposal_in_a_correction_is_cut() -> None:
    essay = "Go to the mountains. " * 200
    _, member = await run({"attack/alpha/alpha": attack(error(correction=essay))})
    assert all(len(words_for(member, f"rewrite/{name}/{name}")) < len(essay) + 3000 for name in NAMES)


@pytest.mark.behaviour("10-refine-rulings")
async def test_an_author_that_rules_on_nothing_is_asked_once_more_and_then_reported() -> None:
    silent = {"reply": {"rulings": [], "answer": version_of("alpha"), "changed_conclusion": False}}
    minutes, member = await run({"rewrite/alpha/alpha": silent})
    asked = [call for call in member.calls if call["key"] == "rewrite/alpha/alpha"]
    assert len(asked) == 2
    assert "there is no ruling on error-1" in asked[1]["messages"][-1]["content"]
    assert facts(minutes)["unruled"]["count"] == 1


@pytest.mark.behaviour("10-refine-ignored-ruling")
@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ([], "error-1 is right, but no edit names it"),
        ([("It costs 7,000 euros", "It costs 6,000 euros")], 'the words "It costs 7,000 euros" are not in the text'),
        ([("e", "a")], "times: copy them exactly, and enough of them"),
        ([("5,000", "5,000")], "are replaced by the same words"),
    ],
)
async def test_an_error_that_is_right_without_a_usable_edit_is_asked_for_once_more_and_stays_open(
    edits: list[tuple[str, str]], problem: str
) -> None:
    script = {"check/beta": {"reply": {"errors": [error(hits="It costs 5,000 euros")]}}, "fix/alpha": fix(*edits)}
    minutes, member = await run(script)
    asked = [call for call in member.calls if call["key"] == "fix/alpha"]
    assert problem in asked[1]["messages"][-1]["content"]
    assert minutes.verdict["answer"] == version_of("alpha")
    assert [row["state"] for row in build_report(minutes)["check"]["errors"]] == ["open"]
    assert "error_open" in facts(minutes)


async def test_fifty_errors_are_cut_to_the_four_most_severe_of_each_reader() -> None:
    many = [error("MINOR", flaw=f"Slip {n}.") for n in range(49)] + [error("FATAL", flaw="Wrong country.")]
    script = {"check/beta": {"reply": {"errors": many}}}
    script["fix/alpha"] = fix(landed=(False,) * 4)
    minutes, member = await run(script)
    words = words_for(member, "fix/alpha")
    assert words.index("Wrong country.") < words.index("Slip 0.")
    assert len(build_report(minutes)["check"]["errors"]) == 4
    assert facts(minutes)["error_dismissed_fatal"]["seats"] == ["beta"]
    assert build_report(minutes)["trust"]["level"] == "LOW"


async def test_without_a_check_the_answer_says_so() -> None:
    script = {f"check/{name}": {"fail": "server"} for name in NAMES}
    minutes, _ = await run(script)
    assert minutes.verdict["answer"] == version_of("alpha")
    assert "not_checked" in facts(minutes)
    assert "No other seat could check the answer below." in minutes.verdict["caveats"]


async def test_one_draft_is_rewritten_by_its_author_alone_with_low_trust() -> None:
    script = {"draft/beta": {"fail": "server"}, "draft/gamma": {"fail": "server"}}
    script["rewrite/alpha/alpha"] = rewrite("alpha")
    minutes, member = await run(script)
    assert phases(member) == ["draft", "rewrite"]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", version_of("alpha"))
    assert build_report(minutes)["trust"]["level"] == "LOW"


@pytest.mark.parametrize("count", [4, 8])
async def test_four_and_eight_seats_work(count: int) -> None:
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")[:count]
    for name in names:
        AUTHOR[draft_of(name)] = AUTHOR[version_of(name)] = name
    script = {f"draft/{name}": {"text": draft_of(name)} for name in names}
    script |= {f"attack/{name}/{name}": attack(error()) for name in names}
    script |= {f"rewrite/{name}/{name}": rewrite(name, True) for name in names}
    script |= {f"check/{name}": {"reply": {"errors": []}} for name in names}
    minutes, member = await run(script, seats=names, orders=dict.fromkeys(names, names))
    assert minutes.verdict["answer"] == version_of("alpha")
    assert sum(call["key"].startswith("check/") for call in member.calls) == 2


# Agreement


@pytest.mark.behaviour("10-refine-agreement")
@pytest.mark.parametrize(
    ("same", "agreement", "shared_by"),
    [
        ((True, True, True), "full", ["alpha", "beta", "gamma"]),
        ((False, False, False), "none", ["alpha"]),
        ((True, False, False), "partial", ["alpha", "beta"]),
        (("maybe", True, True), "full", ["alpha", "beta", "gamma"]),
        (("maybe", False, True), "partial", ["alpha", "gamma"]),
        (("maybe", "maybe", True), "", None),
    ],
)
async def test_agreement_is_that_of_the_sealed_drafts(
    same: tuple[Any, ...], agreement: str, shared_by: list[str] | None
) -> None:
    pairs = dict(zip(("alpha", "beta", "gamma"), same, strict=True))
    script = {f"attack/{name}/{name}": attack(error(), same=one) for name, one in pairs.items()}
    minutes, _ = await run(script)
    assert (minutes.verdict["agreement"], minutes.verdict["shared_by"]) == (agreement, shared_by)


async def test_an_author_that_changed_its_conclusion_leaves_agreement_unassessed() -> None:
    minutes, _ = await run({"rewrite/alpha/alpha": rewrite("alpha", True, changed=True)})
    assert (minutes.verdict["agreement"], minutes.verdict["shared_by"]) == ("", None)
    assert "not_assessed" in facts(minutes)
