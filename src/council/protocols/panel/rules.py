"""Rules of the panel protocol: what the conclusions and confidences mean for trust, and the digest of all answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from council.engine.agreement import join_sides
from council.engine.layout import close_code_fence, format_label
from council.engine.records import Disagreement, SeatPosition
from council.final_answers.comparison import compare_all
from council.protocols.common.points import MAX_DISPUTED, ComparedAnswers
from council.protocols.common.sections import Section
from council.protocols.panel.closings import Closing
from council.text_cleanup import next_fence
from council.types import Difference, TrustFact
from council.wording import Wording

MAX_HEADING_LEVEL = 6
_HEADING = re.compile(r"^(#{1,6})(?=\s)")


# Trust


def list_confidence_facts(closings: Mapping[str, Closing]) -> list[TrustFact]:
    """Return the fact that seats give their own answers low confidence, or that no confidence could be read."""
    if closings and not any(closing["confidence"] for closing in closings.values()):
        return [TrustFact("no_confidence")]
    unsure = tuple(name for name, closing in closings.items() if closing["confidence"] == "LOW")
    return [TrustFact("unsure", seats=unsure, count=len(unsure), total=len(closings))] if unsure else []


def add_different_conclusions(
    points: ComparedAnswers, closings: Mapping[str, Closing], question: str, title: str
) -> ComparedAnswers:
    """Return the clerk's points with the conclusions as a dispute where code finds that they differ.

    A clerk that calls different conclusions the same is wrong about them: then only those that code calls the same are
    shared. `title` names the dispute.
    """
    stated = {name: conclusion for name, closing in closings.items() if (conclusion := closing["conclusion"])}
    if points.state != "answered" or compare_all(list(stated.values()), question) != "different":
        return points
    compared = {pair: compare_all([stated[name] for name in pair], question) for pair in combinations(stated, 2)}
    different = [pair for pair, comparison in compared.items() if comparison == "different"]
    same = [pair for pair, comparison in compared.items() if comparison == "same"]
    confused = [pair for pair in different if set(pair) <= set(points.shared_by or ())]
    unnamed = [pair for pair in different if not any(_are_opposed(pair, one) for one in points.disputed)]
    involved = {name for pair in (*confused, *unnamed) for name in pair}
    if not involved:
        return points
    sides = join_sides((name, text, "") for name, text in stated.items() if name in involved)
    return replace(
        points,
        disputed=(Difference(title, sides), *points.disputed)[:MAX_DISPUTED],
        shared_by=_find_largest_group(points.shared_by or (), same) if confused else points.shared_by,
    )


def _are_opposed(pair: tuple[str, str], dispute: Difference) -> bool:
    """Return whether two seats hold different sides of a disputed point."""
    return len([side for side in dispute.sides if not set(pair).isdisjoint(side.seats)]) > 1


def _find_largest_group(seats: Sequence[str], same: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the largest group of seats of which all pairs are the same; empty if no two are."""
    for size in range(len(seats), 1, -1):
        for group in combinations(seats, size):
            if all(pair in same for pair in combinations(group, 2)):
                return group
    return ()


def describe_points(differences: Iterable[Difference]) -> Iterator[Disagreement]:
    """Yield the disputed points as rows of `disagreements`."""
    for one in differences:
        positions: list[SeatPosition] = [
            {"seat": seat, "position": side.position, "assumes": side.assumes}
            for side in one.sides
            for seat in side.seats
        ]
        yield {"issue": one.point, "positions": positions}


# Digest


def build_sections(points: ComparedAnswers, answers: Mapping[str, str], wording: Wording) -> list[Section]:
    """Return what the answers agree on, where they differ and what only one says, then every whole answer."""
    whole = "\n\n".join(f"## {format_label(name)}\n\n{nest_headings(text, 2)}" for name, text in answers.items())
    told = Section("answers", wording.heading("statements"), whole)
    if points.state != "answered":
        return [told]
    return [Section("decision", wording.heading("positions"), format_points(points, len(answers), wording)), told]


def format_points(points: ComparedAnswers, total: int, wording: Wording) -> str:
    """Return the clerk's points as Markdown."""
    none = wording.heading("none_sentence")
    agreed = []
    for point in points.agreed:
        seats = wording.join([format_label(name) for name in point.seats])
        agreed.append(f"- {point.point}{wording.enclose(seats) if len(point.seats) < total else ''}")
    disputed = [line for one in points.disputed for line in _format_dispute(one, wording)]
    unique = [f"- {format_label(one.seat)}{wording.colon}{one.point}" for one in points.unique]
    sections = [
        ("where_they_agree", agreed or [none]),
        ("where_they_differ", disputed or [none]),
        *([("what_only_one_saw", unique)] if unique else []),
    ]
    return "\n\n".join(f"## {wording.heading(title)}\n\n" + "\n".join(lines) for title, lines in sections)


def _format_dispute(difference: Difference, wording: Wording) -> Iterator[str]:
    yield f"- {difference.point}"
    for side in difference.sides:
        who = wording.join([format_label(name) for name in side.seats])
        assumes = f"{wording.heading('assumes')}{wording.colon}{side.assumes}"
        yield f"  - {who}{wording.colon}{side.position}{wording.enclose(assumes) if side.assumes else ''}"


def nest_headings(text: str, level: int) -> str:
    """Return Markdown whose headings are below a level, with its last code block closed. Code stays as it is."""
    lines = close_code_fence(text.strip()).split("\n")
    levels, fence = [], ""  # 0: no heading
    for line in lines:
        fence = next_fence(line, fence)
        found = None if fence else _HEADING.match(line)
        levels.append(len(found[1]) if found else 0)
    deeper = max(0, level + 1 - min(filter(None, levels), default=MAX_HEADING_LEVEL))
    for n, own in enumerate(levels):
        if own:
            lines[n] = "#" * min(MAX_HEADING_LEVEL, own + deeper) + lines[n][own:]
    return "\n".join(lines)
