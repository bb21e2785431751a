"""HTTP proxy settings from the environment."""

from __future__ import annotations

from urllib.parse import urlsplit


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
