"""Fetch the lists of models of the vendors whose keys are set, and choose the newest model of each line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from council.calling.pricing import find_price
from council.errors import CouncilError
from council.members.registry import MemberRegistry
from council.members.wires.wire import ModelList, WireMember
from council.settings import Provider, Settings
from council.settings.catalogue import LISTED_PROVIDERS, catalogue, find_newest, today
from council.settings.member_lookup import is_available
from council.settings.model_lists import ModelListing, listing_key, load_listings, store_listings

PLAN_TIMEOUT_S = 1.5  # seconds that a plan waits for lists
COMMAND_TIMEOUT_S = 20.0  # seconds of `council list models --refresh`


async def refresh_models(
    settings: Settings, env: Mapping[str, str], members: MemberRegistry, *, is_forced: bool = False
) -> dict[str, str]:
    """Fetch the lists that are older than a day, or all of them. Return the problem by provider, or ""."""
    listings, now = load_listings(env), time.time()
    due = [
        provider
        for provider in settings.providers.values()
        if provider.name in LISTED_PROVIDERS
        and provider.via == "wire"
        and is_available(provider, settings, env)
        and (is_forced or listings.get(listing_key(provider), ModelListing()).is_due(now))
    ]
    if not due:
        return {}
    seconds = COMMAND_TIMEOUT_S if is_forced else PLAN_TIMEOUT_S
    found = await asyncio.gather(*(_fetch_list(members, provider, seconds) for provider in due))
    fresh, problems = dict[str, ModelListing](), dict[str, str]()
    for provider, listed in zip(due, found, strict=True):
        old = listings.get(listing_key(provider), ModelListing())
        if isinstance(listed, str):
            fresh[listing_key(provider)] = ModelListing(old.fetched, now, old.models, old.is_complete, old.lines)
        else:
            fresh[listing_key(provider)] = _make_listing(listed, provider, settings, now)
        problems[provider.name] = listed if isinstance(listed, str) else ""
    store_listings(env, fresh)
    return problems


async def _fetch_list(members: MemberRegistry, provider: Provider, seconds: float) -> ModelList | str:
    """Return the list of a provider, or why there is none."""
    try:
        member = members(f"{provider.name}:any")
        if not isinstance(member, WireMember):  # a wire of an installed package
            return "its wire cannot list models"
        async with asyncio.timeout(seconds):
            listed = await member.list_models()
            return listed if listed and any(listed.names) else "it returned no list of models"
    except CouncilError as error:
        return str(error)
    except TimeoutError:
        return f"no list within {seconds:g} s"


def _make_listing(listed: ModelList, provider: Provider, settings: Settings, now: float) -> ModelListing:
    models = {name: listed.shutdowns.get(name, "") for name in listed.names if name}
    living = [name for name, shutdown in models.items() if not shutdown or shutdown > today()]

    def is_priced(id_: str) -> bool:
        return find_price(f"{provider.name}:{id_}", settings) is not None

    newest = {line.name: find_newest(line, living, is_priced) for line in catalogue().lines.values()}
    lines = {line: id_ for line, id_ in newest.items() if id_ and _is_own(line, id_, provider)}
    return ModelListing(now, now, models, not listed.has_more, lines)


def _is_own(line: str, id_: str, provider: Provider) -> bool:
    """Return whether a provider lists a line of its own vendor, or a router the line of the vendor in the id."""
    vendor = catalogue().lines[line].vendor
    return id_.startswith(f"{vendor}/") if provider.name == "openrouter" else provider.name == vendor
