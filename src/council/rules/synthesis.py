"""Checks of a synthesis: citations, disagreements and format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from council.rules.citing import FENCED, Sources, find_citations, find_unknown_urls
from council.rules.topics import topic_key
from council.rules.voices import Dispute, Side

__all__ = ["find_citations", "find_problems", "find_unknown_urls", "format_disagreement", "number_disputes"]

MAX_LISTED = 10  # numbers or URLs listed in one problem
POSSIBLE_LEAD = "Experts may disagree: they declared no stance, but their recommendations differ (possible)."

# Keys that identify a member's reply, alone or together.
_REPLY_KEYS = ("memberId", "areasOfUncertainty", "disagreementTopics")
_REPLY_KEY_SETS = (
    *({key} for key in _REPLY_KEYS),
    {"response", "confidence"},
    {"response", "claims"},
    {"topic", "stance"},
)
_REPLY_KEY = re.compile(rf'"(?:{"|".join(_REPLY_KEYS)})"\s*:')
_JSON_START = re.compile(r'\{\s*"[^"\n]{1,100}"\s*:|\[\s*\{\s*"')


def find_problems(
    answer: str,
    summaries: Mapping[str, Sequence[str]],
    sources: Sources,
    persisting: Mapping[str, Dispute],
) -> list[str]:
    """Return the problems a synthesis is sent back for, such as "cites [7], but …".

    `told` maps disagreement names to the sides it reports, `persisting` to the disputes it must report.
    """
    if not answer.strip():
        return ["is empty: write the answer"]
    whole = "\n\n".join((answer, *(side for sides in summaries.values() for side in sides)))
    return [*_check_shape(answer), *_check_citations(whole, sources), *_check_disagreements(summaries, persisting)]


def number_disputes(disputes: Sequence[Dispute]) -> dict[str, Dispute]:
    """Name the disputes D1, D2 and so on, for the second round and the synthesis; skip possible ones."""
    return {f"D{n}": one for n, one in enumerate((one for one in disputes if not one.is_possible), 1)}


def _check_shape(answer: str) -> Iterator[str]:
    blocks = [block.group() for block in FENCED.finditer(answer)]
    whole = answer.strip()
    if _is_json(_strip_fence(whole) if [block.strip() for block in blocks] == [whole] else whole):
        yield "is raw JSON: write Markdown prose"
    elif _REPLY_KEY.search(answer) or any(_is_reply(_parse_json(_strip_fence(block))) for block in blocks):
        yield "repeats a member's reply as raw JSON: rewrite it as prose"


def _check_citations(text: str, sources: Sources) -> Iterator[str]:
    wrong = [f"[{number}]" for number in find_citations(text, sources) if number not in sources]
    if wrong:
        yield f"cites {', '.join(wrong[:MAX_LISTED])}, but {_describe_range(sources)}"
    for url in find_unknown_urls(text, [source.get("url", "") for source in sources.values()])[:MAX_LISTED]:
        yield f'gives the address "{url}", which is not in the context: leave it out'


def _describe_range(sources: Sources) -> str:
    numbers = sorted(sources)
    if not numbers:
        return "there is no research context: cite nothing"
    if numbers == list(range(1, len(numbers) + 1)):
        return f"the context has 1 to {len(numbers)}" if len(numbers) > 1 else "the context has only 1"
    return f"the context has {', '.join(map(str, numbers))}"


def _check_disagreements(summaries: Mapping[str, Sequence[str]], persisting: Mapping[str, Dispute]) -> Iterator[str]:
    by_name = {name.strip().upper(): sides for name, sides in summaries.items()}
    for name, dispute in persisting.items():
        sides = by_name.get(name, ())
        if not _has_two_sides(sides):
            problem = "gives only one side of" if any(side.strip() for side in sides) else "says nothing about"
            yield f'{problem} the disagreement {name} on "{_one_line(dispute.topic)}": give both sides'


def _has_two_sides(sides: Sequence[str]) -> bool:
    return len({topic_key(side) for side in sides if side.strip()}) > 1


def format_disagreement(dispute: Dispute, because: str, sides: Sequence[tuple[str, str]]) -> str:
    """Format a disagreement in Markdown, with the chair's sides if there are two, else with the seats' positions."""
    why = re.sub(r"\Abecause\b\s*", "", _one_line(because), flags=re.IGNORECASE).rstrip(".")
    lead = f"Experts disagree on {_one_line(dispute.topic).rstrip(' .:;')}{f' because {why}' if why else ''}."
    lead = POSSIBLE_LEAD if dispute.is_possible else lead
    if _has_two_sides([f"{position} {case}" for position, case in sides]):
        bullets = [_format_chair_side(position, case) for position, case in sides if position.strip() or case.strip()]
    else:
        bullets = [_format_seat_side(side) for side in dispute.positions]
    return "\n".join((lead, "", *(f"- {bullet}" for bullet in bullets)))


def _format_chair_side(position: str, case: str) -> str:
    name, why = _one_line(position).strip("*_ :"), _one_line(case)
    return f"**{name}**: {why}" if name and why else name or why


def _format_seat_side(side: Side) -> str:
    stance = f" ({side.stance})" if side.stance else ""
    evidence = "".join(f" [{number}]" for number in side.evidence)
    return _one_line(f"{side.seat.replace('_', ' ').capitalize()}{stance}: {side.claim}{evidence}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


# JSON


def _is_json(text: str) -> bool:
    """Return whether the text is a JSON object or list, even truncated; a list of numbers, as in [1], is a citation."""
    value = _parse_json(text)
    if value is None:
        return bool(_JSON_START.match(text.strip()))
    return isinstance(value, dict) or (isinstance(value, list) and any(not isinstance(one, int) for one in value))


def _is_reply(value: Any) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) and any(keys <= row.keys() for keys in _REPLY_KEY_SETS) for row in rows)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strip_fence(block: str) -> str:
    """Return the text between the opening and the closing fence."""
    return block.strip().partition("\n")[2].rstrip().rstrip("`~")
