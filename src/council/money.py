"""Exact token prices and costs. An unknown price is None, never zero."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Literal, TypedDict

from council.types import Attachment, Usage

# Fault kinds that are never billed; a request with any other fault may be billed.
SERVICE_FAULTS = ("net", "rate", "quota", "overload")
UNBILLED_FAULTS = (*SERVICE_FAULTS, "size", "model", "auth", "endpoint", "parameter", "script", "cli:start")
ZERO = Decimal(0)
MILLION = Decimal(1_000_000)
NANO = Decimal(1_000_000_000)  # the store uses integer billionths of a dollar, so that sums are exact


class RatesObject(TypedDict):
    """Rates as they are stored: each is an exact decimal number as a text."""

    input: str
    cached: str
    write: str
    output: str


class PriceObject(RatesObject):
    """A price as it is stored and shown."""

    tiers: list[tuple[int, RatesObject]]  # start in input tokens, ascending


RateName = Literal["input", "cached", "write", "output"]
RATE_NAMES: tuple[RateName, ...] = ("input", "cached", "write", "output")


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens: input, cache read, cache write, and output including thinking."""

    input: Decimal
    cached: Decimal
    write: Decimal
    output: Decimal

    def divided(self, number: int) -> Rates:
        return Rates(self.input / number, self.cached / number, self.write / number, self.output / number)


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a member. A call with more input tokens than a tier's start is charged at that tier's rates entirely."""

    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = field(default=())  # (start in input tokens, rates), ascending

    def rates_for(self, tokens: int) -> Rates:
        above = [rates for start, rates in self.tiers if tokens > start]
        return above[-1] if above else self.rates

    def divided(self, number: int) -> Price:
        """Return the price of a cheaper way to ask, such as half of it."""
        return Price(self.rates.divided(number), tuple((start, rates.divided(number)) for start, rates in self.tiers))

    def as_json(self) -> PriceObject:
        return {**_rates_to_json(self.rates), "tiers": [(start, _rates_to_json(rates)) for start, rates in self.tiers]}

    @classmethod
    def from_json(cls, value: PriceObject) -> Price:
        tiers = tuple((int(start), _rates_from_json(rates)) for start, rates in value["tiers"])
        return cls(_rates_from_json(value), tiers)


FREE = Price(Rates(ZERO, ZERO, ZERO, ZERO))


def highest_price(first: Price | None, second: Price) -> Price:
    """Return a price that is not below either one, rate by rate; the second one if the first is unknown."""
    if first is None:
        return second
    starts = sorted({start for price in (first, second) for start, _ in price.tiers})
    tiers = tuple((start, _highest_rates(first.rates_for(start + 1), second.rates_for(start + 1))) for start in starts)
    return Price(_highest_rates(first.rates, second.rates), tiers)


def _highest_rates(first: Rates, second: Rates) -> Rates:
    return Rates(**{name: max(getattr(first, name), getattr(second, name)) for name in Rates.__dataclass_fields__})


def exact_cost(usage: Usage, price: Price) -> Decimal:
    """Return the exact cost. `usage.input` includes the cached and written tokens, which have different rates."""
    rates = price.rates_for(usage.input)
    uncached = max(0, usage.input - usage.cached - usage.written)
    sums = (
        uncached * rates.input,
        usage.cached * rates.cached,
        usage.written * rates.write,
        usage.output * rates.output,
    )
    return sum(sums, ZERO) / MILLION


def cache_saving(usage: Usage, price: Price) -> Decimal:
    """Return what the cached and written tokens would have cost as plain input, minus what they cost.

    It is negative if more was paid for writing than reading saved.
    """
    rates = price.rates_for(usage.input)
    return (usage.cached * (rates.input - rates.cached) + usage.written * (rates.input - rates.write)) / MILLION


def cost(usage: Usage, price: Price) -> float:
    """Return the cost in dollars."""
    return float(exact_cost(usage, price))


EQUAL_WORK = Usage(1000, 1000)  # for which the prices of members are compared


def equal_work_cost(price: Price | None) -> float:
    """Return the cost of the same work for every member; 0 if it is free or its price is unknown."""
    return cost(EQUAL_WORK, price) if price else 0.0


def max_cost(tokens: int, output: int, price: Price) -> Decimal:
    """Return the maximum cost of one call: all input at the highest input rate, and the maximum output."""
    rates = price.rates_for(tokens)
    return (tokens * max(rates.input, rates.write, rates.cached) + output * rates.output) / MILLION


# Tokens of attachments: the most that each vendor's rule gives, for any of its models.

ANTHROPIC_PIXELS_PER_TOKEN, ANTHROPIC_MAX_TOKENS = 750, 4784
OPENAI_MAX_PATCHES, OPENAI_FACTOR = 1536, 2.46  # patches of 32 pixels, and the factor of its smallest models
GOOGLE_TILE_TOKENS, GOOGLE_MIN_TOKENS = 258, 1120
PAGE_PIXELS = (1000, 1414)  # as which a page of a PDF is shown
PAGE_TEXT_TOKENS = 3000  # of the text that a vendor extracts from a page


def count_attachment_tokens(attachment: Attachment, vendor: str) -> int:
    """Return an upper bound of the input tokens of an attachment; for an unknown vendor the highest of all rules."""
    if attachment.kind == "image":
        return _count_image_tokens(attachment.width, attachment.height, vendor)
    return attachment.pages * (PAGE_TEXT_TOKENS + _count_image_tokens(*PAGE_PIXELS, vendor))


def _count_image_tokens(width: int, height: int, vendor: str) -> int:
    patches = min(OPENAI_MAX_PATCHES, -(-width // 32) * -(-height // 32))
    tile = max(256, min(768, int(min(width, height) / 1.5)))
    tiles = -(-width // tile) * -(-height // tile)
    rules = {
        "anthropic": min(ANTHROPIC_MAX_TOKENS, -(-width * height // ANTHROPIC_PIXELS_PER_TOKEN)),
        "openai": math.ceil(patches * OPENAI_FACTOR) + 85,
        "google": max(GOOGLE_MIN_TOKENS, tiles * GOOGLE_TILE_TOKENS),
    }
    return rules.get(vendor, max(rules.values()))


def usd_to_nanos(usd: Decimal, *, up: bool = False) -> int:
    """Convert dollars to nanodollars. Round reservations up."""
    return int((usd * NANO).to_integral_value(ROUND_CEILING if up else ROUND_HALF_EVEN))


def nanos_to_usd(nanos: int) -> float:
    return float(Decimal(nanos) / NANO)


def format_usd(usd: float) -> str:
    """Format dollars as `$0.31`, or with two significant digits below ten cents: `$0.0042`."""
    places = 2 if usd >= 0.095 or usd <= 0 else 1 - math.floor(math.log10(usd))
    return f"${usd:,.{places}f}"


def format_saving(usd: float | None) -> str:
    """Format what the vendors' prompt caches saved, to follow a cost; empty if they saved nothing."""
    if not usd:
        return ""
    if usd < 0:
        return f", {format_usd(-usd)} more for writing to the vendors' caches"
    return f", {format_usd(usd)} saved by the vendors' caches"


def _rates_to_json(rates: Rates) -> RatesObject:
    return {
        "input": str(rates.input),
        "cached": str(rates.cached),
        "write": str(rates.write),
        "output": str(rates.output),
    }


def _rates_from_json(value: RatesObject) -> Rates:
    return Rates(*(Decimal(value[name]) for name in RATE_NAMES))
