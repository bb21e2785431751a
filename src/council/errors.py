"""Exceptions. Each message is one line: the problem, the value in quotes, the fix.

CouncilError                    exit 1
├── UsageError                  exit 2: invalid words, flags or files; nothing was spent
│   ├── ConfigError             an invalid configuration file or variable
│   ├── PacketRefused           material that must not leave the machine; names file and line, never the secret
│   ├── PromptError             a missing prompt file, or a prompt that lacks a variable
│   └── UnknownRun              no run with this id
├── EngineError                 a protocol that breaks a rule of the engine
│   ├── DuplicateKey            two steps of one run under one key
│   └── LedgerMismatch          the ledger has a different request under this key
├── StoreError                  the database or a folder cannot be used
├── RunOwned                    another process is running this run
├── LocalModelError             the embedded model cannot be fetched or started
├── SearchNotEnabled            exit 4: general needs a search provider, and none is available
├── BudgetSpent                 exit 5: the budget does not cover the next request; resumable
├── QuorumLost                  too few seats answered
│   └── SeatAbsent              the only seat asked did not answer
├── ChairAbsent                 the chair and its fallbacks did not answer
└── Fault                       one attempt at a call failed; `kind` decides what happens next
"""

from __future__ import annotations

from typing import Any, Literal


class CouncilError(Exception):
    exit_code = 1


Language = Literal["python", "cli", "http"]
CLI_NAMES = {"seats": "--seat", "models": "-m"}  # where the flag differs from the parameter


class UsageError(CouncilError):
    """Invalid input. `{option}` in the message stands for an option, and each interface shows its own name of it.

    `str()` shows the Python name (`allow_unpriced=True`); `message_for` also the flag or the HTTP field.
    """

    exit_code = 2

    def __init__(self, message: str, *, option: str = "", value: object = None) -> None:
        self._message, self._option, self._value = message, option, value
        super().__init__(self.message_for("python"))

    def message_for(self, language: Language) -> str:
        if not self._option:
            return self._message
        python = self._option if self._value is None else f"{self._option}={self._value!r}"
        flag = CLI_NAMES.get(self._option, f"--{self._option.replace('_', '-')}")
        return self._message.replace("{option}", {"python": python, "cli": flag, "http": self._option}[language])


def message_for(error: CouncilError, language: Language) -> str:
    return error.message_for(language) if isinstance(error, UsageError) else str(error)


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
    exit_code = 4


class BudgetSpent(CouncilError):
    exit_code = 5


class QuorumLost(CouncilError):
    pass


class SeatAbsent(QuorumLost):
    """The only seat asked did not answer; `absence` lets the caller continue without it."""

    def __init__(self, detail: str, absence: Any) -> None:
        super().__init__(detail)
        self.absence = absence  # a types.Absence


class ChairAbsent(CouncilError):
    pass


class Fault(CouncilError):
    """One attempt failed. `kind` is a row of the fault table; `said` is the member's text, if any."""

    def __init__(self, kind: str, detail: str, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.said = said
        self.retry_after = retry_after
