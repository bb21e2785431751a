"""Ranking: labels, valid ballots and absent seats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.engine.reply import build_schema, parse_reply
from council.errors import UsageError
from council.members.scripted import Scripted
from council.protocols.ranking.flow import ReaderBallot
from council.protocols.ranking.replies import Ballot
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.mermaid import render_mermaid
from council.render.report import build_report
from council.runs.service import Convener
from council.text_cleanup import replace_labels

pytestmark = pytest.mark.anyio
NAMES = ("alpha", "beta", "gamma")
QUESTION = "Where should we hold the offsite?"
ANSWERS = {f"answer/{name}": {"text": f"The answer of number {n}."} for n, name in enumerate(NAMES, 1)}
AUTHOR = {f"The answer of number {n}.": name for n, name in enumerate((*NAMES, "delta"), 1)}


class Readers(Scripted):
    """Scripted readers: `orders` maps each reader to the authors in its order, independent of the labels."""

    def __init__(self, orders: dict[str, tuple[str, ...]], script: dict[str, Any]) -> None:
        super().__init__(script=ANSWERS | {"synthesise/chair": {"text": "By the sea."}} | script)
        self.orders = orders

    async def send(self, body: bytes, hear: Any) -> Any:
        request = json.loads(body)
        key = request["key"]
        if key.startswith("rank/") and key not in self.script:
            reader = key.rpartition("/")[2]
            self.script = {**self.script, key: {"reply": ballot(request, self.orders.get(reader, NAMES))}}
        return await super().send(body, hear)


def shown(request: dict[str, Any]) -> dict[str, str]:
    """Return label → author, parsed from the prompt."""
    words = request["messages"][-1]["content"]
    found = re.findall(r"<<<Response ([A-Z]+) (\w+)\n(.*?)\n\2>>>", words, re.DOTALL)
    return {label: AUTHOR[text] for label, _, text in found}


def ballot(request: dict[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    label = {author: label for label, author in shown(request).items()}
    ranked = [label[author] for author in order if author in label]
    reasons = [{"label": one, "why": f"Response {one} is number {n}."} for n, one in enumerate(ranked, 1)]
    return {"dispute": f"Response {ranked[0]} has it right.", "reasons": reasons, "order": ranked}


async def run(
    orders: dict[str, tuple[str, ...]] | None = None, script: dict[str, Any] | None = None, **flags: Any
) -> tuple[Minutes, Readers]:
    member = Readers(orders or {}, script or {})
    seats = dict.fromkeys((*NAMES, "chair"), "scripted:")
    convener = Convener(Path.cwd(), flags={"seats": seats, "trust": True}, members=[member])
    try:
        plan = await convener.plan([QUESTION], flags, protocol="ranking")
        minutes = await convener.run(plan, lambda entry: None)
        assert await convener.audit(minutes.run) == []
        return minutes, member
    finally:
        await convener.close()


def write_roster(names: list[str]) -> str:
    """Write a roster file with these seats."""
    return save_file("\n".join(f'[[seats]]\nname = "{name}"\nmodel = "scripted:"' for name in names))


def save_file(text: str, name: str = "roster.toml") -> str:
    Path(name).write_text(text)
    return name


def requests(member: Readers, phase: str) -> dict[str, dict[str, Any]]:
    asked = [call for call in member.calls if call["key"].startswith(f"{phase}/")]
    return {call["key"].rpartition("/")[2]: call for call in asked}


def words_for(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


# The phases


@pytest.mark.behaviour("10-ranking-calls")
async def test_answer_rank_synthesise_takes_two_calls_per_seat_and_one() -> None:
    minutes, member = await run()
    assert list(minutes.phases) == ["answer", "rank", "synthesise"]
    assert [call["key"].split("/")[0] for call in member.calls] == ["answer"] * 3 + ["rank"] * 3 + ["synthesise"]
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "By the sea.")
    assert minutes.plan["calls"] == {"min": 7, "max": 7}
    assert [phase["parallel"] for phase in minutes.plan["phases"]] == [True, True, False]


@pytest.mark.behaviour("10-ranking-blind")
async def test_a_reader_gets_the_others_answers_and_no_names() -> None:
    _, member = await run()
    for reader, request in requests(member, "rank").items():
        assert sorted(shown(request).values()) == sorted(name for name in NAMES if name != reader)
        assert not [name for name in NAMES if name in words_for(request).lower()]
    for request in (*requests(member, "answer").values(), *requests(member, "synthesise").values()):
        assert not [name for name in NAMES if name in words_for(request).lower()]


@pytest.mark.behaviour("10-ranking-label-map")
async def test_the_label_map_in_the_ledger_matches_the_prompts() -> None:
    minutes, member = await run()
    everyone = {**requests(member, "rank"), **requests(member, "synthesise")}
    assert minutes.labels == {reader: shown(request) for reader, request in everyone.items()}
    assert minutes.verdict["details"]["labels"] == minutes.labels


@pytest.mark.behaviour("10-ranking-shuffled")
async def test_each_reader_gets_a_different_order() -> None:
    names = [f"seat{n}" for n in range(9)]
    script: dict[str, Any] = {
        f"answer/{name}": {"text": f"The answer of number {n}."} for n, name in enumerate(names, 1)
    }
    minutes, _ = await run(
        {}, script | {f"rank/{name}/{name}": {"agree": True} for name in names}, roster=write_roster(names)
    )
    orders = {reader: tuple(labels.values()) for reader, labels in minutes.labels.items()}
    assert len(set(orders.values())) == 10
    assert sorted(orders["chair"]) == names
    assert all(sorted((*orders[name], name)) == names for name in names)


# Ballots


@pytest.mark.parametrize(
    ("order", "wrong"),
    [
        (["B", "B"], "B more than once and no A"),
        (["A"], "no B"),
        (["A", "B", "C"], '"C", which is none of the labels'),
        ([], "no A and no B"),
    ],
)
@pytest.mark.behaviour("10-ranking-ballot-absent")
def test_a_ballot_that_is_not_a_permutation_is_rejected_with_the_reason(order: list[str], wrong: str) -> None:
    said = json.dumps({"dispute": "", "reasons": [], "order": order})
    with pytest.raises(
        Exception, match=re.escape(f"order has {wrong}: list each of A, B exactly once, the best first")
    ):
        parse_reply(Ballot, said, {"label": ["A", "B"]})


def test_the_ballot_schema_requires_each_label_once() -> None:
    fields = build_schema(Ballot, {"label": ["A", "B", "C"]})["properties"]
    assert fields["order"]["items"] == {"type": "string", "enum": ["A", "B", "C"]}
    assert all((fields[name]["minItems"], fields[name]["maxItems"]) == (3, 3) for name in ("order", "reasons"))


def test_an_order_without_reasons_is_a_valid_ballot() -> None:
    assert parse_reply(Ballot, '{"order": ["B", "A"]}', {"label": ["A", "B"]}).order == ["B", "A"]


def test_a_ballot_reads_as_a_list_in_order() -> None:
    said = {"dispute": "Response B is wrong.", "reasons": [{"label": "B", "why": "It errs."}], "order": ["A", "B"]}
    assert Ballot(**said).prose() == "Response B is wrong.\n\n1. Response A\n2. Response B: It errs."  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Response A beats Response B.", "Beta beats Gamma."),
        ("**Response A**'s table", "**Beta**'s table"),
        ("Responses A, B and A agree", "Beta, Gamma and Beta agree"),
        ("Response A and I think", "Beta and I think"),
        ("Response C and a Response Abroad", "Response C and a Response Abroad"),
        ("A better response", "A better response"),
    ],
)
def test_labels_in_a_readers_text_become_names(text: str, told: str) -> None:
    assert replace_labels(text, {"A": "Beta", "B": "Gamma"}) == told


@pytest.mark.behaviour("10-ranking-ballot-absent")
async def test_an_unreadable_ballot_is_repaired_once_or_absent_and_never_guessed() -> None:
    rubbish = {"dispute": "", "reasons": [], "order": ["A", "A"]}
    minutes, member = await run({}, {"rank/beta/beta": {"reply": rubbish}})
    asked = [call for call in member.calls if call["key"] == "rank/beta/beta"]
    assert len(asked) == 2
    assert "order has A more than once and no B" in asked[1]["messages"][-1]["content"]
    assert minutes.phases["rank"].absent["beta"].state == "failed(schema)"
    assert list(minutes.verdict["details"]["ballots"]) == ["alpha", "gamma"]
    assert "beta did not answer in rank" in render_answer(minutes)
    assert "Ballots: 2 of 3; absent: beta" in render_document(minutes)
    assert (minutes.status, minutes.verdict["answer"]) == ("complete", "By the sea.")


@pytest.mark.behaviour("10-ranking-no-ballot")
async def test_without_any_ballot_the_chair_continues_and_a_caveat_says_so() -> None:
    minutes, member = await run({}, {f"rank/{name}/{name}": {"fail": "server"} for name in NAMES})
    assert (minutes.status, minutes.verdict["confidence"]) == ("complete", "LOW")
    told = render_answer(minutes)
    assert told.index("No reader compared two answers") < told.index("By the sea.")
    asked = words_for(requests(member, "synthesise")["chair"])
    assert "no ballot compares two responses" in asked
    assert all(f"The answer of number {n}." in asked for n in (1, 2, 3))


# Absent seats


@pytest.mark.behaviour("10-ranking-quorum")
async def test_one_answer_cannot_be_ranked() -> None:
    minutes, member = await run({}, {f"answer/{name}": {"fail": "server"} for name in ("beta", "gamma")})
    assert (minutes.status, minutes.stopped) == ("incomplete", "quorum")
    assert not requests(member, "rank")
    assert build_report(minutes)["quorum"] == {"needed": 2, "ok": 1, "asked": 3}
    assert "The answer of number 1." in minutes.verdict["answer"]


@pytest.mark.behaviour("10-ranking-reader-without-answer")
async def test_a_seat_without_an_answer_still_ranks() -> None:
    minutes, member = await run({}, {"answer/gamma": {"fail": "server"}})
    assert sorted(shown(requests(member, "rank")["gamma"]).values()) == ["alpha", "beta"]
    assert [len(shown(requests(member, "rank")[name])) for name in ("alpha", "beta")] == [1, 1]
    assert [(row["seat"], row["ballots"]) for row in minutes.verdict["details"]["table"]] == [("alpha", 1), ("beta", 1)]
    assert "There is one response: A." in words_for(requests(member, "rank")["alpha"])
    assert "By a reader who gave no response" in words_for(requests(member, "synthesise")["chair"])
    assert "one answer cannot be ranked: the ballots of alpha, beta." in render_document(minutes)


@pytest.mark.behaviour("10-out-for-the-run")
async def test_a_seat_that_is_out_for_the_run_is_not_asked_to_rank() -> None:
    minutes, member = await run({}, {"answer/gamma": {"fail": "auth"}})
    assert list(requests(member, "rank")) == ["alpha", "beta"]
    assert minutes.verdict["caveats"] and minutes.verdict["confidence"] == "LOW"


@pytest.mark.behaviour("10-no-chair-digest")
async def test_without_a_chair_the_digest_has_the_answers_and_the_first_choices() -> None:
    orders = {"alpha": ("beta", "gamma"), "beta": ("alpha", "gamma"), "gamma": ("beta", "alpha")}
    minutes, _ = await run(orders, {"synthesise/chair": {"fail": "auth"}})
    assert (minutes.status, minutes.stopped) == ("incomplete", "chair")
    told = minutes.verdict["answer"]
    assert all(f"The answer of number {n}." in told for n in (1, 2, 3))
    assert "- Alpha: beta first" in told and "### Dissent\n\n- Beta: alpha first" in told
    assert "Response" not in told


# The verdict


@pytest.mark.behaviour("60-disputed-first")
async def test_the_chair_gets_disputes_then_table_and_ballots_then_answers() -> None:
    _, member = await run()
    request = requests(member, "synthesise")["chair"]
    words, label = words_for(request), {author: label for label, author in shown(request).items()}
    parts = ("# Where they differ", "# The table", "# The ballots", "# The responses", "# Your part")
    assert sorted(parts, key=words.index) == list(parts)
    assert f"| 1 | Response {label['alpha']} | 1.0 | 1.0 | 2 | 2 |" in words
    assert f"By the author of Response {label['gamma']}, the best first:" in words
    assert f"Response {label['alpha']} is number 1." in words and f"Response {label['beta']} is number 2." in words
    assert f"- Response {label['alpha']} has it right.\n" in words


@pytest.mark.behaviour("10-ranking-dissent")
async def test_dissent_against_the_winner_and_a_cycle_are_recorded() -> None:
    orders = {"alpha": ("gamma", "beta"), "beta": ("alpha", "gamma"), "gamma": ("beta", "alpha")}
    minutes, _ = await run(orders)
    (undecided,) = minutes.verdict["disagreements"]
    assert undecided["issue"] == "which answer is best: no answer is alone in first place"
    assert [(one["seat"], one["position"]) for one in undecided["positions"]] == [
        ("alpha", "gamma first"), ("beta", "alpha first"), ("gamma", "beta first"),
    ]  # fmt: skip
    assert (minutes.verdict["confidence"], minutes.verdict["dissent"]) == ("LOW", [])
    agreed, _ = await run({"beta": ("alpha", "gamma"), "gamma": ("beta", "alpha"), "alpha": ("beta", "gamma")})
    assert agreed.verdict["details"]["winner"] == "beta"
    assert agreed.verdict["dissent"] == []


@pytest.mark.behaviour("10-ranking-dissent")
async def test_an_answer_first_for_one_and_last_for_another_is_a_disagreement_with_both_reasons() -> None:
    orders = {
        "alpha": ("delta", "beta", "gamma"),
        "beta": ("alpha", "gamma", "delta"),
        "gamma": ("alpha", "beta", "delta"),
        "delta": ("gamma", "beta", "alpha"),
    }
    script = {"answer/delta": {"text": "The answer of number 4."}}
    minutes, member = await run(orders, script, roster=write_roster([*NAMES, "delta"]))
    assert minutes.verdict["disagreements"][0] == {
        "issue": "the answer of alpha",
        "positions": [
            {"seat": "beta", "position": "first", "why": "Alpha is number 1."},
            {"seat": "gamma", "position": "first", "why": "Alpha is number 1."},
            {"seat": "delta", "position": "last", "why": "Alpha is number 3."},
        ],
    }
    assert minutes.verdict["dissent"] == [{"seat": "delta", "position": "alpha last", "text": "Alpha is number 3."}]
    assert minutes.verdict["confidence"] == "MEDIUM"
    words = words_for(requests(member, "synthesise")["chair"])
    assert "was put first by some readers and last by others" in words
    pairs = {
        tuple(pair["readers"]): (pair["same"], pair["compared"]) for pair in minutes.verdict["details"]["agreement"]
    }
    assert (pairs[("beta", "gamma")], pairs[("beta", "delta")]) == ((1, 1), (0, 1))
    assert "| Beta and Delta | 0 of 1 |" in render_document(minutes)


@pytest.mark.behaviour("10-verbose-other-protocols", "10-ranking-verbose")
async def test_the_verbose_layout_replaces_labels_with_seat_names() -> None:
    minutes, _ = await run()
    told = render_verbose(minutes)
    headings = re.findall(r"^##+ .+$", told, re.MULTILINE)
    assert headings == [
        "## Council — Ranking", "### Answer", "#### Alpha", "#### Beta", "#### Gamma", "### Rank", "#### Alpha", "#### Beta",
        "#### Gamma", "### Ranking", "### Chair",
    ]  # fmt: skip
    assert "Alpha has it right.\n\n1. Alpha: Alpha is number 1.\n2. Gamma: Gamma is number 2." in told
    assert "| 1 | Alpha | 1 | 1 | 2 | 2 |" in told
    assert "Response" not in told
    assert "| 1 | Alpha | 1 | 1 | 2 | 2 |" in render_document(minutes)
    assert [name in render_mermaid(minutes) for name in ('["answer"]', '["rank"]', '["synthesise"]')] == [True] * 3


@pytest.mark.behaviour("10-ranking-label-map")
async def test_labels_are_recorded_once_however_often_a_run_is_resumed() -> None:
    minutes, member = await run({}, {"synthesise/chair": {"fail": "server"}})
    assert minutes.status == "incomplete"
    told: list[ev.Event] = []
    again = Readers({}, {})
    convener = Convener(Path.cwd(), members=[again])
    resumed = await convener.resume(minutes.run, lambda entry: told.append(entry.event))
    await convener.close()
    assert [call["key"] for call in again.calls] == ["synthesise/chair"]
    assert again.calls[0]["messages"] == requests(member, "synthesise")["chair"]["messages"]
    assert not [event for event in told if isinstance(event, ev.Labelled)]
    assert (resumed.labels, resumed.status) == (minutes.labels, "complete")


@pytest.mark.behaviour("10-ranking-blind", "10-ranking-local")
async def test_a_small_reader_and_a_small_chair_get_short_answers_under_labels() -> None:
    member = Readers({}, {f"rank/{name}/{name}": {"agree": True} for name in NAMES})
    member.small = True
    convener = Convener(Path.cwd(), flags={"seats": dict.fromkeys((*NAMES, "chair"), "scripted:")}, members=[member])
    minutes = await convener.run(await convener.plan([QUESTION], protocol="ranking"), lambda entry: None)
    await convener.close()
    assert minutes.status == "complete"
    for request in (*requests(member, "rank").values(), *requests(member, "synthesise").values()):
        words = words_for(request)
        assert 'A wrote: "The answer of number' in words
        assert not [name for name in NAMES if name in words.lower()]
    assert "Put A, B in order, the best first" in words_for(requests(member, "rank")["alpha"])


# The roster


async def plan_ranking(roster: str, **seats: str) -> dict[str, Any]:
    table = "\n".join(f'[seats.{name}]\nmodel = "scripted:{name}"' for name in NAMES)
    config = save_file(f'{table}\n[chair]\nmodel = "scripted:"\n', "own.toml")
    members = [Scripted(f"scripted:{name}", {}) for name in (*NAMES, "own", "")]
    convener = Convener(Path.cwd(), flags={"seats": seats, "trust": True}, members=members, config=Path(config))
    try:
        plan = await convener.plan([QUESTION], {"roster": roster}, protocol="ranking")
        return plan.as_json()
    finally:
        await convener.close()


@pytest.mark.behaviour("10-ranking-roster", "00-members-general-defaults")
async def test_roster_seats_without_a_member_use_those_of_alpha_beta_and_gamma_in_turn() -> None:
    rows = [f'[[seats]]\nname = "s{n}"' for n in range(7)]
    rows[2] += '\nmodel = "scripted:own"'
    plan = await plan_ranking(save_file("\n".join(rows)))
    assert [seat["model"].removeprefix("scripted:") for seat in plan["seats"]] == [
        "alpha", "beta", "own", "alpha", "beta", "gamma", "alpha",
    ]  # fmt: skip
    assert plan["calls"] == {"min": 15, "max": 15}


@pytest.mark.behaviour("10-ranking-roster")
async def test_the_rosters_chair_is_used_unless_a_flag_names_one() -> None:
    text = '[chair]\nmodel = "scripted:own"\n[[seats]]\nname = "one"\n[[seats]]\nname = "two"\n'
    assert (await plan_ranking(save_file(text)))["chair"]["model"] == "scripted:own"
    assert (await plan_ranking(save_file(text), chair="scripted:gamma"))["chair"]["model"] == "scripted:gamma"


@pytest.mark.behaviour("10-ranking-roster")
@pytest.mark.parametrize(
    ("seats", "told"), [(1, "has 1 seat, but at least 2 are needed"), (61, "at most 60 are allowed")]
)
async def test_a_roster_with_one_or_too_many_seats_is_rejected(seats: int, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        await plan_ranking(save_file("\n".join(f'[[seats]]\nname = "s{n}"' for n in range(seats))))


async def test_the_answer_prompt_has_the_perspective_but_not_the_title() -> None:
    rows = [f'[[seats]]\nname = "{name}"\nrole = "Chief {name}"\nlens = "cash"\nstance = "Who pays?"' for name in NAMES]
    _, member = await run(roster=save_file("\n".join(rows)))
    words = words_for(requests(member, "answer")["alpha"])
    assert "Look at it from this side: cash. The question you always ask: Who pays?" in words
    assert "Chief" not in words


@pytest.mark.behaviour("10-ranking-labels-explained")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Response A beats Response B.", "Response C beats Response B."),
        ("A is wrong.", "A is wrong. (on this ballot A is Response C)"),
        ("B errs where A does not.", "B errs where A does not. (on this ballot B is Response B, A is Response C)"),
        ("Use AWS, says Response A.", "Use AWS, says Response C."),
        ("C is a language, and I know it.", "C is a language, and I know it."),
    ],
)
def test_a_single_letter_is_explained_to_a_reader_with_other_labels(said: str, told: str) -> None:
    slip = ReaderBallot("alpha", {"A": "beta", "B": "gamma"}, Ballot(order=["A", "B"]))
    assert slip.relabel(said, {"beta": "Response C", "gamma": "Response B"}) == told
