"""What is kept of an attempt, where, and what a later process makes of it."""

from __future__ import annotations

from typing import Protocol

from council import events as ev
from council.errors import Fault
from council.record import Attempt
from council.types import Answer, Json, Usage


class Journal(Protocol):
    """What the loop needs of the ledger."""

    calls: dict[str, int]

    def attempts(self, key: str) -> list[Attempt]: ...
    async def intend(self, key: str, seat: str, member: str, body: bytes, why: str, most: float | None) -> Attempt: ...
    def settle(self, key: str, attempt: Attempt, result: Json, bill: ev.Billed | None) -> None: ...
    def charge(self, bill: ev.Billed | None) -> None: ...
    def murmur(self, key: str, seat: str, piece: str) -> None: ...
    def hush(self, key: str) -> None: ...
    def tell(self, event: ev.Event) -> None: ...


def as_result(answer: Answer | Fault, *, given_up: bool, passed_on: bool) -> Json:
    """`given_up` ends the series; `passed_on` ends one member's part of it, which the clock may have decided."""
    if isinstance(answer, Fault):
        known: Json = {
            "fault": answer.kind,
            "detail": answer.detail,
            "said": answer.said,
            "retry_after": answer.retry_after,
        }
    else:
        known = {"text": answer.text, "finish": answer.finish, "usage": answer.usage.as_json(), "model": answer.model}
        known |= {"id": answer.id} if answer.id else {}
    return known | ({"given_up": True} if given_up else {}) | ({"passed_on": True} if passed_on else {})


def from_result(result: Json) -> Answer | Fault:
    if "fault" in result:
        return Fault(result["fault"], result["detail"], said=result["said"], retry_after=result["retry_after"])
    usage = Usage.from_json(result["usage"])
    return Answer(result["text"], result["finish"], usage, result["model"], result.get("id", ""))


def unfinished(attempts: list[Attempt]) -> list[Attempt]:
    """The attempts of a series that was broken off; one that was given up is asked anew from its beginning."""
    ends = [n for n, attempt in enumerate(attempts, 1) if attempt.result and attempt.result.get("given_up")]
    series = attempts[ends[-1] if ends else 0 :]
    # A resent request stands behind the one in doubt it repeats: only the last word on each counts.
    return [attempt for n, attempt in enumerate(series, 1) if attempt.result is not None or n == len(series)]
