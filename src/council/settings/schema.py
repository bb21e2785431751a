"""Schema of the configuration: allowed keys, the type of each value, and the validation errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from council.errors import ConfigError
from council.extensions import MEMBERS, SEARCH, WIRES, ExtensionPoint

SPECIAL_MEMBERS = tuple(MEMBERS.shipped)  # member prefixes that are not providers
RESERVED_NAMES = {"providers": SPECIAL_MEMBERS, "seats": ("chair",)}  # the chair is configured in [chair]

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PRICED_MEMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*:[^\s'\"]+")  # provider:model, or provider:* for all models
_KEY_PART = re.compile(r"'[^']*'|[^.]+")
_VARIABLE_PATTERN = re.compile(r"[A-Z_][A-Z0-9_]*|")
_HTTP_URL_PATTERN = re.compile(r"https?://[^/\s]+(/\S*)?")
_URL_CREDENTIALS = re.compile(r"\w+://[^/\s]*@")
_DATABASE_PASSWORD = re.compile(r"[a-z]+://([^/@]*:[^/@]+@|.*[?&]password=)", re.IGNORECASE)
_SECRET_WORD = re.compile(r"api_?key|secret|token|passw|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ValueType:
    """Type of a value: a description and a check. A value that may be a secret is never printed."""

    description: str
    accepts: Callable[[Any], bool]
    secret: bool = False


@dataclass(frozen=True, slots=True)
class TableList:
    """List of tables with the same keys."""

    keys: Mapping[str, ValueType]


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _full_match(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_http_url(value: Any) -> bool:
    try:
        return _full_match(_HTTP_URL_PATTERN)(value) and bool(urlsplit(value).hostname) and urlsplit(value).port != 0
    except ValueError:  # for example an unclosed bracket, or a port above 65535
        return False


def split_command(text: str) -> list[str]:
    """Return the words of a command, as a shell would split them; none if its quotes are not closed."""
    import shlex  # only needed for the key

    try:
        return shlex.split(text)
    except ValueError:
        return []


def _one_of(*choices: str) -> ValueType:
    return ValueType("one of " + ", ".join(choices), lambda value: value in choices)


def _text_with(description: str, content: Callable[[str], object]) -> ValueType:
    return ValueType(description, lambda value: isinstance(value, str) and bool(content(value)))


def _list_of(what: str, row: ValueType) -> ValueType:
    return ValueType(f"a list of {what}", lambda value: isinstance(value, list) and all(map(row.accepts, value)))


def _whole_number(low: int, high: int, unit: str = "") -> ValueType:
    return ValueType(
        f"a whole number {unit}from {low} to {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def _row_of(point: ExtensionPoint) -> ValueType:
    """Accept the shipped names and those of installed packages, which are looked up only for other values."""
    names = ", ".join(point.shipped)
    return ValueType(f"one of {names}, or a {point.what} of an installed package", lambda value: value in point)


TEXT_VALUE = ValueType("a string", lambda value: isinstance(value, str))
MEMBER_NAME = _text_with('a member such as "anthropic:claude-opus-4.6"', str.strip)
MEMBER_NAMES = _list_of("members", MEMBER_NAME)
VENDOR_NAMES = _list_of('vendors such as ["anthropic", "openai"]', MEMBER_NAME)
SECONDS = ValueType("a number of seconds above 0", lambda value: _is_number(value) and value > 0)
SECONDS_OR_ZERO = ValueType("a number of seconds, 0 or more", lambda value: _is_number(value) and value >= 0)
DOLLARS = ValueType("an amount of dollars, 0 or more", lambda value: _is_number(value) and value >= 0)
DOLLARS_OR_FALSE = ValueType(f"{DOLLARS.description}, or false", lambda value: value is False or DOLLARS.accepts(value))
DOLLARS_PER_MILLION = ValueType("dollars per million tokens, 0 or more", lambda value: _is_number(value) and value >= 0)
RATE = ValueType("a number of requests per second above 0", lambda value: _is_number(value) and value > 0)
COUNT, RESULT_COUNT = _whole_number(1, 1000), _whole_number(1, 10)
PER_MINUTE = _whole_number(1, 10**9)
PACKET_TOKENS = _whole_number(1_000, 1_000_000, "of tokens ")
DAYS = _whole_number(1, 36_500, "of days ")
COMMAND = _text_with('a command such as "pass show council"', split_command)
BOOLEAN = ValueType("true or false", lambda value: isinstance(value, bool))
HTTP_URL = ValueType("a URL that begins with http:// or https:// and has a valid host and port", _is_http_url)
DATABASE_URL = ValueType(
    "an address that begins with postgresql://",
    lambda value: isinstance(value, str) and value.startswith(("postgresql://", "postgres://")),
    secret=True,
)
LEASE_SECONDS = ValueType("a number of seconds from 1 to 3600", lambda value: _is_number(value) and 1 <= value <= 3600)
VARIABLE_NAME = ValueType(
    "the NAME of an environment variable in capitals, not the key itself", _full_match(_VARIABLE_PATTERN), secret=True
)
VARIABLE_NAMES = ValueType(
    'a list of names of environment variables such as ["HTTPS_PROXY_TOKEN"], not their values',
    lambda value: isinstance(value, list) and all(name and VARIABLE_NAME.accepts(name) for name in value),
    secret=True,
)

SEAT_KEYS: Mapping[str, ValueType] = {"model": MEMBER_NAME, "fallback": MEMBER_NAMES}
PROVIDER_KEYS: Mapping[str, ValueType] = {
    "wire": _row_of(WIRES),
    "base_url": HTTP_URL,
    "api_key_env": VARIABLE_NAME,
    "vendor": TEXT_VALUE,
    "max_connections": COUNT,
    "rate": RATE,
    "requests_per_minute": PER_MINUTE,
    "input_tokens_per_minute": PER_MINUTE,
    "output_tokens_per_minute": PER_MINUTE,
    "tokens_per_minute": PER_MINUTE,
    "councils": COUNT,
    "structured": _one_of("json_schema", "json_object", "prompt"),
    "token_field": _one_of("max_tokens", "max_completion_tokens"),
    "backoff": SECONDS_OR_ZERO,
    "connect": SECONDS,
    "first_byte": SECONDS,
    "idle": SECONDS,
    "via": _one_of("wire", "pai"),
    "prompt_cache": BOOLEAN,
    "batches": BOOLEAN,
}
AGENT_KEYS: Mapping[str, ValueType] = {"first_byte": SECONDS, "idle": SECONDS, "pass_env": VARIABLE_NAMES}
PRICE_KEYS: Mapping[str, ValueType] = dict.fromkeys(("input", "cached", "write", "output"), DOLLARS_PER_MILLION)
MEMBER_KEYS: Mapping[str, ValueType] = {"images": BOOLEAN, "pdf": BOOLEAN}
NO_ATTACHMENTS = ("cli", "local", "human", "scripted")  # kinds of members that take none
ROSTER_TEXTS = ("name", "role", "lens", "stance", "style")
ROSTER_SEAT_KEYS: Mapping[str, ValueType] = {**dict.fromkeys(ROSTER_TEXTS, TEXT_VALUE), **SEAT_KEYS}
ROSTER_KEYS: Mapping[str, Any] = {"about": TEXT_VALUE, "seats": TableList(ROSTER_SEAT_KEYS), "chair": SEAT_KEYS}

# "*" matches any name the user chooses.
CONFIG_KEYS: Mapping[str, Any] = {
    "protocol": TEXT_VALUE,
    "timeout": SECONDS,
    "report_dir": TEXT_VALUE,
    "effort": _one_of("low", "medium", "high"),
    "notify": BOOLEAN,
    "warm_start": BOOLEAN,
    "hedge": BOOLEAN,
    "check": BOOLEAN,
    "packet_tokens": PACKET_TOKENS,
    "model_lists": BOOLEAN,
    "vendors": VENDOR_NAMES,
    "providers": {"*": PROVIDER_KEYS},
    "models": dict.fromkeys(("default", "strong", "fast", "other"), MEMBER_NAME),
    "seats": {"*": SEAT_KEYS},
    "chair": SEAT_KEYS,
    "rosters": {"*": ROSTER_KEYS},
    "search": {"provider": _row_of(SEARCH), "max_results": RESULT_COUNT, "base_url": HTTP_URL, "folder": TEXT_VALUE},
    "budget": {"max_cost": DOLLARS, "max_cost_per_day": DOLLARS, "confirm_above": DOLLARS_OR_FALSE},
    "prices": {"*": PRICE_KEYS},
    "members": {"*": MEMBER_KEYS},
    "commands": dict.fromkeys(("claude", "codex", "gemini"), AGENT_KEYS),
    "general": {"deliberate": BOOLEAN},
    "human": {"timeout": SECONDS},
    "store": {
        "keep_days": DAYS,
        "url": DATABASE_URL,
        "lease_seconds": LEASE_SECONDS,
        "owner": TEXT_VALUE,
        "councils_per_owner": COUNT,
    },
    "keys": {"command": COMMAND},
    "telemetry": {"content": BOOLEAN},
}
# Environment variables of the judges: type after number parsing, and default.
VARIABLES: Mapping[str, tuple[ValueType, str | None]] = {
    "COUNCIL_CLAUDE_MODEL": (MEMBER_NAME, "sonnet"),
    "COUNCIL_CODEX_MODEL": (MEMBER_NAME, "gpt-5.3-codex"),
    "COUNCIL_EXPLORER_MODEL": (MEMBER_NAME, "sonnet"),
    "COUNCIL_EXPLORER_TIMEOUT": (SECONDS, "60"),
    "COUNCIL_R2_TIMEOUT": (SECONDS, "90"),
    "COUNCIL_JUDGE_COUNT": (COUNT, None),
}


class Access(Enum):
    """What a project's file may do with a key while the user has not trusted it."""

    FREE = "applies"
    LOWER = "applies if it is lower than the user's value"  # with trust too
    MEMBER = "applies for members of the user's providers"
    TRUSTED = "needs trust"


