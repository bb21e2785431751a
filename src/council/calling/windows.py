"""How much a member can be told at once, as far as the price list knows; it is loaded when the first one is looked up."""

from __future__ import annotations

from functools import lru_cache

from council.settings import Settings, catalogue, model_id, split_member


def window_of(member: str, settings: Settings) -> int | None:
    """Tokens of context of `provider:model`; None if nobody knows."""
    kind, name = split_member(member)
    if kind == "pai":
        provider, _, model = name.partition(":")
        return _listed(provider, model, None)
    if kind in catalogue().providers:
        return _listed(kind, model_id(member), None)
    own = settings.providers.get(kind)
    return _listed(None, model_id(member), own.base_url) if own else None


@lru_cache(maxsize=256)
def _listed(provider: str | None, model: str, address: str | None) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, provider, address)
    except (LookupError, ValueError):
        return None
    return found.context_window
