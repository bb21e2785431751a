"""Checks of a synthesis: citations, disagreements and format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from council.rules.citing import FENCED, Sources, cited, strange_addresses
from council.rules.topics import topic_key
from council.rules.voices import Dispute, Side

__all__ = ["cited", "disagreement_text", "problems_of", "put_to_them", "strange_addresses"]

SHOWN = 10  # numbers or URLs listed in one problem
POSSIBLY = "Experts may disagree: they declared no stance, but their recommendations differ (possible)."

# Keys that identify a member's reply, alone or together.
_OWN_KEYS = ("memberId", "areasOfUncertainty", "disagreementTopics")
_REPLIES = (*({key} for key in _OWN_KEYS), {"response", "confidence"}, {"response", "claims"}, {"topic", "stance"})
_OWN_KEY = re.compile(rf'"(?:{"|".join(_OWN_KEYS)})"\s*:')
_BEGINS_AS_JSON = re.compile(r'\{\s*"[^"\n]{1,100}"\s*:|\[\s*\{\s*"')


def problems_of(
    answer: str,
    told: Mapping[str, Sequence[str]],
    sources: Sources,
    persisting: Mapping[str, Dispute],
) -> list[str]:
    """Return the problems a synthesis is sent back for, such as "cites [7], but …".

    `told` maps disagreement names to the sides it reports, `persisting` to the disputes it must report.
    """
    if not answer.strip():
        return ["is empty: write the answer"]
    whole = "\n\n".join((answer, *(side for sides in told.values() for side in sides)))
    return [*_shape(answer), *_citations(whole, sources), *_untold(told, persisting)]


def put_to_them(disputes: Sequence[Dispute]) -> dict[str, Dispute]:
    """Name the disputes D1, D2 and so on, for the second round and the synthesis; skip possible ones."""
    return {f"D{n}": one for n, one in enumerate((one for one in disputes if not one.possible), 1)}


def _shape(answer: str) -> Iterator[str]:
    blocks = [block.group() for block in FENCED.finditer(answer)]
    whole = answer.strip()
    if _is_json(_unfenced(whole) if [block.strip() for block in blocks] == [whole] else whole):
        yield "is raw JSON: write Markdown prose"
    elif _OWN_KEY.search(answer) or any(_is_reply(_parsed(_unfenced(block))) for block in blocks):
        yield "repeats a member's reply as raw JSON: rewrite it as prose"


def _citations(text: str, sources: Sources) -> Iterator[str]:
    wrong = [f"[{number}]" for number in cited(text, sources) if number not in sources]
    if wrong:
        yield f"cites {', '.join(wrong[:SHOWN])}, but {_range(sources)}"
    for url in strange_addresses(text, [source.get("url", "") for source in sources.values()])[:SHOWN]:
        yield f'gives the address "{url}", which is not in the context: leave it out'


def _range(sources: Sources) -> str:
    numbers = sorted(sources)
    if not numbers:
        return "there is no research context: cite nothing"
    if numbers == list(range(1, len(numbers) + 1)):
        return f"the context has 1 to {len(numbers)}" if len(numbers) > 1 else "the context has only 1"
    return f"the context has {', '.join(map(str, numbers))}"


def _untold(told: Mapping[str, Sequence[str]], persisting: Mapping[str, Dispute]) -> Iterator[str]:
    by_name = {name.strip().upper(): sides for name, sides in told.items()}
    for name, dispute in persisting.items():
        sides = by_name.get(name, ())
        if not _both(sides):
            problem = "gives only one side of" if any(side.strip() for side in sides) else "says nothing about"
            yield f'{problem} the disagreement {name} on "{_line(dispute.topic)}": give both sides'


def _both(sides: Sequence[str]) -> bool:
    return len({topic_key(side) for side in sides if side.strip()}) > 1


def disagreement_text(dispute: Dispute, because: str, sides: Sequence[tuple[str, str]]) -> str:
    """Format a disagreement in Markdown, with the chair's sides if there are two, else with the seats' positions."""
    why = re.sub(r"\Abecause\b\s*", "", _line(because), flags=re.IGNORECASE).rstrip(".")
    lead = f"Experts disagree on {_line(dispute.topic).rstrip(' .:;')}{f' because {why}' if why else ''}."
    lead = POSSIBLY if dispute.possible else lead
    if _both([f"{position} {case}" for position, case in sides]):
        bullets = [_chairs(position, case) for position, case in sides if position.strip() or case.strip()]
    else:
        bullets = [_seats(side) for side in dispute.positions]
    return "\n".join((lead, "", *(f"- {bullet}" for bullet in bullets)))


def _chairs(position: str, case: str) -> str:
    name, why = _line(position).strip("*_ :"), _line(case)
    return f"**{name}**: {why}" if name and why else name or why


def _seats(side: Side) -> str:
    stance = f" ({side.stance})" if side.stance else ""
    evidence = "".join(f" [{number}]" for number in side.evidence)
    return _line(f"{side.seat.replace('_', ' ').capitalize()}{stance}: {side.claim}{evidence}")


def _line(text: str) -> str:
    return " ".join(text.split())


# JSON


def _is_json(text: str) -> bool:
    """Return whether the text is a JSON object or list, even truncated; a list of numbers, as in [1], is a citation."""
    value = _parsed(text)
    if value is None:
        return bool(_BEGINS_AS_JSON.match(text.strip()))
    return isinstance(value, dict) or (isinstance(value, list) and any(not isinstance(one, int) for one in value))


def _is_reply(value: Any) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) and any(keys <= row.keys() for keys in _REPLIES) for row in rows)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unfenced(block: str) -> str:
    """Return the text between the opening and the closing fence."""
    return block.strip().partition("\n")[2].rstrip().rstrip("`~")