# Every key, by its name in KEY_MEANINGS or by its table. A key that is missing here needs trust, and a test fails.
KEYS_BY_ACCESS: Mapping[Access, tuple[str, ...]] = {
    Access.FREE: (
        "protocol",
        "timeout",
        "effort",
        "warm_start",
        "hedge",
        "check",
        "packet_tokens",
        "model_lists",
        "general.deliberate",
        "human.timeout",
        "members.MEMBER.images",
        "members.MEMBER.pdf",
        "vendors",  # a choice among the vendors of the user
        "rosters.NAME.about",
        *(f"rosters.NAME.seats.{name}" for name in ROSTER_TEXTS),
    ),
    Access.LOWER: ("budget.max_cost", "budget.max_cost_per_day", "budget.confirm_above"),
    Access.MEMBER: (
        "models.default",
        "models.strong",
        "models.fast",
        "models.other",
        "seats.NAME.model",
        "seats.NAME.fallback",
        "chair.model",
        "chair.fallback",
        "rosters.NAME.seats",
        "rosters.NAME.seats.model",
        "rosters.NAME.seats.fallback",
        "rosters.NAME.chair.model",
        "rosters.NAME.chair.fallback",
    ),
    Access.TRUSTED: (
        # whole tables
        *("providers", "search", "prices", "commands", "store", "keys", "telemetry"),
        "report_dir",
        "notify",  # starts a program of the desktop
    ),
}
USER_KEYS = ("keys.command", "telemetry.content")  # refused in the file of a project, even with trust
KEY_ACCESS: Mapping[str, Access] = {key: access for access, keys in KEYS_BY_ACCESS.items() for key in keys}
KEY_PLACEHOLDERS = {
    **dict.fromkeys(("providers", "seats", "rosters"), "NAME"),
    **dict.fromkeys(("prices", "members"), "MEMBER"),
    "commands": "AGENT",
}


