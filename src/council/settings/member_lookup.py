"""Resolve member names: provider, vendor and current availability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from council.errors import ConfigError, option
from council.extensions import MEMBERS
from council.settings import Provider, Settings
from council.settings.catalogue import LOCAL_MEMBER, Model, catalogue, split_member
from council.settings.config_files import find_command
from council.settings.schema import SPECIAL_MEMBERS, quote_value

NO_MODEL_NEEDED = ("scripted", "human")  # members that need no model name
MODEL_ORDER = ("default", "other", "strong", "fast")
DEFAULT_SEATS = ("alpha", "beta", "gamma")  # other seat names use these defaults in rotation
ADDED_SEATS = ("delta", "epsilon", "zeta", "eta", "theta")  # seats of a council with more than three members
MAX_SUGGESTIONS = 3
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
    if not is_known_prefix(provider, settings):
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


def is_known_prefix(prefix: str, settings: Settings) -> bool:
    """Return whether members with this prefix exist: shipped, of a provider, or of an installed package."""
    return prefix in SPECIAL_MEMBERS or prefix in settings.providers or prefix in MEMBERS


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
        listed = _join_choices([model.name for model in several])
        return ConfigError(f"{quote_value(name)} can mean several models: write {listed}")
    from difflib import get_close_matches  # only needed for errors

    known = [*catalogue().models, *catalogue().aliases]
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
        return member
    found, keys = _resolve_short_name(name, settings, env)
    if found is None:
        raise ConfigError(
            f"no provider of {quote_value(name)} is available: "
            f"set {f'one of {keys}' if keys else 'OLLAMA_HOST'}, or choose another member"
        )
    return found


def _resolve_short_name(name: str, settings: Settings, env: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the available member that a short name means, and the keys of its providers.

    A short name is a name, an alias or the start of a name of the catalogue, the model of a configured member, or a model
    that a vendor lists. Raise ConfigError if it means no model or several.
    """
    starts = catalogue().find_by_start(name.lower())
    model = catalogue().find(name) or catalogue().find(name.lower()) or (starts[0] if len(starts) == 1 else None)
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
    members = {vendor: f"{vendor}:{name}", "openrouter": f"openrouter:{vendor}/{name}"}
    found = (
        member for provider, member in members.items() if is_available(settings.providers[provider], settings, env)
    )
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
    if (agent := _missing_command(member, env)) is not None:
        return _missing_command_reason(member, agent)
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


def _missing_command(member: str, env: Mapping[str, str]) -> str | None:
    """Return the command-line agent that a member needs and that is not on PATH."""
    kind, name = split_member(member)
    agent = name.partition(":")[0]
    is_available = kind != "cli" or (agent in catalogue().commands and find_command(agent, env) is not None)
    return None if is_available else agent


def _missing_command_reason(member: str, agent: str) -> str:
    if agent not in catalogue().commands:
        agents = ", ".join(f"cli:{name}" for name in catalogue().commands)
        return f"{quote_value(member)} is not a supported command-line agent: use one of {agents}"
    return (
        f"{quote_value(member)} needs `{agent}`, which is not on PATH: install it and log in, or choose another member"
    )


def find_available_member(model: Model, settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return the member that reaches this model through its first available provider, or None."""
    providers = (provider for provider in model.ids if is_available(settings.providers[provider], settings, env))
    provider = next(providers, None)
    return provider and f"{provider}:{model.name}"


def is_available(provider: Provider, settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether the provider's key is set; a provider without a key must be configured explicitly."""
    return _has_key(provider, env) and (bool(provider.api_key_env) or settings.is_set(f"providers.{provider.name}"))


def _has_key(provider: Provider, env: Mapping[str, str]) -> bool:
    return not provider.api_key_env or bool(env.get(provider.api_key_env, "").strip())


def available_members(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the available members, best first: [models], each vendor's strongest model, members of [seats]."""
    named = [*_iter_callable((settings.models[name] for name in MODEL_ORDER if name in settings.models), settings, env)]
    seated = [*_iter_callable(_configured_members(settings), settings, env)]
    named_providers = {split_member(member)[0] for member in (*named, *seated)}
    strongest = (
        member for member in _strongest_members(settings, env) if _is_confirmed(member, settings, named_providers)
    )
    others = (member for member in seated if split_member(member)[0] not in NO_MODEL_NEEDED)
    members = [member for member in dict.fromkeys((*named, *strongest, *others)) if member != LOCAL_MEMBER]
    scripted = [member for member in seated if split_member(member)[0] == "scripted"]
    return [Candidate(member, vendor_of(member, settings)) for member in members or dict.fromkeys(scripted)]


def _configured_members(settings: Settings) -> list[str]:
    named = [seat.model for seat in (*settings.seats.values(), settings.chair) if seat.model]
    return [*named, *settings.custom_members]


def _is_confirmed(member: str, settings: Settings, named_providers: set[str]) -> bool:
    """Return False for a guessed model of a keyless provider when the settings name another model there."""
    provider = split_member(member)[0]
    return bool(settings.providers[provider].api_key_env) or provider not in named_providers


def _iter_callable(members: Iterable[str], settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for member in members:
        provider, name = split_member(member)
        if not provider and member not in settings.custom_members:
            resolved, _ = _resolve_short_name(name, settings, env)
        else:
            resolve_member(member, settings, env)  # raises for an unknown provider
            resolved = None if unavailable_reason(member, settings, env) else member
        if resolved:
            yield resolved


def _strongest_members(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for vendor, tiers in catalogue().tiers.items():
        member = find_available_member(catalogue().models[tiers["strong"]], settings, env)
        if member and settings.may_choose(vendor):
            yield member


def fast_members(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the fast members for `--cheap`: [models] fast, then the fast model of each other available vendor."""
    configured = [*_iter_callable(filter(None, [settings.models.get("fast")]), settings, env)]
    chosen = (tiers for vendor, tiers in catalogue().tiers.items() if settings.may_choose(vendor))
    models = (catalogue().models[tiers["fast"]] for tiers in chosen)
    named = {split_member(member)[0] for member in (*settings.models.values(), *_configured_members(settings))}
    listed = filter(None, (find_available_member(model, settings, env) for model in models))
    members = [*configured, *(member for member in listed if _is_confirmed(member, settings, named))]
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
    return (name and find_available_member(catalogue().models[name], settings, env)) or first.member
