"""Table of protocols. Shipped ones are rows here, others come by entry point or by `register`; each is loaded when it is needed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from council.errors import CouncilError, UsageError
from council.extensions import Added, installed
from council.protocols.protocol import Protocol, load_reference

__all__ = [
    "SHIPPED_PROTOCOLS",
    "Protocol",
    "find_protocol",
    "fixed_seat_names",
    "get_protocol",
    "is_registered",
    "package_of",
    "protocol_names",
    "register",
]

ENTRY_POINT_GROUP = "council.protocols"
SHIPPED_PROTOCOLS = {
    "collaborative": "council.protocols.collaborative:PROTOCOL",
    "adversarial": "council.protocols.adversarial:PROTOCOL",
    "triad": "council.protocols.triad:PROTOCOL",
    "advisors": "council.protocols.advisors:PROTOCOL",
    "judges": "council.protocols.judges:PROTOCOL",
    "general": "council.protocols.general:PROTOCOL",
    "ranking": "council.protocols.ranking:PROTOCOL",
    "quick": "council.protocols.judges:QUICK",
}
_registered: dict[str, Protocol] = {}


def register(protocol: Protocol) -> None:
    """Register a third-party protocol for this process. A known name cannot be used for another protocol."""
    name = protocol.name
    if name in SHIPPED_PROTOCOLS or _registered.get(name, protocol) != protocol:
        raise UsageError(f'protocol "{name}" is already registered: choose another name')
    _registered[name] = protocol


def is_registered(name: str) -> bool:
    return name in _registered


def protocol_names() -> tuple[str, ...]:
    """Return the names of all shipped, registered and installed protocols."""
    return tuple(dict.fromkeys([*SHIPPED_PROTOCOLS, *_registered, *installed(ENTRY_POINT_GROUP)]))


def fixed_seat_names() -> tuple[str, ...]:
    """Return the names of the seats that do not depend on options."""
    known = [*map(get_protocol, SHIPPED_PROTOCOLS), *_registered.values()]
    return tuple(dict.fromkeys(seat.name for protocol in known for seat in protocol.seats))


def get_protocol(name: str) -> Protocol:
    """Return the protocol, or raise UsageError with the known names."""
    if name in SHIPPED_PROTOCOLS:
        return _load_shipped(name)
    if name in _registered:
        return _registered[name]
    if added := installed(ENTRY_POINT_GROUP).get(name):
        return _load_entry_point(added)
    raise UsageError(f'unknown protocol "{name}": known are {", ".join(protocol_names())}')


@cache
def _load_shipped(name: str) -> Protocol:
    shipped: Protocol = load_reference(SHIPPED_PROTOCOLS[name])
    return shipped


def find_protocol(name: str) -> Protocol:
    """Return the protocol of a stored run; a plain one if its package is missing or broken."""
    try:
        return get_protocol(name)
    except CouncilError:
        return Protocol(name, "")


def package_of(name: str) -> str:
    """Return the package that adds a protocol; "" for a shipped or registered one."""
    added = None if name in SHIPPED_PROTOCOLS or name in _registered else installed(ENTRY_POINT_GROUP).get(name)
    return added.package if added else ""


def _load_entry_point(added: Added) -> Protocol:
    loaded = added.load("protocol")
    try:
        protocol: Protocol = replace(loaded, name=added.name)
        protocol.load_options()
    except Exception as error:
        raise added.error("protocol", error) from error
    return protocol