def access_of(dotted: str) -> Access:
    """Return the access of a key such as `providers.lab.base_url`. A table needs trust if every key in it does."""
    parts = split_key(dotted)
    if len(parts) > 1 and parts[0] in KEY_PLACEHOLDERS:
        parts[1] = KEY_PLACEHOLDERS[parts[0]]
    name = ".".join(parts)
    is_free = any(key.startswith(f"{name}.") for key in KEY_ACCESS)
    return KEY_ACCESS.get(name, Access.FREE if is_free else Access.TRUSTED)


# One sentence for each key, for docs/configuration.md. scripts/make_docs.py fails if a key has none.
_MODEL_MEANING = "Member of the seat."
_FALLBACK_MEANING = "Members asked in this order when the member fails; `[]` means none. Without the key, available members of other vendors are used."
KEY_MEANINGS: Mapping[str, str] = {
    "protocol": "Protocol of a question whose words and flags choose none; `auto`: the one that is worth its price. Not set: collaborative.",
    "timeout": "Time a member has for one phase, including its retries. Members that think have at least 300 s unless this is set.",
    "report_dir": "Folder for report files. Not set: `.agents/council` for reviews by judges, `reports` of the data folder for all others.",
    "effort": "Reasoning effort of the members that support it.",
    "vendors": "Vendors that unassigned seats and automatic fallbacks may use; `council init` writes it. Not set: all available vendors.",
    "warm_start": "If several seats of a phase send the same long prefix to a vendor that caches it, start one of them first and the others at its first output.",
    "hedge": "When a member takes longer than it usually does, ask the seat's fallback too, within the budget. The first complete answer counts.",
    "check": "After the answer, have two seats of other vendors look for its errors, and its author correct what is right. It applies to protocols whose answer is a text: collaborative, adversarial, triad, advisors, general, ranking.",
    "packet_tokens": "Budget of the packet of a review, in tokens (3 bytes each). Context that does not fit is left out and listed; a larger diff is still sent whole. Never more than a third of the smallest context window of the members.",
    "model_lists": "Once a day, ask the vendors whose keys are set which models they list, so that defaults are their newest models. `false`: use the names that this version knows.",
    "notify": "Ring the bell and show a desktop notification when a run is done.",
    "providers.NAME.wire": "Wire format of the endpoint. `openai` (the provider) uses `openai-responses` at OpenAI's own host.",
    "providers.NAME.base_url": "Address of the endpoint, up to `/chat/completions`, `/responses`, `/messages` or `/models`. Required for a provider that is not built in.",
    "providers.NAME.api_key_env": "Name of the variable with the key. Without it, no key is sent.",
    "providers.NAME.vendor": "Vendor (family) that the provider counts as.",
    "providers.NAME.max_connections": "Largest number of parallel calls.",
    "providers.NAME.rate": "Largest number of requests per second: over all workers of a shared store, otherwise of one process. Not set: no limit.",
    "providers.NAME.requests_per_minute": "Largest number of requests per minute, over all processes of a data folder or of a shared store. Not set: the limit that answers state, if they do.",
    "providers.NAME.input_tokens_per_minute": "Largest number of input tokens per minute, over all processes of a data folder or of a shared store. A limit of tokens replaces all that answers state.",
    "providers.NAME.output_tokens_per_minute": "Largest number of output tokens per minute, with thinking, as for `input_tokens_per_minute`.",
    "providers.NAME.tokens_per_minute": "Largest number of input and output tokens together per minute, as for `input_tokens_per_minute`.",
    "providers.NAME.councils": "Largest number of councils that use the provider at once, over all workers of a shared store. Not set: no limit.",
    "providers.NAME.structured": "How typed replies are requested; `prompt` is for endpoints that support neither form.",
    "providers.NAME.prompt_cache": "Whether the endpoint caches prompts as the vendor of its wire does; default: true for the messages wire, and at the addresses of OpenAI and Google. If true, requests have the vendor's parameters for it.",
    "providers.NAME.batches": "Whether the endpoint has the batch interface of its wire's vendor, for `council batch --slow`. openai, anthropic and google have it.",
    "providers.NAME.token_field": "Request field for the output limit, on the openai wire.",
    "providers.NAME.backoff": "Seconds before the first retry; doubles each time.",
    "providers.NAME.connect": "Time to connect.",
    "providers.NAME.first_byte": "Time until the first content of an answer. Not set: only the member's timeout applies.",
    "providers.NAME.idle": "Time without content, once the answer has begun.",
    "providers.NAME.via": "`pai` sends the requests through pydantic-ai.",
    "models.default": "Model of judges and advisors.",
    "models.strong": "Model of `--tier medium`, `--tier heavy` and `--profile thorough`.",
    "models.fast": "Model of `--profile fast`.",
    "models.other": "Model of the second vendor of `--mixed`.",
    "seats.NAME.model": _MODEL_MEANING,
    "seats.NAME.fallback": _FALLBACK_MEANING,
    "chair.model": "Member of the chair.",
    "chair.fallback": _FALLBACK_MEANING,
    "rosters.NAME.about": "One line for `council list rosters`.",
    "rosters.NAME.seats": "The seats, 2 to 9 for advisors.",
    "rosters.NAME.seats.name": "Name of the seat.",
    "rosters.NAME.seats.role": "Title of the seat.",
    "rosters.NAME.seats.lens": "What the seat looks at.",
    "rosters.NAME.seats.stance": "What the seat asks first.",
    "rosters.NAME.seats.style": "How the seat writes.",
    "rosters.NAME.seats.model": _MODEL_MEANING,
    "rosters.NAME.seats.fallback": _FALLBACK_MEANING,
    "rosters.NAME.chair.model": "Member of the chair of this roster.",
    "rosters.NAME.chair.fallback": _FALLBACK_MEANING,
    "search.provider": "Search provider of the protocol general.",
    "search.max_results": "Results of each query.",
    "search.base_url": "Address of the SearXNG server.",
    "search.folder": "Folder that the provider `files` searches.",
    "budget.max_cost": "Cap of each run in dollars. The run is fitted to it, or refused before it starts.",
    "budget.max_cost_per_day": "Cap of all runs of one day on this store.",
    "budget.confirm_above": "At a terminal, ask before a run whose expected cost is higher.",
    "prices.MEMBER.input": "Price of input tokens. `input` and `output` are required.",
    "prices.MEMBER.cached": "Price of input tokens read from a cache; default: same as `input`.",
    "prices.MEMBER.write": "Price of input tokens written to a cache; default: same as `input`.",
    "prices.MEMBER.output": "Price of output tokens.",
    "members.MEMBER.images": "Whether the model sees images. Not set: as its name says. The member is `provider:model`, or `provider:*` for every model of a provider.",
    "members.MEMBER.pdf": "Whether the model takes PDFs as pages. Every model gets the text of a PDF.",
    "commands.AGENT.first_byte": "Time until the first output of the command-line agent.",
    "commands.AGENT.idle": "Time between two outputs of the command-line agent.",
    "commands.AGENT.pass_env": "Names of further environment variables that the agent gets, for example those of a gateway.",
    "general.deliberate": "Whether seats that contradict each other answer once more.",
    "human.timeout": "Time a person has to answer.",
    "store.url": "Address of a PostgreSQL database for the runs, without a password. Default: a SQLite file in the data folder.",
    "store.lease_seconds": "How long a process that is stopped or cut off keeps a run, in PostgreSQL; default: 30.",
    "store.owner": "Name that runs are stored under; default: user@host.",
    "store.councils_per_owner": "Largest number of councils of one owner that workers execute at once. Not set: no limit; owners always take turns.",
    "telemetry.content": "Send the texts of prompts and answers with the spans of OpenTelemetry. Only in your own file.",
    "keys.command": "Command that prints an API key. It gets the name of the variable as its last argument, and is used if that variable is not set. Only in your own file.",
    "store.keep_days": "Finished runs that are older are removed, a few at a time, after a run. In a project file: only runs of that folder; in a shared database: only your own.",
}
VARIABLE_MEANINGS: Mapping[str, str] = {
    "COUNCIL_CLAUDE_MODEL": "Model of the judges.",
    "COUNCIL_CODEX_MODEL": "Model of the second vendor of `--mixed`.",
    "COUNCIL_EXPLORER_MODEL": "Model of the explorers.",
    "COUNCIL_EXPLORER_TIMEOUT": "Time of an explorer.",
    "COUNCIL_R2_TIMEOUT": "Time of a judge in the second round.",
    "COUNCIL_JUDGE_COUNT": "Number of judges of each vendor, without a flag for it.",
}


