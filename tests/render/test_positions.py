"""Rows of the disagreement map, what the council changed, and the facts in favour of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from council.engine.records import PositionRow
from council.events import Attempted, Billed
from council.render.markdown import render_document
from council.render.positions import build_position_history, build_position_table, build_positions, format_positions
from council.render.report import read_report
from council.render.report_object import Report
from council.render.terminal import format_summary
from council.wording import load_wording
from tests.protocols.judges.runs import bench_plan, details, finding, judged, opinion
from tests.render.runs import NAMES, RunBuilder, collaborative, drafts, one_absent, plan, seat, triage

Json = dict[str, Any]


def cells(row: PositionRow) -> str:
    """The positions in seating order, by first letter."""
    return "".join(one["position"][0] for one in row["seats"])


def side(seat: str, answer: str, *against: str, **more: Any) -> Json:
    return {"seat": seat, "stance": answer, "claim": f"{seat} says {answer}.", "disputed_by": list(against)} | more


def dispute(topic: str, *sides: Json, how: str = "values") -> Json:
    return {"issue": topic, "topic": topic, "how": how, "positions": list(sides)}


def claim(seat: str, topic: str, answer: str = "yes", **more: Any) -> Json:
    fields = {"agrees": [], "against": [], "conceded": [], "status": "unverified"} | more
    return {"id": f"c-{seat}", "topic": topic, "answer": answer, "claim": f"{seat}: {answer}", "by": [seat]} | fields


def answered(protocol: str = "general", names: tuple[str, ...] = NAMES) -> RunBuilder:
    builder = RunBuilder(plan(protocol, names)).phase("r1").ask(*names)
    for name in names:
        builder.answer(name, f"{name} answers.")
    return builder.end_phase()


def test_the_table_of_a_report_has_a_row_for_each_topic_and_a_column_for_each_seat() -> None:
    agreed = [claim("alpha", "Is it safe?", agrees=["beta"]), claim("beta", "is it safe", agrees=["alpha"])]
    disputed = [dispute("How long?", side("alpha", "2 weeks", "beta"), side("beta", "6 weeks", "alpha"))]
    minutes = answered().close(claims=agreed, disagreements=disputed).minutes
    assert build_position_table(minutes, load_wording("en")) == [
        ["Topic", "alpha", "beta", "gamma", "Status"],
        ["How long?", "agrees", "opposes", "", "disputed"],
        ["Is it safe?", "agrees", "agrees", "", "2 of 3"],
    ]
    assert build_position_table(answered().close().minutes, load_wording("en")) == []


@pytest.mark.behaviour("17-disputed-names-opponent", "17-one-topic-one-row")
@pytest.mark.parametrize(
    ("disagreements", "claims", "expected"),
    [
        # values that are neither yes nor no: the server knows who opposes whom
        ([dispute("How long?", side("alpha", "2 weeks", "beta"), side("beta", "6 weeks", "alpha"))], [], [("disputed", "aos", ["beta"])]),
        # a third seat that shares a side is filled in from its claim, and the topic stays one row in any spelling
        ([dispute("How long?", side("alpha", "2 weeks", "beta"), side("beta", "6 weeks", "alpha"))], [claim("gamma", "how long", "6 weeks", against=["alpha"], status="contradicted")], [("disputed", "aoo", ["beta", "gamma"])]),
        # a possible dispute is not called disputed
        ([dispute("Cost?", side("alpha", "low"), side("beta", "lower"), how="possible")], [], [("possible", "aqs", [])]),
        # a nuance does not settle a conflict, a concession does
        ([dispute("Safe?", side("alpha", "yes", "beta", round2="NUANCE"), side("beta", "no", "alpha", round2="MAINTAIN"))], [], [("disputed", "aos", ["beta"])]),
        ([dispute("Safe?", side("alpha", "yes", "beta", round2="CONCEDE"), side("beta", "no", "alpha"), side("gamma", "no", "alpha"))], [], [("qualified", "qaa", [])]),
        # claims on one topic are one row
        ([], [claim("alpha", "Is it safe?", agrees=["beta"]), claim("beta", "is it safe", agrees=["alpha"])], [("2 of 3", "aas", [])]),
        ([], [claim("alpha", "Is it safe?", agrees=["beta", "gamma"]), claim("beta", "Is it safe?", agrees=["alpha"]), claim("gamma", "Is it safe?", agrees=["alpha"])], [("agreed", "aaa", [])]),
        ([], [claim("alpha", "Is it safe?"), claim("beta", "Is it safe?", "no", conceded=["beta"], against=["alpha"], status="contradicted")], [("settled", "aqs", [])]),
        ([], [claim("alpha", "Is it safe?"), claim("beta", "Is it safe?", "if patched", status="qualified")], [("qualified", "aqs", [])]),
        # tensions without seats, or with one seat, are no row
        ([{"issue": "speed against cost"}, dispute("Alone?", side("alpha", "yes"))], [], []),
    ],
)  # fmt: skip
def test_a_topic_is_one_row_and_disputed_only_with_an_opponent(
    disagreements: list[Json], claims: list[Json], expected: list[tuple[str, str, list[str]]]
) -> None:
    minutes = answered().close(disagreements=disagreements, claims=claims).minutes
    rows = build_positions(minutes)
    assert [(row["status"], cells(row), row["disputed_by"]) for row in rows] == expected


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (side("alpha", "yes"), "yes: alpha says yes."),
        (side("alpha", "yes", round2="NUANCE"), "yes, then NUANCE: alpha says yes."),
        ({"seat": "alpha", "verdict": "PASS", "stance": "yes", "why": "It is tested."}, "PASS: It is tested."),
        ({"seat": "alpha", "position": "now"}, "now"),
        ({"seat": "alpha", "round2": "CONCEDE", "claim": "Too late."}, "CONCEDE: Too late."),
        ({"seat": "alpha", "claim": "Too late."}, "Too late."),
    ],
)
def test_a_side_of_a_dispute_has_its_word_what_became_of_it_and_its_claim(one: Json, shown: str) -> None:
    (row,) = build_positions(answered().close(disagreements=[dispute("When?", one, side("beta", "no"))]).minutes)
    assert row["seats"][0]["why"] == shown


@pytest.mark.behaviour("17-disputed-names-opponent")
def test_a_disputed_finding_names_its_opponents_and_a_holder_that_objects_only_qualifies() -> None:
    judges = [f"judge-{n}" for n in (1, 2, 3)]
    sides = [{"seat": "judge-2", "why": "It is guarded."}, {"seat": "judge-1", "why": "Only in tests."}]
    rows = [
        finding("bypass", "judge-1", of=3, disputed=True, disputed_by=["judge-2", "judge-1"], disputes=sides),
        finding("race", "judge-1", "judge-2", "judge-3", of=3),
        finding("old", "judge-1", of=3, disputed=True),  # of a version that did not store who
    ]
    bench = bench_plan(*({"name": name, "role": "Judge", "perspective": None, "model": "scripted:", "vendor": "a", "fallbacks": []} for name in judges))  # fmt: skip
    verdicts = [
        {"seat": name, "verdict": word, "why": "So."}
        for name, word in zip(judges, ("FAIL", "FAIL", "WARN"), strict=True)
    ]
    run = judged(bench, judge_1=opinion("FAIL"), judge_2=opinion("FAIL"), judge_3=opinion("WARN"))
    run.close(
        verdict="FAIL",
        findings=rows,
        details=details(),
        disagreements=[{"issue": "the verdict", "positions": verdicts}],
    )
    found = build_positions(run.minutes)
    assert [(row["status"], cells(row), row["disputed_by"]) for row in found] == [
        ("disputed", "qos", ["judge-2"]), ("agreed", "aaa", []), ("1 of 3", "ass", []), ("disputed", "aao", ["judge-3"]),
    ]  # fmt: skip
    assert found[0]["seats"][1]["why"] == "It is guarded."
    assert format_positions(found[0]) == "no seat against judge-2; judge-1 with a qualification"


def attack_run(*, ruled: bool = True) -> RunBuilder:
    """Two attackers raise the same point, which the chair joins, and gamma another."""
    same = {"severity": "MAJOR", "hits": "the cost", "flaw": "It was never measured.", "correction": "Measure it."}
    other = {"severity": "MINOR", "hits": "", "flaw": "The name is old.", "correction": ""}
    builder = triage(drafts(RunBuilder(plan("adversarial"))))
    builder.phase("attack").answer("beta", "b", reply={"issues": [same], "verdict": "MODIFIED"})
    builder.answer(
        "gamma", "g", reply={"issues": [same | {"severity": "FATAL"}, other], "verdict": "MODIFIED"}
    ).end_phase()
    if not ruled:
        return builder
    row = {"landed": True, "why": "", "same_as": None} | same
    rulings = [row | {"id": "beta-1"}, row | {"id": "gamma-1", "severity": "FATAL", "same_as": "beta-1", "why": "Right."}, other | {"id": "gamma-2", "landed": False, "why": "No.", "same_as": None}]  # fmt: skip
    builder.phase("verdict").answer("chair", "ruled").end_phase()
    return builder.close(
        "Measure it.",
        outcome="MODIFIED",
        confidence="MEDIUM",
        details={"leader": "alpha", "rulings": rulings, "agreed": ["a"]},
    )


@pytest.mark.behaviour("17-points-merged", "17-positions-in-report")
def test_points_of_an_attack_are_merged_with_the_names_of_all_seats_that_raised_them() -> None:
    run = attack_run()
    rows = build_positions(run.minutes)
    shown = [(row["topic"], row["status"], row["severity"], row["ids"], row["disputed_by"], cells(row)) for row in rows]
    assert shown == [
        ("the cost", "landed", "fatal", ["beta-1", "gamma-1"], ["beta", "gamma"], "aoo"),
        ("The name is old.", "dismissed", "minor", ["gamma-2"], ["gamma"], "aso"),
    ]
    assert (rows[0]["ruling"], rows[0]["correction"]) == ("Right.", "Measure it.")
    early = build_position_history(attack_run(ruled=False).entries)
    assert [(row["status"], row["disputed_by"]) for row in early[-1]["rows"]] == [
        ("open", ["beta", "gamma"]),
        ("open", ["gamma"]),
    ]
    assert early[0]["rows"] == []
    report = Report.from_dict(read_report(run.minutes))
    assert [row.status for row in report.positions] == ["landed", "dismissed"]
    assert report.trust.in_favour == ["3 of 3 seats answered"]


@pytest.mark.behaviour("17-preliminary-rows")
def test_before_the_rules_have_run_only_equal_findings_and_questions_are_one_row() -> None:
    one = {"severity": "critical", "description": "Tokens never expire.", "location": "src/auth.py:2"}
    other = one | {"description": "Tokens are logged."}
    run = judged(judge_1=opinion("FAIL", "HIGH", "x", one, other), judge_2=opinion("FAIL", "HIGH", "x", one))
    assert [(row["text"], row["status"]) for row in build_positions(run.minutes)] == [
        ("Tokens never expire.", "agreed"),
        ("Tokens are logged.", "1 of 2"),
    ]
    talk = RunBuilder(plan("general")).phase("r1")
    for name, answer in (("alpha", "2 weeks"), ("beta", "2 weeks"), ("gamma", "6 weeks")):
        talk.answer(
            name,
            "x",
            reply={
                "claims": [
                    {"question": "How long?", "answer": answer, "text": f"{name}: {answer}"},
                    "odd",
                    {"question": 3},
                ]
            },
        )
    (row,) = build_positions(talk.minutes)
    assert (row["status"], cells(row), row["disputed_by"]) == ("qualified", "aaq", [])


NOTES = {
    "agreed": ["keep it"], "unique": [{"seat": "gamma", "point": "replica lag"}], "taken_from": [{"seat": "beta", "point": "rollback"}],
    "contested": [{"point": "when", "sides": [{"seat": "alpha", "position": "now", "assumes": "growth"}, {"seat": "gamma", "position": "later", "assumes": ""}]}],
    "closest_draft": "gamma", "recommendation_shared_by": ["alpha", "beta"],
}  # fmt: skip


@pytest.mark.behaviour("17-what-changed")
def test_what_the_council_changed_is_told_only_as_far_as_the_facts_go() -> None:
    answer = "Keep the database for one more year, and move only the event log to the archive tier in spring."
    builder = RunBuilder().phase("draft").ask(*NAMES)
    texts = {
        "alpha": "Replace everything at once, because nothing of it can be saved any longer by anyone.",
        "beta": f"{answer} Then measure.",
        "gamma": "Wait.",
    }
    for n, (name, text) in enumerate(texts.items(), 1):
        builder.add(Billed(f"draft/{name}", name, 1, "scripted:m1", n / 100, False)).answer(name, text)
    builder.end_phase().phase("synthesise").answer("chair", answer).end_phase()
    report = read_report(builder.close(answer, notes=NOTES, agreement="partial").minutes)
    changed = report["changed"]
    assert changed["closest_draft"] == {"seat": "beta", "phase": "draft", "share": 1.0}
    assert (changed["taken_from"], changed["shared_by"], changed["differed"]) == (
        NOTES["taken_from"],
        ["alpha", "beta"],
        ["gamma"],
    )
    assert (changed["agree"], changed["differ"], changed["only_one"]) == (1, 1, 1)
    assert changed["one_model"]
    assert changed["one_model"]["low"] == 0.01 and changed["one_model"]["high"] == 0.03
    assert [(row["topic"], row["status"], cells(row)) for row in report["positions"]] == [
        ("when", "disputed", "aso"),
        ("replica lag", "only gamma", "ssa"),
    ]
    assert report["trust"]["in_favour"] == ["3 of 3 seats answered"]
    assert Report.from_dict(report).changed is not None

    plain = read_report(collaborative().minutes)["changed"]  # short texts, no notes, nothing billed
    assert (plain["closest_draft"], plain["shared_by"], plain["one_model"]) == (None, None, None)
    assert "changed" not in read_report(attack_run(ruled=False).minutes)
    assert read_report(one_absent().minutes)["trust"]["in_favour"] == []


STRONGEST: dict[str, tuple[tuple[float, ...], dict[str, Any], tuple[str, bool | None, str]]] = {
    "shared": ((3.0, 1.0, 2.0), {"notes": NOTES}, ("alpha", False, "")),
    "not shared": ((1.0, 2.0, 3.0), {"notes": NOTES}, ("gamma", True, "")),
    "no notes": ((1.0, 2.0, 3.0), {}, ("gamma", None, "not_recorded")),
    "led and was overturned": ((3.0, 1.0, 2.0), {"outcome": "OVERTURNED", "details": {"leader": "alpha"}}, ("alpha", True, "")),
    "led and was modified": ((3.0, 1.0, 2.0), {"outcome": "MODIFIED", "details": {"leader": "alpha"}}, ("alpha", False, "")),
    "another verdict": ((3.0, 1.0, 2.0), {"verdict": "WARN"}, ("alpha", True, "")),
    "no verdict of its own": ((3.0, 1.0, 2.0), {"verdict": "DISAGREE"}, ("alpha", None, "disagree")),
}  # fmt: skip


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize("case", STRONGEST)
def test_a_report_says_whether_the_council_changed_its_strongest_seat(case: str) -> None:
    prices, verdict, (seat, changed, unknown) = STRONGEST[case]
    builder = RunBuilder(plan(prices={f"sim:{name}": price for name, price in zip(NAMES, prices, strict=True)}))
    builder.phase("draft")
    for name in NAMES:
        builder.add(Attempted(f"draft/{name}", name, 1, f"sim:{name}", most=1.0))
        builder.add(Billed(f"draft/{name}", name, 1, f"sim:{name}", 0.02, False))
        builder.answer(name, "x", served_by=f"sim:{name}", reply={"verdict": "PASS"})
    minutes = builder.close("Wait.", **verdict).minutes
    report = Report.from_dict(read_report(minutes))
    found = report.strongest
    assert found and (found.seat, found.changed, found.unknown) == (seat, changed, unknown)
    text = render_document(minutes)
    assert "Strongest seat" in text and ("not assessed" in text or changed is not None or unknown == "disagree")
    assert found.usd == 0.02 and f"{seat} (sim:{seat}, the highest price)" in text
    assert "its answer cost $0.020, the council $0.060" in text


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize(
    ("prices", "answered", "status"),
    [
        ((3.0, 3.0, 1.0), NAMES, "complete"),  # two are equal
        ((3.0, 2.7, 1.0), NAMES, "complete"),  # two are close
        ((3.0, None, 1.0), NAMES, "complete"),  # one price is unknown
        ((None, None, None), NAMES, "complete"),  # an older run
        ((3.0, 2.0, 1.0), NAMES[1:], "complete"),  # the strongest seat did not answer
        ((3.0, 2.0, 1.0), NAMES[:1], "complete"),
        ((3.0, 2.0, 1.0), NAMES, "failed"),
    ],
)
def test_no_line_about_a_strongest_seat_that_the_run_does_not_tell(
    prices: tuple[float | None, ...], answered: tuple[str, ...], status: str
) -> None:
    known = {f"sim:{name}": price for name, price in zip(NAMES, prices, strict=True) if price}
    seats = [seat(name, model=f"sim:{name}") for name in NAMES]
    more: dict[str, Any] = {"prices": known} if known else {}
    builder = RunBuilder(plan(seats=seats, **more)).phase("draft")
    for name in answered:
        builder.answer(name, "x", served_by=f"sim:{name}")
    minutes = builder.end_phase().close("Wait.", status=status, notes=NOTES).minutes
    report = read_report(minutes)
    assert "strongest" not in report and Report.from_dict(report).strongest is None
    assert "trongest seat" not in render_document(minutes) + "".join(format_summary(report))


@pytest.mark.behaviour("17-decision-first")
@pytest.mark.parametrize(
    ("protocol", "answer", "names"),
    [
        ("advisors", "## Perspectives\n\n- **Skeptic:** no\n\n## Tensions\n\n- cost\n\n## Verdict\n\nMove.\n\n## Next Steps\n\nfirst\n\n## Next Steps\n\n1. Go.", ["decision", "next_steps", "perspectives", "tensions"]),
        ("advisors", "## Verdict\n\nMove.\n\n## Tensions\n\nmine\n\n## Next Steps\n\n1. Go.\n\n## What Would Show That the Verdict Was Wrong\n\nNo.\n\n## Tensions\n\n- cost\n\n## How Positions Moved\n\n| a |\n\n## Perspectives\n\n- **Skeptic:** no", ["decision", "next_steps", "wrong_if", "tensions", "moves", "perspectives"]),
        ("advisors", "Move it.", []),
        ("general", "Participating models: a as b.\n\nMove it.\n\n## Sources\n\nmine\n\n## Where Experts Disagree\n\nThey do.\n\n## Sources\n\n- [1] x", ["decision", "disagreements", "sources", "models"]),
        ("collaborative", "Move it.", []),
    ],
)  # fmt: skip
def test_an_answer_with_sections_has_its_decision_first(protocol: str, answer: str, names: list[str]) -> None:
    topic = dispute("x", side("alpha", "a", "beta"), side("beta", "b", "alpha"))
    sources = [{"n": 1, "cited": True}]
    given: Json = {"disagreements": [topic], "sources": sources} if protocol == "general" else {}
    report = read_report(answered(protocol).close(answer, **given).minutes)
    assert [one["name"] for one in report["sections"]] == names
    if names:
        assert report["sections"][0]["text"].startswith("Move")
        assert "mine" in report["sections"][0]["text"] or protocol == "advisors"


def test_a_referee_who_names_last_positions_does_not_tell_whether_the_first_answer_was_kept() -> None:
    builder = RunBuilder(plan(names=("alpha", "beta"), prices={"sim:alpha": 3.0, "sim:beta": 1.0}))
    for phase in ("draft", "rebuttal"):
        builder.phase(phase)
        for name in ("alpha", "beta"):
            builder.answer(name, "x", served_by=f"sim:{name}")
        builder.end_phase()
    minutes = builder.close("Wait.", details={"referee": {"shared_by": ["alpha"]}}).minutes
    found = Report.from_dict(read_report(minutes)).strongest
    assert found and (found.seat, found.changed, found.unknown) == ("alpha", None, "not_recorded")


def test_a_row_of_claims_has_the_words_of_the_first_and_its_topic_if_there_is_no_question() -> None:
    claims = [claim("alpha", "Is it safe?"), claim("beta", "", claim="It is slow.")]
    rows = build_positions(answered().close(claims=claims).minutes)
    assert [(row["topic"], row["text"]) for row in rows] == [
        ("Is it safe?", "alpha: yes"),
        ("It is slow.", "It is slow."),
    ]


def test_before_the_rules_have_run_the_first_answer_stays_the_one_that_others_agree_with() -> None:
    talk = RunBuilder(plan("general")).phase("r1")
    for name, answer in (("alpha", "2 weeks"), ("beta", "6 weeks"), ("gamma", "6 weeks")):
        claims = [{"question": "How long?", "answer": answer, "text": f"{name}: {answer}"}]
        talk.answer(name, "x", reply={"claims": claims})
    (row,) = build_positions(talk.minutes)
    assert cells(row) == "aqq"


def test_a_draft_with_just_the_smallest_share_of_the_answer_is_close_to_it() -> None:
    words = [f"w{n}" for n in range(22)]  # 20 sequences of three words
    answer = " ".join(words)

    def find_share(common: int) -> float | None:
        draft = " ".join([*words[:common], *(f"x{n}" for n in range(20))])
        builder = RunBuilder().phase("draft").answer("alpha", draft).answer("beta", "Wait.").end_phase()
        closest = read_report(builder.close(answer).minutes)["changed"]["closest_draft"]
        return closest["share"] if closest else None

    assert (find_share(8), find_share(7)) == (0.3, None)


@pytest.mark.parametrize("cheapest", [0.0, 0.01])
def test_a_draft_without_a_cost_gives_no_cost_of_one_model(cheapest: float) -> None:
    builder = RunBuilder().phase("draft")
    for name, usd in (("alpha", cheapest), ("beta", 0.02)):
        builder.add(Billed(f"draft/{name}", name, 1, "scripted:m1", usd, False)).answer(name, "It is so.")
    one_model = read_report(builder.end_phase().close("It is so.").minutes)["changed"]["one_model"]
    assert (one_model is not None) == (cheapest > 0)
