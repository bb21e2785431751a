"""Keys that a project's configuration would send where they do not belong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from council.proxies import is_loopback
from council.settings import BUILT_IN, Provider, Settings, config_folder

KEY_LIKE = re.compile("KEY|TOKEN")  # what a variable is called that holds one
DATA = Path(__file__).parents[1] / "data" / "keys.toml"


@cache
def homes() -> Mapping[str, list[str]]:
    """Variable → the hosts, by their ending, that its key was made for."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def lent_keys(settings: Settings, env: Mapping[str, str]) -> list[str]:
    """A sentence for each key of a well-known vendor that a file of the project sends to somebody else, or what is no key."""
    own = str(config_folder(env) / "config.toml")
    return [line for provider in settings.providers.values() for line in _warning(provider, settings, own)]


def _warning(provider: Provider, settings: Settings, own: str) -> Iterator[str]:
    host = urlsplit(provider.base_url).hostname or ""
    file, name = _file(provider.name, settings, own), provider.api_key_env
    if not file or not name or _is_at_home(host, homes().get(name, [])):
        return
    trust = "go on only if you trust that file and that host"
    if name in homes():
        yield f"{file} sends the key in {name} to {host}, which is not {homes()[name][0]}: {trust}"
    elif not KEY_LIKE.search(name):
        yield f"{file} sends what stands in {name} to {host} as a key, which its name does not say it is: {trust}"


def _file(name: str, settings: Settings, own: str) -> str:
    """The project's file that decides where this provider is, or whose key it gets; what the user wrote is the user's wish."""
    said = (settings.origins.get(f"providers.{name}.{key}", "") for key in ("base_url", "api_key_env"))
    elsewhere = (BUILT_IN, own, "environment ", "flag ")
    return next((origin for origin in said if origin and not origin.startswith(elsewhere)), "")


def _is_at_home(host: str, endings: list[str]) -> bool:
    """Also on this machine, from where it goes nowhere by itself."""
    return is_loopback(host) or any(host == ending or host.endswith(f".{ending}") for ending in endings)
