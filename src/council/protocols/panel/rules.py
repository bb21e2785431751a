"""Rules of the panel protocol: how an answer ends, what that means for trust, and the digest of all answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from council.engine.layout import close_code_fence, format_label
from council.protocols.common.points import ComparedAnswers
from council.protocols.common.replies import ConfidenceField
from council.protocols.common.sections import Section
from council.text_cleanup import single_line
from council.types import Difference, Json, TrustFact
from council.wording import Wording

MAX_CLOSING_LINES = 12  # of an answer, in which its conclusion and its confidence are looked for
MAX_CONCLUSION_CHARS = 600
MAX_HEADING_LEVEL = 6
_CLOSING = re.compile(r"^[\s>*_#-]*(?P<name>conclusion|confidence)[*_\s]*[:：][*_\s]*(?P<text>.*?)[*_\s]*$", re.I)
_HEADING = re.compile(r"^(#{1,6})(?=\s)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_confidence: TypeAdapter[str] = TypeAdapter(ConfidenceField)


@dataclass(frozen=True, slots=True)
class Closing:
    """How an answer ends: its conclusion in a sentence, and its confidence. None if it does not say."""

    conclusion: str | None = None
    confidence: str | None = None  # HIGH | MEDIUM | LOW

    def as_json(self) -> Json:
        return {"conclusion": self.conclusion, "confidence": self.confidence}


def read_closing(text: str) -> Closing:
    """Return the last lines `Conclusion: …` and `Confidence: …` of an answer. What cannot be read is not guessed."""
    lines = [line for line in text.splitlines() if line.strip()][-MAX_CLOSING_LINES:]
    found = {match["name"].lower(): match["text"] for line in lines if (match := _CLOSING.match(line))}
    conclusion = single_line(found.get("conclusion", ""), MAX_CONCLUSION_CHARS)
    return Closing(conclusion or None, _read_confidence(found.get("confidence", "")))


def _read_confidence(text: str) -> str | None:
    try:
        return _confidence.validate_python(text)
    except ValidationError:
        return None


def list_confidence_facts(closings: Mapping[str, Closing]) -> list[TrustFact]:
    """Return the fact that seats give their own answers low confidence."""
    unsure = tuple(name for name, closing in closings.items() if closing.confidence == "LOW")
    return [TrustFact("unsure", seats=unsure, count=len(unsure), total=len(closings))] if unsure else []


def describe_points(differences: Iterable[Difference]) -> Iterator[Json]:
    """Yield the disputed points as rows of `disagreements`."""
    for one in differences:
        positions = [
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


def format_digest(sections: Iterable[Section]) -> str:
    """Return the sections as one text. They have their own headings."""
    return "\n\n".join(section.text for section in sections)


def format_points(points: ComparedAnswers, total: int, wording: Wording) -> str:
    """Return the clerk's points as Markdown."""
    none = wording.heading("none_sentence")
    agreed = [
        f"- {one.point}{_name_seats(one.seats, wording) if len(one.seats) < total else ''}" for one in points.agreed
    ]
    disputed = [line for one in points.disputed for line in _format_dispute(one, wording)]
    unique = [f"- {format_label(one.seat)}{wording.colon}{one.point}" for one in points.unique]
    sections = [
        ("where_they_agree", agreed or [none]),
        ("where_they_differ", disputed or [none]),
        *([("what_only_one_saw", unique)] if unique else []),
    ]
    return "\n\n".join(f"## {wording.heading(title)}\n\n" + "\n".join(lines) for title, lines in sections)


def _name_seats(seats: Iterable[str], wording: Wording) -> str:
    return wording.enclose(wording.join([format_label(name) for name in seats]))


def _format_dispute(difference: Difference, wording: Wording) -> Iterator[str]:
    yield f"- {difference.point}"
    for side in difference.sides:
        who = wording.join([format_label(name) for name in side.seats])
        assumes = f"{wording.heading('assumes')}{wording.colon}{side.assumes}"
        yield f"  - {who}{wording.colon}{side.position}{wording.enclose(assumes) if side.assumes else ''}"


def nest_headings(text: str, level: int) -> str:
    """Return Markdown whose headings are below a level, with its last code block closed. Code stays as it is."""
    lines = close_code_fence(text.strip()).split("\n")
    headings = [found[1] for line in _iter_prose(lines) if (found := _HEADING.match(line))]
    deeper = max(0, level + 1 - min(map(len, headings), default=MAX_HEADING_LEVEL))
    if not deeper:
        return "\n".join(lines)
    shown, fence = [], ""
    for line in lines:
        fence = _follow_fence(line, fence)
        found = None if fence else _HEADING.match(line)
        marks = "#" * min(MAX_HEADING_LEVEL, len(found[1]) + deeper) if found else ""
        shown.append(f"{marks}{line[len(found[1]) :]}" if found else line)
    return "\n".join(shown)


def _iter_prose(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        fence = _follow_fence(line, fence)
        if not fence:
            yield line


def _follow_fence(line: str, fence: str) -> str:
    """Return the mark of the code block that a line is in; empty outside of one."""
    mark = _FENCE.match(line)
    if not mark:
        return fence
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) and not line.strip(" `~") else fence
