"""Lists of the models that vendors offer, as last fetched: the newest of each line, and retired ones."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from council.settings import Provider, Settings
from council.settings.catalogue import LISTED_PROVIDERS, catalogue, name_member, remove_date
from council.settings.config_files import cache_folder, store_cache

LISTS_FILE = "model_lists.json"  # in the cache folder
MAX_AGE_S = 24 * 3600.0  # a list is fetched again after a day
RETRY_AFTER_S = 15 * 60.0  # after a failed attempt


@dataclass(frozen=True, slots=True)
class ModelListing:
    """Models of one endpoint."""

    fetched: float = 0.0  # time of the list
    tried: float = 0.0  # time of the last attempt
    models: Mapping[str, str] = field(default_factory=dict)  # id → date of its shutdown, or ""
    is_complete: bool = False
    lines: Mapping[str, str] = field(default_factory=dict)  # line → its newest id that has a price

    def is_due(self, now: float) -> bool:
        """Return whether to ask again. A time in the future is of a clock that was wrong."""
        return not 0 <= now - self.fetched <= MAX_AGE_S and not 0 <= now - self.tried <= RETRY_AFTER_S

    def lacks(self, id_: str) -> bool:
        """Return whether the endpoint lists models of known lines, but not this one."""
        name = id_.removesuffix("-latest").partition(":")[0]  # routers have variants such as `:free`
        return self.is_complete and bool(self.lines) and all(name not in (one, remove_date(one)) for one in self.models)


_cache: dict[Path, tuple[float, dict[str, ModelListing]]] = {}


def load_listings(env: Mapping[str, str]) -> dict[str, ModelListing]:
    """Return the stored lists by provider and address. A damaged file counts as none."""
    path = cache_folder(env) / LISTS_FILE
    try:
        changed = path.stat().st_mtime_ns
        if path not in _cache or _cache[path][0] != changed:
            rows: dict[str, Any] = json.loads(path.read_bytes())
            _cache[path] = changed, {key: _read_listing(row) for key, row in rows.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return _cache[path][1]


def _read_listing(row: dict[str, Any]) -> ModelListing:
    """Return a stored list, or raise TypeError if it is damaged."""
    one = ModelListing(**row)
    texts = [*one.models, *one.models.values(), *one.lines, *one.lines.values()]
    has_times = all(isinstance(time_, int | float) for time_ in (one.fetched, one.tried))
    if not has_times or not all(isinstance(text, str) for text in texts):
        raise TypeError("a list of models has a value of another type")
    return one


def store_listings(env: Mapping[str, str], listings: Mapping[str, ModelListing]) -> None:
    """Add lists to the stored ones. A cache folder that cannot be written is no error."""
    path = cache_folder(env) / LISTS_FILE
    rows = {key: asdict(one) for key, one in {**load_listings(env), **listings}.items()}
    store_cache(path, rows)


def listing_key(provider: Provider) -> str:
    """Return the key of a provider's list: several providers may use one gateway, and each has its own lines."""
    return f"{provider.name} {provider.base_url.rstrip('/')}"


def find_listing(provider: Provider, settings: Settings, env: Mapping[str, str]) -> ModelListing | None:
    """Return the list of a provider, unless it is older than the catalogue or lists are not used."""
    if not settings.model_lists or provider.name not in LISTED_PROVIDERS:
        return None
    found = load_listings(env).get(listing_key(provider))
    if found is None or not found.models:
        return None
    return found if time.strftime("%Y-%m-%d", time.gmtime(found.fetched)) >= catalogue().snapshot else None


def find_newest_member(line: str, provider: Provider, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the newest member of a line at this provider: by its list, else by the catalogue; "" if it has none.

    A model that the catalogue knows has our name; another one has its id, so that a resumed run needs no list.
    """
    snapshot = catalogue().models[catalogue().lines[line].snapshot]
    listing = find_listing(provider, settings, env)
    newest = listing.lines.get(line, "") if listing else ""
    if not newest:
        return f"{provider.name}:{snapshot.name}" if provider.name in snapshot.ids else ""
    return name_member(provider.name, newest)
