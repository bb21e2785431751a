"""Answer independently, and have a clerk compare the answers. There is no synthesis."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "panel",
    "council.protocols.panel.flow:panel",
    chair=None,
    report_view="council.protocols.panel.report:PanelView",
    panel="council.protocols.panel.flow:build_panel",
    summary="answer independently; a clerk says where the answers agree and differ",
    reads_question=False,
    keeps_conversations=False,
    purpose="programs and agents that draw the conclusion themselves: all answers, and where they agree and differ",
    example='council --protocol panel "Does our cache need a lock around its refresh?"',
)
