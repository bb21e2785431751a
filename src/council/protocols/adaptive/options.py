"""Options of the adaptive protocol."""

from __future__ import annotations

from pydantic import Field

from council.protocols.options import Options


class AdaptiveOptions(Options):
    cheap_first: bool = Field(default=False, description="Ask the cheapest members of different vendors first.")
    # Cost of equal work by member, so that a resumed run has the same order.
    prices: dict[str, float] = Field(
        default={}, repr=False, json_schema_extra={"internal": True, "filled_with": "prices"}
    )
