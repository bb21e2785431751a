"""Table of protocols: name, seats, function and prompts of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from council.errors import UsageError
from council.types import Seat, Verdict

Function = Callable[..., Awaitable[Verdict]]  # async def protocol(council, **options) -> Verdict
CHAIR = Seat("chair", "Orchestrator")


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol. `function` is the coroutine function itself or its "module:attr"."""

    name: str
    function: Function | str
    seats: tuple[Seat, ...] = ()
    chair: Seat | None = CHAIR
    summary: str = ""
    prompts: Path | None = None  # folder with <protocol>/<phase>.md; None: the shipped prompts
    options: type[Any] | None = None  # pydantic model; None: the model in options.py, or no options
    spread: bool = True  # spread the seats over vendor families
    panel: str = ""  # "module:attr" that builds the seats from the options; empty if the seats are fixed

    def load(self) -> Function:
        if isinstance(self.function, str):
            module, _, attribute = self.function.partition(":")
            function: Function = getattr(import_module(module), attribute)
            return function
        return self.function


EXPLORERS = (
    Seat("alpha", "Deep Explorer", "depth and exploration"),
    Seat("beta", "Practical Builder", "practical grounding"),
    Seat("gamma", "Elegant Minimalist", "elegance and alternative angles"),
)
RIVALS = (
    Seat("alpha", "Drafter & Red Teamer"),
    Seat("beta", "Fact-Checker & Validator"),
    Seat("gamma", "Optimizer & Devil's Advocate"),
)
HERE = "council.protocols"
_TABLE = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "collaborative",
            f"{HERE}.collaborative:collaborative",
            EXPLORERS,
            summary="draft independently, improve on each other, synthesise",
        ),
        Protocol(
            "adversarial",
            f"{HERE}.adversarial:adversarial",
            RIVALS,
            summary="draft independently, attack the leading draft, rule",
        ),
        Protocol("triad", f"{HERE}.triad:triad", RIVALS, summary="draft independently, merge once"),
        Protocol(
            "advisors",
            f"{HERE}.advisors:advisors",
            summary="three advisors and a referee, in rounds",
            spread=False,
            panel="council.panel.advisors:advisors_panel",
        ),
        Protocol(
            "judges",
            f"{HERE}.judges:judges",
            summary="independent judges: validate, brainstorm, research",
            spread=False,
            panel="council.panel.judges:judges_panel",
        ),
        Protocol(
            "general",
            f"{HERE}.general:general",
            summary="research, answer independently, reconcile, synthesise",
            panel="council.panel.general:general_panel",
        ),
        Protocol(
            "ranking",
            f"{HERE}.ranking:ranking",
            summary="answer independently, rank each other blind, synthesise",
            panel="council.panel.ranking:ranking_panel",
        ),
        Protocol(
            "quick",
            f"{HERE}.judges:quick",
            summary="one judge, one call",
            spread=False,
            panel="council.panel.judges:quick_panel",
        ),
    )
}


def register(protocol: Protocol) -> None:
    """Register a third-party protocol. Shipped protocols cannot be replaced."""
    if protocol.name in _TABLE and _TABLE[protocol.name] != protocol:
        raise UsageError(f'protocol "{protocol.name}" is already registered: choose another name')
    _TABLE[protocol.name] = protocol


def known() -> tuple[str, ...]:
    """Return the names of all shipped, registered and installed protocols."""
    return (*_TABLE, *(entry.name for entry in _installed() if entry.name not in _TABLE))


def every_seat() -> tuple[str, ...]:
    """Return the names of the seats that do not depend on options."""
    return tuple(dict.fromkeys(seat.name for protocol in _TABLE.values() for seat in protocol.seats))


def find(name: str) -> Protocol:
    """Return the protocol, or raise UsageError with the known names."""
    if name in _TABLE:
        return _TABLE[name]
    for entry in _installed():
        if entry.name == name:
            return _from_package(name, entry)
    raise UsageError(f'unknown protocol "{name}": known are {", ".join(known())}')


def _from_package(name: str, entry: Any) -> Protocol:
    try:
        protocol: Protocol = replace(entry.load(), name=name)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise UsageError(f'cannot load the package of protocol "{name}" ({cause}): fix or uninstall it') from error
    return protocol


@cache
def _installed() -> Any:
    """Return the entry points of the group `council.protocols`. Cached: the lookup reads the metadata of every package."""
    return entry_points(group="council.protocols")
