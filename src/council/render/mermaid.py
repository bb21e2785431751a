"""A run as a Mermaid flow chart: its phases in order, with the seats asked in each."""

from __future__ import annotations

import re

from council.engine.minutes import Minutes, PhaseMinutes
from council.text_cleanup import single_line

CLASS_STYLES = ("classDef absent stroke-dasharray: 4 3,opacity: 0.6", "classDef chair stroke-width: 3px")


def render_mermaid(minutes: Minutes) -> str:
    """Render question, phases and answer from left to right; a planned phase that was not held is dashed."""
    names = _list_phases(minutes)
    lines = ["flowchart LR", '    question(["question"])']
    for name in names:
        lines += _format_phase(minutes, name)
    lines.append('    answer(["answer"])')
    lines += _format_arrows(minutes, names)
    return "\n".join([*lines, *(f"    {style}" for style in CLASS_STYLES)]) + "\n"


def _list_phases(minutes: Minutes) -> list[str]:
    """Return the planned phases in order, with others after the one held before them, without private ones."""
    names = [phase["name"] for phase in minutes.plan.get("phases", [])]
    place = 0
    for name in minutes.phases:
        if name not in names:
            names.insert(place, name)
        place = names.index(name) + 1
    return [name for name in names if not minutes.is_private_phase(name)]


def _format_phase(minutes: Minutes, name: str) -> list[str]:
    phase = minutes.phases.get(name)
    title = name if phase else f"{name}, not held{_format_skip_reason(minutes, name)}"
    if phase:
        seats = [f"{_node_id(f'{name} {seat}')}{_format_seat(minutes, phase, seat)}" for seat in phase.asked]
    else:
        seats = [f'{_node_id(name)}_none["no seat asked"]:::absent']
    return [
        f'    subgraph {_node_id(name)}["{_escape_text(title)}"]',
        *(f"        {seat}" for seat in seats),
        "    end",
    ]


def _format_skip_reason(minutes: Minutes, phase: str) -> str:
    reasons = [note.why for note in minutes.notes if phase in note.skipped]
    return f": {reasons[0]}" if reasons else ""


def _format_seat(minutes: Minutes, phase: PhaseMinutes, seat: str) -> str:
    role = minutes.seat(seat).role
    label = f"{seat}<br/>{role}" if role else seat
    if seat in phase.absent:
        return f'["{_escape_text(label)}<br/>{_escape_text(phase.absent[seat].state)}"]:::absent'
    return f'["{_escape_text(label)}"]' + (":::chair" if minutes.chair and seat == minutes.chair.name else "")


def _format_arrows(minutes: Minutes, names: list[str]) -> list[str]:
    """Connect the phases in order; a phase that was not held gets a dotted line."""
    arrows, last = [], "question"
    for name in names:
        was_held = name in minutes.phases
        arrows.append(f"    {last} {'-->' if was_held else '-.->'} {_node_id(name)}")
        last = _node_id(name) if was_held else last
    return [*arrows, f"    {last} --> answer"]


def _node_id(name: str) -> str:
    return "p_" + re.sub(r"\W", "_", name)


def _escape_text(text: str) -> str:
    return single_line(text).replace('"', "#quot;")
