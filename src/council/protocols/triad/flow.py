"""Triad protocol: three drafts with self-critique, merged by the chair."""

from __future__ import annotations

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, seat_names
from council.protocols.common.flags import list_draft_facts
from council.types import Verdict


async def triad(council: Council) -> Verdict:
    """Draft independently with self-critique, merge once."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "adversarial/draft", merged=True)
    async with council.phase("merge"):
        merged = await council.ask(council.chair, "triad/merge", drafts=drafts)
    notes = parse_notes(merged.outcome.text, seat_names(drafts.seats))
    noted = assess_notes(notes, round_voices(drafts))
    facts = list_draft_facts({name: draft.said for name, draft in drafts.items()}, merged.text)
    noted = noted._replace(trust_facts=(*noted.trust_facts, *facts))
    return Verdict(merged.text, notes=notes, **noted._asdict())
