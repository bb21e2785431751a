"""Calls of a member's code. Whatever it raises is a fault of this member: its seat is absent, and the run goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from council.errors import CouncilError, Fault, describe_error, is_interrupt, running_task
from council.members.base import Member, OnDelta, Progress
from council.types import Answer, Ask, Usage

READ_WITH_THE_PLAN = ("name", "vendor", "small", "free", "backoff")
METADATA = {"finish": "stop", "model": "", "id": ""}  # text fields of an Answer, with their defaults
READ_IF_PRESENT = ("price", "accepts", "cache_rules", "api_key_env")
logger = logging.getLogger("council.members")
T = TypeVar("T")


def make_member_fault(error: BaseException) -> Fault:
    """Return the fault of a member whose code raised an exception, with its name."""
    return Fault("member", describe_error(error))


async def _run_apart(code: Callable[[], Awaitable[T]], *passed: type[Exception]) -> T:
    """Run a member's code in a task of its own and return its result; a cancellation ends both tasks.

    An exception becomes the fault of the member, unless it is a Fault, an interrupt or of a class in `passed`. Code may
    cancel the task it runs in, as `asyncio.TaskGroup` does when a task of it fails, and before Python 3.13 the group
    leaves a mark that looks like a cancellation from outside.
    """
    task = asyncio.current_task()
    cancellations = task.cancelling() if task else 0

    async def catch() -> tuple[T, None] | tuple[None, BaseException]:
        try:
            return await code(), None
        except BaseException as error:  # a task that ends with SystemExit would end the event loop
            return None, error

    result, error = await asyncio.create_task(catch())
    if error is None:
        return cast(T, result)
    is_cancellation = isinstance(error, asyncio.CancelledError)
    if task and task.cancelling() > cancellations:
        if is_cancellation:
            raise error
        raise asyncio.CancelledError from error  # the member has made its own exception of the cancellation
    if not is_cancellation and (isinstance(error, (Fault, *passed)) or is_interrupt(error, task)):
        raise error
    raise make_member_fault(error) from error


def check_member(member: Member) -> Member:
    """Return a member whose attributes can be read; else raise what they raise."""
    for name in READ_WITH_THE_PLAN:
        getattr(member, name)
    for name in READ_IF_PRESENT:
        getattr(member, name, None)
    return member


def prepare_request(member: Member, ask: Ask) -> bytes:
    task = running_task()
    try:
        body = member.prepare(ask)
    except BaseException as error:
        if isinstance(error, Fault) or is_interrupt(error, task):
            raise
        raise make_member_fault(error) from error
    _check_type(body, bytes, "prepare returned")
    return body


def _check_type(value: object, kind: type[object], what: str) -> None:
    """Raise a Fault for a value of another type than that of the interface."""
    if not isinstance(value, kind):
        raise make_member_fault(TypeError(f"{what} {type(value).__name__}, not {kind.__name__}"))


async def send_request(member: Member, body: bytes, on_delta: OnDelta) -> Answer:
    """Send a request and return the answer, or raise a Fault, a TimeoutError, or the cancellation of this task."""
    return await _run_apart(partial(_send_and_check, member, body, on_delta), TimeoutError)


async def _send_and_check(member: Member, body: bytes, on_delta: OnDelta) -> Answer:
    answer = await member.send(body, on_delta)
    _check_type(answer, Answer, "send returned")
    _check_type(answer.text, str, "text of the Answer is of type")
    _check_type(answer.usage, Usage, "usage of the Answer is of type")
    # The answer is paid for: metadata of another type, such as a model that the endpoint does not name, is left out.
    odd: dict[str, Any] = {name: text for name, text in METADATA.items() if not isinstance(getattr(answer, name), str)}
    return replace(answer, **odd)


def check_delta(piece: object) -> None:
    """Raise a Fault for a piece of an answer that is no text."""
    _check_type(piece, str, "on_delta got")


async def probe_member(member: Member) -> str:
    return str(await _run_apart(member.probe, CouncilError))


async def make_ready(member: Member, progress: Progress) -> Member:
    """Download or start what a member needs. Return the member, or one that fails if its code does."""
    try:
        await _run_apart(partial(member.ready, progress), CouncilError)
    except Fault as fault:
        return cast(Member, UnavailableMember(member, fault))
    return member


async def close_member(member: Member) -> None:
    """Close a member. A failure is logged: the answers are stored, and the other members have to be closed too."""
    try:
        await _run_apart(member.close)
    except Fault as fault:
        logger.warning("the member %s could not be closed: %s", member.name, fault.detail)


class UnavailableMember:
    """A member that could not be made ready. Each of its requests fails before it is sent."""

    def __init__(self, member: Member, fault: Fault) -> None:
        self._member, self._fault = member, fault

    def prepare(self, ask: Ask) -> bytes:
        raise self._fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._member, name)
