"""Model catalogue from data/models.toml: providers, models and their ids, lines of models, tiers, default seating."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LOCAL_MEMBER = "local:smollm2"  # the embedded model; never used as a fallback
LISTED_PROVIDERS = ("anthropic", "openai", "google", "openrouter")  # their lists of models decide about defaults
RESPONSES_WIRE = "openai-responses"  # of OpenAI itself; gateways for its API support chat completions
MODELS_FILE = Path(__file__).parents[1] / "data" / "models.toml"


@dataclass(frozen=True, slots=True)
class Model:
    """Model under our name. `ids` maps provider to model id, preferred provider first."""

    name: str
    vendor: str
    ids: Mapping[str, str]
    reasoning: bool = False
    efforts: tuple[str, ...] = ("low", "medium", "high")  # reasoning efforts it accepts
    retired: str = ""  # date of its shutdown, which may be in the future
    successor: str = ""  # our name of the model that replaces it


@dataclass(frozen=True, slots=True)
class Line:
    """Models of a vendor that follow each other, such as opus."""

    name: str
    vendor: str
    pattern: str  # matches an id without its date; the group is the version
    snapshot: str  # our name of the newest model when this version was made
    documented: str = ""  # name in the documented line-up


@dataclass(frozen=True, slots=True)
class Catalogue:
    providers: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Model]
    lines: Mapping[str, Line]
    tiers: Mapping[str, Mapping[str, str]]  # family → tier → line or model
    seating: Mapping[str, Mapping[str, str]]  # seat → line of its member and of its fallback
    commands: Mapping[str, str]  # command-line agent → family
    canonical_names: Mapping[str, str]  # every name, alias and id → our name
    snapshot: str  # date of the snapshots of the lines
    inputs: Mapping[str, str]  # kind of attachment → pattern of the ids of the models that take it

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
    lines = {name: Line(name, **row) for name, row in tables["lines"].items()}
    ids = {id_: model.name for model in models.values() for id_ in model.ids.values()}
    snapshots = {line.name: line.snapshot for line in lines.values()}
    canonical_names = {**ids, **snapshots, **{name: name for name in models}}
    plain = {name: table for name, table in tables.items() if name not in ("models", "lines")}
    return Catalogue(models=models, lines=lines, canonical_names=canonical_names, **plain)


def is_own_host(provider: str, base_url: str) -> bool:
    """Return whether an address is that of a built-in provider's company, such as eu.api.openai.com, and no gateway."""
    host, own = urlsplit(base_url).hostname or "", urlsplit(catalogue().providers[provider]["base_url"]).hostname
    return host == own or host.endswith(f".{own}")


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
    model = find_traits(name)
    return model is not None and model.reasoning


# Lines

RELEASE_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")  # claude-haiku-4-5-20251001, gpt-5.2-2025-12-11
Version = tuple[tuple[int, ...], bool, bool]


def remove_date(id_: str) -> str:
    """Return an id without its release date."""
    return RELEASE_DATE.sub("", id_)


def parse_version(line: Line, id_: str) -> Version | None:
    """Return the version of a model of this line, to compare it with others; None if it is no model of the line.

    A stable model is newer than a preview of the same version, and an id without a date comes before one with it.
    """
    name = id_.removeprefix(f"{line.vendor}/")
    found = re.fullmatch(line.pattern, remove_date(name))
    if not found:
        return None
    numbers = tuple(int(number) for number in re.split("[.-]", found[1]))
    return numbers, not remove_date(name).endswith("-preview"), remove_date(name) == name


def find_newest(line: Line, ids: Iterable[str], is_priced: Callable[[str], bool] = bool) -> str:
    """Return the newest id of a line that has a price, else the newest; "" if there is none."""
    versions = {id_: version for id_ in ids if (version := parse_version(line, id_))}
    best = sorted(versions, key=lambda id_: versions[id_], reverse=True)
    return next(filter(is_priced, best), best[0] if best else "")


def name_member(provider: str, id_: str) -> str:
    """Return the member of a listed id: with our name if the catalogue knows it, else with the id itself."""
    known = catalogue().find(id_) or catalogue().find(remove_date(id_))
    return f"{provider}:{known.name if known and provider in known.ids else id_}"


@lru_cache(maxsize=1024)
def find_line(name: str) -> Line | None:
    """Return the line of a model, by the name of the line, of the model or by an id."""
    model = catalogue().find(name)
    lines = catalogue().lines
    names = (model.name, *model.ids.values()) if model else (name,)
    by_pattern = (line for line in lines.values() if any(parse_version(line, one) for one in names))
    return lines.get(name) or next(by_pattern, None)


@lru_cache(maxsize=1024)
def find_traits(name: str) -> Model | None:
    """Return the model with that name, alias or id, else the newest one of its line, which has the same parameters."""
    model = catalogue().find(name)
    if model is None and (line := find_line(name)):
        model = catalogue().models[line.snapshot]
    return model


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def find_successor(name: str) -> str:
    """Return our name of the model that replaces this one, stated or the newest of its line, or ""."""
    model, line = catalogue().find(name), find_line(name)
    if model and model.successor:
        return model.successor
    if line is None or name in catalogue().lines:
        return ""
    own, newest = (parse_version(line, one) for one in (model.name if model else name, line.snapshot))
    return line.snapshot if own and newest and own[0] < newest[0] else ""
