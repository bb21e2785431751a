"""First setup: find keys, logins and local endpoints, test them without a paid call, and choose the seats."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict
from urllib.parse import urlsplit

from council.calling.pricing import find_price
from council.errors import ConfigError, CouncilError, Fault, UsageError
from council.extensions import SEARCH
from council.members.cli_sandbox import AGENTS, find_key_variable
from council.members.guard import probe_member
from council.members.wires.wire import WireMember
from council.planning.plan import Plan
from council.runs.doctor import TYPICAL_QUESTION, check_agent, check_local, pick_example
from council.runs.service import Convener
from council.search import make_provider, resolve_search, split_search
from council.search.provider import SearchError
from council.settings import OriginKind, Provider, Settings
from council.settings.catalogue import LOCAL_MEMBER, catalogue, find_newest, name_member, split_member
from council.settings.config_files import config_folder, edit_config, write_private
from council.settings.member_lookup import DEFAULT_SEATS, ROUTER, is_available
from council.settings.schema import validate_table

OFFERED_PROTOCOLS = {  # as the default, with what each does
    "adaptive": "asks two members and stops if they agree",
    "collaborative": "always asks all members twice",
}
SEARCH_TIMEOUT_S = 20.0
UNREACHABLE_FAULTS = ("net", "stall", "cut", "overload")
NO_CHAT_MODEL = re.compile(r"embed|whisper|tts|audio|image|dall-e|moderation|rerank|imagen|veo", re.I)
State = Literal["works", "refused", "unreachable", "untested", "missing"]


class SourceRow(TypedDict):
    """A row of the table of `council init`."""

    name: str
    vendor: str
    found: str
    state: State
    detail: str
    models: int  # that the endpoint lists


@dataclass(frozen=True, slots=True)
class Source:
    """A way to reach models: a provider with its key, a local endpoint, a command-line agent or the embedded model."""

    name: str  # provider, cli:AGENT or the embedded model's member
    vendor: str
    found: str  # where its key, address or command was found; "" if it was not
    state: State
    detail: str = ""
    models: tuple[str, ...] = ()  # as listed by the endpoint
    lists_all: bool = False  # the list of models is complete
    base_url: str = ""  # of an endpoint that is running but not configured
    project_file: str = ""  # the project file that defines it: other folders do not know it

    def as_json(self) -> SourceRow:
        return {
            "name": self.name,
            "vendor": self.vendor,
            "found": self.found,
            "state": self.state,
            "detail": self.detail,
            "models": len(self.models),
        }


@dataclass(frozen=True, slots=True)
class VendorModels:
    """Members of one vendor for the three tiers."""

    vendor: str
    default: str
    strong: str
    fast: str


# Find and test


async def find_sources(convener: Convener, env: Mapping[str, str]) -> list[Source]:
    """Return every provider, command-line agent and the embedded model. Keys are tested by listing models.

    `env` is the environment without the keys of the keyring."""
    providers = [_check_provider(convener, provider, env) for provider in convener.settings.providers.values()]
    agents = [_check_agent(convener, agent) for agent in catalogue().commands]
    found = await asyncio.gather(*providers, *agents)
    refused = {
        provider.api_key_env: source.detail
        for provider, source in zip(convener.settings.providers.values(), found, strict=False)
        if source.state == "refused" and provider.api_key_env
    }
    return [*(_check_agent_key(source, refused, convener.env) for source in found), await _check_local(convener)]


async def _check_provider(convener: Convener, provider: Provider, env: Mapping[str, str]) -> Source:
    found = _where_found(provider, convener, env)
    if provider.api_key_env and not found:
        return Source(provider.name, provider.vendor, "", "missing", f"no key: set {provider.api_key_env}")
    if provider.via != "wire":
        return Source(provider.name, provider.vendor, found, "untested", "its bridge cannot list models")
    is_set_up = is_available(provider, convener.settings, convener.env)
    try:
        names, lists_all, detail = await _list_models(convener, pick_example(provider))
    except CouncilError as error:
        if not is_set_up:  # a local endpoint at its usual address
            detail = f"not running at {urlsplit(provider.base_url).netloc}"
            return Source(provider.name, provider.vendor, "", "missing", detail)
        state: State = "unreachable" if isinstance(error, Fault) and error.kind in UNREACHABLE_FAULTS else "refused"
        return Source(provider.name, provider.vendor, found, state, str(error))
    address = "" if is_set_up else provider.base_url
    project = _find_project_file(provider, convener)
    detail += f"; seat it in {project}, which defines it" if project else ""
    return Source(provider.name, provider.vendor, found, "works", detail, names, lists_all, address, project)


def _find_project_file(provider: Provider, convener: Convener) -> str:
    """Return the file other than the user's that defines a provider, or ""."""
    origin = convener.settings.origins.get(f"providers.{provider.name}")
    if origin is None or provider.name in catalogue().providers or origin.name == str(user_file(convener.env)):
        return ""
    return Path(origin.name).name if origin.kind in (OriginKind.PROJECT_FILE, OriginKind.USER_FILE) else ""


