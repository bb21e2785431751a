"""Display names of seats: the seat name, or for advisors a label with the round."""

from __future__ import annotations

from collections.abc import Mapping

from council.minutes import Minutes
from council.render.clean import clean
from council.types import replace_labels


def format_label(name: str) -> str:
    return clean(name).replace("_", " ").capitalize()


def unblind(text: str, labels: Mapping[str, str]) -> str:
    """Replace the labels in the text of a blind reader with the seat names."""
    return replace_labels(text, {letters: format_label(seat) for letters, seat in labels.items()})


def speaker_label(minutes: Minutes, phase: str, seat: str) -> str:
    """Return the speaker label of a seat: `council-r2-skeptic`, without the round for the referee or a single round."""
    if minutes.plan.get("protocol") != "advisors":
        return format_label(seat)
    several = (minutes.plan.get("options") or {}).get("rounds", 1) > 1
    presides = minutes.chair is not None and seat == minutes.chair.name
    return f"council-{phase}-{clean(seat)}" if several and not presides else f"council-{clean(seat)}"


def last_speaker_label(minutes: Minutes, seat: str) -> str:
    """Return the speaker label of the last phase in which the seat was asked, or of the first round if there is none."""
    asked = [phase.name for phase in minutes.phases.values() if seat in phase.asked]
    return speaker_label(minutes, asked[-1] if asked else "r1", seat)
