"""Independent judges: validate, brainstorm, research. `quick` is one judge and one call."""

from council.protocols.protocol import Protocol

PROTOCOL = Protocol(
    "judges",
    "council.protocols.judges.flow:judges",
    summary="independent judges: validate, brainstorm, research",
    options="council.protocols.judges.options:JudgesOptions",
    spread=False,
    panel="council.protocols.judges.panel:judges_panel",
)
QUICK = Protocol(
    "quick",
    "council.protocols.judges.flow:quick",
    summary="one judge, one call",
    spread=False,
    panel="council.protocols.judges.panel:quick_panel",
)
