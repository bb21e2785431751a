"""Draft, improve, synthesise."""

from council.protocols import Protocol
from council.types import Seat

SEATS = (
    Seat("alpha", "Deep Explorer", "depth and exploration"),
    Seat("beta", "Practical Builder", "practical grounding"),
    Seat("gamma", "Elegant Minimalist", "elegance and alternative angles"),
)
PROTOCOL = Protocol(
    "collaborative",
    "council.protocols.collaborative.flow:collaborative",
    SEATS,
    options="council.protocols.collaborative.options:CollaborativeOptions",
    summary="draft independently, improve on each other, synthesise",
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    allows_check=True,
    purpose="questions and plans: one answer built from several drafts; the default",
    example='council "How should we roll out feature flags?"',
)
