"""Public API of Council: ask several language models one question and get one answer.

    report = await council.convene("Which queue should we use?")        # or council.convene_sync(…)
    async for entry in council.stream("Which queue should we use?"): …

Names are loaded on first use, so `import council` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from council.version import __version__ as __version__

if TYPE_CHECKING:
    from council.doors.library import convene, convene_sync, stream
    from council.engine.council import Council
    from council.engine.minutes import Minutes
    from council.engine.reply import Reply
    from council.errors import CouncilError, Fault, UsageError
    from council.events import Entry, Event
    from council.members.base import Member
    from council.protocols import Protocol, register
    from council.runs.service import Convener
    from council.types import Answer, Ask, Question, Roster, Round, Seat, Statement, Usage, Verdict

__all__ = [
    "Answer", "Ask", "Convener", "Council", "CouncilError", "Entry", "Event", "Fault", "Member", "Minutes", "Protocol",
    "Question", "Reply", "Roster", "Round", "Seat", "Statement", "Usage", "UsageError", "Verdict", "convene",
    "convene_sync", "register", "stream",
]  # fmt: skip

_EXPORTS = {
    "council.runs.service": ("Convener",),
    "council.doors.library": ("convene", "convene_sync", "stream"),
    "council.engine.council": ("Council",),
    "council.errors": ("CouncilError", "Fault", "UsageError"),
    "council.events": ("Entry", "Event"),
    "council.members.base": ("Member",),
    "council.engine.minutes": ("Minutes",),
    "council.protocols": ("Protocol", "register"),
    "council.engine.reply": ("Reply",),
    "council.types": ("Answer", "Ask", "Question", "Roster", "Round", "Seat", "Statement", "Usage", "Verdict"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f'module "council" has no attribute "{name}": use one of {", ".join(__all__)}')
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
