"""The ranking protocol: independent answers, blind peer ranking, and a synthesis by the chair."""

from __future__ import annotations

from dataclasses import replace

from council.council import Council
from council.errors import ChairAbsent
from council.protocols.reviewing import ReaderBallot, Review, build_verdict, chair_context, seats_by_label
from council.replies import Ballot
from council.rules.ranking import filter_ballots
from council.types import Round, Seat, Verdict

QUORUM = 2  # answers: a single one cannot be compared


async def ranking(council: Council, roster: str | None = None) -> Verdict:
    """Collect answers, have each seat rank the others blind, and synthesise."""
    async with council.phase("answer"):
        answers = await council.poll(council.members, "ranking/answer", quorum=QUORUM)
    async with council.phase("rank"):
        review = Review(answers, await collect_ballots(council, answers))
    council.stances.update({reader: f"{order[0]} first" for reader, order in filter_ballots(review.ballots).items()})
    async with council.phase("synthesise"):
        responses = council.assign_labels(list(answers.values()), council.chair)
        shown = {council.chair.name: seats_by_label(responses)}
        try:
            synthesis = await council.ask(
                council.chair, "ranking/synthesise", responses=responses, **chair_context(review, responses)
            )
        except ChairAbsent as gone:  # the table needs no chair
            gone.partial_verdict = replace(build_verdict(review, "", shown), confidence=None, caveats=())
            raise
    return build_verdict(review, synthesis.text, shown)


async def collect_ballots(council: Council, answers: Round[None]) -> dict[str, ReaderBallot]:
    """Ask every seat to rank the others' answers, even if it gave none itself; an unreadable ballot is absent."""

    async def rank_others(apart: Council, reader: Seat) -> ReaderBallot:
        responses = apart.assign_labels(answers.others(reader), reader)
        said = await apart.ask(
            reader, "ranking/rank", reply=Ballot, choices={"label": list(responses)}, responses=responses
        )
        return ReaderBallot(reader.name, seats_by_label(responses), said.reply)

    heard = await council.gather(council.members, rank_others)
    return {slip.reader: slip for slip in heard if isinstance(slip, ReaderBallot)}
