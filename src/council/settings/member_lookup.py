"""Resolve member names: provider, vendor and current availability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from council.errors import ConfigError, option
from council.extensions import MEMBERS
from council.settings import Provider, Settings
from council.settings.catalogue import (
    LOCAL_MEMBER,
    Model,
    catalogue,
    find_line,
    find_successor,
    model_id,
    split_member,
    today,
)
from council.settings.config_files import find_command
from council.settings.model_lists import find_listing, find_newest_member
from council.settings.schema import SPECIAL_MEMBERS, quote_value

NO_MODEL_NEEDED = ("scripted", "human")  # members that need no model name
MODEL_ORDER = ("default", "other", "strong", "fast")
DEFAULT_SEATS = ("alpha", "beta", "gamma")  # other seat names use these defaults in rotation
ADDED_SEATS = ("delta", "epsilon", "zeta", "eta", "theta")  # seats of a council with more than three members
MAX_SUGGESTIONS = 3
ROUTER = "openrouter"  # reaches the models of other vendors
VENDORS_WITH_LISTS = ("anthropic", "openai", "google")  # vendors whose bare model names are known


@dataclass(frozen=True, slots=True)
class Candidate:
    """Available member and its vendor."""

    member: str
    vendor: str


LOCAL_CANDIDATE = Candidate(LOCAL_MEMBER, "local")


def vendor_of(member: str, settings: Settings) -> str:
    """Return the vendor of a member. For a router it is the model's vendor, not the router's."""
    provider, name = split_member(member)
    if member in settings.custom_members:
        return settings.custom_members[member]
    if provider not in SPECIAL_MEMBERS and provider not in settings.providers and provider not in MEMBERS:
        raise _unknown_member_error(member, settings)
    if not name.strip() and provider not in NO_MODEL_NEEDED:
        form = "PROVIDER:MODEL" if provider == "pai" else "AGENT" if provider == "cli" else "MODEL"
        raise ConfigError(f"{quote_value(member)} names no model: write {provider}:{form}")
    if provider in SPECIAL_MEMBERS:
        return _special_vendor(provider, name)
    if provider not in settings.providers:
        return added_vendor(provider)
    vendor = settings.providers[provider].vendor
    return _routed_vendor(name, vendor) if provider == "openrouter" else vendor


def list_inputs(member: str, settings: Settings) -> frozenset[str]:
    """Return the kinds of attachments that a model takes, "image" and "pdf": as [members] says, else by its name."""
    provider, name = split_member(member)
    names = {part.rpartition("/")[2] for part in (name, model_id(member), name.partition(":")[2])}
    found = {kind for kind, pattern in catalogue().inputs.items() if any(re.match(pattern, one) for one in names)}
    for known in (f"{provider}:*", member):
        for kind, takes in settings.members.get(known, {}).items():
            (found.add if takes else found.discard)(kind.removesuffix("s"))
    return frozenset(found)


def added_vendor(prefix: str) -> str:
    """Return the vendor of an installed package's members: its attribute `vendor`, else the prefix."""
    vendor = getattr(MEMBERS.load(prefix), "vendor", None)
    return vendor if isinstance(vendor, str) and vendor else prefix


def added_models(prefix: str) -> tuple[str, ...]:
    """Return the models that an installed package lists: its attribute `models`, else none."""
    return tuple(map(str, getattr(MEMBERS.load(prefix), "models", ())))


def missing_added_key(prefix: str, env: Mapping[str, str]) -> str:
    """Return the unset variable that an installed package's members need, or ""."""
    name = str(getattr(MEMBERS.load(prefix), "api_key_env", ""))
    return name if name and not env.get(name, "").strip() else ""


def _routed_vendor(name: str, router: str) -> str:
    model = catalogue().find(name)
    return model.vendor if model else name.partition("/")[0] if "/" in name else router


def _special_vendor(kind: str, name: str) -> str:
    if kind == "cli":
        agent = name.partition(":")[0]
        return catalogue().commands.get(agent, agent)
    return name.partition(":")[0] if kind == "pai" else kind


def _unknown_member_error(member: str, settings: Settings) -> ConfigError:
    provider, _ = split_member(member)
    if not provider:
        return _unknown_name_error(member)
    names = ", ".join([*settings.providers, *MEMBERS.names])
    return ConfigError(
        f"unknown provider {quote_value(provider)} in {quote_value(member)}: use one of {names}, or add [providers.{provider}]"
    )


