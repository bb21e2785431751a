"""Hits: the findings of a review that point to a line which a later fix changed, and the hits expected by chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from council.engine.records import FindingRow
from council.evals.history.cases import Fix, FixedLine
from council.evals.review_measures import NEAR_LINES

LINE_RANGE = re.compile(r":L?(\d{1,7})\s*[-\u2013]\s*L?(\d{1,7})")
MAX_QUOTED_LINES = 20


@dataclass(frozen=True, slots=True)
class Span:
    """The lines that a finding is about. `quote` has the lines that it quotes, without whitespace."""

    path: str
    first: int  # 0: it names no line
    last: int
    quote: tuple[str, ...] = ()


def read_span(finding: FindingRow) -> Span:
    """Return the place of a finding. A quote counts only if the file contains it."""
    first = finding.get("line") or 0
    found = LINE_RANGE.search(finding["location"])
    is_range = found is not None and int(found[1]) <= first <= int(found[2])
    last = int(found[2]) if found and is_range else first
    quoted = finding.get("quote", "").splitlines()[:MAX_QUOTED_LINES] if finding["verified"] else []
    squeezed = tuple(text for line in quoted if (text := _squeeze(line)))
    return Span(finding.get("path") or "", int(found[1]) if found and is_range else first, last, squeezed)


def is_hit(span: Span, line: FixedLine) -> bool:
    """Return whether a finding encloses a fixed line, or quotes it near its place."""
    if span.path != line.path or not span.first:
        return False
    if span.first - NEAR_LINES <= line.line <= span.last + NEAR_LINES:
        return True
    is_near = span.first - len(span.quote) <= line.line <= span.last + len(span.quote)
    return is_near and _squeeze(line.text) in span.quote


def _squeeze(text: str) -> str:
    return "".join(text.split())


def find_hits(finding: FindingRow, fixes: Sequence[Fix]) -> list[str]:
    """Return the fixes of which a finding points to a line, by their commits."""
    span = read_span(finding)
    return [fix.commit for fix in fixes if any(is_hit(span, line) for line in fix.lines)]


def chance_of_hit(span: Span, changed: Sequence[int], fixes: Sequence[Fix]) -> float:
    """Return how likely a finding hits if it covers as many of the lines that the commit changed in its file, from a
    random one on. After the last line follows the first one, so that a finding that covers all of them always hits.

    `changed` has these lines. A finding in another file stays where it is and hits nothing.
    """
    fixed = {line.line for fix in fixes for line in fix.lines if line.path == span.path}
    if not changed or not fixed or not span.first:
        return 0.0
    last = max(span.last, span.first + len(span.quote) - 1)
    covered = max(1, sum(span.first <= line <= last for line in changed))
    is_near = [any(abs(line - other) <= NEAR_LINES for other in fixed) for line in changed]
    around = is_near * 2
    return sum(any(around[at : at + covered]) for at in range(len(changed))) / len(changed)


def chance_of_any(spans: Sequence[Span], changed: Mapping[str, Sequence[int]], fixes: Sequence[Fix]) -> float:
    """Return how likely at least one of several findings hits, if each is at a random changed line of its file."""
    missed = 1.0
    for span in spans:
        missed *= 1.0 - chance_of_hit(span, changed.get(span.path, ()), fixes)
    return 1.0 - missed
