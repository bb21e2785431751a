"""The table of protocols: what each is called, who sits, and where its function and its prompts are."""

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
    """A protocol: its function (or where to find it, "module:attr"), who sits, and where its prompts are."""

    name: str
    function: Function | str
    seats: tuple[Seat, ...] = ()
    chair: Seat | None = CHAIR
    summary: str = ""
    prompts: Path | None = None  # a folder that holds <protocol>/<phase>.md; None: the shipped ones
    options: type[Any] | None = None  # a pydantic model; None: the one in options.py, or no options
    spread: bool = True  # whether seats are spread over families
    panel: str = (
        ""  # where the seats are put together from the options ("module:attr"), if they are not always the same
    )

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
            summary="draft apart, improve on each other, synthesise",
        ),
        Protocol(
            "adversarial",
            f"{HERE}.adversarial:adversarial",
            RIVALS,
            summary="draft apart, attack the leading draft, rule",
        ),
        Protocol("triad", f"{HERE}.triad:triad", RIVALS, summary="draft apart, merge once"),
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
            summary="research, answer apart, reconcile, synthesise",
            panel="council.panel.general:general_panel",
        ),
        Protocol(
            "ranking",
            f"{HERE}.ranking:ranking",
            summary="answer apart, rank each other blind, synthesise",
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
    """Add a protocol of your own by name; a shipped one cannot be replaced."""
    if protocol.name in _TABLE and _TABLE[protocol.name] != protocol:
        raise UsageError(f'there is a protocol "{protocol.name}" already: register yours under another name')
    _TABLE[protocol.name] = protocol


def known() -> tuple[str, ...]:
    return (*_TABLE, *(entry.name for entry in _installed() if entry.name not in _TABLE))


def every_seat() -> tuple[str, ...]:
    """The names of all seats that protocols always have."""
    return tuple(dict.fromkeys(seat.name for protocol in _TABLE.values() for seat in protocol.seats))


def find(name: str) -> Protocol:
    if name in _TABLE:
        return _TABLE[name]
    for entry in _installed():
        if entry.name == name:
            return _from_package(name, entry)
    raise UsageError(f'unknown protocol "{name}": known are {", ".join(known())}')


def _from_package(name: str, entry: Any) -> Protocol:
    try:
        found: Protocol = replace(entry.load(), name=name)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UsageError(
            f'the package that brings the protocol "{name}" cannot be loaded ({what}): repair it or uninstall it'
        ) from error
    return found


@cache
def _installed() -> Any:
    """Protocols that other packages bring, as entry points of the group `council.protocols`. Finding them reads every package's files."""
    return entry_points(group="council.protocols")
