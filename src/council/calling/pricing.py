"""Prices and context windows of members: from the configuration, else from the offline list in genai-prices.

The list is imported at the first lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from council.members.base import Member
from council.money import FREE, Price, Rates, highest_price
from council.settings import Provider, Settings
from council.settings.catalogue import catalogue, model_id, split_member
from council.settings.network import is_loopback

UNBILLED_PROVIDERS = ("local", "scripted", "human")
RATE_FIELDS = {"input": "input_mtok", "cached": "cache_read_mtok", "write": "cache_write_mtok", "output": "output_mtok"}
# Charges that `Rates` cannot express. A bill without them would be too low, so such a price counts as unknown.
UNSUPPORTED_CHARGES = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")


def find_price(member: str, settings: Settings) -> Price | None:
    """Return the price of `provider:model`, or None if it is unknown.

    A project's price never lowers another one, and under a cap of the user it does not make a price known.
    """
    if settings.user_prices is None:
        return _find_user_price(member, settings, settings.prices)
    configured = _find_configured_price(member, settings.prices)
    users = _find_user_price(member, settings, settings.user_prices)
    if configured is None or (users is None and settings.guards_cap):
        return users
    return highest_price(users, _price_from_config(configured))


def _find_user_price(member: str, settings: Settings, prices: Mapping[str, Mapping[str, float]]) -> Price | None:
    """Return the user's price of a member, else its list price."""
    kind, name = split_member(member)
    if configured := _find_configured_price(member, prices):
        return _price_from_config(configured)
    if kind in UNBILLED_PROVIDERS:
        return FREE
    if kind == "pai":
        bridged, _, model = name.partition(":")
        return _lookup_list_price(bridged, model, "")
    provider = settings.providers.get(kind)
    return _price_from_list(member, provider) if provider else None


def own_price(member: Member) -> Price | None:
    """Return the price that a member itself states, or None if it states none."""
    if member.free:
        return FREE
    stated: Mapping[str, float] | None = getattr(member, "price", None)
    return _price_from_config(stated) if stated else None


def _find_configured_price(member: str, prices: Mapping[str, Mapping[str, float]]) -> Mapping[str, float] | None:
    """Return the configured price of a member, by its name or model id, else that of `provider:*`."""
    provider, _ = split_member(member)
    for name, price in prices.items():
        if name == member or (split_member(name)[0], model_id(name)) == (provider, model_id(member)):
            return price
    return prices.get(f"{provider}:*")


def _price_from_config(configured: Mapping[str, float]) -> Price:
    """Build a price. A class without a rate is charged as input."""
    rates = {name: Decimal(str(configured.get(name, configured["input"]))) for name in RATE_FIELDS}
    return Price(Rates(**rates))


def _price_from_list(member: str, provider: Provider) -> Price | None:
    """Look up the list price: a built-in provider by name, a configured one by base_url."""
    id_, is_local = model_id(member), is_loopback(urlsplit(provider.base_url).hostname or "")
    if provider.name == "ollama" and is_local and not id_.endswith("cloud"):
        return FREE
    if provider.name == "openrouter" and id_.endswith(":free"):
        return FREE
    if provider.name in catalogue().providers:
        return _lookup_list_price(provider.name, id_, "")
    return None if is_local else _lookup_list_price("", id_, provider.base_url)


@lru_cache(maxsize=256)
def _lookup_list_price(provider: str, model: str, base_url: str) -> Price | None:
    from genai_prices import Usage, calc_price

    where: dict[str, Any] = {"provider_api_url": base_url} if base_url else {"provider_id": provider}
    try:
        listed = calc_price(Usage(input_tokens=0, output_tokens=0), model, **where).model_price
    except (LookupError, ValueError):
        return None
    if (
        listed.input_mtok is None
        or listed.output_mtok is None
        or any(getattr(listed, name) for name in UNSUPPORTED_CHARGES)
    ):
        return None
    starts = sorted(
        {tier.start for name in RATE_FIELDS.values() for tier in getattr(getattr(listed, name), "tiers", ())}
    )
    return Price(_rates_for_input(listed, 0), tuple((start, _rates_for_input(listed, start + 1)) for start in starts))


def _rates_for_input(listed: Any, tokens: int) -> Rates:
    """Return the list rates for a call with this many input tokens. A class without a rate is charged as input."""
    default = _rate_for_input(listed.input_mtok, tokens)
    rates = {name: getattr(listed, key) for name, key in RATE_FIELDS.items()}
    return Rates(**{name: default if rate is None else _rate_for_input(rate, tokens) for name, rate in rates.items()})


def _rate_for_input(rate: Any, tokens: int) -> Decimal:
    """Return a flat rate, or the rate of the tier for this many input tokens."""
    if isinstance(rate, Decimal):
        return rate
    above = [tier.price for tier in rate.tiers if tokens > tier.start]
    tier_rate: Decimal = above[-1] if above else rate.base
    return tier_rate


# Context windows


def find_context_window(member: str, settings: Settings) -> int | None:
    """Return the context window of `provider:model` in tokens, or None if it is unknown."""
    kind, name = split_member(member)
    if kind == "pai":
        provider, _, model = name.partition(":")
        return _lookup_context_window(provider, model, None)
    if kind in catalogue().providers:
        return _lookup_context_window(kind, model_id(member), None)
    configured = settings.providers.get(kind)
    return _lookup_context_window(None, model_id(member), configured.base_url) if configured else None


@lru_cache(maxsize=256)
def _lookup_context_window(provider: str | None, model: str, base_url: str | None) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, model_info = get_snapshot().find_provider_model(model, None, provider, base_url)
    except (LookupError, ValueError):
        return None
    return model_info.context_window
