"""Recordings and calls of the vendors' SDKs. The SDKs take seconds to import, so only tests that use them import them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from council.types import Ask
from tests.fake_provider import FakeProvider

if TYPE_CHECKING:
    from tests.members.conformance.sdks import Heard

RECORDINGS = ("plain", "streamed", "structured", "reasoning", "refusal", "filtered", "length", "error", "news")
TYPED = '{"yes": true, "why": "tabs are “wider”"}'


def recorded(wire: str, name: str) -> bytes:
    """Return the stream of a recording. One that ends with an error has no terminator."""
    from tests.members.conformance import recordings

    return recordings.recorded(wire, name)


async def call_sdk(wire: str, provider: FakeProvider, ask: Ask, form: type[BaseModel] | None) -> Heard:
    """Make the same call with the vendor's SDK."""
    from tests.members.conformance.sdks import SDKS

    return await SDKS[wire](provider, ask, form)
