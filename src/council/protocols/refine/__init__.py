"""Draft, attack in a ring, rewrite, synthesise, check."""

from council.protocols import PLAIN_SEATS, Protocol

PROTOCOL = Protocol(
    "refine",
    "council.protocols.refine.flow:refine",
    PLAIN_SEATS,
    report_view="council.protocols.refine.report:RefineView",
    summary="draft, attack each other, rewrite, write one text from the best version, check it",
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    checks_answer=True,
    purpose="one examined text: each member reworks its own answer, the chair builds on the best one, others check it",
    example='council --protocol refine "Plan the move of our database to version 17."',
    use="Refine",
)
