"""Two sealed answers, a check, and only what is disputed is argued."""

from council.protocols import PLAIN_SEATS, Protocol

PROTOCOL = Protocol(
    "adaptive",
    "council.protocols.adaptive.flow:adaptive",
    PLAIN_SEATS,
    options="council.protocols.adaptive.options:AdaptiveOptions",
    panel="council.protocols.adaptive.panel:adaptive_panel",
    report_view="council.protocols.adaptive.report:AdaptiveView",
    summary="two answer apart; stop if they agree and a check confirms it, else argue what is disputed",
    resizable=True,
    reads_question=False,
    keeps_conversations=False,
    purpose="questions with a checkable answer: 3 calls if two members agree, never more than collaborative",
    example='council --protocol adaptive "Is 1,000,003 prime?"',
)
