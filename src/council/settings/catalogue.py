"""Model catalogue from data/models.toml: providers, models and their ids, tiers, default seating."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LOCAL_MEMBER = "local:smollm2"  # the embedded model; never used as a fallback
RESPONSES_WIRE = "openai-responses"  # of OpenAI itself
GATEWAY_WIRE = "openai"  # chat completions, which gateways for OpenAI's API support
MODELS_FILE = Path(__file__).parents[1] / "data" / "models.toml"


@dataclass(frozen=True, slots=True)
class Model:
    """Model under our name. `ids` maps provider to model id, preferred provider first."""

    name: str
    vendor: str
    ids: Mapping[str, str]
    reasoning: bool = False
    efforts: tuple[str, ...] = ("low", "medium", "high")  # reasoning efforts it accepts


@dataclass(frozen=True, slots=True)
class Catalogue:
    providers: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Model]
    tiers: Mapping[str, Mapping[str, str]]  # family → tier → model
    seating: Mapping[str, Mapping[str, str]]  # seat → model and fallback
    commands: Mapping[str, str]  # command-line agent → family
    canonical_names: Mapping[str, str]  # every name, alias and id → our name
    aliases: Mapping[str, str]  # short name → our name

    def find(self, name: str) -> Model | None:
        """Return the model with that name, alias or id."""
        return self.models.get(self.canonical_names.get(name, ""))

    def find_by_start(self, name: str) -> list[Model]:
        """Return the models that a shortened name can mean: `gemini-3-pro` is the start of gemini-3-pro-preview."""
        full = dict.fromkeys(
            model
            for known, model in self.canonical_names.items()
            if known.startswith(name) and known[len(name) : len(name) + 1] in ("-", ".", ":")
        )
        return [self.models[model] for model in full]


@cache
def catalogue() -> Catalogue:
    tables = tomllib.loads(MODELS_FILE.read_text(encoding="utf-8"))
    models = {name: Model(name, **row) for name, row in tables["models"].items()}
    ids = {id_: model.name for model in models.values() for id_ in model.ids.values()}
    canonical_names = {**ids, **tables["aliases"], **{name: name for name in models}}
    return Catalogue(
        tables["providers"],
        models,
        tables["tiers"],
        tables["seating"],
        tables["commands"],
        canonical_names,
        tables["aliases"],
    )


def default_wire(provider: str, base_url: str) -> dict[str, str]:
    """Return the wire of a provider that sets none: a built-in one at an address of another company is a gateway."""
    row = catalogue().providers.get(provider)
    if row is None or row.get("wire") != RESPONSES_WIRE or base_url == row["base_url"]:
        return {}
    host, own = urlsplit(base_url).hostname or "", urlsplit(row["base_url"]).hostname or ""
    return {} if host == own or host.endswith(f".{own}") else {"wire": GATEWAY_WIRE}


@lru_cache(maxsize=1024)
def split_member(member: str) -> tuple[str, str]:
    """Split `provider:model`. A short name has no provider, `human` has no model."""
    if member == "human":
        return "human", ""
    provider, colon, model = member.partition(":")
    return (provider, model) if colon else ("", member)


def model_id(member: str) -> str:
    """Return the model id to send to the provider; a name that is not in the catalogue is sent as written."""
    provider, name = split_member(member)
    model = catalogue().find(name)
    return model.ids.get(provider, name) if model else name


@lru_cache(maxsize=1024)
def is_reasoning(member: str) -> bool:
    """Return whether the member reasons before it answers and so needs longer timeouts."""
    provider, name = split_member(member)
    if provider == "cli":  # agents start a process and reason on their side
        return True
    model = catalogue().find(name)
    return model is not None and model.reasoning
