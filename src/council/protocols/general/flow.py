"""The general protocol: research, independent answers, one round on disputes, and a synthesis that reports every disagreement."""

from __future__ import annotations

from typing import Any

from council.engine.council import Council
from council.errors import ChairAbsent, UsageError
from council.protocols.general.claims import Dispute, SeatAnswer, align_topics
from council.protocols.general.disputes import MAX_DISPUTES, disputing_seats, find_all_disputes, overflow_disputes
from council.protocols.general.options import GeneralOptions
from council.protocols.general.replies import Position, Reconsidered, SpecSynthesis, Synthesis, Topics
from council.protocols.general.research import run_research
from council.protocols.general.synthesis import number_disputes
from council.protocols.general.verdict import Deliberation, build_verdict, build_verdict_without_chair
from council.types import Round, Statement, Verdict

NO_SPEC_ERROR = "--spec-review needs a specification to review, and none was found: give --spec FILE, or name the file"


async def general(council: Council, **options: Any) -> Verdict:
    """Run research, independent answers, one round for the seats in dispute, and the synthesis."""
    chosen = GeneralOptions.model_construct(**options)  # validated by the caller
    if chosen.spec_review and council.packet.empty:
        raise UsageError(NO_SPEC_ERROR)
    found = await run_research(council, search=not chosen.no_search)
    async with council.phase("r1"):
        first = await council.poll(
            council.members, "general/answer", reply=Position, research=found, spec_review=chosen.spec_review
        )
    voices = align_topics(found.seat_answers(first), await match_topics(council, found.seat_answers(first)))
    every = find_all_disputes(voices)
    second = await reconsider(council, chosen, first, every[:MAX_DISPUTES])
    table = Deliberation(found, first, second, voices, every[:MAX_DISPUTES], overflow_disputes(every))
    for name, move in table.changed_moves():
        why = f"{move.word}, a weak flip: it gives no grounds" if move.is_weak else move.text
        council.note(f"{move.seat} gave way on {name}", why=why)
    return await synthesise(council, chosen, table)


async def match_topics(council: Council, answers: list[SeatAnswer]) -> list[tuple[str, str]]:
    """Ask the chair which topics mean the same thing; it can only pair existing topics."""
    if sum(bool(answer.claims) for answer in answers) < 2:
        council.note("topics not aligned", why="fewer than two members declared claims")
        return []
    claims = [claim for answer in answers for claim in answer.claims]
    topics = {f"T{n}": topic for n, topic in enumerate(dict.fromkeys(claim.topic for claim in claims), 1)}
    texts = {name: [claim.text for claim in claims if claim.topic == topic] for name, topic in topics.items()}
    choices = {"topic": list(topics), "same_as": list(topics)}
    async with council.phase("clerk"):
        try:
            said = await council.ask(
                council.chair, "general/clerk", reply=Topics, choices=choices, topics=topics, texts=texts
            )
        except ChairAbsent as gone:
            council.note("topics aligned by their words alone", why=str(gone))
            return []
    return [(topics[one.topic], topics[one.same_as]) for one in said.reply.same]


async def reconsider(
    council: Council, chosen: GeneralOptions, first: Round[Position], disputes: list[Dispute]
) -> Round[Reconsidered]:
    """Ask only the seats in dispute, each with its first answer, the opposing positions and the same research."""
    seats, put = disputing_seats(disputes), number_disputes(disputes)
    for name, one in put.items():
        council.note(f"{name} is disputed: {one.topic}", why=one.format_positions())
    if not seats or chosen.no_deliberate:
        off = "deliberation is off: disputes stay open"
        council.note("r2 skipped", why=off if seats else "no claims contradict each other", skipped=["r2"])
        return Round()
    async with council.phase("r2"):
        return await council.poll(
            [first[name].seat for name in seats], "general/reconsider", reply=Reconsidered, after=first, quorum=0,
            choices={"topic": list(put)}, disputes=put, facing={name: _opposing_lines(name, put) for name in seats},
        )  # fmt: skip


def _opposing_lines(seat: str, disputes: dict[str, Dispute]) -> list[str]:
    """Return one line for each claim that opposes the seat."""
    return [
        f"{name} {one.topic}: {side.claim}"
        for name, one in disputes.items()
        if seat in one.seats
        for side in one.against(seat)
    ]


async def synthesise(council: Council, chosen: GeneralOptions, table: Deliberation) -> Verdict:
    """Ask the chair for the answer and check it; send problems back once, then report the rest as caveats."""
    reply = SpecSynthesis if chosen.spec_review else Synthesis
    choices = {"disagreement": list(table.persisting_by_name)} if table.persisting_by_name else {}
    council.so_far(build_verdict_without_chair(table))
    async with council.phase("synthesise"):
        said: Statement[Synthesis] = await council.ask(
            council.chair,
            "general/synthesise",
            reply=reply,
            choices=choices,
            table=table,
            spec_review=chosen.spec_review,
        )
        problems = table.find_problems(said.reply)
        if problems:
            async with council.phase("again"):
                try:
                    again = await council.ask(
                        council.chair, "general/mend", reply=reply, choices=choices, after=said, problems=problems
                    )
                except ChairAbsent as gone:
                    council.note("the synthesis was not corrected", why=str(gone))
                else:
                    said, problems = again, table.find_problems(again.reply)
    if not said.reply.answer.strip():
        raise ChairAbsent("the chair wrote no answer, even when asked again")
    return build_verdict(table, said.reply, problems, asked=len(council.members), question=council.question)
