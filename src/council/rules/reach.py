"""Who can be called at all: what a member's name means, whose family it is, and what is available now."""

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

LOCAL = "local:smollm2"  # the embedded model: it shows the machinery, and stands in for nobody
SEATED = ("local", "scripted", "cli", "pai", "human")  # of the special members those that can sit today
NAMELESS = ("scripted", "human")  # no model has to be named
MODEL_ORDER = ("default", "other", "strong", "fast")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that could be called now, and the family it counts as."""

    member: str
    vendor: str


def vendor_of(member: str, settings: Settings) -> str:
    """The family a member counts as. Through a router it is the model's own, not the router's."""
    provider, name = split_member(member)
    if provider not in (*SPECIAL, *settings.providers):
        raise _unknown(member, settings)
    if not name.strip() and provider not in NAMELESS:
        form = "PROVIDER:MODEL" if provider == "pai" else "AGENT" if provider == "cli" else "MODEL"
        raise ConfigError(f"{quoted(member)} names no model, so nobody can sit there; write it as {provider}:{form}")
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
            f"unknown model {quoted(member)}, nobody can sit there; did you mean {quoted(close)}? Or write it as provider:model"
        )
    known = ", ".join([*settings.providers, *SEATED])
    return ConfigError(
        f"unknown provider {quoted(provider)} in {quoted(member)}, nobody can sit there; known are {known}; add [providers.{provider}] or correct the name"
    )


def resolve(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """The member as `provider:model`: as written, or a short name through the first provider that can be called."""
    provider, name = split_member(member)
    if provider:
        vendor_of(member, settings)  # refuses a provider nobody knows
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
        f"{quoted(model.name)} cannot be called, no provider of it is available; set one of {keys or 'OLLAMA_HOST'}, or choose another member"
    )


def seatable(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """A member somebody chose by name, resolved; refused here and now if its key or its command is not there."""
    found = resolve(member, settings, env)
    if why := hindrance(found, settings, env):
        raise ConfigError(why)
    return found


def hindrance(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Why a member cannot be called now, as far as that is known before it is; nothing if it can."""
    if (agent := _missing_command(member, env)) is not None:
        return _no_command(member, agent)
    provider = settings.providers.get(split_member(member)[0])
    if provider is None or _has_key(provider, env):
        return ""
    return f"{quoted(member)} cannot sit, the key of its provider is not there; set {provider.api_key_env}, or choose another member"


def _missing_command(member: str, env: Mapping[str, str]) -> str | None:
    """The command-line agent that a member needs and that is not on PATH."""
    kind, name = split_member(member)
    agent = name.partition(":")[0]
    known = kind != "cli" or (agent in catalogue().commands and command_path(agent, env) is not None)
    return None if known else agent


def _no_command(member: str, agent: str) -> str:
    if agent not in catalogue().commands:
        known = ", ".join(f"cli:{name}" for name in catalogue().commands)
        return f"{quoted(member)} names no command-line agent we can speak to, nobody can sit there; known are {known}"
    return (
        f"{quoted(member)} cannot sit, there is no `{agent}` on PATH; install it and log in, or choose another member"
    )


def reached(model: Model, settings: Settings, env: Mapping[str, str]) -> str | None:
    """The member through which a known model can be called now, if there is one."""
    open_now = (provider for provider in model.ids if is_available(settings.providers[provider], settings, env))
    provider = next(open_now, None)
    return provider and f"{provider}:{model.name}"


def is_available(provider: Provider, settings: Settings, env: Mapping[str, str]) -> bool:
    """Its key is there; or it needs none and somebody spoke of it."""
    return _has_key(provider, env) and (bool(provider.api_key_env) or settings.given(f"providers.{provider.name}"))


def _has_key(provider: Provider, env: Mapping[str, str]) -> bool:
    return not provider.api_key_env or bool(env.get(provider.api_key_env, "").strip())


def available(settings: Settings, env: Mapping[str, str]) -> list[Candidate]:
    """What could be called now, best first: [models], then the known families, then whoever was seated by name."""
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
    """What a provider without a key serves is a guess; it gives way to what somebody named there."""
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
