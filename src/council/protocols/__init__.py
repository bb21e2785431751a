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

ProtocolFunction = Callable[..., Awaitable[Verdict]]  # async def protocol(council, **options) -> Verdict
CHAIR = Seat("chair", "Orchestrator")


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol. `function` is the coroutine function itself or its "module:attr"."""

    name: str
    function: ProtocolFunction | str
    seats: tuple[Seat, ...] = ()
    chair: Seat | None = CHAIR
    summary: str = ""
    prompts: Path | None = None  # folder with <protocol>/<phase>.md; None: the shipped prompts
    options: type[Any] | None = None  # pydantic model; None: the model in options.py, or no options
    spread: bool = True  # spread the seats over vendor families
    panel: str = ""  # "module:attr" that builds the seats from the options; empty if the seats are fixed

    def load(self) -> ProtocolFunction:
        if isinstance(self.function, str):
            module, _, attribute = self.function.partition(":")
            function: ProtocolFunction = getattr(import_module(module), attribute)
            return function
        return self.function


COLLABORATIVE_SEATS = (
    Seat("alpha", "Deep Explorer", "depth and exploration"),
    Seat("beta", "Practical Builder", "practical grounding"),
    Seat("gamma", "Elegant Minimalist", "elegance and alternative angles"),
)
ADVERSARIAL_SEATS = (
    Seat("alpha", "Drafter & Red Teamer"),
    Seat("beta", "Fact-Checker & Validator"),
    Seat("gamma", "Optimizer & Devil's Advocate"),
)
_PACKAGE = "council.protocols"
_PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "collaborative",
            f"{_PACKAGE}.collaborative.flow:collaborative",
            COLLABORATIVE_SEATS,
            summary="draft independently, improve on each other, synthesise",
        ),
        Protocol(
            "adversarial",
            f"{_PACKAGE}.adversarial.flow:adversarial",
            ADVERSARIAL_SEATS,
            summary="draft independently, attack the leading draft, rule",
        ),
        Protocol("triad", f"{_PACKAGE}.triad.flow:triad", ADVERSARIAL_SEATS, summary="draft independently, merge once"),
        Protocol(
            "advisors",
            f"{_PACKAGE}.advisors.flow:advisors",
            summary="three advisors and a referee, in rounds",
            spread=False,
            panel="council.protocols.advisors.panel:advisors_panel",
        ),
        Protocol(
            "judges",
            f"{_PACKAGE}.judges.flow:judges",
            summary="independent judges: validate, brainstorm, research",
            spread=False,
            panel="council.protocols.judges.panel:judges_panel",
        ),
        Protocol(
            "general",
            f"{_PACKAGE}.general.flow:general",
            summary="research, answer independently, reconcile, synthesise",
            panel="council.protocols.general.panel:general_panel",
        ),
        Protocol(
            "ranking",
            f"{_PACKAGE}.ranking.flow:ranking",
            summary="answer independently, rank each other blind, synthesise",
            panel="council.protocols.ranking.panel:ranking_panel",
        ),
        Protocol(
            "quick",
            f"{_PACKAGE}.judges.flow:quick",
            summary="one judge, one call",
            spread=False,
            panel="council.protocols.judges.panel:quick_panel",
        ),
    )
}


def register(protocol: Protocol) -> None:
    """Register a third-party protocol. Shipped protocols cannot be replaced."""
    if protocol.name in _PROTOCOLS and _PROTOCOLS[protocol.name] != protocol:
        raise UsageError(f'protocol "{protocol.name}" is already registered: choose another name')
    _PROTOCOLS[protocol.name] = protocol


def protocol_names() -> tuple[str, ...]:
    """Return the names of all shipped, registered and installed protocols."""
    return (*_PROTOCOLS, *(entry.name for entry in _installed_entry_points() if entry.name not in _PROTOCOLS))


def fixed_seat_names() -> tuple[str, ...]:
    """Return the names of the seats that do not depend on options."""
    return tuple(dict.fromkeys(seat.name for protocol in _PROTOCOLS.values() for seat in protocol.seats))


def get_protocol(name: str) -> Protocol:
    """Return the protocol, or raise UsageError with the known names."""
    if name in _PROTOCOLS:
        return _PROTOCOLS[name]
    for entry in _installed_entry_points():
        if entry.name == name:
            return _load_entry_point(name, entry)
    raise UsageError(f'unknown protocol "{name}": known are {", ".join(protocol_names())}')


def _load_entry_point(name: str, entry: Any) -> Protocol:
    try:
        protocol: Protocol = replace(entry.load(), name=name)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise UsageError(f'cannot load the package of protocol "{name}" ({cause}): fix or uninstall it') from error
    return protocol


@cache
def _installed_entry_points() -> Any:
    """Return the entry points of the group `council.protocols`. Cached: the lookup reads the metadata of every package."""
    return entry_points(group="council.protocols")
