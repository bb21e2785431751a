"""Notices that are printed once a day: which of them were already shown today."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from hashlib import sha256
from typing import Any

from council.settings.config_files import cache_folder, data_folder, store_cache

MAX_NOTICES = 2  # of one run; the others wait for the next
NOTICES_FILE = "notices.json"  # in the cache folder: hash of a notice -> the day on which it was last shown


def select_new_notices(notices: Iterable[str], env: Mapping[str, str], today: date | None = None) -> list[str]:
    """Return the first notices that were not shown today, and remember them. A damaged file counts as none."""
    day = (today or date.today()).isoformat()
    by_hash = {_hash_notice(notice, env): notice for notice in notices}
    if not by_hash:
        return []
    shown = {key for key, last in _load_days(env).items() if last == day}
    new = {key: notice for key, notice in by_hash.items() if key not in shown}
    chosen = list(new)[:MAX_NOTICES]
    if chosen:
        store_cache(cache_folder(env) / NOTICES_FILE, dict.fromkeys([*shown, *chosen], day))
    return [new[key] for key in chosen]


def _hash_notice(notice: str, env: Mapping[str, str]) -> str:
    """Return the key of a notice. Users of one machine may share the cache folder, but not the data folder."""
    return sha256(f"{data_folder(env)}\n{notice}".encode()).hexdigest()[:24]


def _load_days(env: Mapping[str, str]) -> dict[str, Any]:
    try:
        rows = json.loads((cache_folder(env) / NOTICES_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return rows if isinstance(rows, dict) else {}
