"""Resolve member names: provider, vendor and current availability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from council.errors import ConfigError
from council.settings import (
    SPECIAL,
    Model,
    Provider,
    Settings,
    catalogue,
    command_path,
    nearest,
    quoted,
    split_member,
)

LOCAL = "local:smollm2"  # the embedded model; never used as a fallback
SEATED = ("local", "scripted", "cli", "pai", "human")
NAMELESS = ("scripted", "human")  # members that need no model name
MODEL_ORDER = ("default", "other", "strong", "fast")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Available member and its vendor."""

    member: str
    vendor: str


def vendor_of(member: str, settings: Settings) -> str:
    """Return the vendor of a member. For a router it is the model's vendor, not the router's."""
    provider, name = split_member(member)
    if provider not in (*SPECIAL, *settings.providers):
        raise _unknown(member, settings)
    if not name.strip() and provider not in NAMELESS:
        form = "PROVIDER:MODEL" if provider == "pai" else "AGENT" if provider == "cli" else "MODEL"
        raise ConfigError(f"{quoted(member)} names no model: write {provider}:{form}")
    if provider in SPECIAL:
        return _special_vendor(provider, name)
    own = settings.providers[provider].vendor
    return _behind(name, own) if provider == "openrouter" else own


def _behind(name: str, router: str) -> str:
    known = catalogue().find(name)
    return known.vendor if known else name.partition("/")[0] if "/" in name else router


def _special_vendor(kind: str, name: str) -> str:
    if kind == "cli":
        agent = name.partition(":")[0]
        return catalogue().commands.get(agent, agent)
    return name.partition(":")[0] if kind == "pai" else kind


def _unknown(member: str, settings: Settings) -> ConfigError:
    provider, _ = split_member(member)
    if not provider:
        close = nearest(member, catalogue().known_as)
        return ConfigError(
            f"unknown model {quoted(member)}: did you mean {quoted(close)}? Or write it as provider:model"
        )
    known = ", ".join([*settings.providers, *SEATED])
    return ConfigError(
        f"unknown provider {quoted(provider)} in {quoted(member)}: use one of {known}, or add [providers.{provider}]"
    )


def resolve(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the member as `provider:model`; a short name gets its first available provider."""
    provider, name = split_member(member)
    if provider:
        vendor_of(member, settings)  # raises for an unknown provider
        return member
    model = catalogue().find(name)
    if model is None:
        raise _unknown(member, settings)
    return reached(model, settings, env) or _unreached(model, settings)


def _unreached(model: Model, settings: Settings) -> str:
    keys = ", ".join(
        settings.providers[provider].api_key_env for provider in model.ids if provider in settings.providers
    )
    raise ConfigError(
        f"no provider of {quoted(model.name)} is available: set one of {keys or 'OLLAMA_HOST'}, or choose another member"
    )


def seatable(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Resolve a member that was chosen by name; raise ConfigError if its key or command is missing."""
    found = resolve(member, settings, env)
    if why := hindrance(found, settings, env):
        raise ConfigError(why)
    return found


def hindrance(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return why a member is unavailable, or "" if no reason is known without calling it."""
    if (agent := _missing_command(member, env)) is not None:
        return _no_command(member, agent)
    provider = settings.providers.get(split_member(member)[0])
    if provider is None or _has_key(provider, env):
        return ""
    return f"no API key for {quoted(member)}: set {provider.api_key_env}, or choose another member"


def _missing_command(member: str, env: Mapping[str, str]) -> str | None:
    """Return the command-line agent that a member needs and that is not on PATH."""
    kind, name = split_member(member)
    agent = name.partition(":")[0]
    known = kind != "cli" or (agent in catalogue().commands and command_path(agent, env) is not None)
    return None if known else agent


def _no_command(member: str, agent: str) -> str:
    if agent not in catalogue().commands:
        known = ", ".join(f"cli:{name}" for name in catalogue().commands)
        return f"{quoted(member)} is not a supported command-line agent: use one of {known}"
    return f"{quoted(member)} needs `{agent}`, which is not on PATH: install it and log in, or choose another member"


def reached(model: Model, settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return the member that reaches this model through its first available provider, or None."""
    open_now = (provider for provider in model.ids if is_available(settings.providers[provider], settings, env))
    provider = next(open_now, None)
    return provider and f"{provider}:{model.name}"


def is_available(provider: Provider, settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether the provider's key is set; a provider without a key must be configured explicitly."""
    return _has_key(provider, env) and (bool(provider.api_key_env) or settings.given(f"providers.{provider.name}"))


def _has_key(provider: Provider, env: Mapping[str, str]) -> bool:
    return not provider.api_key_env or bool(env.get(provider.api_key_env, "").strip())


def available(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """Return the available members, best first: [models], each vendor's strongest model, members of [seats]."""
    named = [*_callable((settings.models[name] for name in MODEL_ORDER if name in settings.models), settings, env)]
    seated = [*_callable(_seated(settings), settings, env)]
    spoken_of = {split_member(member)[0] for member in (*named, *seated)}
    families = (member for member in _families(settings, env) if _sure(member, settings, spoken_of))
    others = (member for member in seated if split_member(member)[0] in (*settings.providers, "local", "cli", "pai"))
    members = [member for member in dict.fromkeys((*named, *families, *others)) if member != LOCAL]
    alone = [member for member in seated if split_member(member)[0] == "scripted"]
    return [Candidate(member, vendor_of(member, settings)) for member in members or dict.fromkeys(alone)]


def _seated(settings: Settings) -> list[str]:
    return [seat.model for seat in (*settings.seats.values(), settings.chair) if seat.model]


def _sure(member: str, settings: Settings, spoken_of: set[str]) -> bool:
    """Return False for a guessed model of a keyless provider when the settings name another model there."""
    provider = split_member(member)[0]
    return bool(settings.providers[provider].api_key_env) or provider not in spoken_of


def _callable(members: Iterable[str], settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for member in members:
        provider, name = split_member(member)
        if not provider:
            model = catalogue().find(name)
            found = reached(model, settings, env) if model else resolve(member, settings, env)
        elif _missing_command(member, env) is not None:
            found = None
        else:
            endpoint = settings.providers.get(resolve(member, settings, env).partition(":")[0])
            found = member if endpoint is None or _has_key(endpoint, env) else None
        if found:
            yield found


def _families(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for tiers in catalogue().tiers.values():
        if member := reached(catalogue().models[tiers["strong"]], settings, env):
            yield member
