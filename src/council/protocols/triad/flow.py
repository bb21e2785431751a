"""Triad protocol: three drafts with self-critique, merged by the chair."""

from __future__ import annotations

from council.engine.council import Council
from council.types import Verdict


async def triad(council: Council) -> Verdict:
    """Draft independently with self-critique, merge once."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "adversarial/draft")
    async with council.phase("merge"):
        merged = await council.ask(council.chair, "triad/merge", drafts=drafts)
    return Verdict(merged.text)
