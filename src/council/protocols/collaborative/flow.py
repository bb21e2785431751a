"""Collaborative protocol: draft, improve, synthesise."""

from __future__ import annotations

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, seat_names
from council.protocols.common.lengths import find_opening, find_word_limit
from council.types import Round, Verdict

DRAFTS_ONLY_CAVEAT = "No seat improved its draft: the answer is built from the drafts."


async def collaborative(council: Council) -> Verdict:
    """Draft independently, improve on each other, synthesise one answer."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "collaborative/draft")
    versions, improved = drafts, Round[None]()
    if len(drafts) > 1:
        async with council.phase("improve"):
            improved = await council.poll(drafts.seats, "collaborative/improve", quorum=0, drafts=drafts)
        versions = drafts.revised(improved)
    else:
        council.note(
            "improve skipped",
            why="there is only one draft, so there is nothing to improve it with",
            skipped=["improve"],
            by_absence=True,
        )
    openings = {draft.seat.label: find_opening(draft.text) for draft in drafts.values()} if improved else {}
    async with council.phase("synthesise"):
        synthesis = await council.ask(
            council.chair,
            "collaborative/synthesise",
            improved=versions,
            openings=openings,
            wrote_again=bool(improved),
            limit=find_word_limit(version.text for version in versions.values()),
        )
    notes = parse_notes(synthesis.outcome.text, seat_names(versions.seats))
    noted = assess_notes(notes, round_voices(drafts))
    caveats = () if improved or len(drafts) == 1 else (DRAFTS_ONLY_CAVEAT,)
    return Verdict(synthesis.text, caveats=caveats, notes=notes, **noted._asdict())
