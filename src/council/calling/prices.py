"""Prices of members: from the configuration, else from the offline list in genai-prices.

The list is imported at the first lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from council.money import FREE, Price, Rates, at_most, cost, exact
from council.settings import Provider, Settings, catalogue, model_id, split_member

__all__ = ["FREE", "Price", "Rates", "at_most", "cost", "exact", "price_of"]

SEND_NO_BILL = ("local", "scripted", "human")
HERE = ("127.0.0.1", "localhost", "::1")
CLASSES = {"input": "input_mtok", "cached": "cache_read_mtok", "write": "cache_write_mtok", "output": "output_mtok"}
# Charges that `Rates` cannot express. A bill without them would be too low, so such a price counts as unknown.
BEYOND = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")


def price_of(member: str, settings: Settings) -> Price | None:
    """Return the price of `provider:model`, or None if it is unknown."""
    kind, _ = split_member(member)
    if configured := _told(member, settings.prices):
        return _from_config(configured)
    if kind in SEND_NO_BILL:
        return FREE
    if kind == "pai":
        return _listed(*_bridged(member), "")
    provider = settings.providers.get(kind)
    return _from_list(member, provider) if provider else None


def _told(member: str, prices: Mapping[str, Mapping[str, float]]) -> Mapping[str, float] | None:
    """Return the configured price of a member, by its name or model id, else that of `provider:*`."""
    provider, _ = split_member(member)
    for name, price in prices.items():
        if name == member or (split_member(name)[0], model_id(name)) == (provider, model_id(member)):
            return price
    return prices.get(f"{provider}:*")


def _from_config(told: Mapping[str, float]) -> Price:
    """Build a price. A class without a rate is charged as input."""
    rates = {name: Decimal(str(told.get(name, told["input"]))) for name in CLASSES}
    return Price(Rates(**rates))


def _from_list(member: str, provider: Provider) -> Price | None:
    """Look up the list price: a built-in provider by name, a configured one by base_url."""
    id_, is_local = model_id(member), urlsplit(provider.base_url).hostname in HERE
    if provider.name == "ollama" and is_local and not id_.endswith("cloud"):
        return FREE
    if provider.name == "openrouter" and id_.endswith(":free"):
        return FREE
    if provider.name in catalogue().providers:
        return _listed(provider.name, id_, "")
    return None if is_local else _listed("", id_, provider.base_url)


def _bridged(member: str) -> tuple[str, str]:
    """Split `pai:PROVIDER:MODEL` into provider and model."""
    provider, _, model = member.partition(":")[2].partition(":")
    return provider, model


@lru_cache(maxsize=256)
def _listed(provider: str, model: str, address: str) -> Price | None:
    from genai_prices import Usage, calc_price

    where: dict[str, Any] = {"provider_api_url": address} if address else {"provider_id": provider}
    try:
        listed = calc_price(Usage(input_tokens=0, output_tokens=0), model, **where).model_price
    except (LookupError, ValueError):
        return None
    if listed.input_mtok is None or listed.output_mtok is None or any(getattr(listed, name) for name in BEYOND):
        return None
    starts = sorted({tier.start for name in CLASSES.values() for tier in getattr(getattr(listed, name), "tiers", ())})
    return Price(_rates_at(listed, 0), tuple((start, _rates_at(listed, start + 1)) for start in starts))


def _rates_at(listed: Any, tokens: int) -> Rates:
    """Return the list rates for a call with this many input tokens. A class without a rate is charged as input."""
    default = _rate(listed.input_mtok, tokens)
    rates = {name: getattr(listed, key) for name, key in CLASSES.items()}
    return Rates(**{name: default if rate is None else _rate(rate, tokens) for name, rate in rates.items()})


def _rate(rate: Any, tokens: int) -> Decimal:
    """Return a flat rate, or the rate of the tier for this many input tokens."""
    if isinstance(rate, Decimal):
        return rate
    above = [tier.price for tier in rate.tiers if tokens > tier.start]
    tier_rate: Decimal = above[-1] if above else rate.base
    return tier_rate
