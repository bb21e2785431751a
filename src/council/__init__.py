"""Public API of Council: ask several language models one question and get one answer.

    report = await council.convene("Which queue should we use?")        # or council.convene_sync(…)
    print(report.answer, report.trust.level, report.cost.usd)
    async for entry in council.stream("Which queue should we use?"): …

Names are loaded on first use, so `import council` is fast. `council.events` and `council.errors` are modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from council.version import __version__ as __version__

if TYPE_CHECKING:
    from council import errors as errors
    from council import events as events
    from council.doors.batch_library import BatchRow, BatchStream, batch
    from council.doors.library import Client, RunOptions, RunStream, close, convene, convene_sync, stream
    from council.engine.council import Council
    from council.engine.minutes import Minutes
    from council.engine.reply import Reply
    from council.errors import (
        AccessError,
        AuthError,
        BudgetSpent,
        CapTooLow,
        ChairAbsent,
        ConfigError,
        CouncilError,
        EngineError,
        Fault,
        LocalModelError,
        PacketRefused,
        PromptError,
        QuorumLost,
        QuotaError,
        RunFailed,
        RunIncomplete,
        RunInterrupted,
        RunOwned,
        SearchNotEnabled,
        StoreError,
        TrustRequired,
        UnknownRun,
        UsageError,
    )
    from council.events import Entry, Event
    from council.members.base import Member
    from council.protocols import Protocol, register
    from council.render.report_object import Report
    from council.runs.service import Convener
    from council.store.interface import RunRow
    from council.types import Answer, Ask, Question, Roster, Round, Seat, Statement, Usage, Verdict

__all__ = ["__version__", "batch", "close", "convene", "convene_sync", "register", "stream"]
__all__ += ["BatchRow", "BatchStream", "Client", "Convener", "Council", "Entry", "Event", "Member", "Minutes"]
__all__ += ["Protocol", "Reply", "Report", "RunOptions", "RunRow", "RunStream"]
__all__ += ["Answer", "Ask", "Question", "Roster", "Round", "Seat", "Statement", "Usage", "Verdict"]
__all__ += ["AccessError", "AuthError", "BudgetSpent", "CapTooLow", "ChairAbsent", "ConfigError", "CouncilError"]
__all__ += ["EngineError", "Fault", "LocalModelError", "PacketRefused", "PromptError", "QuorumLost", "QuotaError"]
__all__ += ["RunFailed", "RunIncomplete", "RunInterrupted", "RunOwned", "SearchNotEnabled", "StoreError"]
__all__ += ["TrustRequired", "UnknownRun", "UsageError"]

_EXPORTS = {  # where the names are that are no errors
    "council.runs.service": ("Convener",),
    "council.doors.batch_library": ("BatchRow", "BatchStream", "batch"),
    "council.doors.library": ("Client", "RunOptions", "RunStream", "close", "convene", "convene_sync", "stream"),
    "council.engine.council": ("Council",),
    "council.events": ("Entry", "Event"),
    "council.members.base": ("Member",),
    "council.engine.minutes": ("Minutes",),
    "council.protocols": ("Protocol", "register"),
    "council.engine.reply": ("Reply",),
    "council.render.report_object": ("Report",),
    "council.store.interface": ("RunRow",),
    "council.types": ("Answer", "Ask", "Question", "Roster", "Round", "Seat", "Statement", "Usage", "Verdict"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}
_MODULES = ("errors", "events")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"council.{name}")
    if name not in __all__:
        raise AttributeError(f'module "council" has no attribute "{name}": use one of {", ".join(__all__)}')
    return getattr(import_module(_MODULE_OF.get(name, "council.errors")), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
