"""Options of the collaborative protocol."""

from __future__ import annotations

from pydantic import Field

from council.protocols.options import EARLY_STOP_HELP, Options


class CollaborativeOptions(Options):
    early_stop: bool = Field(default=False, description=EARLY_STOP_HELP)