def split_key(dotted: str) -> list[str]:
    """Split a dotted key into its parts."""
    return [part.strip("'") for part in _KEY_PART.findall(dotted)]


def nest_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested tables of dotted keys."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *tables, leaf = split_key(key)
        place = tree
        for name in tables:
            place = place.setdefault(name, {})
        place[leaf] = {} if value is None else value
    return tree


def quote_value(value: Any) -> str:
    """Return the value in quotes on one line, at most 80 characters long."""
    text = str(value)
    return json.dumps(text if len(text) <= 80 else text[:77] + "...", ensure_ascii=False)


def validate_table(
    table: Mapping[str, Any], where: str, keys: Mapping[str, Any] = CONFIG_KEYS, prefix: str = ""
) -> list[tuple[str, Any]]:
    """Validate a table; return each dotted key with its value.

    A table with a user-chosen name is also returned itself, with None, because it may be empty.
    """
    rows: list[tuple[str, Any]] = []
    for key, value in table.items():
        part = f"'{key}'" if _PRICED_MEMBER.fullmatch(key) else key  # it may contain dots
        dotted = f"{prefix}.{part}" if prefix else key
        is_user_key = key not in keys or key == "*"  # a user-chosen name
        rule = _check_user_key(keys, key, dotted, where) if is_user_key else keys[key]
        if isinstance(rule, Mapping):
            if is_user_key:
                rows.append((dotted, None))
            rows += validate_table(_require_table(value, dotted, where), where, rule, dotted)
        else:
            rows.append((dotted, _check_value(value, rule, dotted, where)))
    return rows


