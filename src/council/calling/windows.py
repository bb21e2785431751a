"""Context windows of members, from the list in genai-prices, which is imported at the first lookup."""

from __future__ import annotations

from functools import lru_cache

from council.settings import Settings, catalogue, model_id, split_member


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
        _, found = get_snapshot().find_provider_model(model, None, provider, base_url)
    except (LookupError, ValueError):
        return None
    return found.context_window
