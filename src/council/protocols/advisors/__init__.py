"""Advisors in rounds, and a referee."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "advisors",
    "council.protocols.advisors.flow:advisors",
    summary="three advisors and a referee, in rounds",
    options="council.protocols.advisors.options:AdvisorsOptions",
    spread=False,
    panel="council.protocols.advisors.panel:advisors_panel",
    report_view="council.protocols.advisors.report:AdvisorsView",
    reads_question=False,
    keeps_conversations=False,
    allows_check=True,
    purpose="decisions with trade-offs: advisors with different stances, and a referee who decides",
    example='council --flow debate --rounds 2 "Should we open an office in Lisbon?"',
)
