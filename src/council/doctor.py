"""What can be called, found out and not assumed: configured, installed, key present, answered."""

from __future__ import annotations

from importlib.util import find_spec

from council.convene import Convener
from council.errors import ConfigError, CouncilError
from council.rules.reach import is_available
from council.rules.seating import available, seat_council
from council.settings import Provider, catalogue
from council.types import Json


async def examine(convener: Convener) -> list[Json]:
    """One row per provider and one for the embedded model: name, state, detail, next."""
    rows = [await _provider(convener, provider) for provider in convener.settings.providers.values()]
    return [*rows, await _local(convener)]


async def _provider(convener: Convener, provider: Provider) -> Json:
    row = {"member": f"{provider.name}:", "vendor": provider.vendor, "endpoint": provider.base_url}
    if not is_available(provider, convener.settings, convener.env):
        need = provider.api_key_env or ("OLLAMA_HOST" if provider.name == "ollama" else f"[providers.{provider.name}]")
        return row | {"state": "not configured", "detail": "", "next": f"set {need}"}
    try:
        said = await convener.members(_example(convener, provider)).probe()
    except CouncilError as error:
        return row | {
            "state": "configured",
            "detail": f"did not answer: {error}",
            "next": "check the key, base_url and the network",
        }
    return row | {"state": "answered", "detail": said, "next": ""}


def _example(convener: Convener, provider: Provider) -> str:
    """Some member of this provider: one that is named in the settings, else one of the catalogue, else any."""
    named = [
        *convener.settings.models.values(),
        *(model.name for model in catalogue().models.values() if provider.name in model.ids),
    ]
    own = [name for name in named if name.startswith(f"{provider.name}:")]
    return own[0] if own else f"{provider.name}:{next((name for name in named if ':' not in name), 'any')}"


async def _local(convener: Convener) -> Json:
    row = {"member": "local:smollm2", "vendor": "local", "endpoint": "a process of its own on this machine"}
    if find_spec("xllamacpp") is None:
        return row | {"state": "not installed", "detail": "", "next": "pip install 'council[local]'"}
    try:
        said = await convener.members("local:smollm2").probe()
    except CouncilError as error:
        return row | {"state": "installed", "detail": str(error), "next": "the first council fetches it"}
    return row | {"state": "answered", "detail": said, "next": ""}


def members(convener: Convener) -> list[Json]:
    """Every model the catalogue or the settings name: member, vendor, whether it can be called now."""
    ready = {candidate.member: candidate.vendor for candidate in available(convener.settings, convener.env)}
    rows = [{"member": member, "vendor": vendor, "available": True, "needs": ""} for member, vendor in ready.items()]
    for model in catalogue().models.values():
        if not any(member.endswith(f":{model.name}") for member in ready):
            keys = [convener.settings.providers[name].api_key_env or "OLLAMA_HOST" for name in model.ids]
            rows.append({"member": model.name, "vendor": model.vendor, "available": False, "needs": " or ".join(keys)})
    installed = find_spec("xllamacpp") is not None
    rows.append(
        {
            "member": "local:smollm2",
            "vendor": "local",
            "available": installed,
            "needs": "" if installed else "council[local]",
        }
    )
    return rows


def seating(convener: Convener) -> Json:
    """Who would sit now, and what is to be said about it."""
    try:
        seats = seat_council(["alpha", "beta", "gamma"], convener.settings, convener.env)
    except ConfigError as error:  # the other rows say what is there instead
        return {"seats": [], "families": 0, "notices": [str(error)]}
    places = [
        {"seat": place.name, "member": place.member, "vendor": place.vendor} for place in (*seats.seats, seats.chair)
    ]
    return {"seats": places, "families": len({place.vendor for place in seats.seats}), "notices": list(seats.notices)}
