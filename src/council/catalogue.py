"""What data/models.toml says: providers, models and their ids, tiers, the default seating."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data") / "models.toml"


@dataclass(frozen=True, slots=True)
class Model:
    """A model as we call it; `ids` is what each provider calls it, the provider to prefer first."""

    name: str
    vendor: str
    ids: Mapping[str, str]
    reasoning: bool = False
    efforts: tuple[str, ...] = ("low", "medium", "high")  # that it can be asked to make; it refuses others


@dataclass(frozen=True, slots=True)
class Catalogue:
    providers: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Model]
    tiers: Mapping[str, Mapping[str, str]]  # family → tier → model
    seating: Mapping[str, Mapping[str, str]]  # seat → model and fallback
    commands: Mapping[str, str]  # command-line agent → family
    known_as: Mapping[str, str]  # every name, alias and id → our name

    def find(self, name: str) -> Model | None:
        """The model of that name, alias or id."""
        return self.models.get(self.known_as.get(name, ""))


@cache
def catalogue() -> Catalogue:
    tables = tomllib.loads(DATA.read_text(encoding="utf-8"))
    models = {name: Model(name, **row) for name, row in tables["models"].items()}
    ids = {id_: model.name for model in models.values() for id_ in model.ids.values()}
    known_as = {**ids, **tables["aliases"], **{name: name for name in models}}
    return Catalogue(tables["providers"], models, tables["tiers"], tables["seating"], tables["commands"], known_as)


def split_member(member: str) -> tuple[str, str]:
    """`provider:model` in two; a short name has no provider, `human` has no model."""
    if member == "human":
        return "human", ""
    provider, colon, model = member.partition(":")
    return (provider, model) if colon else ("", member)


def model_id(member: str) -> str:
    """What goes onto the wire as the model's name; what is not in the catalogue goes as written."""
    provider, name = split_member(member)
    known = catalogue().find(name)
    return known.ids.get(provider, name) if known else name


def is_reasoning(member: str) -> bool:
    """Members that think before they speak get longer clocks."""
    provider, name = split_member(member)
    if provider == "cli":  # an agent that starts a process, and thinks by itself
        return True
    known = catalogue().find(name)
    return known is not None and known.reasoning
