"""Collaborative protocol: draft, improve, synthesise."""

from __future__ import annotations

from typing import Any

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, seat_names
from council.protocols.collaborative.options import CollaborativeOptions
from council.protocols.common.lengths import find_opening, find_word_limit
from council.types import Round, Verdict

DRAFTS_ONLY_CAVEAT = "No seat improved its draft: the answer is built from the drafts."
ONE_DRAFT = "there is only one draft, so there is nothing to improve it with"


async def collaborative(council: Council, **options: Any) -> Verdict:
    """Draft independently, improve on each other, synthesise one answer."""
    chosen = CollaborativeOptions.model_construct(**options)  # validated by the caller
    agreed = ""
    drafts: Round[Any]
    if chosen.early_stop:
        from council.protocols.collaborative.replies import Draft  # not loaded without --early-stop
        from council.protocols.collaborative.rules import explain_stop

        async with council.phase("draft"):
            drafts = await council.poll(council.members, "collaborative/draft", reply=Draft)
        agreed = explain_stop(drafts, council.question.text)
    else:
        async with council.phase("draft"):
            drafts = await council.poll(council.members, "collaborative/draft")
    versions, improved = drafts, Round[Any]()
    if len(drafts) < 2:
        council.note("improve skipped", why=ONE_DRAFT, skipped=["improve"], by_absence=True)
    elif agreed:
        council.note("improve skipped", why=agreed, skipped=["improve"])
    else:
        async with council.phase("improve"):
            improved = await council.poll(drafts.seats, "collaborative/improve", quorum=0, drafts=drafts)
        versions = drafts.revised(improved)
    openings = {draft.seat.label: find_opening(draft.said) for draft in drafts.values()} if improved else {}
    async with council.phase("synthesise"):
        synthesis = await council.ask(
            council.chair,
            "collaborative/synthesise",
            improved=versions,
            openings=openings,
            wrote_again=bool(improved),
            limit=find_word_limit(version.said for version in versions.values()),
        )
    notes = parse_notes(synthesis.outcome.text, seat_names(versions.seats))
    noted = assess_notes(notes, round_voices(drafts))
    caveats = () if improved or agreed or len(drafts) == 1 else (DRAFTS_ONLY_CAVEAT,)
    return Verdict(synthesis.text, caveats=caveats, notes=notes, **noted._asdict())
