"""Peer review: answer apart, rank each other blind, and let the chair write one answer from the best of it."""

from __future__ import annotations

from dataclasses import replace

from council.council import Council
from council.errors import ChairAbsent
from council.protocols.reviewing import Review, Slip, for_the_chair, verdict_from, whose
from council.replies import Ballot
from council.rules.ranking import counted
from council.types import Round, Seat, Verdict

QUORUM = 2  # answers: one alone can be compared with nothing


async def ranking(council: Council, roster: str | None = None) -> Verdict:
    """Answer apart, rank each other blind, synthesise."""
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
        except ChairAbsent as gone:  # the table needs none
            gone.so_far = replace(verdict_from(review, "", shown), confidence=None, caveats=())
            raise
    return verdict_from(review, synthesis.text, shown)


async def ranked(council: Council, answers: Round[None]) -> dict[str, Slip]:
    """Every seat reads the others' answers, also one that gave none itself. A ballot that cannot be read is absent."""

    async def act(apart: Council, reader: Seat) -> Slip:
        responses = apart.labelled(answers.others(reader), reader)
        said = await apart.ask(
            reader, "ranking/rank", reply=Ballot, choices={"label": list(responses)}, responses=responses
        )
        return Slip(reader.name, whose(responses), said.reply)

    heard = await council.gather(council.members, act)
    return {slip.reader: slip for slip in heard if isinstance(slip, Slip)}
