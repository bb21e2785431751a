"""A run as a Mermaid flow chart: its phases in order, with the seats asked in each."""

from __future__ import annotations

import re

from council.minutes import Minutes, PhaseMinutes
from council.render.clean import one_line

STYLES = (
    "classDef absent stroke-dasharray: 4 3,opacity: 0.6",
    "classDef chair stroke-width: 3px",
)


def mermaid(minutes: Minutes) -> str:
    """Render question, phases and answer from left to right; a planned phase that was not held is dashed."""
    names = _phases(minutes)
    lines = ["flowchart LR", '    question(["question"])']
    for name in names:
        lines += _phase(minutes, name)
    lines.append('    answer(["answer"])')
    lines += _arrows(minutes, names)
    return "\n".join([*lines, *(f"    {style}" for style in STYLES)]) + "\n"


def _phases(minutes: Minutes) -> list[str]:
    """Return the planned phases, then any others of the run, without phases private to a seat."""
    plan = [phase["name"] for phase in minutes.plan.get("phases", [])]
    return [name for name in dict.fromkeys([*plan, *minutes.phases]) if not minutes.is_apart(name)]


def _phase(minutes: Minutes, name: str) -> list[str]:
    phase = minutes.phases.get(name)
    title = name if phase else f"{name}, not held{_because(minutes, name)}"
    seats = _seats(minutes, phase) if phase else [f'        {_id(name)}_none["no seat asked"]:::absent']
    return [f'    subgraph {_id(name)}["{_text(title)}"]', *seats, "    end"]


def _because(minutes: Minutes, phase: str) -> str:
    reasons = [note.why for note in minutes.notes if phase in note.what.removesuffix(" skipped").split(", ")]
    return f": {reasons[0]}" if reasons else ""


def _seats(minutes: Minutes, phase: PhaseMinutes) -> list[str]:
    return [f"        {_id(f'{phase.name} {seat}')}{_box(minutes, phase, seat)}" for seat in phase.asked]


def _box(minutes: Minutes, phase: PhaseMinutes, seat: str) -> str:
    role = minutes.seat(seat).role
    label = f"{seat}<br/>{role}" if role else seat
    if seat in phase.absent:
        return f'["{_text(label)}<br/>{_text(phase.absent[seat].state)}"]:::absent'
    return f'["{_text(label)}"]' + (":::chair" if minutes.chair and seat == minutes.chair.name else "")


def _arrows(minutes: Minutes, names: list[str]) -> list[str]:
    """Connect the phases in order; a phase that was not held gets a dotted line."""
    arrows, last = [], "question"
    for name in names:
        if name not in minutes.phases:
            arrows.append(f"    {last} -.-> {_id(name)}")
            continue
        arrows.append(f"    {last} --> {_id(name)}")
        last = _id(name)
    return [*arrows, f"    {last} --> answer"]


def _id(name: str) -> str:
    return "p_" + re.sub(r"\W", "_", name)


def _text(text: str) -> str:
    return one_line(text).replace('"', "#quot;")
