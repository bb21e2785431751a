"""Judges protocol: independent judges for validate, brainstorm and research, with an optional second round."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from council.engine.agreement import compute_agreement, keep_known, list_shared_voices, round_voices
from council.engine.council import Council
from council.engine.reply import Reply
from council.protocols.common.lookups import MAX_HOPS, LookupLimit, run_hops
from council.protocols.common.stances import Stance, is_unanimous
from council.protocols.judges.clerk import ask_clerk
from council.protocols.judges.findings import describe_position
from council.protocols.judges.locations import Material
from council.protocols.judges.options import JudgesOptions
from council.protocols.judges.parts import fit_packet, judge_parts, list_parts
from council.protocols.judges.replies import (
    Consolidation,
    Exploration,
    Facets,
    Lookups,
    Opinion,
    Options,
    SecondOpinion,
    SubQuestions,
)
from council.protocols.judges.verdict import build_verdict, collect_standing, read_findings
from council.text_cleanup import squash
from council.types import Packet, Question, Round, Seat, Statement, Verdict

REPLY_TYPES: dict[str, type[Reply]] = {"validate": Opinion, "brainstorm": Options, "research": Facets}


async def judges(council: Council, **options: Any) -> Verdict:
    """Judge independently, debate if requested, then combine by rule (validate) or by one chair call."""
    chosen = JudgesOptions.model_construct(**options)  # validated by the caller
    if council.packet.empty and council.packet.note:
        return Verdict(council.packet.note)
    async with council.phase("r1" if chosen.debate else "judge"):
        opinions = await run_first_round(council, chosen)
    if council.question.task != "validate":
        return await consolidate(council, opinions)
    second = await run_second_round(council, opinions, chosen.early_stop) if chosen.debate else Round[SecondOpinion]()
    # After the second round: it may withdraw and add findings, and its supports help to check the groups.
    standing = collect_standing(opinions, second, Material.from_packet(council.packet))
    clerking = await ask_clerk(council, standing.findings, is_off=chosen.no_clerk)
    return build_verdict(council, chosen, opinions, second, standing, clerking)


async def quick(council: Council) -> Verdict:
    """Ask one judge once, for a verdict or for a short answer."""
    if council.question.task != "ask":
        return await judges(council, quick=True)
    async with council.phase("answer"):
        statement = await council.ask(council.members[0], "judges/answer")
    return Verdict(statement.text)


async def run_first_round(council: Council, options: JudgesOptions) -> Round[Any]:
    given: dict[str, Any] = {"bench": len(council.members), "technique": options.technique, "explored": []}
    if council.question.task == "validate":
        given["question"] = replace(council.question, text=phrase_question(council.question, council.packet))
    prompt, reply = f"judges/{council.question.task}", REPLY_TYPES[council.question.task]
    if council.question.task == "validate" and len(parts := list_parts(council.packet)) > 1:
        explore = partial(run_explorers, count=options.explorers, variables=given) if options.explorers else None
        return await judge_parts(council, parts, prompt, given, explore)
    if not options.explorers:
        opinions: Round[Any] = await council.poll(council.members, prompt, reply=reply, **given)
        return opinions

    async def act(apart: Council, judge: Seat) -> Statement[Any]:
        explored = await run_explorers(apart, judge, options.explorers, given)
        opinion: Statement[Any] = await apart.ask(judge, prompt, reply=reply, **{**given, "explored": explored})
        return opinion

    return await council.gather(council.members, act)


DOCUMENT_SUFFIXES = (".md", ".txt", ".rst", ".adoc", ".pdf", ".docx", ".html")
# Words for a target that Council chose itself, each as the question of a review.
NAMED_TARGETS = {
    "recent": "Are the recent changes fit to be merged?",
    "staged": "Are the staged changes fit to be merged?",
    "what changed": "Are these changes fit to be merged?",
    "the changes in the work tree": "Are the changes in the work tree fit to be merged?",
    "the attached files": "Are the attached files fit to be relied on?",
}
STDIN_NAMES = ("-", "the text from standard input")


def phrase_question(question: Question, packet: Packet) -> str:
    """Return the words of a review as a question that a judge can answer."""
    words = question.text.strip().rstrip(".")
    if words.endswith("?"):
        return words
    if words in NAMED_TARGETS:
        return NAMED_TARGETS[words]
    if words in STDIN_NAMES:
        return f"{'Are the changes' if packet.diff else 'Is the text'} from standard input fit to be relied on?"
    if words != question.target:
        subject = "Are these changes" if packet.diff else "Is the material" if not packet.empty else "Is this"
        return f'The review was requested with the words "{words}". {subject} fit to go ahead?'
    if packet.diff:
        return f"Are the changes in {words} fit to be merged?"
    written = all(file.path.lower().endswith(DOCUMENT_SUFFIXES) for file in packet.files)
    return f"Is the text in {words} fit to be acted on?" if written else f"Is the code in {words} fit to release?"


# Explorers


async def run_explorers(council: Council, judge: Seat, count: int, variables: dict[str, Any]) -> list[Statement[Any]]:
    """Ask the judge for questions and run one explorer per question.

    Return the reports; absent explorers are left out.
    """
    async with council.phase("questions"):
        statement = await council.ask(judge, "judges/questions", reply=SubQuestions, explorers=count, **variables)
    questions = statement.reply.questions[:count]
    explorer = next(seat for seat in council.roster.helpers if seat.name == "explorer")
    seats = [replace(explorer, name=f"{judge.name}-explorer-{n}") for n in range(1, len(questions) + 1)]
    subjects = dict(zip([seat.name for seat in seats], questions, strict=True))

    async def act(apart: Council, seat: Seat) -> Statement[Any]:
        """Ask for look-ups a few times, then accept only the report."""
        return await run_hops(
            apart,
            seat,
            ("judges/explore", "judges/found"),
            Lookups,
            LookupLimit(),
            Exploration,
            judge=judge,
            subquestion=subjects[seat.name],
            hops=MAX_HOPS,
            question=variables.get("question", council.question),
            timeout=council.timeouts.get("explorer"),
        )

    async with council.phase("explore"):
        return list((await council.gather(seats, act, quorum=0)).values())


# Debate


async def run_second_round(
    council: Council, opinions: Round[Opinion], early_stop: bool = False
) -> Round[SecondOpinion]:
    """Show each judge the other verdicts and ask again. An absent judge keeps its first verdict."""
    if len(opinions) < 2:
        why = "only one judge answered the first round"
        council.note("second round skipped", why=why, skipped=["r2"], by_absence=True)
        return Round()
    stances = [Stance(name, one.reply.verdict, confidence=one.reply.confidence) for name, one in opinions.items()]
    if early_stop and is_unanimous(stances):
        verdict = next(iter(opinions.values())).reply.verdict
        why = f"all {len(opinions)} judges say {verdict} with HIGH confidence; {len(opinions)} calls saved"
        council.note("second round skipped", why=why, skipped=["r2"])
        return Round()
    agreed = len({opinion.reply.verdict for opinion in opinions.values()}) == 1
    material = Material.from_packet(council.packet)
    found = {name: read_findings(name, said.reply, material) for name, said in opinions.items()}
    ids = [finding.id for findings in found.values() for finding in findings]
    choices = {"id": ids, "supports": ids, "finding": ["", *ids]} if ids else {}  # no provider accepts an empty enum
    summaries = {name: describe_position(said.reply, found[name]) for name, said in opinions.items()}
    async with council.phase("r2"):
        return await fit_packet(council).poll(
            opinions.seats,
            "judges/second",
            reply=SecondOpinion,
            after=opinions,
            timeout=council.timeouts.get("r2"),
            quorum=0,
            choices=choices,
            opinions=opinions,
            summaries=summaries,
            has_findings=bool(ids),
            unanimous=agreed,
        )


# Brainstorm and research


async def consolidate(council: Council, statements: Round[Any]) -> Verdict:
    if council.roster.chair is None:  # quick: one judge, nothing to combine
        (only,) = statements.values()
        return Verdict(only.reply.recommendation, details={"judges": {only.seat.name: only.reply.model_dump()}})
    async with council.phase("consolidate"):
        result = await council.ask(council.chair, "judges/consolidate", statements=statements, reply=Consolidation)
    consolidation: Consolidation = result.reply
    names = {squash(name): name for name in statements}
    named = [names.get(squash(name), name) for name in consolidation.shared_by]
    shared_by = keep_known(named, statements) if "shared_by" in consolidation.model_fields_set else None
    voices = round_voices(statements)
    return Verdict(
        consolidation.recommendation,
        agreement=compute_agreement(shared_by, False, voices),
        shared_by=shared_by,
        trust_facts=tuple(list_shared_voices(voices)),
        details={
            "consolidation": consolidation.model_dump(),
            "judges": {name: statement.reply.model_dump() for name, statement in statements.items()},
        },
    )
