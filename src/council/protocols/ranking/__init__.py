"""Answer, rank each other blind, synthesise."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "ranking",
    "council.protocols.ranking.flow:ranking",
    summary="answer independently, rank each other blind, synthesise",
    options="council.protocols.ranking.options:RankingOptions",
    panel="council.protocols.ranking.panel:ranking_panel",
    report_view="council.protocols.ranking.report:RankingView",
    quorum=2,  # a single answer cannot be compared
    reads_question=False,
    keeps_conversations=False,
    allows_look=False,  # the files that a seat cites would show its readers whose answer it is
    allows_check=True,
    purpose="comparing answers: every member ranks the others' answers without their names",
    example='council --protocol ranking "What should we name the new service?"',
    use="Rank",
)
