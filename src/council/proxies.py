"""Which proxy the environment names for an address."""

from __future__ import annotations

from urllib.parse import urlsplit


def proxy_for(url: str) -> str | None:
    """The environment's proxy, never for this machine itself. (aiohttp's own way would read .netrc too.)"""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    named = getproxies().get(parts.scheme)
    return f"http://{named}" if named and "://" not in named else named


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
