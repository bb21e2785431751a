"""Draft, merge. The seats and the drafts are those of the adversarial protocol."""

from council.protocols import Protocol
from council.protocols.adversarial import SEATS

PROTOCOL = Protocol(
    "triad",
    "council.protocols.triad.flow:triad",
    SEATS,
    summary="draft independently, merge once",
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    allows_check=True,
    purpose="short answers and texts: three drafts merged in one step, with fewer calls",
    example='council --protocol triad "Write a release note for version 2."',
)
