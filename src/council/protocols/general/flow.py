"""The general protocol: research, independent answers, one round on disputes, and a synthesis with all of them."""

from __future__ import annotations

from typing import Any

from council.engine.council import Council
from council.errors import ChairAbsent, UsageError, option, wording
from council.protocols.general.claims import SeatAnswer
from council.protocols.general.comparison import ClerkGroup, Comparison, check_groups, compare_claims, disputing_seats
from council.protocols.general.options import GeneralOptions
from council.protocols.general.replies import ClaimGroups, Position, Reconsidered, SpecSynthesis, Synthesis
from council.protocols.general.research import run_research
from council.protocols.general.verdict import (
    MAX_FOREIGN_LISTED,
    Deliberation,
    build_verdict,
    build_verdict_without_chair,
)
from council.types import Round, Statement, Verdict

CLERK_TOKENS, CLERK_TOKENS_PER_MEMBER = 1600, 500  # for up to three members, and for each further one
NO_SPEC_ERROR = (
    f"{option('spec_review', True)} needs a specification to review, and none was found: "
    f"give {wording(python='spec=FILE', cli='--spec FILE', http='spec')}, or name the file"
)


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
    answers = found.seat_answers(first)
    comparison, remarks = await compare(council, answers)
    table = Deliberation(found, first, answers, comparison, remarks, given=list_given(council))
    table.hear(await reconsider(council, chosen, table))
    for move in table.moves:
        if move.word == "MAINTAIN":
            continue
        why = f"{move.word}, a weak flip: it gives no grounds" if move.is_weak else move.text
        council.note(f"{move.seat} gave way on {move.dispute}", why=why)
    return await synthesise(council, chosen, table)


def list_given(council: Council) -> tuple[str, ...]:
    """Return the question and the texts of the packet, which an answer may quote."""
    packet = council.packet
    texts = (packet.diff, packet.spec, packet.environment, *packet.prior_decisions, *packet.commits)
    return (council.question.text, *(file.content for file in packet.files), *(text for text in texts if text))


async def compare(council: Council, answers: list[SeatAnswer]) -> tuple[Comparison, tuple[str, ...]]:
    """Compare the claims by the clerk's groups and by rules; return remarks on what could not be compared."""
    groups, remarks = await ask_clerk(council, answers)
    comparison = compare_claims(answers, groups)
    for line in comparison.overrides:
        council.note("the clerk was overridden", why=line)
    if not comparison.groups:
        council.note(
            "claims were not compared", why="no two members answer the same question in a form that can be compared"
        )
    return comparison, remarks


async def ask_clerk(council: Council, answers: list[SeatAnswer]) -> tuple[list[ClerkGroup], tuple[str, ...]]:
    """Ask the chair which claims answer the same question; drop groups that fail a check after the repair turn."""
    lines = [[claim.line for claim in answer.claims] for answer in answers if answer.claims]
    if len(lines) < 2:
        return [], ()
    choices = {"claims": [claim.id for answer in answers for claim in answer.claims]}

    def review(reply: ClaimGroups) -> str:
        return "; ".join(why for _, why in check_groups(_read_groups(reply), answers))

    async with council.phase("clerk"):
        try:
            said = await council.ask(
                council.chair,
                "general/clerk",
                reply=ClaimGroups,
                choices=choices,
                review=review,
                claims=lines,
                tokens=CLERK_TOKENS + CLERK_TOKENS_PER_MEMBER * max(0, len(lines) - 3),
            )
        except ChairAbsent as gone:
            why = "claims were compared only where their questions are the same"
            council.note(why, why=str(gone))
            return [], (f"The clerk did not answer: {why}.",)
    groups = _read_groups(said.reply)
    wrong = check_groups(groups, answers)
    dropped = [group for group, _ in wrong]
    remarks = tuple(f"A group of claims by the clerk was dropped: {why}." for _, why in wrong)
    return [group for group in groups if group not in dropped], remarks


def _read_groups(reply: ClaimGroups) -> list[ClerkGroup]:
    return [ClerkGroup(one.question.strip(), tuple(dict.fromkeys(one.claims)), one.relation) for one in reply.groups]


async def reconsider(council: Council, chosen: GeneralOptions, table: Deliberation) -> Round[Reconsidered]:
    """Ask only the seats in dispute, each with its first answer, the opposing positions and the same research."""
    disputes = table.disputes
    seats = disputing_seats(disputes.values())
    for name, one in disputes.items():
        council.note(f"{name} is disputed: {one.question}", why=one.format_positions())
    if not seats or chosen.no_deliberate:
        off = "deliberation is off: disputes stay open"
        why = off if seats else "no contradiction was found"
        council.note("r2 skipped", why=why, skipped=["r2"], by_absence=len(table.first) < 2)
        return Round()
    async with council.phase("r2"):
        return await council.poll(
            [table.first[name].seat for name in seats],
            "general/reconsider",
            reply=Reconsidered,
            after=table.first,
            quorum=0,
            choices={"topic": list(disputes)},
            disputes=disputes,
            research=table.research,
            facing={
                seat: [f"{n} {one.question}: {side.claim}" for n, one in disputes.items() for side in one.against(seat)]
                for seat in seats
            },
        )


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
        problems, foreign = table.find_problems(said.reply), table.find_foreign(said.reply)
        if problems or foreign:
            listed = ", ".join(f'"{one}"' for one in foreign[:MAX_FOREIGN_LISTED])
            rule = "which no member and no source mentions: leave it out, or use what they say"
            told = [*problems, f"has {listed}, {rule}"] if foreign else problems
            async with council.phase("again"):
                try:
                    again = await council.ask(
                        council.chair,
                        "general/mend",
                        reply=reply,
                        choices=choices,
                        after=said,
                        problems=told,
                    )
                except ChairAbsent as gone:
                    council.note("the synthesis was not corrected", why=str(gone))
                else:
                    said, problems = again, table.find_problems(again.reply)
                    foreign = table.find_foreign(again.reply)
    final = table.remove_failures(said.reply) if problems else said.reply
    table.foreign = tuple(foreign)
    final = table.mark_foreign(final) if foreign else final
    if not final.answer.strip():
        raise ChairAbsent("the chair wrote no answer, even when asked again")
    if removed := table.describe_removed(said.reply) if problems else "":
        table.remarks = (f"Removed from the answer: {removed}.", *table.remarks)
    return build_verdict(table, final, problems, asked=len(council.members), question=council.question)
