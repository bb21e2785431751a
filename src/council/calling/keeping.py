"""Journal of attempts: the ledger interface, and results to and from JSON."""

from __future__ import annotations

from typing import Protocol

from council import events as ev
from council.errors import Fault
from council.record import Attempt
from council.types import Answer, Json, Usage


class Journal(Protocol):
    """Ledger interface that the retry loop uses."""

    calls: dict[str, int]

    def attempts(self, key: str) -> list[Attempt]: ...
    async def record_attempt(
        self, key: str, seat: str, member: str, body: bytes, why: str, most: float | None
    ) -> Attempt: ...
    def record_result(self, key: str, attempt: Attempt, result: Json, bill: ev.Billed | None) -> None: ...
    def record_charge(self, bill: ev.Billed | None) -> None: ...
    def stream_delta(self, key: str, seat: str, piece: str) -> None: ...
    def discard_stream(self, key: str) -> None: ...
    def emit(self, event: ev.Event) -> None: ...


def result_to_json(answer: Answer | Fault, *, given_up: bool, passed_on: bool) -> Json:
    """Return the stored form of a result. `given_up` ends the step; `passed_on` ends one member's part of it."""
    if isinstance(answer, Fault):
        stored: Json = {
            "fault": answer.kind,
            "detail": answer.detail,
            "said": answer.said,
            "retry_after": answer.retry_after,
        }
    else:
        stored = {"text": answer.text, "finish": answer.finish, "usage": answer.usage.as_json(), "model": answer.model}
        stored |= {"id": answer.id} if answer.id else {}
    return stored | ({"given_up": True} if given_up else {}) | ({"passed_on": True} if passed_on else {})


def result_from_json(result: Json) -> Answer | Fault:
    if "fault" in result:
        return Fault(result["fault"], result["detail"], said=result["said"], retry_after=result["retry_after"])
    usage = Usage.from_json(result["usage"])
    return Answer(result["text"], result["finish"], usage, result["model"], result.get("id", ""))


def select_unfinished(attempts: list[Attempt]) -> list[Attempt]:
    """Return the attempts of an interrupted step. A step that was given up starts again."""
    ends = [n for n, attempt in enumerate(attempts, 1) if attempt.result and attempt.result.get("given_up")]
    series = attempts[ends[-1] if ends else 0 :]
    # A resent request follows the one in doubt that it repeats, so skip the earlier one.
    return [attempt for n, attempt in enumerate(series, 1) if attempt.result is not None or n == len(series)]
