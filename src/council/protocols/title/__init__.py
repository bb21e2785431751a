"""One call to one fast model, for the titles and tags that chat programs ask for. No list of protocols contains it."""

from council.protocols import Protocol

PROTOCOL = Protocol(
    "title",
    "council.protocols.title.flow:title",
    chair=None,
    summary="one fast model, one call",
    spread=False,
    panel="council.protocols.title.flow:title_panel",
    reads_question=False,
    keeps_conversations=False,
    purpose="titles and tags of conversations, over /v1",
)