def _check_user_key(keys: Mapping[str, Any], key: str, dotted: str, where: str) -> Any:
    if "*" not in keys:
        raise _unknown_key_error(keys, key, dotted, where)
    table = dotted.partition(".")[0]
    if table in ("prices", "members") and not _PRICED_MEMBER.fullmatch(key):
        raise ConfigError(
            f'{where}: {quote_value(dotted)} is not a member: write [{table}."openai:gpt-5.2"], or [{table}."openai:*"] for every model of a provider'
        )
    if table == "members" and key.partition(":")[0] in NO_ATTACHMENTS:
        raise ConfigError(f"{where}: {quote_value(dotted)} takes no attachments: remove it")
    if table not in ("prices", "members") and not _NAME_PATTERN.fullmatch(key):
        raise ConfigError(f"{where}: {quote_value(dotted)} contains an invalid name: use letters, digits, - and _")
    if key in RESERVED_NAMES.get(dotted.partition(".")[0], ()):
        other = "write [chair] for the chair" if key == "chair" else "choose another name"
        raise ConfigError(
            f"{where}: {quote_value(dotted)} cannot be set because {quote_value(key)} is a reserved name: {other}"
        )
    return keys["*"]


def _unknown_key_error(keys: Mapping[str, Any], key: str, dotted: str, where: str) -> ConfigError:
    if _SECRET_WORD.search(key):
        return ConfigError(
            f"{where}: {quote_value(dotted)} looks like a secret, and secrets are not allowed in configuration files: "
            "set an environment variable and put its name into api_key_env"
        )
    from difflib import get_close_matches  # only needed for errors

    near = dotted.removesuffix(key) + get_close_matches(key, keys, n=1, cutoff=0.0)[0]
    return ConfigError(f"{where}: unknown key {quote_value(dotted)}: did you mean {quote_value(near)}?")


