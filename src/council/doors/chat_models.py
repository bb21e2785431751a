"""Names under which councils are chat models, for /v1 and for the plugin of `llm`, which imports this for every
command.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from council import protocols
from council.protocols.common.rosters import describe_rosters
from council.protocols.seats import PanelContext
from council.types import Json

DEFAULT_MODEL = "council"  # the words of the question choose the protocol
ROSTER_PREFIX = "council/roster:"
TITLE_MODEL = "council/title"
TITLE_PROTOCOL = "title"
EFFORT_HELP = "How long reasoning members think before they answer."
CHECK_HELP = "Have two seats of other vendors look for errors in the answer, and its author correct what is right."
TAIL_HELP = "false leaves out the lines after the answer: outcome, who differs, trust."


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A council under the name of a model: its protocol and options, as the name gives them."""

    id: str
    protocol: str | None = None
    options: Json = field(default_factory=dict)

    @property
    def is_title(self) -> bool:
        return self.id == TITLE_MODEL


def list_models(rosters: Iterable[str]) -> list[ChatModel]:
    """Return the models: the default, one for each protocol, one for each roster, and the one for titles."""
    return [
        ChatModel(DEFAULT_MODEL),
        *(ChatModel(f"council/{name}", name) for name in protocols.protocol_names()),
        *(ChatModel(f"{ROSTER_PREFIX}{name}", options={"roster": name}) for name in rosters),
        ChatModel(TITLE_MODEL, TITLE_PROTOCOL),
    ]


def list_rosters(where: PanelContext) -> list[str]:
    """Return the names of the rosters that can be used."""
    return [row["name"] for row in describe_rosters(where, None) if not row["error"]]
