"""Solo protocol: one member drafts, attacks its own answer and writes it again, twice, in one conversation."""

from __future__ import annotations

from typing import Any, TypedDict

from council.answer_filter import clean_answer
from council.engine.council import Council
from council.errors import SeatAbsent
from council.protocols.common.check import Critique, FoundErrorRow, dump_error
from council.protocols.options import NoOptions
from council.protocols.seats import Panel, PanelContext
from council.settings.member_lookup import tier_member
from council.types import Seat, Statement, TrustFact, Verdict

SOLO_SEAT = Seat("alpha")


def solo_panel(task: str, chosen: NoOptions, context: PanelContext) -> Panel:
    """Return the panel. `-m`, `--seat alpha=…` and [seats.alpha] replace the strong model."""
    tier = "default" if context.settings.cheap else "strong"
    return Panel((SOLO_SEAT,), chair=None, default_member=tier_member(tier, context.settings, context.env))


class SoloRound(TypedDict):
    """An attack of a seat on its own answer."""

    errors: list[FoundErrorRow]
    corrected: bool  # whether it wrote the answer again


ROUNDS = (("attack", "rewrite"), ("attack-again", "rewrite-again"))


async def solo(council: Council) -> Verdict:
    """Draft, attack, rewrite, attack, rewrite. It ends early if an attack finds nothing."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "solo/draft")
    (seat,) = council.members
    said: Statement[Any] = drafts[seat.name]
    rounds: list[SoloRound] = []
    for number, (attack, rewrite) in enumerate(ROUNDS, 1):
        try:
            async with council.phase(attack):
                critique = await council.ask(seat, "solo/attack", reply=Critique, after=said, number=number)
            rounds.append({"errors": list(map(dump_error, critique.reply.errors)), "corrected": False})
            if not critique.reply.errors:
                skipped = [name for phases in ROUNDS[number - 1 :] for name in phases if name != attack]
                council.note("no further attack", why="its author found no error in it", skipped=skipped)
                break
            async with council.phase(rewrite):
                said = await council.ask(
                    seat, "solo/rewrite", after=critique, final=number == len(ROUNDS), number=number
                )
            rounds[-1]["corrected"] = True
        except SeatAbsent:
            break
    return Verdict(
        clean_answer(said.text), trust_facts=tuple(list_facts(seat.name, rounds)), details={"rounds": rounds}
    )


def list_facts(seat: str, rounds: list[SoloRound]) -> list[TrustFact]:
    """Return the limits of an answer that only its author has examined."""
    if not rounds:
        return []
    facts = [TrustFact("self_attacked", seats=(seat,), count=len(rounds))]
    left = rounds[-1]["errors"] if not rounds[-1]["corrected"] else []
    fatal = [error for error in left if error["severity"] == "FATAL"]
    if fatal:
        facts.append(TrustFact("error_open_fatal", seats=(seat,), count=len(fatal), total=len(left)))
    if len(left) > len(fatal):
        facts.append(TrustFact("error_open", seats=(seat,), count=len(left) - len(fatal), total=len(left)))
    return facts
