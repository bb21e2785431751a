"""Request changes for the next attempt, as the fault table prescribes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from council.calling.table import TABLE
from council.errors import Fault
from council.members.base import UNCAPPED, Member
from council.types import Ask, Json, Step

WARM, WARMER = 0.7, 1.0
HALF = 0.5
MARGIN = 0.8  # of the limit a vendor reports, because its tokenizer differs from our estimate
NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.])|(?<![\w.-])\d{4,}(?!\w)")


@dataclass(frozen=True, slots=True)
class Failed:
    """Failed attempt: the request, the member and the fault."""

    step: Step
    member: Member
    ask: Ask
    fault: Fault
    written: int = 0  # output tokens received before the failure


@dataclass(frozen=True, slots=True)
class Next:
    """Next attempt: the request, the reason, and the parts cut or dropped from it."""

    ask: Ask
    why: str
    cut: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def following(failed: Failed) -> Next | None:
    """Return the next attempt after a fault, or None if the required change is impossible."""
    change = TABLE[failed.fault.kind].change
    return CHANGES[change](failed) if change else Next(failed.ask, f"retry: {failed.fault.kind}")


def _warmer(failed: Failed) -> Next:
    warm = WARMER if (failed.ask.temperature or 0.0) >= WARM else WARM
    return Next(replace(failed.ask, temperature=warm), f"retry: {failed.fault.detail}")


def _doubled(failed: Failed) -> Next:
    most = failed.ask.max_tokens or max(UNCAPPED, failed.written)
    return Next(replace(failed.ask, max_tokens=2 * most), "retry: the answer was cut at its length limit")


def _repaired(failed: Failed) -> Next:
    """Append a repair turn to the last request, which may already be truncated or without parameters."""
    step, ask = failed.step, failed.ask
    turn = step.mend(failed.fault.said, failed.fault.detail).messages[len(step.ask.messages) :]
    return Next(replace(ask, messages=(*ask.messages, *turn)), "repair: the reply did not match its schema")


def _shrunk(failed: Failed) -> Next | None:
    share = share_in(failed.fault.detail)
    found = failed.step.shrink(failed.ask, share)
    if found is None:
        return None
    smaller, cut = found
    return Next(smaller, f"retry: truncated to {share:.0%} to fit: {', '.join(cut)}", cut)


def _bare(failed: Failed) -> Next:
    bare = replace(failed.ask, temperature=None, max_tokens=None, effort=None, bare=True)
    dropped = tuple(missing(failed.member.prepare(failed.ask), failed.member.prepare(bare)))
    named = f" ({', '.join(dropped)})" if dropped else ""
    return Next(bare, f"retry: without optional parameters{named}", dropped=dropped)


CHANGES: dict[str, Callable[[Failed], Next | None]] = {
    "warmer": _warmer, "doubled": _doubled, "repaired": _repaired, "shrunk": _shrunk, "bare": _bare,
}  # fmt: skip


def share_in(words: str) -> float:
    """Return the share of a request to keep: half, or less if the vendor's message states the limit and the size."""
    numbers = sorted({int(number.replace(",", "")) for number in NUMBER.findall(words)})
    if len(numbers) < 2:
        return HALF
    limit, size = numbers[-2:]
    return round(min(HALF, MARGIN * limit / size), 2)


def missing(before: bytes, after: bytes) -> Iterator[str]:
    """Yield the dotted names of parameters in `before` that are not in `after`."""
    try:
        yield from _missing(json.loads(before), json.loads(after), "")
    except (ValueError, AttributeError):
        return


def _missing(before: Json, after: Json, under: str) -> Iterator[str]:
    for name, value in before.items():
        if name not in after:
            yield under + name
        elif isinstance(value, dict) and isinstance(after[name], dict):
            yield from _missing(value, after[name], f"{under}{name}.")
