"""The protocol `vote`: ask each seat one or more times independently, and take the plurality of the short answers.

With one seat and one sample it is a single model, with more samples self-consistency, with several seats a panel.
`council eval` uses it for the arms that a council has to beat, with a budget equal to what the council spent.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from council.engine.council import Council
from council.evals.dataset import BLIND, GRADERS, read_answer
from council.evals.votes import Vote, elect_by_plurality
from council.protocols import Protocol
from council.protocols.judges.rules import measure_agreement
from council.protocols.options import Options
from council.types import Round, Seat, Verdict

MAX_SAMPLES = 200
NAME = "vote"


class VoteOptions(Options):
    """Either a number of samples, or a budget that the samples use up."""

    samples: int = Field(default=1, ge=1, le=MAX_SAMPLES, description="Times each seat is asked.")
    budget: float | None = Field(
        default=None, gt=0, description="Ask again until this much is used; overrides samples."
    )
    per_call: float = Field(default=0.0, ge=0, description="What a call uses of the budget.")
    per_input: float = Field(default=1.0, ge=0, description="What an input token uses of the budget.")
    per_output: float = Field(default=1.0, ge=0, description="What an output token uses of the budget.")
    grader: str = Field(
        default="exact", description="How an answer is read: exact, numeric or choice; blind: not at all."
    )
    choices: tuple[str, ...] = Field(default=(), description="The choices of the question.")
    items: Literal["", "ordered", "set"] = Field(
        default="", description="Of an answer that is a list: whether the order counts."
    )


async def vote(council: Council, **options: Any) -> Verdict:
    """Ask every seat until the samples or the budget are used up, and take the plurality."""
    chosen = VoteOptions.model_construct(**options)
    prompt = "vote/open" if chosen.grader == BLIND else "vote/sample"
    said: list[Round[None]] = []
    used = 0.0
    while len(said) < MAX_SAMPLES:
        async with council.phase(f"s{len(said) + 1}"):
            round_ = await council.poll(council.members, prompt)
        said.append(round_)
        for one in round_.values():
            usage = one.outcome.usage
            used += chosen.per_call + chosen.per_input * usage.input + chosen.per_output * usage.output
        if is_enough(chosen, len(said), used):
            break
    return decide(chosen, said, council.question.text)


def is_enough(chosen: VoteOptions, rounds: int, used: float) -> bool:
    """Return whether to stop: with a budget, if another sample would end farther from it than this one."""
    if chosen.budget is None:
        return rounds >= chosen.samples
    return not used or used + used / rounds / 2 >= chosen.budget


def decide(chosen: VoteOptions, said: list[Round[None]], question: str = "") -> Verdict:
    """Return the text of the first holder of the plurality, with the votes as details.

    An answer that is ambiguous or cannot be read is an abstention.
    """
    grader = chosen.grader if chosen.grader in GRADERS else "exact"
    spoken = [(f"{name}-s{n}", one) for n, round_ in enumerate(said, 1) for name, one in round_.items()]
    read = {
        name: read_answer(one.said, grader, chosen.choices, question=question, items=chosen.items)
        for name, one in spoken
    }
    votes = [Vote(name, read[name].answer, one.seat.vendor) for name, one in spoken]
    found = elect_by_plurality(votes)
    texts = {name: one.said for name, one in spoken}
    text = texts[found.holders[0] if found.holders else spoken[0][0]]
    rows = [{"seat": vote.voter, "answer": vote.answer, "ambiguous": read[vote.voter].is_ambiguous} for vote in votes]
    return Verdict(
        text,
        agreement=measure_agreement([vote.answer for vote in votes if vote.answer]),
        details={"votes": rows, "answer": found.answer, "share": round(found.share, 6), "tied": found.is_tied},
    )


PROTOCOL = Protocol(
    NAME,
    vote,
    (Seat("alpha", "Voter"),),
    chair=None,
    summary="ask once or several times, take the plurality",
    options=VoteOptions,
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    purpose="the arms that `council eval` compares a council with",
)
