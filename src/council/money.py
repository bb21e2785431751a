"""Money: what tokens cost in four classes, exactly. A price nobody knows is None, never nothing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from council.types import Json, Usage

# Faults by which a provider says that it did no work; after any other one it may send a bill.
UNPAID = ("net", "rate", "quota", "overload", "size", "model", "auth", "endpoint", "parameter", "script", "cli:start")
MILLION = Decimal(1_000_000)
NANO = Decimal(1_000_000_000)  # the store counts whole billionths of a dollar, so that sums stay exact


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for a million tokens: read, read from a cache, written to a cache, and written as the answer, thoughts included."""

    input: Decimal
    cached: Decimal
    write: Decimal
    output: Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """What a member charges. Above a tier's input tokens all of a call is charged at that tier's rates, as vendors do."""

    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = field(default=())  # (above so many input tokens, these), ascending

    def at(self, tokens: int) -> Rates:
        above = [rates for start, rates in self.tiers if tokens > start]
        return above[-1] if above else self.rates

    def as_json(self) -> Json:
        return {**_plain(self.rates), "tiers": [[start, _plain(rates)] for start, rates in self.tiers]}

    @classmethod
    def from_json(cls, value: Json) -> Price:
        tiers = tuple((int(start), _rates(rates)) for start, rates in value["tiers"])
        return cls(_rates(value), tiers)


NOTHING = Decimal(0)
FREE = Price(Rates(NOTHING, NOTHING, NOTHING, NOTHING))


def exact(usage: Usage, price: Price) -> Decimal:
    """The bill to the last digit. `usage.input` holds its cached and written parts, which have rates of their own."""
    rates = price.at(usage.input)
    fresh = max(0, usage.input - usage.cached - usage.written)
    sums = (
        fresh * rates.input,
        usage.cached * rates.cached,
        usage.written * rates.write,
        usage.output * rates.output,
    )
    return sum(sums, NOTHING) / MILLION


def cost(usage: Usage, price: Price) -> float:
    """The bill in dollars."""
    return float(exact(usage, price))


def at_most(tokens: int, output: int, price: Price) -> Decimal:
    """The dearest that one call can be: all of its input at the highest rate that input can have, all of its room used."""
    rates = price.at(tokens)
    return (tokens * max(rates.input, rates.write, rates.cached) + output * rates.output) / MILLION


def nanos(dollars: Decimal, *, up: bool = False) -> int:
    """Whole billionths of a dollar; what is reserved is rounded up."""
    return int((dollars * NANO).to_integral_value(ROUND_CEILING if up else ROUND_HALF_EVEN))


def dollars(nanos: int) -> float:
    return float(Decimal(nanos) / NANO)


def shown(usd: float) -> str:
    """`$0.31`; below a dime two digits that say something: `$0.0042`."""
    places = 2 if usd >= 0.095 or usd <= 0 else 1 - math.floor(math.log10(usd))
    return f"${usd:,.{places}f}"


def _plain(rates: Rates) -> Json:
    return {name: str(rate) for name, rate in asdict(rates).items()}


def _rates(value: Json) -> Rates:
    return Rates(*(Decimal(value[name]) for name in ("input", "cached", "write", "output")))
