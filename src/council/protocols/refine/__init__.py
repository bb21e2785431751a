"""Draft, attack in a ring, rewrite, choose blind, check."""

from council.protocols import Protocol
from council.types import Seat

SEATS = (Seat("alpha"), Seat("beta"), Seat("gamma"))
PROTOCOL = Protocol(
    "refine",
    "council.protocols.refine.flow:refine",
    SEATS,
    report_view="council.protocols.refine.report:RefineView",
    summary="draft, attack each other, rewrite, choose blind, check the text that is chosen",
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    checks_answer=True,
    purpose="one coherent text: each member reworks its own answer, the best one is chosen blind, checked and corrected",
    example='council --protocol refine "Plan the move of our database to version 17."',
    use="Refine",
)
