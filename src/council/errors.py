"""What can go wrong, as one tree. Each error is one line: what happened, what it means, what to do.

CouncilError                    exit 1
├── UsageError                  exit 2: wrong words, flags or files; nothing was spent
│   ├── ConfigError             a configuration file or variable that cannot be right
│   ├── PacketRefused           material that must not leave the machine; names file and line, never the secret
│   ├── PromptError             a prompt that is missing, or misses a variable
│   └── UnknownRun              no run of that name
├── EngineError                 a protocol that breaks a rule of the engine
│   ├── DuplicateKey            two steps of one run under one key
│   └── LedgerMismatch          the ledger holds another request under this key
├── StoreError                  the database or a folder cannot be used
├── RunOwned                    another process is running this run
├── LocalModelError             the embedded model cannot be had
├── SearchNotEnabled            exit 4: general needs a search, and none can be used
├── BudgetSpent                 exit 5: there is no money left for the next request; resumable
├── QuorumLost                  too few seats answered to go on
│   └── SeatAbsent              the one seat that was asked did not answer
├── ChairAbsent                 the chair and its fallbacks are gone
└── Fault                       one attempt at a call failed; `kind` decides what happens next
"""

from __future__ import annotations

from typing import Any


class CouncilError(Exception):
    exit = 1


class UsageError(CouncilError):
    exit = 2


class ConfigError(UsageError):
    pass


class PacketRefused(UsageError):
    pass


class PromptError(UsageError):
    pass


class UnknownRun(UsageError):
    pass


class EngineError(CouncilError):
    pass


class DuplicateKey(EngineError):
    pass


class LedgerMismatch(EngineError):
    pass


class StoreError(CouncilError):
    pass


class RunOwned(CouncilError):
    pass


class LocalModelError(CouncilError):
    pass


class SearchNotEnabled(CouncilError):
    exit = 4


class BudgetSpent(CouncilError):
    exit = 5


class QuorumLost(CouncilError):
    pass


class SeatAbsent(QuorumLost):
    """Carries the absence, so that whoever asked can go on without that seat."""

    def __init__(self, detail: str, absence: Any) -> None:
        super().__init__(detail)
        self.absence = absence  # a types.Absence


class ChairAbsent(CouncilError):
    """May carry the verdict as far as rules had made it out by then, so that it is not lost with the chair."""

    so_far: Any = None


class Fault(CouncilError):
    """One attempt failed. `kind` is a row of the table in calling/table.py; `said` is what the member said, if anything."""

    def __init__(self, kind: str, detail: str, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.said = said
        self.retry_after = retry_after