async def _list_models(convener: Convener, member: str) -> tuple[tuple[str, ...], bool, str]:
    """Return the listed models, whether the list is complete, and a line about it."""
    one = convener.members(member)
    if not isinstance(one, WireMember):  # a wire of an installed package
        return (), False, await probe_member(one)
    listed = await one.list_models()
    if listed is None:
        return (), False, "answered"
    names = tuple(filter(None, listed.names))
    more = " or more" if listed.has_more else ""
    return names, not listed.has_more, f"{len(names)}{more} model{'' if len(names) == 1 else 's'}"


def _where_found(provider: Provider, convener: Convener, env: Mapping[str, str]) -> str:
    variable = provider.api_key_env
    if not variable:
        return provider.base_url
    if not convener.env.get(variable, "").strip():
        return ""
    return f"{variable} ({'environment' if env.get(variable, '').strip() else 'keyring'})"


async def _check_agent(convener: Convener, agent: str) -> Source:
    (row,) = await check_agent(convener, agent, [])
    name, vendor = f"cli:{agent}", row["vendor"]
    if not row["installed"]:
        return Source(name, vendor, "", "missing", "not installed")
    state: State = "works" if row["key"] else "refused"
    return Source(name, vendor, row["endpoint"], state, row["detail"])


def _check_agent_key(source: Source, refused: Mapping[str, str], env: Mapping[str, str]) -> Source:
    """Return an agent as refused if its key is one that the vendor refused. A gateway may accept another key."""
    if source.state != "works" or not source.name.startswith("cli:"):
        return source
    agent = AGENTS[source.name.removeprefix("cli:")]
    key = find_key_variable(agent, env)
    if key not in refused or any(env.get(name) for name in agent.variables if name.lower().endswith("base_url")):
        return source
    return replace(source, state="refused", detail=f"{key} was refused: {refused[key]}")


async def _check_local(convener: Convener) -> Source:
    row = await check_local(convener, [])
    if not row["installed"]:
        return Source(LOCAL_MEMBER, "local", "", "missing", f"not installed: {row['next']}")
    detail = "embedded model" if row["key"] else "embedded model, downloaded at the first run"
    return Source(LOCAL_MEMBER, "local", "this machine", "works", detail)


# Keys and search that a door stores


async def check_key(convener: Convener, provider: Provider) -> Source:
    """Test the key of one provider by listing its models."""
    return await _check_provider(convener, provider, {})


def list_searches() -> dict[str, str]:
    """Return the search providers that can be set up, each with the variable of its key: "" if it takes an address."""
    found: dict[str, str] = {}
    for name in SEARCH.names:
        try:
            provider = SEARCH.load(name)
        except ConfigError:  # a broken package
            continue
        variable, argument = str(getattr(provider, "key_env", "")), getattr(provider, "argument", "")
        if argument == "ADDRESS" or (variable and not argument):
            found[name] = "" if argument else variable
    return found


async def check_search(choice: str, settings: Settings, env: Mapping[str, str]) -> tuple[str, str]:
    """Test a search provider, NAME or NAME:ADDRESS, without cost. Return its address and a line about the test: "" if
    it has no free one. Raise UsageError if it fails.
    """
    meant = resolve_search(choice, settings, env) or choice
    try:
        provider = make_provider(meant, settings, env, Path(), lambda path: None)
        try:
            async with asyncio.timeout(SEARCH_TIMEOUT_S):
                detail = str(await provider.check()) if hasattr(provider, "check") else ""
        finally:
            await provider.close()
    except SearchError as error:
        raise UsageError(f"{error.reason}; nothing was stored") from None
    except TimeoutError:
        raise UsageError(f"no answer within {SEARCH_TIMEOUT_S:g} s; nothing was stored: check the address") from None
    return split_search(meant)[1], detail


def write_values(values: Mapping[str, Any], env: Mapping[str, str]) -> None:
    """Change keys of the user's file; None removes one. The file is checked before it is written."""
    file = user_file(env)
    old = file.read_text(encoding="utf-8") if file.is_file() else ""
    new = edit_config(old, values)
    validate_table(tomllib.loads(new), str(file))
    if new != old:
        write_private(file, new)


# Choose members


def list_working(sources: Iterable[Source]) -> list[Source]:
    """Return the sources that can be seated in every folder; the embedded model is none of them."""
    working = [source for source in sources if source.state == "works" and not source.project_file]
    return [source for source in working if source.name != LOCAL_MEMBER]


def choose_models(chosen: Sequence[Source], settings: Settings) -> list[VendorModels]:
    """Return the members of each vendor that the chosen sources reach, in the order of the sources."""
    found: dict[str, VendorModels] = {}
    for source in chosen:
        for one in _vendors_of(source, settings):
            found.setdefault(one.vendor, one)
    return list(found.values())


def _vendors_of(source: Source, settings: Settings) -> list[VendorModels]:
    if source.name.startswith("cli:") or source.name == LOCAL_MEMBER:
        return [VendorModels(source.vendor, source.name, source.name, source.name)]
    listed = [
        VendorModels(vendor, **members)
        for vendor, tiers in catalogue().tiers.items()
        if (members := _tier_members(source, tiers, settings))
    ]
    if listed:
        return listed
    member = _pick_member(source, settings)
    return [VendorModels(source.vendor, member, member, member)] if member else []


