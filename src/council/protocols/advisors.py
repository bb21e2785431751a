"""Advice in rounds: advisors open, answer each other, take their last stand, and a referee rules."""

from __future__ import annotations

from typing import Any

from council.council import Council
from council.protocols.options import AdvisorsOptions
from council.replies import Refereed, RefereedRounds, Stand
from council.rules.rounds import Stance, budget, changes, is_long, stage, unanimous
from council.types import Json, Round, Verdict


async def advisors(council: Council, **options: Any) -> Verdict:
    """Speak in rounds, at once or in turn, and let the referee bring it to a verdict."""
    chosen = AdvisorsOptions.model_validate(options)
    speak = council.relay if chosen.flow == "sequential" else council.poll
    transcript: list[Round[Any]] = []
    for n in range(1, chosen.rounds + 1):
        least, most = budget(n, chosen.rounds)
        given: Json = {
            "flow": chosen.flow, "round": n, "rounds": chosen.rounds, "transcript": list(transcript),
            "least": least, "words": most, "heard": [],
        }  # fmt: skip
        async with council.phase(f"r{n}"):
            said = await speak(
                council.members,
                f"advisors/{stage(n, chosen.rounds)}",
                reply=Stand if chosen.early_stop else None,
                **given,
            )
        transcript.append(said)
        _flag_the_long(council, said, n, most)
        if n < chosen.rounds and _is_over(council, chosen, transcript):
            break
    return await _refereed(council, transcript)


def _flag_the_long(council: Council, said: Round[Any], n: int, most: int) -> None:
    for name, one in said.items():
        if is_long(one.said, most):
            words = len(one.said.split())
            council.note(f"{name} spoke {words} words in round {n}", why=f"over twice its {most}")


def _is_over(council: Council, chosen: AdvisorsOptions, transcript: list[Round[Any]]) -> bool:
    """Whether the rounds still to come are left out, and why."""
    left = chosen.rounds - len(transcript)
    if len(transcript[-1]) < 2 and len(council.members) > 1:
        council.note(f"{left} of {chosen.rounds} rounds skipped", why="only one advisor is left, and nobody to answer")
        return True
    if not chosen.early_stop or not unanimous(list(_stances(transcript[-1]).values())):
        return False
    saved = left * len(transcript[-1])
    why = f"all advisors hold one stand with HIGH confidence after round {len(transcript)}; {saved} calls saved"
    council.note("debate ended early", why=why)
    return True


def _stances(said: Round[Any]) -> dict[str, Stance]:
    replies = {name: one.reply for name, one in said.items() if isinstance(one.reply, Stand)}
    return {
        name: Stance(name, reply.stance, reply.choice, reply.confidence, reply.evidence)
        for name, reply in replies.items()
    }


async def _refereed(council: Council, transcript: list[Round[Any]]) -> Verdict:
    heard = [seat.name for seat in council.members if any(seat.name in said for said in transcript)]
    several = len(transcript) > 1
    async with council.phase("referee"):
        ruling = await council.ask(
            council.chair, "advisors/referee", reply=RefereedRounds if several else Refereed, choices={"advisor": heard},
            transcript=transcript, several=several,
        )  # fmt: skip
    reply = ruling.reply
    typed = changes([_stances(said) for said in transcript])
    return Verdict(
        _with_everyone(reply.prose(), reply, heard),
        disagreements=tuple({"issue": tension} for tension in reply.tensions),
        shifts=tuple(typed or _shifts(reply)),
        details={"rounds": len(transcript), "referee": reply.model_dump()},
    )


def _shifts(reply: Refereed) -> list[Json]:
    """The referee's account of who moved; a change for which nothing was cited is a weak flip."""
    return [
        {
            "seat": one.advisor, "from": one.opened_with, "to": one.ended_with, "changed": one.moved, "reason": one.why,
            "weak": one.moved and not one.evidence.strip(),
        }
        for one in (reply.positions if isinstance(reply, RefereedRounds) else [])
    ]  # fmt: skip


def _with_everyone(text: str, reply: Refereed, heard: list[str]) -> str:
    """Nobody's perspective is dropped in silence."""
    missing = [name for name in heard if name not in {one.advisor for one in reply.perspectives}]
    lines = [f"- **{name.capitalize()}:** left out by the referee; its words stand in the minutes." for name in missing]
    head, heading, rest = text.partition("\n\n## Tensions")
    return "\n".join([head, *lines]) + heading + rest
