"""Draft, triage, attack, verdict."""

from council.protocols import Protocol
from council.types import Seat

SEATS = (
    Seat("alpha", "Drafter & Red Teamer"),
    Seat("beta", "Fact-Checker & Validator"),
    Seat("gamma", "Optimizer & Devil's Advocate"),
)
PROTOCOL = Protocol(
    "adversarial",
    "council.protocols.adversarial.flow:adversarial",
    SEATS,
    report_view="council.protocols.adversarial.report:AdversarialView",
    summary="draft independently, attack the leading draft, rule",
    chair_apart=True,
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    allows_check=True,
    purpose="choices and claims: the leading answer has to survive attacks",
    example='council "Redis or Postgres for our sessions?"',
    use="Decide",
)
