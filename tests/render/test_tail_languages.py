"""Tail and report in the language of the answer: runs with scripted members and stored runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.language import LANGUAGES
from council.members.scripted import Scripted
from council.render.markdown import render_answer, render_document, render_verbose
from council.render.report import answer_text, build_report, read_report
from council.render.tail import add_tail, strip_tail
from council.runs.service import Convener
from council.text_cleanup import quote_tail_lines
from council.wording import load_wording
from tests.protocols.judges.runs import details, finding, judged, opinion
from tests.render.runs import NAMES, RunBuilder, collaborative, drafts, plan, triage

ADVISORS = ("pragmatist", "visionary", "skeptic")


@dataclass(frozen=True)
class Sample:
    question: str
    answer: str
    objection: str
    point: str


SAMPLES = {
    "en": Sample(
        "Should we move in autumn?",
        "Move in autumn, because the rent will then fall by a third.",
        "The move costs more than it brings.",
        "whether the rent will fall",
    ),
    "de": Sample(
        "Sollen wir im Herbst umziehen?",
        "Zieht im Herbst um, weil die Miete dann um ein Drittel sinkt.",
        "Der Umzug kostet mehr, als er bringt.",
        "ob die Miete sinkt",
    ),
    "fr": Sample(
        "Faut-il déménager à l'automne ?",
        "Déménagez à l'automne, car le loyer baissera alors d'un tiers.",
        "Le déménagement coûte plus qu'il ne rapporte.",
        "la baisse du loyer",
    ),
    "es": Sample(
        "¿Debemos mudarnos en otoño?",
        "Múdense en otoño, porque entonces el alquiler bajará un tercio.",
        "La mudanza cuesta más de lo que aporta.",
        "si el alquiler bajará",
    ),
    "it": Sample(
        "Conviene traslocare in autunno?",
        "Traslocate in autunno, perché allora l'affitto scenderà di un terzo.",
        "Il trasloco costa più di quanto renda.",
        "se l'affitto scenderà",
    ),
    "pt": Sample(
        "Devemos mudar de casa no outono?",
        "Mudem-se no outono, porque então o aluguel cairá um terço e não há outra opção.",
        "A mudança custa mais do que traz.",
        "se o aluguel cairá",
    ),
    "zh": Sample(
        "我们应该在秋天搬家吗？", "秋天搬家，因为那时租金会下降三分之一。", "搬家的成本高于收益。", "租金是否会下降"
    ),
    "ja": Sample(
        "秋に引っ越すべきですか？",
        "秋に引っ越してください。家賃が三分の一下がるからです。",
        "引っ越しは利益より費用がかかります。",
        "家賃が下がるかどうか",
    ),
}


@pytest.fixture(autouse=True)
def scripted_members() -> None:
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n', encoding="utf-8")


async def run_scripted(protocol: str, question: str, script: dict[str, Any], **options: Any) -> Minutes:
    seats = {"advisors": (*ADVISORS, "referee"), "general": ("chair",)}.get(protocol, (*NAMES, "chair"))
    flags = {"seats": dict.fromkeys(seats, "scripted:")}
    convener = Convener(Path.cwd(), flags=flags, members=[Scripted(script=script)])
    try:
        return await convener.run(await convener.plan([question], options, protocol=protocol), lambda entry: None)
    finally:
        await convener.close()


def synthesis(sample: Sample) -> str:
    """Return an answer of the chair with its notes."""
    sides = [
        {"seat": "alpha", "position": sample.answer, "assumes": sample.point},
        {"seat": "beta", "position": sample.objection, "assumes": ""},
    ]
    notes = {
        "agreed": [sample.point],
        "contested": [{"point": sample.point, "sides": sides}],
        "unique": [{"seat": "gamma", "point": sample.objection}],
        "recommendation_shared_by": ["alpha"],
    }
    return f"{sample.answer}\n\n```council-notes\n{json.dumps(notes, ensure_ascii=False)}\n```"


def ruling(sample: Sample) -> dict[str, Any]:
    names = ("pragmatist", "skeptic")
    views = dict(zip(names, (sample.answer, sample.objection), strict=True))
    return {
        "perspectives": [{"advisor": name, "view": view} for name, view in views.items()],
        "tensions": [sample.point],
        "sides": [{"advisor": name, "position": view, "assumes": ""} for name, view in views.items()],
        "positions": [
            {"advisor": name, "opened_with": sample.objection, "ended_with": sample.answer, "moved": True, "why": "", "evidence": ""}
            for name in names
        ],
        "decision": f"## {load_wording('en').heading('verdict')}\n\n{sample.answer}",
        "shared_by": ["pragmatist"],
        "next_steps": [sample.answer],
        "wrong_if": sample.objection,
    }  # fmt: skip


def headings(text: str) -> list[str]:
    return [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]


# Tails


@pytest.mark.anyio
@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_tail_and_headings_of_a_run_are_in_the_language_of_its_answer(language: str) -> None:
    sample, wording = SAMPLES[language], load_wording(language)
    minutes = await run_scripted("collaborative", sample.question, {"synthesise/chair": {"text": synthesis(sample)}})
    report = build_report(minutes)
    differ, trust = report["tail"]
    assert differ.startswith(f"{wording.say('tail', 'differ')}{wording.colon}{sample.point}{wording.colon}")
    start = f"{wording.say('tail', 'trust')}{wording.colon}{wording.format_level('LOW')}{wording.dash}"
    assert trust.startswith(start + wording.say("reasons", "not_shared") + wording.semicolon)
    assert "no two members recommended this at first" in report["trust"]["because"]  # the JSON is English
    text = render_answer(minutes)
    assert strip_tail(text) == sample.answer
    document = render_document(minutes)
    expected = ["answer", "where_they_agree", "where_they_differ", "what_only_one_saw", "statements"]
    assert [one for one in headings(document) if one in map(wording.heading, expected)] == [
        wording.heading(key) for key in expected
    ]
    assert f"| {wording.heading('seats_heard')} | {wording.heading('count_of', count=3, total=3)} |" in document
    assert f"### {wording.heading('phase_3_synthesis')}" in render_verbose(minutes)


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_confidence_section_and_the_outcome_are_in_the_language(language: str) -> None:
    sample, wording = SAMPLES[language], load_wording(language)
    builder = triage(drafts(RunBuilder(plan("adversarial", question=sample.question)))).phase("verdict")
    builder.answer("chair", "ruled").end_phase()
    result = {"kind": "survived", "seat": "alpha", "replaced_by": "", "word": "", "count": 0, "total": 2, "changes": 0}
    minutes = builder.close(sample.answer, outcome="SURVIVED", assessment=sample.point, result=result).minutes
    level = wording.format_level(str(build_report(minutes)["trust"]["level"]))
    heading = wording.heading("confidence_assessment")
    assert answer_text(minutes).startswith(f"{sample.answer}\n\n## {heading}\n\n**{level}")
    outcome = wording.say("outcomes", "survived_all_failed", number=2, seat="alpha", total=2)
    assert build_report(minutes)["tail"][0] == f"{wording.say('tail', 'outcome')}{wording.colon}{outcome}"


@pytest.mark.behaviour("10-tail-language")
@pytest.mark.parametrize(
    ("answer", "question", "language"),
    [
        ("Ja.", "Sollen wir umziehen?", "de"),
        ("Redis.", "Quelle base de données faut-il choisir ?", "fr"),
        ("Ja, maar niet in de herfst, want dan is het te duur.", "Moeten we verhuizen?", "en"),
        ("Да, но не осенью.", "Стоит ли переезжать?", "en"),
    ],
)
def test_a_short_answer_has_the_language_of_its_question_and_another_language_is_english(
    answer: str, question: str, language: str
) -> None:
    minutes = collaborative(plan(question=question)).close(answer).minutes
    wording = load_wording(language)
    assert build_report(minutes)["tail"][-1].startswith(f"{wording.say('tail', 'trust')}{wording.colon}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tail_is_removed_in_every_language(language: str) -> None:
    wording = load_wording(language)
    lines = [f"{wording.say('tail', label)}{wording.colon}x" for label in ("outcome", "agree", "trust")]
    answer = f"{SAMPLES[language].answer}\n\n---\n\n{SAMPLES[language].objection}"
    assert strip_tail(add_tail(answer, lines)) == answer
    assert strip_tail(add_tail(answer, [line.replace("\u00a0", " ") for line in lines])) == answer
    assert strip_tail(add_tail(answer, [*lines[:2], "x"])) != answer


# Answers and reports


@pytest.mark.anyio
@pytest.mark.behaviour("10-report-language")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_answer_of_advisors_has_headings_in_its_language(language: str) -> None:
    sample, wording = SAMPLES[language], load_wording(language)
    minutes = await run_scripted("advisors", sample.question, {"referee/referee": {"reply": ruling(sample)}}, rounds=2)
    names = ["perspectives", "tensions", "how_positions_moved", "verdict", "next_steps", "wrong_if"]
    titles = {name: wording.heading(name) for name in names}
    assert sorted(headings(answer_text(minutes))) == sorted(titles.values())
    assert wording.heading("left_out") in answer_text(minutes) and wording.heading("weak_flip") in answer_text(minutes)
    sections = read_report(minutes)["sections"]
    assert sections[0] == {"name": "decision", "title": titles["verdict"], "text": sample.answer}
    assert [one["name"] for one in sections[1:3]] == ["next_steps", "wrong_if"]
    assert {one["title"] for one in sections} == set(titles.values())
    assert f"### {wording.heading('round', n=2)}" in render_document(minutes)


@pytest.mark.anyio
@pytest.mark.behaviour("10-report-language")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_answer_of_a_general_council_has_headings_in_its_language(language: str) -> None:
    sample, wording = SAMPLES[language], load_wording(language)
    sides = [{"member": "skeptic", "position": sample.objection}, {"member": "generalist", "position": sample.answer}]
    reply = {
        "answer": sample.answer,
        "disagreements": [],
        "added_disagreements": [{"question": sample.point, "sides": sides}],
    }
    script = {"synthesise/chair": {"reply": reply}}
    minutes = await run_scripted("general", sample.question, script, no_search=True)
    answer = answer_text(minutes)
    assert answer.startswith(f"{wording.heading('participating_models')}{wording.colon}scripted:")
    assert f"## {wording.heading('where_experts_disagree')}\n\n" in answer
    assert f"\n- Skeptic{wording.colon}{sample.objection}" in answer
    assert [one["name"] for one in read_report(minutes)["sections"]] == ["decision", "disagreements", "models"]
    assert read_report(minutes)["sections"][0]["text"] == sample.answer
    assert f"## {wording.heading('claims')}" in render_document(minutes)


@pytest.mark.behaviour("10-report-language")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_report_of_judges_is_in_the_language_of_their_findings(language: str) -> None:
    sample, wording = SAMPLES[language], load_wording(language)
    reply = opinion("FAIL", "HIGH", sample.objection, recommendation=sample.answer)
    rows = [finding(sample.answer, "judge-1", "judge-2"), finding(sample.objection)]
    minutes = (
        judged(None, "judge", judge_1=reply).close("OK.", verdict="FAIL", findings=rows, details=details()).minutes
    )
    document = render_document(minutes)
    keys = ["verdicts", "shared_findings", "single_judge_findings", "disagreements", "recommendation"]
    place = "critical security · `src/auth.py:2` · "
    assert [one for one in headings(document) if not one.startswith(place)] == [
        f"{wording.heading('council_consensus')}{wording.colon}FAIL",
        *map(wording.heading, keys),
    ]
    assert f"*{wording.heading('found_by_judges', judges=wording.comma.join(('judge-1', 'judge-2')))}*" in document
    assert f"**{wording.heading('trust')}{wording.colon.rstrip()}** {wording.format_level('MEDIUM')}" in document
    assert wording.heading("judges_responded", count=2, total=2) in document


@pytest.mark.anyio
@pytest.mark.behaviour("10-report-language")
async def test_a_digest_is_in_the_language_of_the_statements() -> None:
    sample = SAMPLES["de"]
    script: dict[str, Any] = {
        f"{phase}/{name}": {"text": sample.answer} for phase in ("draft", "improve") for name in NAMES
    }
    minutes = await run_scripted("collaborative", sample.question, {**script, "synthesise/chair": {"fail": "auth"}})
    assert answer_text(minutes).startswith("## Kein Vorsitz: Auszug aus den Stellungnahmen\n\nDiese Stellungnahmen")
    assert render_document(minutes).startswith("# UNVOLLSTÄNDIG: ")


def test_a_run_that_was_killed_says_so_in_the_language_of_its_question() -> None:
    builder = RunBuilder(plan(question=SAMPLES["fr"].question)).phase("draft").answer("alpha", "x")
    assert answer_text(builder.minutes).startswith("Pas encore de réponse\u00a0: l'exécution s'est arrêtée dans draft")


def test_sections_of_a_stored_answer_that_was_changed_are_left_out() -> None:
    stored = [{"name": "decision", "title": "Verdict", "text": "Go."}, {"name": "tensions", "title": "Tensions", "text": "- x"}]  # fmt: skip
    builder = RunBuilder(plan("advisors")).phase("r1").answer("alpha", "x").end_phase()
    sections = read_report(builder.close("## Verdict\n\nGo.", details={"sections": stored}).minutes)["sections"]
    assert [one["name"] for one in sections] == ["decision"]


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_a_line_of_a_model_that_begins_like_one_of_the_tail_is_quoted_in_every_language(language: str) -> None:
    wording = load_wording(language)
    for label in ("outcome", "differ", "agree", "trust"):
        line = f"{wording.say('tail', label)}{wording.colon}{wording.say('levels', 'HIGH')}"
        assert quote_tail_lines(f"Ja.\n\n{line}\n") == f"Ja.\n\n> {line}\n"