def _unknown_name_error(name: str) -> ConfigError:
    if several := catalogue().find_by_start(name.lower()):
        newest = {find_line(model.name) or model: model.name for model in reversed(several)}
        listed = _join_choices([*reversed(newest.values())])
        return ConfigError(f"{quote_value(name)} can mean several models: write {listed}")
    from difflib import get_close_matches  # only needed for errors

    known = [*catalogue().models, *catalogue().lines]
    near = get_close_matches(name.lower(), known, MAX_SUGGESTIONS) or get_close_matches(name, known, 1, 0.0)
    hint = _join_choices([quote_value(one) for one in near])
    return ConfigError(f"unknown model {quote_value(name)}: did you mean {hint}? Or write it as provider:model")


def _join_choices(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def resolve_member(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the member as `provider:model`; a short name gets its first available provider."""
    provider, name = split_member(member)
    if provider or member in settings.custom_members:
        vendor_of(member, settings)  # raises for an unknown provider
        return _resolve_line(member, settings, env) if name in catalogue().lines else member
    found, keys = _resolve_short_name(name, settings, env)
    if found is None:
        raise ConfigError(
            f"no provider of {quote_value(name)} is available: "
            f"set {f'one of {keys}' if keys else 'OLLAMA_HOST'}, or choose another member"
        )
    return found


def _resolve_short_name(name: str, settings: Settings, env: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the available member that a short name means, and the keys of its providers.

    A short name is a name, an alias or the start of a name of the catalogue, the model of a configured member, or a
    model that a vendor lists. Raise ConfigError if it means no model or several.
    """
    if found := name.lower() in catalogue().lines and find_default_member(name.lower(), settings, env):
        return found, ""
    model = catalogue().find(name) or catalogue().find(name.lower())
    if model is None and (own := find_line(name)) and _is_listed(own.vendor, name):
        return _find_listed_member(own.vendor, name, settings, env)
    starts = catalogue().find_by_start(name.lower()) if model is None else []
    lines = {find_line(one.name) for one in starts}
    if len(starts) > 1 and len(lines) == 1 and (line := lines.pop()):
        return find_default_member(line.name, settings, env), _format_keys((line.vendor, ROUTER), settings)
    model = model or (starts[0] if len(starts) == 1 else None)
    if model and model.retired and model.retired <= today():
        model = catalogue().models.get(model.successor, model)
    if model and (found := find_available_member(model, settings, env)):
        return found, ""
    written = (*settings.models.values(), *_configured_members(settings))
    configured = {one for one in written if split_member(one)[0] and split_member(one)[1] == name}
    if len(configured) == 1:
        return configured.pop(), ""
    if model:
        return None, _format_keys(model.ids, settings)
    for vendor in VENDORS_WITH_LISTS:
        if _is_listed(vendor, name):
            return _find_listed_member(vendor, name, settings, env)
    raise _unknown_name_error(name)


def _format_keys(providers: Iterable[str], settings: Settings) -> str:
    keys = (settings.providers[provider].api_key_env for provider in providers if provider in settings.providers)
    return ", ".join(filter(None, keys))


def _find_listed_member(vendor: str, name: str, settings: Settings, env: Mapping[str, str]) -> tuple[str | None, str]:
    """Return a vendor's model that is not in the catalogue, by the vendor's own provider or by a router."""
    members = {vendor: f"{vendor}:{name}", ROUTER: f"{ROUTER}:{vendor}/{name}"}
    found = (members[one] for one in members if is_available(settings.providers[one], settings, env))
    return next(found, None), _format_keys(members, settings)


@lru_cache(maxsize=256)
def _is_listed(vendor: str, name: str) -> bool:
    """Return whether the offline price list has this model of a vendor."""
    from genai_prices.data_snapshot import get_snapshot  # only needed for a name that is not in the catalogue

    try:
        get_snapshot().find_provider_model(name, None, vendor, None)
    except (LookupError, ValueError):
        return False
    return True


def require_available(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Resolve a member that was chosen by name; raise ConfigError if its key or command is missing."""
    resolved = resolve_member(member, settings, env)
    if why := unavailable_reason(resolved, settings, env):
        raise ConfigError(why)
    return resolved


def unavailable_reason(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return why a member is unavailable, or "" if no reason is known without calling it."""
    if member in settings.custom_members:
        return ""
    if split_member(member)[0] == "cli":
        return _missing_command(member, env)
    key = _missing_key(split_member(member)[0], settings, env)
    return key and f"no API key for {quote_value(member)}: set {key}, or choose another member"


def _missing_key(prefix: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the unset key variable of a provider or of an installed package's members, or ""."""
    if prefix in SPECIAL_MEMBERS:
        return ""
    provider = settings.providers.get(prefix)
    if provider is None:
        return missing_added_key(prefix, env) if prefix in MEMBERS else ""
    return "" if _has_key(provider, env) else provider.api_key_env


def _missing_command(member: str, env: Mapping[str, str]) -> str:
    """Return why the command-line agent of a member cannot be started, or ""."""
    agent = split_member(member)[1].partition(":")[0]
    if agent not in catalogue().commands:
        agents = ", ".join(f"cli:{name}" for name in catalogue().commands)
        return f"{quote_value(member)} is not a supported command-line agent: use one of {agents}"
    if find_command(agent, env):
        return ""
    fix = "install it and log in, or choose another member"
    return f"{quote_value(member)} needs `{agent}`, which is not on PATH: {fix}"


def find_available_member(model: Model, settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return the member that reaches this model through its first available provider, or None."""
    providers = (provider for provider in model.ids if is_available(settings.providers[provider], settings, env))
    return next((f"{provider}:{model.name}" for provider in providers), None)


def find_default_member(name: str, settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return the member of a default, which is a line or a model, through its first available provider, or None."""
    line = catalogue().lines.get(name)
    if line is None:
        return find_available_member(catalogue().models[name], settings, env)
    for provider in (line.vendor, ROUTER):
        found = settings.providers[provider]
        if is_available(found, settings, env) and (member := find_newest_member(name, found, settings, env)):
            return member
    return None


def _resolve_line(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the newest member for `provider:line`; a provider that has no such line gets the name as written."""
    provider, line = split_member(member)
    if provider not in (catalogue().lines[line].vendor, ROUTER) or provider not in settings.providers:
        return member
    return find_newest_member(line, settings.providers[provider], settings, env) or member


def is_available(provider: Provider, settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether the provider's key is set; a provider without a key must be configured explicitly."""
    return _has_key(provider, env) and (bool(provider.api_key_env) or settings.is_set(f"providers.{provider.name}"))


def _has_key(provider: Provider, env: Mapping[str, str]) -> bool:
    return not provider.api_key_env or bool(env.get(provider.api_key_env, "").strip())


def available_members(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the available members, best first: [models], each vendor's strongest model, members of [seats]."""
    named = [*_iter_callable((settings.models[name] for name in MODEL_ORDER if name in settings.models), settings, env)]
    seated = [
        member
        for member in _iter_callable(_configured_members(settings), settings, env)
        if member in settings.custom_members or settings.may_choose(vendor_of(member, settings))
    ]
    named_providers = {split_member(member)[0] for member in (*named, *seated)}
    strongest = _iter_tier("strong", named_providers, settings, env)
    others = (member for member in seated if split_member(member)[0] not in NO_MODEL_NEEDED)
    members = [member for member in dict.fromkeys((*named, *strongest, *others)) if member != LOCAL_MEMBER]
    scripted = [member for member in seated if split_member(member)[0] == "scripted"]
    return [Candidate(member, vendor_of(member, settings)) for member in members or dict.fromkeys(scripted)]


def _configured_members(settings: Settings) -> list[str]:
    named = [seat.model for seat in (*settings.seats.values(), settings.chair) if seat.model]
    return [*named, *settings.custom_members]


def _iter_callable(members: Iterable[str], settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for member in members:
        provider, name = split_member(member)
        if not provider and member not in settings.custom_members:
            resolved, _ = _resolve_short_name(name, settings, env)
        else:
            named = resolve_member(member, settings, env)  # raises for an unknown provider
            resolved = None if unavailable_reason(named, settings, env) else named
        if resolved:
            yield resolved


def _iter_tier(tier: str, named_providers: set[str], settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the member of a tier of each vendor that may be chosen.

    It is a guess for a provider without a key, so not if the settings name another model there.
    """
    for vendor, tiers in catalogue().tiers.items():
        member = find_default_member(tiers[tier], settings, env)
        if member and settings.may_choose(vendor):
            provider = split_member(member)[0]
            if settings.providers[provider].api_key_env or provider not in named_providers:
                yield member


def fast_members(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the fast members for `--cheap`: [models] fast, then the fast model of each other available vendor."""
    configured = [*_iter_callable(filter(None, [settings.models.get("fast")]), settings, env)]
    named = {split_member(member)[0] for member in (*settings.models.values(), *_configured_members(settings))}
    members = [*configured, *_iter_tier("fast", named, settings, env)]
    by_vendor: dict[str, Candidate] = {}
    for member in members:
        by_vendor.setdefault(vendor_of(member, settings), Candidate(member, vendor_of(member, settings)))
    found = list(by_vendor.values())
    if not found and (others := available_members(settings, env)):
        raise ConfigError(
            f"{option('cheap')} found no fast model beside {quote_value(others[0].member)}: set [models] fast, or name the members"
        )
    return found or [LOCAL_CANDIDATE]


def tier_member(tier: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the member of a tier: from [models], else the first available vendor's model of that tier."""
    if named := settings.models.get(tier) or settings.models.get("default"):
        return resolve_member(named, settings, env)
    first = (available_members(settings, env) or [LOCAL_CANDIDATE])[0]
    name = catalogue().tiers.get(first.vendor, {}).get(tier)
    return (name and find_default_member(name, settings, env)) or first.member


def spread_members(first: str, tier: str, settings: Settings, env: Mapping[str, str]) -> list[str]:
    """Return a member and one of each other available vendor, of the same tier where the vendor has one.

    The member of [models] fast may be much weaker than the others, so it counts only in its own tier.
    """
    if settings.cheap:
        others = fast_members(settings, env)
    else:
        others = [one for one in available_members(settings, env) if tier == "fast" or not _is_fast(one, settings, env)]
    chosen = {vendor_of(first, settings): first}
    for candidate in others:
        if candidate.vendor not in chosen and candidate != LOCAL_CANDIDATE:
            chosen[candidate.vendor] = _find_tier_member(candidate, tier, settings, env)
    return list(chosen.values())


def _is_fast(candidate: Candidate, settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether a candidate is a member only because it is [models] fast."""
    models = {name: resolve_member(one, settings, env) for name, one in settings.models.items()}
    fast = models.pop("fast", None)
    return candidate.member == fast and candidate.member not in models.values()


def _find_tier_member(candidate: Candidate, tier: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the model of a tier of a candidate's vendor, unless the settings name the candidate."""
    configured = [*settings.models.values(), *_configured_members(settings)]
    if candidate.member in [resolve_member(one, settings, env) for one in configured]:
        return candidate.member
    name = catalogue().tiers.get(candidate.vendor, {}).get(tier)
    return (name and find_default_member(name, settings, env)) or candidate.member


# Retired models and lines of a plan


@dataclass(frozen=True, slots=True)
class Retirement:
    """Why a model is not offered any more, or will not be, and what replaces it."""

    date: str  # of the shutdown; "" if the vendor just does not list it
    successor: str  # member, or ""

    @property
    def is_over(self) -> bool:
        return self.date <= today()


def find_retirement(member: str, settings: Settings, env: Mapping[str, str]) -> Retirement | None:
    """Return the retirement of a member, by the list of its provider, else by the catalogue. None if there is none."""
    kind, name = split_member(member)
    provider, model, id_ = settings.providers.get(kind), catalogue().find(name), model_id(member)
    if provider is None or kind not in catalogue().providers:
        return None
    listing, date = find_listing(provider, settings, env), model.retired if model else ""
    if listing and id_ in listing.models:
        date = listing.models[id_]
    elif listing and find_line(name) and listing.lacks(id_):
        return Retirement(date if date <= today() else "", _find_successor(kind, name, settings, env))
    return Retirement(date, _find_successor(kind, name, settings, env)) if date else None


def _find_successor(provider: str, name: str, settings: Settings, env: Mapping[str, str]) -> str:
    line, successor = find_line(name), find_successor(name)
    member = f"{provider}:{successor}" if successor else ""
    if line and successor in ("", line.snapshot):  # the newest one may be newer than the catalogue
        newest = _resolve_line(f"{provider}:{line.name}", settings, env)
        member = newest if split_member(newest)[1] != line.name else member
    return "" if model_id(member) == model_id(f"{provider}:{name}") else member
