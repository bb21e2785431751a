"""Settings from files, environment and flags, merged by precedence, each value with its origin.

Standard library only, because it is imported on every start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, cast

from council.errors import ConfigError, UsageError, option, wording
from council.settings.catalogue import RESPONSES_WIRE, catalogue, is_own_host, is_reasoning, split_member
from council.settings.config_files import (
    config_folder,
    find_ignored_file,
    find_project_file,
    fingerprint_files,
    read_config,
)
from council.settings.schema import VARIABLES, Access, access_of, nest_keys, quote_value, split_key, validate_table
from council.settings.workspace_trust import TrustRequest, find_trusted_rows, is_trusted
from council.types import DEFAULT_PACKET_TOKENS, FixedSeconds


class OriginKind(Enum):
    """Kind of source that a setting comes from, lowest precedence first."""

    BUILT_IN = "built-in"
    USER_FILE = "user file"
    PROJECT_FILE = "project file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a setting. Its text is what `council config --origin` shows."""

    kind: OriginKind
    name: str = ""  # the file, the variable or the flag
    value: str = ""  # the preset that the flag chose, for a setting that is part of it

    def __str__(self) -> str:
        if self.kind in (OriginKind.USER_FILE, OriginKind.PROJECT_FILE):
            return self.name
        chosen = f"={self.value}" if self.value else ""
        return f"{self.kind.value} {self.name}{chosen}".strip()


def name_origin(origin: Origin) -> str:
    """Return an origin for messages, in the words of each interface."""
    if origin.kind is not OriginKind.FLAG:
        return str(origin)
    name = "seats" if origin.name == SEAT_FLAG else origin.name.removeprefix("--").replace("-", "_")
    return wording(python=f"argument {name}", cli=str(origin), http=f"option {name}")


