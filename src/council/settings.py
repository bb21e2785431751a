"""File, environment and flags under one precedence, every value with its origin. Standard library only: it is read on every start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from council.catalogue import Catalogue, Model, catalogue, is_reasoning, model_id, split_member
from council.errors import ConfigError
from council.settings_files import cache_folder, command_path, config_folder, data_folder, project_file, read_config
from council.settings_keys import SPECIAL, VARIABLES, checked, nearest, parts, quoted

__all__ = [
    "BUILT_IN", "PROFILES", "SPECIAL", "Catalogue", "Model", "Profile", "Provider", "SeatSetting", "Settings", "cache_folder", "catalogue", "command_path",
    "config_folder", "data_folder", "flatten", "is_reasoning", "load_settings", "model_id", "nearest", "quoted", "split_member",
]  # fmt: skip

BUILT_IN = "built-in"
TIMEOUT, REASONING_TIMEOUT, PERSON_TIMEOUT = 120.0, 300.0, 3600.0
DEFAULTS: Mapping[str, Any] = {
    "report_dir": ".agents/council",
    "search": {"max_results": 5},
    "general": {"deliberate": True},
    "human": {"timeout": PERSON_TIMEOUT},
}
# A flag that is a setting: how it is written, and where it stands among the keys.
FLAGS = {"timeout": ("--timeout", ()), "report_dir": ("--report-dir", ()), "max_cost": ("--max-cost", ("budget",)),
         "effort": ("--effort", ())}  # fmt: skip
CHAIRS = ("chair", "referee")  # one seat under two names
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Provider:
    """An endpoint that speaks one of the wires."""

    name: str
    wire: str = "openai"
    base_url: str = ""
    api_key_env: str = ""
    vendor: str = ""  # the family it counts as; the name when nothing is said
    max_connections: int = 16
    structured: str = "json_schema"
    token_field: str = "max_tokens"  # what the cap on the output is called there
    backoff: float = 0.5  # the first wait between retries, in seconds
    connect: float = 10
    first_byte: float = 120
    idle: float = 90
    via: str = "wire"  # pai: through pydantic-ai, should the vendor change its wire


@dataclass(frozen=True, slots=True)
class SeatSetting:
    """What was said about a seat. None: nothing; an empty fallback: none is wanted."""

    model: str | None = None
    fallback: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What `--profile` stands for: the tier the judges sit on, how many, and their clock."""

    tier: str
    count: int
    timeout: float


PROFILES = {
    "thorough": Profile("strong", 3, 120),
    "balanced": Profile("default", 2, 120),
    "fast": Profile("fast", 2, 60),
}


@dataclass(frozen=True, slots=True)
class Settings:
    providers: Mapping[str, Provider]
    models: Mapping[str, str]
    seats: Mapping[str, SeatSetting]
    chair: SeatSetting
    rosters: Mapping[str, Any]
    search: Mapping[str, Any]
    budget: Mapping[str, Any]
    general: Mapping[str, Any]
    timeout: float | None  # None: nobody set it, see `deadline`
    report_dir: str
    variables: Mapping[str, str]  # the judges' variables, defaults included; `given` tells them apart
    origins: Mapping[str, str]  # dotted key → where its value comes from
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # member → dollars for a million tokens
    commands: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # command-line agent → its clocks
    human: Mapping[str, float] = field(default_factory=lambda: {"timeout": PERSON_TIMEOUT})  # the clock of people
    effort: str | None = None  # how hard reasoning members should think; None: as their vendors think best

    def given(self, key: str) -> bool:
        """Whether somebody set this key, or a table of this name."""
        return self.origins.get(key, BUILT_IN) != BUILT_IN

    def deadline(self, *, reasoning: bool = False) -> float:
        """Seconds a seat has for a phase. A profile's clock is no word about reasoning members."""
        by_profile = self.origins.get("timeout", BUILT_IN).startswith("flag --profile")
        if reasoning and (self.timeout is None or by_profile):
            return REASONING_TIMEOUT
        return TIMEOUT if self.timeout is None else self.timeout


