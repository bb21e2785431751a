"""Network settings: the proxy of a URL, and warnings about keys that a project file sends to a wrong host."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from council.settings import BUILT_IN, OriginKind, Provider, Settings


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for a URL, or None for loopback hosts. aiohttp's `trust_env` would also read .netrc."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    named = getproxies().get(parts.scheme)
    return f"http://{named}" if named and "://" not in named else named


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


# Key leaks

KEY_VARIABLE = re.compile("KEY|TOKEN")  # in the name of a variable that holds a key
KEY_HOSTS_FILE = Path(__file__).parents[1] / "data" / "keys.toml"


@cache
def load_key_hosts() -> Mapping[str, list[str]]:
    """Return variable → domains its key may be sent to."""
    return tomllib.loads(KEY_HOSTS_FILE.read_text(encoding="utf-8"))


def find_key_leaks(settings: Settings) -> list[str]:
    """Return a warning for each variable that a project file sends to a host it does not belong to."""
    return [line for provider in settings.providers.values() for line in _leak_warnings(provider, settings)]


def _leak_warnings(provider: Provider, settings: Settings) -> Iterator[str]:
    host = urlsplit(provider.base_url).hostname or ""
    file, name = _deciding_file(provider.name, settings), provider.api_key_env
    if not file or not name or _is_allowed_host(host, load_key_hosts().get(name, [])):
        return
    trust = "continue only if you trust that file and that host"
    if name in load_key_hosts():
        yield f"{file} sends the key in {name} to {host}, which is not {load_key_hosts()[name][0]}: {trust}"
    elif not KEY_VARIABLE.search(name):
        yield f"{file} sends {name} to {host} as a key, but its name does not look like a key: {trust}"


def _deciding_file(name: str, settings: Settings) -> str:
    """Return the project file that sets this provider's URL or key variable. The user's own settings are trusted."""
    origins = (settings.origins.get(f"providers.{name}.{key}", BUILT_IN) for key in ("base_url", "api_key_env"))
    return next((origin.name for origin in origins if origin.kind is OriginKind.PROJECT_FILE), "")


def _is_allowed_host(host: str, allowed: list[str]) -> bool:
    """Return whether the host is this machine or in an allowed domain."""
    return is_loopback(host) or any(host == ending or host.endswith(f".{ending}") for ending in allowed)
