"""Types of the verbs, checked by mypy: the reply type decides the type of the statement and of the round."""

from __future__ import annotations

from typing import assert_type

from council.engine.council import Council
from council.protocols.adversarial.replies import Triage as Pick
from council.types import Round, Seat, Statement


async def ask(council: Council, seat: Seat, wanted: type[Pick] | None) -> None:
    assert_type(await council.ask(seat, "t/say"), Statement[None])
    assert_type(await council.ask(seat, "t/say", reply=Pick, leader="alpha"), Statement[Pick])
    assert_type(await council.ask(seat, "t/say", reply=wanted), Statement[Pick | None])


async def poll(council: Council, seats: tuple[Seat, ...], wanted: type[Pick] | None) -> None:
    assert_type(await council.poll(seats, "t/say"), Round[None])
    assert_type(await council.poll(seats, "t/say", reply=Pick, quorum=2), Round[Pick])
    assert_type(await council.relay(seats, "t/say"), Round[None])
    assert_type(await council.relay(seats, "t/say", reply=wanted), Round[Pick | None])


async def gather(council: Council, seats: tuple[Seat, ...]) -> None:
    async def act(apart: Council, seat: Seat) -> Statement[Pick]:
        return await apart.ask(seat, "t/say", reply=Pick)

    assert_type(await council.gather(seats, act), Round[Pick])
