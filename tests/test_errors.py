"""Errors name an option in the words of the interface that shows them; exceptions of a member's code are its faults."""

from __future__ import annotations

import asyncio

import pytest

from council.errors import CouncilError, Fault, Language, UsageError, message_for, option, wording
from council.members.base import OnDelta
from council.members.guard import prepare_request, send_request
from council.members.scripted import Scripted
from council.types import Answer, Ask

UNPRICED = UsageError(f"set a price or pass {option('allow_unpriced', True)}")
SEATS = UsageError(f"{option('seats')} sets an unknown seat")
FLOW = UsageError(f"{option('flow', 'debate')} needs {option('rounds', 2)}")
RUNS = UsageError(f'no run "{{x}}": see {wording(python="client.runs()", cli="council runs")}')


@pytest.mark.parametrize(
    ("error", "language", "message"),
    [
        (UNPRICED, "python", "set a price or pass allow_unpriced=True"),
        (UNPRICED, "cli", "set a price or pass --allow-unpriced"),
        (UNPRICED, "http", "set a price or pass allow_unpriced"),
        (SEATS, "python", "seats sets an unknown seat"),
        (SEATS, "cli", "--seat sets an unknown seat"),
        (SEATS, "http", "seats sets an unknown seat"),
        (FLOW, "python", 'flow="debate" needs rounds=2'),
        (FLOW, "cli", "--flow debate needs --rounds 2"),
        (FLOW, "http", 'flow "debate" needs rounds 2'),
        (RUNS, "python", 'no run "{x}": see client.runs()'),
        (RUNS, "cli", 'no run "{x}": see council runs'),
        (RUNS, "http", 'no run "{x}": see client.runs()'),
        (UsageError("no {option} here"), "cli", "no {option} here"),
        (CouncilError("plain"), "http", "plain"),
        (UsageError(f"no {option(chr(2) + 'a' + chr(3) + 'b' + chr(31))}: \x02x\x03"), "cli", "no --ab: \x02x\x03"),
    ],
)
def test_an_option_is_named_in_the_language_of_the_interface(
    error: CouncilError, language: Language, message: str
) -> None:
    assert message_for(error, language) == message


def test_a_raised_error_speaks_python() -> None:
    assert str(UNPRICED) == "set a price or pass allow_unpriced=True"


class Careless(Scripted):
    """A member whose code raises an exception that looks like the end of the task."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def prepare(self, ask: Ask) -> bytes:
        raise self.error

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        raise self.error


@pytest.mark.anyio
@pytest.mark.behaviour("30-member-raises")
@pytest.mark.parametrize("error", [asyncio.CancelledError("own"), GeneratorExit("own"), SystemExit("own")], ids=repr)
async def test_an_exception_that_would_end_the_task_is_the_fault_of_the_member_that_raises_it(
    error: BaseException,
) -> None:
    with pytest.raises(Fault, match="own"):
        prepare_request(Careless(error), Ask("draft/alpha", ()))
    with pytest.raises(Fault, match="own"):
        await send_request(Careless(error), b"{}", lambda piece: None)
