"""Independent judges: validate, brainstorm, research.

`quick` is one judge and one call, and also answers a question.
"""

from dataclasses import replace

from council.protocols import Protocol

PROTOCOL = Protocol(
    "judges",
    "council.protocols.judges.flow:judges",
    summary="independent judges: validate, brainstorm, research",
    tasks=("validate", "brainstorm", "research"),
    options="council.protocols.judges.options:JudgesOptions",
    spread=False,
    panel="council.protocols.judges.panel:judges_panel",
    output_schema="council.protocols.judges.replies:output_schema",
    packet_notice="council.protocols.judges.parts:describe_parts",
    report_view="council.protocols.judges.report:JudgesView",
    reads_question=False,
    reports_in_project=True,
    purpose="reviews of code, documents and plans: findings and a verdict PASS, WARN or FAIL; also brainstorm and research",
    example="council validate recent",
    use="Review",
)
QUICK = replace(
    PROTOCOL,
    name="quick",
    function="council.protocols.judges.flow:quick",
    summary="one judge, one call",
    tasks=(*PROTOCOL.tasks, "ask"),
    options=None,
    panel="council.protocols.judges.panel:quick_panel",
    reads_question=False,
    purpose="a fast review by a single judge, or the answer of one model to a question with one short answer",
    example="council --protocol quick validate recent",
    use="",
)