def load_settings(
    folder: Path, env: Mapping[str, str], *, flags: Mapping[str, Any] = NOTHING, config: Path | None = None
) -> Settings:
    """Everything that was set, the weakest source first, each key overriding the same key before it."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, table in _layers(folder, env, flags, config):
        for key, value in checked(table, origin):
            values[key], origins[key] = value, origin
    variables = dict(_variables(env))
    origins.update({f"variables.{name}": origin for name, (_, origin) in variables.items()})
    return _assemble(values, origins, {name: value for name, (value, _) in variables.items()})


Layer = tuple[str, Mapping[str, Any]]


def _layers(folder: Path, env: Mapping[str, str], flags: Mapping[str, Any], config: Path | None) -> Iterator[Layer]:
    yield BUILT_IN, {**DEFAULTS, "providers": _built_in_providers(env)}
    if host := env.get("OLLAMA_HOST", "").strip():
        # An endpoint that was found, as a key is found: a base_url somebody wrote down for Council is stronger.
        yield "environment OLLAMA_HOST", {"providers": {"ollama": {"base_url": ollama_url(host)}}}
    user = config_folder(env) / "config.toml"
    if user.is_file():
        yield str(user), read_config(user)
    if project := project_file(folder, env, config):
        yield str(project), read_config(project)
    yield from _profile(flags)
    if timeout := env.get("COUNCIL_TIMEOUT", "").strip():
        yield "environment COUNCIL_TIMEOUT", {"timeout": _as_number(timeout)}
    yield from _flags(flags)


def _built_in_providers(env: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: {**row, "api_key_env": _first_set(row.get("api_key_env", [""]), env)}
        for name, row in catalogue().providers.items()
    }


def _first_set(names: list[str], env: Mapping[str, str]) -> str:
    return next((name for name in names if env.get(name, "").strip()), names[0])


def ollama_url(host: str) -> str:
    """The address clients use for what OLLAMA_HOST says, which may be the address the server listens on."""
    address = host if "://" in host else f"http://{host}"
    address = address.rstrip("/").replace("://0.0.0.0", "://127.0.0.1")
    has_port = address.rpartition(":")[2].isdigit()
    return (address if has_port or address.startswith("https") else f"{address}:11434") + "/v1"


def _profile(flags: Mapping[str, Any]) -> Iterator[Layer]:
    name = flags.get("profile")
    if name is None:
        return
    if name not in PROFILES:
        raise ConfigError(f"unknown profile {quoted(name)}, nothing was started; take one of {', '.join(PROFILES)}")
    yield f"flag --profile={name}", {"timeout": PROFILES[name].timeout}


def _flags(flags: Mapping[str, Any]) -> Iterator[Layer]:
    for name, (written, under) in FLAGS.items():
        if flags.get(name) is not None:
            leaf = {name: flags[name]}
            yield f"flag {written}", {under[0]: leaf} if under else leaf
    for seat, member in (flags.get("seats") or {}).items():
        setting = {"model": member}
        yield "flag --seat", {"chair": setting} if seat in CHAIRS else {"seats": {seat: setting}}


def _variables(env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, (kind, default) in VARIABLES.items():
        value = env.get(name, "").strip()
        if value and not kind.fits(value) and not kind.fits(_as_number(value)):
            raise ConfigError(f"environment {name} is {quoted(value)}, which cannot be used; it must be {kind.what}")
        if value or default is not None:
            yield name, (value, f"environment {name}") if value else (default or "", BUILT_IN)


def _as_number(text: str) -> Any:
    """The number, or the text itself for the check to refuse with its words."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _assemble(values: Mapping[str, Any], origins: Mapping[str, str], variables: Mapping[str, str]) -> Settings:
    tree = _nested(values)
    tables = {
        name: tree.get(name, {}) for name in ("models", "rosters", "search", "budget", "general", "human", "commands")
    }
    return Settings(
        providers={name: _provider(name, row, origins) for name, row in tree["providers"].items()},
        seats={name: _seat(row) for name, row in tree.get("seats", {}).items()},
        chair=_seat(tree.get("chair", {})),
        timeout=tree.get("timeout"),
        effort=tree.get("effort"),
        report_dir=tree["report_dir"],
        variables=variables,
        origins=origins,
        prices={name: _price(name, row, origins) for name, row in tree.get("prices", {}).items()},
        **tables,
    )


def _provider(name: str, row: Mapping[str, Any], origins: Mapping[str, str]) -> Provider:
    if not row.get("base_url"):
        raise ConfigError(
            f'{origins[f"providers.{name}"]}: [providers.{name}] has no base_url, so nobody can be called there; give its address, such as base_url = "http://127.0.0.1:8080/v1"'
        )
    return Provider(name, **{"vendor": name, **row})


def _price(name: str, row: Mapping[str, float], origins: Mapping[str, str]) -> Mapping[str, float]:
    for needed in ("input", "output"):
        if needed not in row:
            where = origins[f"prices.'{name}'"]
            raise ConfigError(
                f'{where}: [prices."{name}"] has no {needed}, so what it costs stays unknown; give input and output in dollars for a million tokens'
            )
    return row


def _seat(row: Mapping[str, Any]) -> SeatSetting:
    fallback = row.get("fallback")
    return SeatSetting(row.get("model"), None if fallback is None else tuple(fallback))


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *tables, leaf = parts(key)
        place = tree
        for name in tables:
            place = place.setdefault(name, {})
        place[leaf] = {} if value is None else value
    return tree


def flatten(settings: Settings) -> list[tuple[str, Any, str]]:
    """Key, value and origin of everything that has a value, for `council config --origin`."""
    rows = [(key, _value(settings, key), origin) for key, origin in settings.origins.items()]
    if settings.timeout is None:
        rows.append(("timeout", settings.deadline(), BUILT_IN))
    return sorted(
        (row for row in rows if not isinstance(row[1], Provider | SeatSetting | Mapping)), key=lambda row: row[0]
    )


def _value(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in parts(key):
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return value