def _tier_members(source: Source, tiers: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the member of each tier; a model that the endpoint does not list is replaced by one of another tier."""
    usable = {tier: member for tier, name in tiers.items() if (member := _find_tier_member(source, name, settings))}
    another = next(iter(usable.values()), "")
    return {tier: usable.get(tier, another) for tier in ("default", "strong", "fast")} if usable else {}


def _find_tier_member(source: Source, name: str, settings: Settings) -> str:
    """Return the line if the endpoint has a model of it, so that the file does not name a model that will be retired.

    Without lists of models a line means the model of the catalogue, so another one is written by its name.
    """
    line = catalogue().lines.get(name)
    if line is None or source.name not in (line.vendor, ROUTER):
        return _find_catalogue_member(source, line.snapshot if line else name)
    newest = find_newest(line, source.models, lambda id_: find_price(f"{source.name}:{id_}", settings) is not None)
    member = name_member(source.name, newest) if newest else _find_catalogue_member(source, line.snapshot)
    is_resolved = settings.model_lists or member == f"{source.name}:{line.snapshot}"
    return f"{source.name}:{line.name}" if member and is_resolved else member


def _find_catalogue_member(source: Source, name: str) -> str:
    """Return the model of the catalogue if the endpoint may offer it, else ""."""
    model = catalogue().models[name]
    id_ = model.ids.get(source.name)
    listed = {*source.models, *(one.removesuffix(":latest") for one in source.models)}
    return f"{source.name}:{model.name}" if id_ is not None and (id_ in listed or not source.lists_all) else ""


def _pick_member(source: Source, settings: Settings) -> str:
    """Return a model for an endpoint outside the catalogue: one that the settings name, else the first listed."""
    places = (*settings.seats.values(), settings.chair)
    named = [*settings.models.values(), *(place.model for place in places if place.model)]
    own = [member for member in named if split_member(member)[0] == source.name]
    listed = [f"{source.name}:{name}" for name in source.models if not NO_CHAT_MODEL.search(name)]
    return next((member for member in own if member in listed), next(iter([*listed, *own]), ""))


# The user's file


def build_values(models: Sequence[VendorModels], chosen: Sequence[Source]) -> dict[str, Any]:
    """Return the configuration values for these vendors; None removes a key."""
    first, other = models[0], models[1] if len(models) > 1 else None
    values: dict[str, Any] = {f"providers.{one.name}.base_url": one.base_url for one in chosen if one.base_url}
    values["vendors"] = [one.vendor for one in models]
    values |= {"models.default": first.default, "models.strong": first.strong, "models.fast": first.fast}
    values["models.other"] = other.default if other else None
    places = [*(f"seats.{seat}" for seat in DEFAULT_SEATS), "chair"]
    if first.default == LOCAL_MEMBER:  # seats without a setting use a vendor as soon as there is a key
        return values | {"vendors": None} | {f"{one}.{key}": None for one in places for key in ("model", "fallback")}
    for place, one in zip(places, assign_seats(models), strict=True):
        values[f"{place}.model"] = one.strong
        values[f"{place}.fallback"] = [two.strong for two in models if two.vendor != one.vendor]
    return values


def assign_seats(models: Sequence[VendorModels]) -> list[VendorModels]:
    """Return the vendors of seats and chair: the seat's default vendor, else an unused one, else the least used."""
    by_vendor = {one.vendor: one for one in models}
    wanted = {seat: catalogue().lines[row["model"]].vendor for seat, row in catalogue().seating.items()}
    seated = {seat: by_vendor[wanted[seat]] for seat in DEFAULT_SEATS if wanted[seat] in by_vendor}
    for seat in DEFAULT_SEATS:
        if seat not in seated:
            uses = Counter(one.vendor for one in seated.values())
            seated[seat] = min(models, key=lambda one: uses[one.vendor])
    return [*(seated[seat] for seat in DEFAULT_SEATS), by_vendor.get(wanted["chair"], models[0])]


def user_file(env: Mapping[str, str]) -> Path:
    return config_folder(env) / "config.toml"


def find_overrides(convener: Convener, values: Mapping[str, Any]) -> list[str]:
    """Return the keys that something other than the user's file sets here, with their origin."""
    origins, own = convener.settings.origins, str(user_file(convener.env))
    return [
        f"{key} ({origin})"
        for key in values
        if (origin := origins.get(key)) and origin.kind is not OriginKind.BUILT_IN and origin.name != own
    ]


async def plan_typical_question(convener: Convener, config: Path | None, **flags: Any) -> Plan:
    """Return the plan of a plain question with the settings as they are now, for its price."""
    fresh = Convener(convener.folder, convener.env, flags=flags, config=config)
    try:
        return await fresh.plan([TYPICAL_QUESTION], preview=True)
    finally:
        await fresh.close()