BUILT_IN = Origin(OriginKind.BUILT_IN)
DEFAULT_TIMEOUT_S, REASONING_TIMEOUT_S, HUMAN_TIMEOUT_S = 120.0, 300.0, 3600.0
PHASE_TIMEOUTS = {"explorer": "COUNCIL_EXPLORER_TIMEOUT", "r2": "COUNCIL_R2_TIMEOUT"}  # kind of phase → its variable
DEFAULTS: dict[str, Any] = {
    "budget": {"confirm_above": 0.50},
    "notify": False,
    "warm_start": True,
    "model_lists": True,
    "hedge": False,
    "check": False,
    "packet_tokens": DEFAULT_PACKET_TOKENS,
    "search": {"max_results": 5},
    "general": {"deliberate": True},
    "human": {"timeout": HUMAN_TIMEOUT_S},
}
CHECK_FLAG = "--check"
# Names of flags that set a configuration key, and that key
FLAG_KEYS = {
    **{name: name for name in ("timeout", "report_dir", "effort", "notify", "hedge", "check", "packet_tokens")},
    "max_cost": "budget.max_cost",
}
SEAT_FLAG = "--seat"
ON_OFF = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
MAX_NAMED_MEMBERS = 8  # seats of the largest council that `-m` can make
CHAIR_NAMES = ("chair", "referee")  # two names of the same seat
NO_FLAGS: Mapping[str, Any] = MappingProxyType({})
Layer = tuple[Origin, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Provider:
    """Model endpoint that uses one of the wires."""

    name: str
    wire: str = "openai"
    base_url: str = ""
    api_key_env: str = ""
    vendor: str = ""  # defaults to the name
    max_connections: int = 16
    rate: float | None = None  # requests per second
    requests_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    tokens_per_minute: int | None = None  # input and output together
    councils: int | None = None  # at once, over all workers
    structured: str = "json_schema"
    token_field: str = "max_tokens"  # request field that limits the output
    backoff: float = 0.5  # seconds before the first retry
    connect: float = 10
    first_byte: float | None = None  # None: silence before the first content ends at the member's deadline
    idle: float = 90
    via: str = "wire"  # "pai" sends requests through pydantic-ai instead
    batches: bool = False  # it has the batch interface of its wire's vendor
    prompt_cache: bool = False  # it caches prompts as the vendor of its wire does

    @property
    def limits_per_minute(self) -> dict[str, float]:
        """Return the limits that are set: of requests, input, output, and tokens (input and output together)."""
        limits = {
            "requests": self.requests_per_minute,
            "input": self.input_tokens_per_minute,
            "output": self.output_tokens_per_minute,
            "tokens": self.tokens_per_minute,
        }
        return {kind: limit for kind, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class SeatSetting:
    """Configured member of a seat. `fallback=None` means unset; an empty tuple disables fallbacks."""

    model: str | None = None
    fallback: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Preset of `--profile`: the judges' model tier, count and timeout."""

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
    seats: Mapping[str, SeatSetting]
    chair: SeatSetting
    search: Mapping[str, Any]
    budget: Mapping[str, Any]
    general: Mapping[str, Any]
    human: Mapping[str, float]
    variables: Mapping[str, str]  # the judges' environment variables, including defaults
    origins: Mapping[str, Origin]  # dotted key → source of its value
    models: Mapping[str, str] = field(default_factory=dict)
    rosters: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None  # None: not set, see `seat_timeout`
    report_dir: str | None = None  # None: the protocol decides, see `report_files.choose_report_dir`
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # member → dollars per million tokens
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # command-line agent → timeouts, variables
    store: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    notify: bool = False  # announce the end of a run
    telemetry: Mapping[str, bool] = field(default_factory=dict)
    hedge: bool = False  # ask a fallback too when a member is slow
    check: bool = False  # have other seats check the answer
    protocol: str | None = None  # of a question whose words choose none
    packet_tokens: int = DEFAULT_PACKET_TOKENS  # of the material of a review
    warm_start: bool = True  # send the first of several requests with a common prefix alone, if its vendor caches it
    model_lists: bool = True  # look up once a day which models the vendors list
    vendors: tuple[str, ...] = ()  # vendors for seats and fallbacks without a setting; empty: all that are available
    excluded_vendors: tuple[str, ...] = ()  # vendors of no seat, chair, helper or fallback, by `--exclude-family`
    effort: str | None = None  # reasoning effort; None: the vendor's default
    custom_members: Mapping[str, str] = field(default_factory=dict)  # member object of the caller, by name → vendor
    named_members: tuple[str, ...] = ()  # members of the seats in order, by `-m`; empty if not given
    seat_count: int | None = None  # number of seats, by `--seats`; None if not given
    ignored_file: Path | None = None  # project file of another user
    cheap: bool = False  # the fast models of the available vendors, by `--cheap`
    user_prices: Mapping[str, Mapping[str, float]] | None = None  # prices without those of the project; None: the same
    guards_cap: bool = False  # the user's own cap is in force, so a price that only the project states is not known
    members: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)  # member → what it takes besides text
    trust_flags: Mapping[str, Any] = field(default_factory=dict)  # `trust` and `trusted`, for other project files
    trusted: TrustRequest | None = None  # settings of the project that need trust and have it
    untrusted: TrustRequest | None = None  # settings of the project that need trust and are ignored

    def require_trust(self) -> None:
        """Raise TrustRequired if settings of the project were ignored."""
        if self.untrusted:
            raise self.untrusted.error()

    def may_choose(self, vendor: str) -> bool:
        """Return whether Council may choose this vendor where the settings name no member."""
        return (not self.vendors or vendor in self.vendors) and vendor not in self.excluded_vendors

    def is_set(self, key: str) -> bool:
        """Return whether this key or table has a value that is not a built-in default."""
        return self.origins.get(key, BUILT_IN) != BUILT_IN

    def is_set_by_flag(self, key: str, flag: str) -> bool:
        origin = self.origins.get(key, BUILT_IN)
        return origin.kind is OriginKind.FLAG and origin.name == flag

    @property
    def has_project_file(self) -> bool:
        """Return whether a project file sets anything."""
        return OriginKind.PROJECT_FILE in [origin.kind for origin in self.origins.values()]

    @property
    def has_own_timeout(self) -> bool:
        """Whether the user set `timeout` in a file, a variable or a flag; a profile is not a timeout of the user."""
        return self.timeout is not None and not self.is_set_by_flag("timeout", "--profile")

    def seat_timeout(self, *, reasoning: bool = False) -> float:
        """Return the seconds a member has for a phase. A profile's timeout does not apply to reasoning members."""
        if self.timeout is not None and self.has_own_timeout:
            return FixedSeconds(self.timeout)
        return extend_timeout(self.timeout or DEFAULT_TIMEOUT_S, thinks=reasoning)

    def is_thinking(self, member: str) -> bool:
        """Return whether a member thinks before it answers: a reasoning model, or any model with an effort."""
        return is_reasoning(member) or self.effort is not None

    def may_bill_errors(self, member: str) -> bool:
        """Return whether a member's endpoint may bill an error status; those of the vendors do not."""
        provider = self.providers.get(split_member(member)[0])
        if provider is None or provider.name not in catalogue().providers:
            return True
        return not is_own_host(provider.name, provider.base_url)

    def member_timeout(self, member: str) -> float:
        """Return the seconds a member has for a phase that has no special timeout."""
        if member == "human":
            return FixedSeconds(self.human["timeout"])
        return self.seat_timeout(reasoning=self.is_thinking(member))

    def phase_timeouts(self) -> dict[str, float]:
        """Return the timeouts of the phases that have their own; `--timeout` replaces those that no variable sets."""
        found: dict[str, float] = {}
        for kind, name in PHASE_TIMEOUTS.items():
            seconds = float(self.variables[name])
            if self.is_set(f"variables.{name}"):
                found[kind] = FixedSeconds(seconds)
            elif not self.has_own_timeout:
                found[kind] = seconds
        return found


def extend_timeout(seconds: float, *, thinks: bool) -> float:
    """Return the seconds of a member: at least 300 if it thinks, unless the user set them."""
    return max(seconds, REASONING_TIMEOUT_S) if thinks and not isinstance(seconds, FixedSeconds) else seconds


MAX_CACHED_SETTINGS = 32
_cache: dict[tuple[object, ...], tuple[Mapping[str, str], tuple[object, ...], Settings]] = {}


class LastingFlags(TypedDict, total=False):
    """Settings of one run that hold whenever it is continued."""

    timeout: float | None
    max_cost: float | None
    allow_unpriced: bool | None
    grace: float | None
    hedge: bool | None
    no_warm: bool | None
    no_resend: bool | None
    profile: str | None
    report_dir: str | None


class SettingFlags(LastingFlags, total=False):
    """Settings of one run, by their names in Python. They override those of files and of the environment."""

    seats: Mapping[str, str] | None  # members by seat
    models: Sequence[str] | None
    cheap: bool | None
    seat_count: int | None
    exclude_family: Sequence[str] | str | None
    effort: str | None
    check: bool | None
    packet_tokens: int | None
    trust: bool
    is_row: bool  # `max_cost` is the part of a batch's limit that a row gets, which shortens no answer


def drop_unset(flags: SettingFlags) -> SettingFlags:
    """Return the flags that have a value."""
    return cast("SettingFlags", {name: value for name, value in flags.items() if value is not None})


def load_settings(
    folder: Path, env: Mapping[str, str], *, flags: Mapping[str, Any] = NO_FLAGS, config: Path | None = None
) -> Settings:
    """Merge all sources in order of precedence; later sources override earlier ones key by key.

    Settings of a project that need trust are left out unless they are trusted. A project only lowers the user's caps.
    The result is reused until a file or the environment changes; not if trust decides, which covers further files.
    """
    variables = env if isinstance(env, dict) else dict(env)
    key, files = (folder, config, repr(flags)), fingerprint_files(folder, variables, config)
    cached = _cache.get(key)
    if cached and cached[0] == variables and cached[1] == files:
        return cached[2]
    settings = _merge_layers(folder, variables, flags, config)
    _cache.pop(key, None)
    if not (settings.trusted or settings.untrusted):
        while len(_cache) >= MAX_CACHED_SETTINGS:
            _cache.pop(next(iter(list(_cache))), None)
        _cache[key] = (dict(variables), files, settings)
    return settings


def _merge_layers(folder: Path, env: Mapping[str, str], flags: Mapping[str, Any], config: Path | None) -> Settings:
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    user_values: Mapping[str, Any] = values
    request: TrustRequest | None = None
    has_trust = False
    for origin, table in _iter_layers(folder, env, flags, config):
        rows = validate_table(table, name_origin(origin))
        if origin.kind is OriginKind.PROJECT_FILE:
            user_values = dict(values)
            request = _make_trust_request(Path(origin.name), rows, user_values, folder)
            has_trust = request is not None and is_trusted(request, env, flags)
            rows = _limit_rows(rows, user_values, request if not has_trust else None)
        for key, value in rows:
            values[key], origins[key] = value, origin
    variables = dict(_read_variables(env))
    origins.update({f"variables.{name}": origin for name, (_, origin) in variables.items()})
    settings = _build_settings(values, origins, {name: value for name, (value, _) in variables.items()})
    return replace(
        settings,
        named_members=(named := _read_named_members(flags.get("models"))),
        seat_count=_read_seat_count(flags.get("seat_count"), named),
        cheap=bool(flags.get("cheap")),
        excluded_vendors=_read_excluded_vendors(flags.get("exclude_family")),
        ignored_file=find_ignored_file(folder, env, config),
        user_prices=_list_prices(user_values) if has_trust else None,
        guards_cap=_has_user_cap(user_values, flags),
        trust_flags={name: flags.get(name) for name in ("trust", "trusted")},
        trusted=request if has_trust else None,
        untrusted=None if has_trust else request,
    )


def _make_trust_request(
    file: Path, rows: list[tuple[str, Any]], user_values: Mapping[str, Any], folder: Path
) -> TrustRequest | None:
    """Return the settings of a project's file that need trust, or None if there are none."""
    providers = nest_keys(user_values)["providers"]
    needed = find_trusted_rows(rows, providers)
    if not needed:
        return None
    merged = nest_keys({**user_values, **dict(rows)})["providers"]
    return TrustRequest(file, file.parent, needed, folder, merged)


def _limit_rows(
    rows: list[tuple[str, Any]], user_values: Mapping[str, Any], untrusted: TrustRequest | None
) -> list[tuple[str, Any]]:
    """Return the rows of a project's file that apply: without those that need trust, and no cap above the user's."""
    ignored = untrusted.values if untrusted else {}
    return [
        (key, value)
        for key, value in rows
        if key not in ignored and not (access_of(key) is Access.LOWER and _is_higher(value, user_values.get(key)))
    ]


def _list_prices(values: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """Return the complete prices among the values."""
    prices: Mapping[str, Mapping[str, float]] = nest_keys(values).get("prices", {})
    return {member: row for member, row in prices.items() if {"input", "output"} <= row.keys()}


def _has_user_cap(user_values: Mapping[str, Any], flags: Mapping[str, Any]) -> bool:
    """Return whether a cap of the user is in force: a flag, or one of the user's files."""
    caps = (flags.get("max_cost"), user_values.get("budget.max_cost"), user_values.get("budget.max_cost_per_day"))
    return any(cap is not None for cap in caps)


def _is_higher(amount: Any, users: Any) -> bool:
    """Return whether an amount is higher than the user's. `false` is no limit, and None is not set."""
    if users is None or users is False:
        return False
    return amount is False or bool(amount > users)


def _read_seat_count(given: int | None, named: Sequence[str]) -> int | None:
    """Return the number of seats, or raise UsageError if no council has as many or `-m` names another number."""
    if given is None:
        return None
    if given != int(given) or not 2 <= given <= MAX_NAMED_MEMBERS:
        raise UsageError(f"{option('seat_count', given)}: a council has 2 to {MAX_NAMED_MEMBERS} seats")
    if len(named) > 1 and len(named) != given:
        raise UsageError(
            f"{option('seat_count', given)}, but {option('models')} names {len(named)} members: drop one of the two"
        )
    return int(given)


def _read_excluded_vendors(given: Any) -> tuple[str, ...]:
    """Return the vendors of `--exclude-family`, each once: one, several, or several in one text."""
    texts = [given] if isinstance(given, str) else given or ()
    vendors = [part.strip().lower() for text in texts for part in str(text).split(",")]
    if not all(vendors):
        raise UsageError(f'{option("exclude_family")} "" names no vendor: use a name such as anthropic')
    return tuple(dict.fromkeys(vendors))


def _read_named_members(given: Any) -> tuple[str, ...]:
    """Return the members of `-m`: none, one for all seats, or one for each of 2 to 8 seats."""
    members = tuple(str(member).strip() for member in ([given] if isinstance(given, str) else given or ()))
    if not all(members):
        raise UsageError(f'{option("models")} "" names no member: use a name such as sonnet or openai:gpt-5.2')
    for member in members:
        if "," in member and not member.startswith(("local:", "scripted:", "cli:")):
            one_by_one = wording(python='["sonnet", "gpt-5.2"]', cli="-m sonnet -m gpt-5.2")
            raise UsageError(
                f'{option("models")} "{member}" has a comma: name the members one by one, for example {one_by_one}'
            )
    if len(members) > MAX_NAMED_MEMBERS:
        raise UsageError(
            f"{option('models')} names {len(members)} members, but a council has at most {MAX_NAMED_MEMBERS} seats: "
            f"drop {len(members) - MAX_NAMED_MEMBERS}"
        )
    return members


def _iter_layers(
    folder: Path, env: Mapping[str, str], flags: Mapping[str, Any], config: Path | None
) -> Iterator[Layer]:
    providers = {
        name: {**row, "api_key_env": _first_set_variable(row.get("api_key_env", [""]), env)}
        for name, row in catalogue().providers.items()
    }
    yield BUILT_IN, {**DEFAULTS, "providers": providers}
    if host := env.get("OLLAMA_HOST", "").strip():
        # Detected like an API key, so a base_url in a configuration file takes precedence.
        yield Origin(OriginKind.ENVIRONMENT, "OLLAMA_HOST"), {"providers": {"ollama": {"base_url": ollama_url(host)}}}
    user = config_folder(env) / "config.toml"
    if user.is_file():
        yield Origin(OriginKind.USER_FILE, str(user)), read_config(user)
    if project := find_project_file(folder, env, config):
        is_named = config is not None or bool(env.get("COUNCIL_CONFIG", "").strip())  # by the user
        kind = OriginKind.USER_FILE if is_named or project == user else OriginKind.PROJECT_FILE
        yield Origin(kind, str(project)), read_config(project)
    yield from _profile_layers(flags)
    if timeout := env.get("COUNCIL_TIMEOUT", "").strip():
        yield Origin(OriginKind.ENVIRONMENT, "COUNCIL_TIMEOUT"), {"timeout": _parse_number(timeout)}
    if lists := env.get("COUNCIL_MODEL_LISTS", "").strip():
        yield Origin(OriginKind.ENVIRONMENT, "COUNCIL_MODEL_LISTS"), {"model_lists": ON_OFF.get(lists.lower(), lists)}
    yield from _flag_layers(flags)


def _first_set_variable(names: list[str], env: Mapping[str, str]) -> str:
    return next((name for name in names if env.get(name, "").strip()), names[0])


def ollama_url(host: str) -> str:
    """Return the client URL for OLLAMA_HOST, which may hold the server's listen address."""
    address = host if "://" in host else f"http://{host}"
    address = address.rstrip("/").replace("://0.0.0.0", "://127.0.0.1")
    has_port = address.rpartition(":")[2].isdigit()
    return (address if has_port or address.startswith("https") else f"{address}:11434") + "/v1"


def _profile_layers(flags: Mapping[str, Any]) -> Iterator[Layer]:
    name = flags.get("profile")
    if name is None:
        return
    if name not in PROFILES:
        raise ConfigError(f"unknown profile {quote_value(name)}: use one of {', '.join(PROFILES)}")
    yield Origin(OriginKind.FLAG, "--profile", name), {"timeout": PROFILES[name].timeout}


def _flag_layers(flags: Mapping[str, Any]) -> Iterator[Layer]:
    for name, key in FLAG_KEYS.items():
        if flags.get(name) is not None:
            yield Origin(OriginKind.FLAG, f"--{name.replace('_', '-')}"), nest_keys({key: flags[name]})
    if flags.get("no_warm"):
        yield Origin(OriginKind.FLAG, "--no-warm"), {"warm_start": False}
    for seat, member in (flags.get("seats") or {}).items():
        setting = {"model": member}
        table = {"chair": setting} if seat in CHAIR_NAMES else {"seats": {seat: setting}}
        yield Origin(OriginKind.FLAG, SEAT_FLAG), table


def _read_variables(env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, Origin]]]:
    for name, (kind, default) in VARIABLES.items():
        value = env.get(name, "").strip()
        if value and not kind.accepts(value) and not kind.accepts(_parse_number(value)):
            raise ConfigError(f"environment variable {name} is {quote_value(value)}: it must be {kind.description}")
        if value or default is not None:
            yield name, (value, Origin(OriginKind.ENVIRONMENT, name)) if value else (default or "", BUILT_IN)