def _require_table(value: Any, dotted: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where}: {quote_value(dotted)} is {quote_value(value)}, but it must be a table: write [{dotted}] and put its keys below"
        )
    return value


def _check_value(value: Any, rule: ValueType | TableList, dotted: str, where: str) -> Any:
    if isinstance(rule, TableList):
        return [_check_row(row, rule, dotted, where) for row in _require_rows(value, dotted, where)]
    credentials = _DATABASE_PASSWORD if rule is DATABASE_URL else _URL_CREDENTIALS
    if isinstance(value, str) and credentials.match(value):
        place = "set COUNCIL_DATABASE, or use a password file" if rule is DATABASE_URL else "use api_key_env"
        raise ConfigError(
            f"{where}: {quote_value(dotted)} is a URL with a password, and secrets are not allowed in configuration files: {place}"
        )
    if not rule.accepts(value):
        problem = "is invalid" if rule.secret else f"is {_text_prefix(value, rule)}{quote_value(value)}"
        raise ConfigError(f"{where}: {quote_value(dotted)} {problem}: it must be {rule.description}")
    return value


def _text_prefix(value: Any, rule: ValueType) -> str:
    """Return "the string " for a quoted number, which would otherwise look valid in the error."""
    try:
        return "the string " if isinstance(value, str) and rule.accepts(float(value)) else ""
    except ValueError:
        return ""


def _check_row(row: Mapping[str, Any], rule: TableList, dotted: str, where: str) -> dict[str, Any]:
    named = validate_table(row, where, rule.keys, dotted)
    return {key.removeprefix(dotted + "."): value for key, value in named}


def _require_rows(value: Any, dotted: str, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise ConfigError(
            f"{where}: {quote_value(dotted)} is {quote_value(value)}, but it must be a list of tables: write one [[{dotted}]] for each"
        )
    return [_require_table(row, dotted, where) for row in value]
