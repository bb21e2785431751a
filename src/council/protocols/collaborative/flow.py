"""Collaborative protocol: draft, improve, synthesise."""

from __future__ import annotations

from council.engine.council import Council
from council.types import Verdict


async def collaborative(council: Council) -> Verdict:
    """Draft independently, improve on each other, synthesise one answer."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "collaborative/draft")
    improved = drafts
    if len(drafts) > 1:
        async with council.phase("improve"):
            improved = drafts.revised(await council.poll(drafts.seats, "collaborative/improve", drafts=drafts))
    else:
        council.note(
            "improve skipped",
            why="there is only one draft, so there is nothing to improve it with",
            skipped=["improve"],
        )
    async with council.phase("synthesise"):
        synthesis = await council.ask(council.chair, "collaborative/synthesise", improved=improved)
    return Verdict(synthesis.text)