def _parse_number(text: str) -> Any:
    """Return the number, or the text itself so that the later check reports it."""
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _build_settings(values: Mapping[str, Any], origins: Mapping[str, Origin], variables: Mapping[str, str]) -> Settings:
    tree = nest_keys(values)
    built = {
        "providers": {name: _build_provider(name, row, origins) for name, row in tree["providers"].items()},
        "seats": {name: _build_seat(row) for name, row in tree.get("seats", {}).items()},
        "chair": _build_seat(tree.get("chair", {})),
        "vendors": tuple(tree.get("vendors", ())),
        "prices": {name: _check_price(name, row, origins) for name, row in tree.get("prices", {}).items()},
    }
    return Settings(**{**tree, **built}, variables=variables, origins=origins)


def _build_provider(name: str, row: Mapping[str, Any], origins: Mapping[str, Origin]) -> Provider:
    if not row.get("base_url"):
        raise ConfigError(
            f'{origins[f"providers.{name}"]}: [providers.{name}] has no base_url: set it, for example base_url = "http://127.0.0.1:8080/v1"'
        )
    is_built_in = origins[f"providers.{name}.base_url"] == BUILT_IN
    is_own = name == "openai" and (is_built_in or is_own_host(name, row["base_url"]))
    built = Provider(name, **{"vendor": name, **({"wire": RESPONSES_WIRE} if is_own else {}), **row})
    return built if "prompt_cache" in row else replace(built, prompt_cache=_has_prompt_cache(built))


