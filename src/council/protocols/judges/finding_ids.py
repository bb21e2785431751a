"""Ids of findings in the words of a judge: `judge-2.F1`, `attacker.F1`, `Red F1`, `F1`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from council.text_cleanup import squash
from council.types import Seat

MAX_ID_WORDS = 6  # a longer text is a sentence that mentions an id
MAX_NAME_WORDS = 4
_NUMBER = re.compile(r"(?<![A-Za-z0-9])F(?:inding)?[ #-]{0,2}(?P<number>\d{1,4})\b", re.IGNORECASE)
_AFTER = re.compile(r"\W{0,3}(?:(?:of|by|from)\s+)?(?P<name>[\w-]+(?: [\w-]+){0,2})")
_SEPARATOR = re.compile(r"\s*(?:[,;]|\band\b|&)\s*")
_NO_NAME = frozenset(
    ("finding", "findings", "id", "ids", "the", "my", "own", "mine", "see", "also", "as", "in", "with")
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An id as a judge wrote it, after its names were looked up.

    `id` is empty if it names no finding, or more than one. `is_bare`: it names no judge.
    """

    id: str = ""
    is_bare: bool = False


def list_judge_names(seats: Iterable[Seat]) -> dict[str, tuple[str, ...]]:
    """Return the seats by every name that a judge may use for them: seat, perspective and role."""
    names: dict[str, tuple[str, ...]] = {}
    for seat in seats:
        short = seat.name.partition("judge-")[2]
        for name in dict.fromkeys(squash(one) for one in (seat.name, short, seat.perspective, seat.role)):
            if name and not name.isdigit():
                names[name] = (*names.get(name, ()), seat.name)
    return names


def split_ids(text: str) -> list[str]:
    """Return the ids of a text that lists several: "judge-1.F1, judge-2.F2"."""
    parts = [part for part in _SEPARATOR.split(text.strip()) if part]
    return parts if len(parts) > 1 and all(_NUMBER.search(part) for part in parts) else [text]


def resolve_reference(
    text: str, known: Collection[str], names: Mapping[str, tuple[str, ...]], not_by: str = "", *, is_prose: bool = False
) -> Reference:
    """Look up the finding that a text names. `not_by` is a judge that is not meant if several have the name.

    Words beside the number are an unknown judge, unless the text is prose that mentions an id.
    """
    plain = text.strip().strip("[]()`\"'*. ")
    by_id = {one.lower(): one for one in known}
    if plain.lower() in by_id:
        return Reference(by_id[plain.lower()])
    found = _NUMBER.search(plain)
    if not found:
        return Reference()
    is_id = not is_prose and len(plain.split()) <= MAX_ID_WORDS
    named = _find_judges(plain[: found.start()], plain[found.end() :], names, is_id=is_id)
    if named is None:
        return Reference()
    if not named:
        return Reference(f"F{int(found['number'])}", is_bare=True)
    ids = [by_id.get(f"{seat}.F{int(found['number'])}".lower(), "") for seat in named]
    ids = [one for one, seat in zip(ids, named, strict=True) if len(named) == 1 or seat != not_by]
    return Reference(ids[0] if len(ids) == 1 else "")


def _find_judges(
    before: str, after: str, names: Mapping[str, tuple[str, ...]], *, is_id: bool
) -> tuple[str, ...] | None:
    """Return the judges that stand beside the number of a finding; empty if none is named, None if it is unknown."""
    words = re.sub(r"['’]s\b", "", before).split()
    for count in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        if seats := names.get(squash(" ".join(words[-count:]))):
            return seats
    later = _AFTER.match(after)
    following = later["name"].split() if later else []
    for count in range(len(following), 0, -1):
        if seats := names.get(squash(" ".join(following[:count]))):
            return seats
    is_attached = bool(before) and not before[-1].isspace() and before[-1] not in "([\"'`"
    rest = [word for word in words if squash(word) not in _NO_NAME]
    return None if rest and (is_attached or is_id) else ()
