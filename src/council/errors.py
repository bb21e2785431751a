"""Exceptions. Each message is one line: the problem, the value in quotes, the fix.

CouncilError                    exit 1
├── UsageError                  exit 2: invalid words, options or files; nothing was spent
│   ├── ConfigError             an invalid configuration file or variable
│   │   └── TrustRequired       a project's file has settings that need trust
│   ├── PacketRefused           material that must not leave the machine; names file and line, never the secret
│   ├── CapTooLow               a cap that does not cover the run, which was refused before it existed
│   ├── PromptError             a missing prompt file, or a prompt that lacks a variable
│   ├── RunConflict             the run cannot do this in its present state
│   └── UnknownRun              no run with this id
├── RunFailed                   no seat answered
│   └── AccessError             exit 4: no seat answered because of keys, logins and quotas
│       ├── AuthError           every key or login was refused
│       └── QuotaError          every quota is used up
├── RunIncomplete               exit 3: the run stopped before its last step; resumable
│   ├── BudgetSpent             exit 5: the budget does not cover the next request
│   ├── RunInterrupted          exit 130: interrupted or cancelled
│   ├── QuorumLost              too few seats answered
│   │   └── SeatAbsent          the only seat asked did not answer
│   └── ChairAbsent             the chair and its fallbacks did not answer
├── EngineError                 a protocol that breaks a rule of the engine
│   ├── DuplicateKey            two steps of one run under one key
│   └── LedgerMismatch          the ledger has a different request under this key
├── StoreError                  the database or a folder cannot be used
│   └── LeaseLost               another process has taken the run over
├── RunOwned                    another process is running this run
├── LocalModelError             the embedded model cannot be fetched or started
├── SearchNotEnabled            exit 4: general needs a search provider, and none is available
└── Fault                       one attempt at a call failed; `kind` decides what happens next
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from asyncio import Task

Language = Literal["python", "cli", "http"]
LANGUAGES: tuple[Language, ...] = ("python", "cli", "http")
CLI_NAMES = {"seats": "--seat", "models": "-m", "seat_count": "--seats"}  # where the flag differs from the parameter
_MARKS = dict.fromkeys(map(ord, "\x02\x1f\x03"))  # start, separator and end of the three wordings
_WORDING = re.compile(r"\x02([^\x02\x03\x1f]*)\x1f([^\x02\x03\x1f]*)\x1f([^\x02\x03\x1f]*)\x03")


def wording(*, python: str, cli: str, http: str | None = None) -> str:
    """Return a part of a message that differs between the interfaces; `http` is also the wording of MCP."""
    words = (part.translate(_MARKS) for part in (python, cli, python if http is None else http))
    return "\x02" + "\x1f".join(words) + "\x03"


def option(name: str, value: object = None) -> str:
    """Name an option in a message, such as `early_stop=True`, `--early-stop` and `early_stop`."""
    flag = CLI_NAMES.get(name, f"--{name.replace('_', '-')}")
    if value is None or isinstance(value, bool):
        return wording(python=name if value is None else f"{name}={value}", cli=flag, http=name)
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return wording(python=f"{name}={shown}", cli=f"{flag} {value}", http=f"{name} {shown}")


def word_for(message: str, language: Language) -> str:
    """Return a message in the words of one interface."""
    place = 1 + LANGUAGES.index(language)
    return _WORDING.sub(lambda found: found[place], message) if "\x02" in message else message


class CouncilError(Exception):
    """Base of all errors. `str()` uses Python terms; `message_for` also those of the command line and HTTP.

    `report` is the report of the run, if the error says how a run ended. `field` is the field of a request that is
    wrong.
    """

    exit_code = 1
    report: Any = None  # a council.Report
    field = ""
    details: dict[str, Any] | None = None  # what a program needs to know, for errors in JSON

    def __init__(self, message: str = "", *, field: str = "") -> None:
        self.template = message  # with the wordings of all interfaces
        if field:
            self.field = field
        super().__init__(word_for(message, "python"))

    def message_for(self, language: Language) -> str:
        return word_for(self.template, language)


def message_for(error: CouncilError, language: Language) -> str:
    return error.message_for(language)


class UsageError(CouncilError):
    """Invalid words, options or files; nothing was spent."""

    exit_code = 2


class ConfigError(UsageError):
    """An invalid configuration file or variable."""


class TrustRequired(ConfigError):
    """A project's file has settings that need the user's trust; `request` says which."""

    def __init__(self, message: str, request: Any = None) -> None:
        super().__init__(message)
        self.request = request  # a settings.workspace_trust.TrustRequest


class PacketRefused(UsageError):
    """Material that must not leave the machine. The message names file and line, never the secret."""

    def __init__(self, message: str, secrets: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.secrets = secrets  # those that `council packet --accept-secret` can accept


class CapTooLow(UsageError):
    """A cap that does not cover the run. It was refused before it existed; nothing was spent."""

    def __init__(
        self, message: str, *, scope: str, cap: float, needed: float, alternatives: list[dict[str, Any]]
    ) -> None:
        super().__init__(message, field="max_cost")
        self.scope = scope  # run | day | user
        self.cap = cap  # in dollars
        self.needed = needed  # the lowest cap with which the run can finish
        self.alternatives = alternatives  # councils that fit: protocol, cheap, and their expected cost in dollars
        self.details = {"scope": scope, "cap": cap, "needed": needed, "alternatives": alternatives}


class PromptError(UsageError):
    """A missing prompt file, or a prompt that lacks a variable."""


class RunConflict(UsageError):
    """The run cannot do this in its present state: it has ended, it is queued, or another run uses it."""


class UnknownRun(UsageError):
    """There is no run with this id."""


class RunFailed(CouncilError):
    """No seat answered."""


class AccessError(RunFailed):
    """No seat answered because of keys, logins and quotas."""

    exit_code = 4


class AuthError(AccessError):
    """Every key or login was refused."""


class QuotaError(AccessError):
    """Every quota is used up."""


class RunIncomplete(CouncilError):
    """The run stopped before its last step. It can be resumed."""

    exit_code = 3


class RunInterrupted(RunIncomplete):
    """The run was interrupted or cancelled."""

    exit_code = 130


class EngineError(CouncilError):
    """A protocol breaks a rule of the engine."""


class DuplicateKey(EngineError):
    """Two steps of one run have the same key."""


class LedgerMismatch(EngineError):
    """The ledger has a different request under this key."""


class StoreError(CouncilError):
    """The database or a folder cannot be used."""


class LeaseLost(StoreError):
    """Another process has taken the run over, because this one did not renew its lease. Nothing more is stored."""


class RunOwned(CouncilError):
    """Another process is running this run."""


class LocalModelError(CouncilError):
    """The embedded model cannot be fetched or started."""


class SearchNotEnabled(CouncilError):
    """The protocol needs a search provider, and none is available."""

    exit_code = 4


class BudgetSpent(RunIncomplete):
    """The budget does not cover the next request."""

    exit_code = 5


class QuorumLost(RunIncomplete):
    """Too few seats answered."""


class SeatAbsent(QuorumLost):
    """The only seat asked did not answer; `absence` lets the caller continue without it."""

    def __init__(self, detail: str, absence: Any) -> None:
        super().__init__(detail)
        self.absence = absence  # a types.Absence


class ChairAbsent(RunIncomplete):
    """The chair and its fallbacks did not answer."""


class Fault(CouncilError):
    """One attempt failed. `kind` is a row of the fault table; `said` is the member's text, if any."""

    def __init__(
        self, kind: str, detail: str, *, said: str = "", retry_after: float | None = None, has_status: bool = False
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.said = said
        self.retry_after = retry_after
        self.has_status = has_status  # the endpoint answered with an error status and no output


# Exceptions of other packages

MAX_DESCRIPTION_CHARS = 300


def describe_error(error: BaseException) -> str:
    """Return the name of an exception and its text on one line. The text is left out if it cannot be read."""
    try:
        text = "".join(char if char.isprintable() else " " for char in str(error))
    except BaseException:  # its __str__ is code of another package too
        text = ""
    shown = f"{type(error).__name__}: {' '.join(text.split())}".rstrip(": ")
    return shown if len(shown) <= MAX_DESCRIPTION_CHARS else f"{shown[: MAX_DESCRIPTION_CHARS - 1]}…"


def is_interrupt(error: BaseException, task: Task[Any] | None = None) -> bool:
    """Return whether an exception in code of another package comes from outside of it and has to end this task.

    That is a cancellation of the task, the end of its coroutine, Ctrl-C where it raises KeyboardInterrupt, and what a
    signal handler of the program raises. With `asyncio.run` the first Ctrl-C cancels the task; a KeyboardInterrupt is
    then one that the code has raised itself.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        return task is not None and running_task() is not task
    if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    return _is_raised_by_signal_handler(error)


def _is_raised_by_signal_handler(error: BaseException) -> bool:
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code in handlers:
            return True
        place = place.tb_next
    return False


def _code_of(handler: Any) -> Any:
    """Return the code of a function, also of a method or of a function with given arguments."""
    while hasattr(handler, "func"):
        handler = handler.func
    return getattr(handler, "__code__", None)


def running_task() -> Any:
    """Return the present task, or None outside of an event loop."""
    asyncio = sys.modules["asyncio"]
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
