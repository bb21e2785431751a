"""Reviews of a diff that is larger than the packet's budget: each judge judges it in parts, and its opinions are
joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import Field

from council.engine.council import Council
from council.engine.degraded import join_names
from council.engine.gather import gather_or_cancel
from council.errors import BudgetSpent, SeatAbsent
from council.packet_size import ONE_REQUEST, list_changed_paths, measure_changes, split_packet, truncate_packet
from council.protocols.judges.replies import Opinion
from council.types import VERDICT_ORDER, Packet, Round, Seat, Statement

CONFIDENCE_ORDER = ("LOW", "MEDIUM", "HIGH")
MAX_NAMED_PATHS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a large diff, as a prompt names it."""

    number: int
    count: int
    packet: Packet

    @property
    def name(self) -> str:
        """Return the part with its first files: `part 2 of 3 (src/a.py, src/b.py)`."""
        paths = list_changed_paths(self.packet)
        more = len(paths) - MAX_NAMED_PATHS
        named = join_names([*paths[:MAX_NAMED_PATHS], *([f"{more} more"] if more > 0 else [])])
        return f"part {self.number} of {self.count} ({named})" if paths else f"part {self.number} of {self.count}"


class JoinedOpinion(Opinion):
    """The opinion of a judge on all parts that it answered."""

    parts: int = 0
    unanswered: list[str] = Field(default_factory=list)  # names of the parts without an answer


@lru_cache(maxsize=4)  # the plan, each round and each judge ask
def list_parts(packet: Packet) -> tuple[Part, ...]:
    """Return the parts in which a packet is judged; a single one for most packets."""
    packets = split_packet(packet)
    return tuple(Part(n, len(packets), one) for n, one in enumerate(packets, 1))


def describe_parts(packet: Packet, task: str = "validate") -> str:
    """Return a line for the plan if the packet is judged in parts, else an empty string."""
    count = len(list_parts(packet)) if task == "validate" else 1
    if count < 2:
        return ""
    sizes = f"the changes have about {measure_changes(packet):,} tokens, one request has {packet.budget:,}"
    return f"each judge is asked in {count} parts: {sizes}"


def fit_packet(council: Council) -> Council:
    """Return the council of a later request: with as much of a large packet as fits."""
    packet = council.packet
    if len(list_parts(packet)) < 2:
        return council
    return council.with_context(packet=truncate_packet(packet, packet.budget, ONE_REQUEST))


Explore = Callable[[Council, Seat], Any]  # returns the reports of a judge's explorers


async def judge_parts(
    council: Council, parts: Sequence[Part], prompt: str, variables: Mapping[str, Any], explore: Explore | None
) -> Round[Any]:
    """Ask each judge about every part at once, and join its answers. A part without one is a coverage hole."""
    council.note(f"judged in {len(parts)} parts", why=describe_parts(council.packet))

    async def act(apart: Council, judge: Seat) -> Statement[Any]:
        async def ask_all() -> tuple[Sequence[Statement[Any]], JoinedOpinion]:
            explored = await explore(fit_packet(apart), judge) if explore else []
            given = {**variables, "explored": explored}
            came = await gather_or_cancel([ask_part(apart, judge, part, prompt, given) for part in parts])
            return join_answers(parts, came)

        return await apart.join(judge, JoinedOpinion, ask_all)

    return await council.gather(council.members, act)


async def ask_part(
    council: Council, judge: Seat, part: Part, prompt: str, variables: Mapping[str, Any]
) -> Statement[Opinion] | SeatAbsent | BudgetSpent:
    """Ask about one part.

    A failure is returned: the answers about the other parts are used, or stored for a resumed run.
    """
    apart = council.with_context(packet=part.packet)
    try:
        async with apart.phase(f"part-{part.number}"):
            said: Statement[Opinion] = await apart.ask(judge, prompt, reply=Opinion, part=part, **variables)
            return said
    except (SeatAbsent, BudgetSpent) as failure:
        return failure


def join_answers(
    parts: Sequence[Part], came: Sequence[Statement[Opinion] | SeatAbsent | BudgetSpent]
) -> tuple[list[Statement[Opinion]], JoinedOpinion]:
    """Return what a judge said about the parts, and its joined opinion.

    Raise the failure of a judge that said nothing.
    """
    said = [one for one in came if isinstance(one, Statement)]
    failures = [one for one in came if not isinstance(one, Statement)]
    for failure in failures:
        if isinstance(failure, BudgetSpent) or not said:
            raise failure
    unanswered = [part.name for part, one in zip(parts, came, strict=True) if not isinstance(one, Statement)]
    return said, join_opinions([one.reply for one in said], unanswered)


def join_opinions(opinions: Sequence[Opinion], unanswered: Sequence[str] = ()) -> JoinedOpinion:
    """Join opinions on parts: the worst verdict with its insight and advice, the lowest confidence, all findings."""
    worst = max(opinions, key=lambda one: VERDICT_ORDER.index(one.verdict))
    return JoinedOpinion(
        verdict=worst.verdict,
        confidence=min((one.confidence for one in opinions), key=CONFIDENCE_ORDER.index),
        key_insight=worst.key_insight,
        findings=[finding for one in opinions for finding in one.findings],
        recommendation=worst.recommendation,
        schema_version=max(one.schema_version for one in opinions),
        parts=len(opinions) + len(unanswered),
        unanswered=list(unanswered),
    )


def list_unanswered(opinions: Round[Any]) -> list[str]:
    """Return the parts that a judge did not answer, each once."""
    replies = [statement.reply for statement in opinions.values()]
    joined = [reply for reply in replies if isinstance(reply, JoinedOpinion)]
    return list(dict.fromkeys(name for reply in joined for name in reply.unanswered))
