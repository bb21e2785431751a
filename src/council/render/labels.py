"""What a seat is called where its words stand: by its name, an advisor by the label of its round."""

from __future__ import annotations

from collections.abc import Mapping

from council.minutes import Minutes
from council.render.clean import clean
from council.types import renamed


def label(name: str) -> str:
    return clean(name).replace("_", " ").capitalize()


def unblind(text: str, labels: Mapping[str, str]) -> str:
    """What a reader wrote of responses under labels, with the seats in their place."""
    return renamed(text, {letters: label(seat) for letters, seat in labels.items()})


def spoken_as(minutes: Minutes, phase: str, seat: str) -> str:
    """`council-r2-skeptic`; without its round where there is only one, and for the referee."""
    if minutes.plan.get("protocol") != "advisors":
        return label(seat)
    several = (minutes.plan.get("options") or {}).get("rounds", 1) > 1
    presides = minutes.chair is not None and seat == minutes.chair.name
    return f"council-{phase}-{clean(seat)}" if several and not presides else f"council-{clean(seat)}"


def last_label(minutes: Minutes, seat: str) -> str:
    """As it was called when it last had the floor; as in the first round, if it never had."""
    asked = [phase.name for phase in minutes.phases.values() if seat in phase.asked]
    return spoken_as(minutes, asked[-1] if asked else "r1", seat)
