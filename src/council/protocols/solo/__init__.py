"""One member: draft, attack the draft, rewrite it, twice."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "solo",
    "council.protocols.solo.flow:solo",
    chair=None,
    spread=False,
    panel="council.protocols.solo.flow:solo_panel",
    summary="one member drafts, attacks and rewrites its own answer",
    reads_question=False,
    purpose="one strong member that attacks and rewrites its own answer: the cheap alternative to a council",
    example='council --protocol solo "Plan the move of our database to version 17."',
)
