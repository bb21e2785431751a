"""Recordings and calls of the vendors' SDKs.

The SDKs take seconds to import, so only tests that use them import them.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
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

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", _one_certificate())
        return await SDKS[wire](provider, ask, form)


@cache
def _one_certificate() -> str:
    """Return a file with one certificate: loading all of them takes longer than the call, which uses none."""
    import certifi

    bundle = Path(certifi.where()).read_text(encoding="utf-8")
    end = "-----END CERTIFICATE-----\n"
    with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False, encoding="utf-8") as file:
        file.write(bundle[: bundle.index(end) + len(end)])
    return file.name
