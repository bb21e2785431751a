"""The ranking protocol: independent answers, blind peer ranking, and a synthesis by the chair."""

from __future__ import annotations

from dataclasses import replace

from council.council import Council
from council.errors import ChairAbsent
from council.protocols.reviewing import Review, Slip, for_the_chair, verdict_from, whose
from council.replies import Ballot
from council.rules.ranking import counted
from council.types import Round, Seat, Verdict

QUORUM = 2  # answers: a single one cannot be compared


async def ranking(council: Council, roster: str | None = None) -> Verdict:
    """Collect answers, have each seat rank the others blind, and synthesise."""
    async with council.phase("answer"):
        answers = await council.poll(council.members, "ranking/answer", quorum=QUORUM)
    async with council.phase("rank"):
        review = Review(answers, await ranked(council, answers))
    council.stances.update({reader: f"{order[0]} first" for reader, order in counted(review.ballots).items()})
    async with council.phase("synthesise"):
        responses = council.labelled(list(answers.values()), council.chair)
        shown = {council.chair.name: whose(responses)}
        try:
            synthesis = await council.ask(
                council.chair, "ranking/synthesise", responses=responses, **for_the_chair(review, responses)
            )
        except ChairAbsent as gone:  # the table needs no chair
            gone.so_far = replace(verdict_from(review, "", shown), confidence=None, caveats=())
            raise
    return verdict_from(review, synthesis.text, shown)


async def ranked(council: Council, answers: Round[None]) -> dict[str, Slip]:
    """Ask every seat to rank the others' answers, even if it gave none itself; an unreadable ballot is absent."""

    async def act(apart: Council, reader: Seat) -> Slip:
        responses = apart.labelled(answers.others(reader), reader)
        said = await apart.ask(
            reader, "ranking/rank", reply=Ballot, choices={"label": list(responses)}, responses=responses
        )
        return Slip(reader.name, whose(responses), said.reply)

    heard = await council.gather(council.members, act)
    return {slip.reader: slip for slip in heard if isinstance(slip, Slip)}
