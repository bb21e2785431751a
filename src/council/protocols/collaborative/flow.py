"""Collaborative protocol: draft, improve, synthesise."""

from __future__ import annotations

import re

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, seat_names
from council.types import Round, Verdict

MAX_GROWTH = 1.25  # length of the synthesis, as a multiple of the longest version it is built from
MIN_WORD_LIMIT = 150
WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
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
        )
    async with council.phase("synthesise"):
        synthesis = await council.ask(
            council.chair,
            "collaborative/synthesise",
            improved=versions,
            wrote_again=bool(improved),
            limit=word_limit(versions),
        )
    notes = parse_notes(synthesis.outcome.text, seat_names(versions.seats))
    noted = assess_notes(notes, round_voices(drafts))
    caveats = () if improved or len(drafts) == 1 else (DRAFTS_ONLY_CAVEAT,)
    return Verdict(synthesis.text, caveats=caveats, notes=notes, **noted._asdict())


def word_limit(versions: Round[None]) -> int:
    """Return the maximum words of the synthesis, rounded up to tens. A character of a script without spaces is a word."""
    texts = [one.text for one in versions.values()]
    longest = max(len(text.split()) if text.isascii() else len(WORDS.findall(text)) for text in texts)
    return max(MIN_WORD_LIMIT, -(-int(MAX_GROWTH * longest) // 10) * 10)
