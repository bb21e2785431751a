"""Network settings: the proxy of a URL, and warnings about keys that a project file sends to a wrong host."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from council.settings import BUILT_IN, OriginKind, Settings


def proxy_for(url: str) -> str | None:
    """Return the proxy of a URL, None for loopback hosts. aiohttp's `trust_env` would also read .netrc."""
    parts = urlsplit(url)
    variable = f"{parts.scheme}_proxy"
    named = _find_proxy(parts.scheme, os.environ.get(variable), os.environ.get(variable.upper()))
    if not named:
        return None
    from urllib.request import proxy_bypass

    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    return named if "://" in named else f"http://{named}"


@lru_cache(maxsize=16)
def _find_proxy(scheme: str, lower: str | None, upper: str | None) -> str | None:
    """Return the proxy of a scheme, cached because `getproxies` reads the whole environment."""
    from urllib.request import getproxies

    return getproxies().get(scheme)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether every address of a host is on this machine.

    A name with a dot never is, except below .localhost: its owner can give it another address after this check.
    """
    if address := _parse_address(host):
        return address.is_loopback
    name = host.rstrip(".").lower()
    if not name or ("." in name and not name.endswith(".localhost")):
        return False
    try:
        found = {str(row[4][0]) for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    addresses = [_parse_address(one) for one in found]
    return bool(addresses) and all(one is not None and one.is_loopback for one in addresses)


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host that is an address; one of IPv4 written as IPv6 is the address of IPv4."""
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# Key leaks

KEY_VARIABLE = re.compile("KEY|TOKEN")  # in the name of a variable that holds a key
KEY_HOSTS_FILE = Path(__file__).parents[1] / "data" / "keys.toml"


@cache
def load_key_hosts() -> Mapping[str, list[str]]:
    """Return variable → domains its key may be sent to."""
    return tomllib.loads(KEY_HOSTS_FILE.read_text(encoding="utf-8"))


def find_key_leaks(settings: Settings) -> list[str]:
    """Return a warning for each variable that a project file sends to a host it does not belong to."""
    decided = ((_deciding_file(provider.name, settings), provider) for provider in settings.providers.values())
    lines = (describe_key_leak(file, one.base_url, one.api_key_env) for file, one in decided if file)
    return [line for line in lines if line]


def describe_key_leak(file: str, base_url: str, variable: str) -> str:
    """Return a warning if a key is sent to a host not its own, or a variable that is no key as one; else ""."""
    host = urlsplit(base_url).hostname or ""
    allowed = load_key_hosts().get(variable, [])
    if not variable or is_loopback(host) or any(_domain_pattern(one).fullmatch(host.lower()) for one in allowed):
        return ""
    trust = "continue only if you trust that file and that host"
    if allowed:
        return f"{file} sends the key in {variable} to {host}, which is not {allowed[0]}: {trust}"
    if KEY_VARIABLE.search(variable):
        return ""
    return f"{file} sends {variable} to {host} as a key, but its name does not look like a key: {trust}"


def _deciding_file(name: str, settings: Settings) -> str:
    """Return the project file that sets this provider's URL or key variable. The user's own settings are trusted."""
    origins = (settings.origins.get(f"providers.{name}.{key}", BUILT_IN) for key in ("base_url", "api_key_env"))
    return next((origin.name for origin in origins if origin.kind is OriginKind.PROJECT_FILE), "")


@cache
def _domain_pattern(domain: str) -> re.Pattern[str]:
    """Return the pattern of a domain and the hosts below it; with REGION, a region of a cloud, it is exact."""
    pattern = re.escape(domain).replace("REGION", r"[a-z]{2,}(?:-[a-z]+)+-?\d+")
    return re.compile(pattern if "REGION" in domain else rf"(?:[^/]+\.)?{pattern}")
