"""Research, answer, reconcile disputes, synthesise."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "general",
    "council.protocols.general.flow:general",
    summary="research, answer independently, reconcile, synthesise",
    report_view="council.protocols.general.report:GeneralView",
    options="council.protocols.general.options:GeneralOptions",
    panel="council.protocols.general.panel:general_panel",
    reads_question=False,
    allows_check=True,
    purpose="facts: answers from search results with citations, and every dispute stated",
    example='council --protocol general "How efficient are heat pumps below zero?"',
    use="Research",
)
