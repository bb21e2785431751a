"""A custom protocol: one seat proposes, another objects, the chair decides."""

from pydantic import Field

from council import Council, Protocol, Seat, Verdict
from council.protocols.options import Options


class DevilOptions(Options):
    hard: bool = Field(default=False, description="The proposer answers the objection before the chair decides.")


async def devils_advocate(council: Council, hard: bool = False) -> Verdict:
    """Propose, object and decide. With `hard`, the proposer answers the objection first."""
    proposer, critic = council.members
    async with council.phase("propose"):
        proposal = await council.ask(proposer, "propose")
    async with council.phase("object"):
        objection = await council.ask(critic, "object", proposal=proposal)
    if hard:
        async with council.phase("answer"):
            proposal = await council.ask(proposer, "answer", objection=objection)
    async with council.phase("decide"):
        decision = await council.ask(council.chair, "decide", proposal=proposal, objection=objection)
    return Verdict(decision.text)


PROTOCOL = Protocol(
    "devils-advocate",
    devils_advocate,
    seats=(Seat("proposer", "Proposer"), Seat("critic", "Critic")),
    options=DevilOptions,
    summary="one proposes, one objects, the chair decides",
)