def _has_prompt_cache(provider: Provider) -> bool:
    """Return whether an endpoint is known to cache prompts: that of the vendor, and any that has the messages wire.

    Another endpoint may reject the parameters of OpenAI. The marks of the messages wire are part of its format.
    """
    vendor = provider.wire.removesuffix("-responses")
    is_vendor = vendor in ("openai", "google") and is_own_host(vendor, provider.base_url)
    return vendor == "anthropic" or is_vendor


def _check_price(name: str, row: Mapping[str, float], origins: Mapping[str, Origin]) -> Mapping[str, float]:
    for rate in ("input", "output"):
        if rate not in row:
            where = origins[f"prices.'{name}'"]
            raise ConfigError(
                f'{where}: [prices."{name}"] has no {rate}: set input and output in dollars per million tokens'
            )
    return row


def _build_seat(row: Mapping[str, Any]) -> SeatSetting:
    fallback = row.get("fallback")
    return SeatSetting(row.get("model"), None if fallback is None else tuple(fallback))


def flatten(settings: Settings) -> list[tuple[str, Any, str]]:
    """Return key, value and origin of every setting that has a value, for `council config --origin`."""
    rows = [(key, _lookup_value(settings, key), str(origin)) for key, origin in settings.origins.items()]
    if settings.timeout is None:
        rows.append(("timeout", settings.seat_timeout(), str(BUILT_IN)))
    plain = [row for row in rows if not isinstance(row[1], Provider | SeatSetting | Mapping)]
    return sorted(plain, key=lambda row: row[0])


def _lookup_value(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in split_key(key):
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return value
