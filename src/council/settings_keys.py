"""Schema of the configuration: allowed keys, the type of each value, and the validation errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from council.errors import ConfigError

WIRES = ("openai", "anthropic", "google")
SPECIAL = ("local", "scripted", "human", "cli", "pai")  # member prefixes that are not providers
RESERVED = {"providers": SPECIAL, "seats": ("chair",)}  # the chair is configured in [chair]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PRICED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*:[^\s'\"]+")  # provider:model, or provider:* for all of its models
_PART = re.compile(r"'[^']*'|[^.]+")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*|")
_ADDRESS = re.compile(r"https?://[^/\s]+(/\S*)?")
_CREDENTIALS = re.compile(r"\w+://[^/\s]*@")
_SECRET = re.compile(r"api_?key|secret|token|passw|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """Type of a value: a description and a check. A value that may be a secret is never printed."""

    what: str
    fits: Callable[[Any], bool]
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """List of tables with the same keys."""

    known: Mapping[str, Kind]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _address(value: Any) -> bool:
    try:
        return _matches(_ADDRESS)(value) and bool(urlsplit(value).hostname) and urlsplit(value).port != 0
    except ValueError:  # for example an unclosed bracket, or a port above 65535
        return False


def _one_of(*choices: str) -> Kind:
    return Kind("one of " + ", ".join(choices), lambda value: value in choices)


TEXT = Kind("a string", lambda value: isinstance(value, str))
MEMBER = Kind(
    'a member such as "anthropic:claude-opus-4.6"', lambda value: isinstance(value, str) and bool(value.strip())
)
MEMBERS = Kind("a list of members", lambda value: isinstance(value, list) and all(map(MEMBER.fits, value)))
SECONDS = Kind("a number of seconds above 0", lambda value: _number(value) and value > 0)
WAIT = Kind("a number of seconds, 0 or more", lambda value: _number(value) and value >= 0)
MONEY = Kind("an amount of dollars, 0 or more", lambda value: _number(value) and value >= 0)
RATE = Kind("dollars per million tokens, 0 or more", lambda value: _number(value) and value >= 0)
COUNT = Kind("a whole number from 1 to 1000", lambda value: _whole(value, 1, 1000))
RESULTS = Kind("a whole number from 1 to 10", lambda value: _whole(value, 1, 10))
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
ADDRESS = Kind("a URL that begins with http:// or https:// and has a valid host and port", _address)
VARIABLE = Kind("the NAME of an environment variable in capitals, not the key itself", _matches(_VARIABLE), secret=True)

SEAT: Mapping[str, Kind] = {"model": MEMBER, "fallback": MEMBERS}
PROVIDER: Mapping[str, Kind] = {
    "wire": _one_of(*WIRES),
    "base_url": ADDRESS,
    "api_key_env": VARIABLE,
    "vendor": TEXT,
    "max_connections": COUNT,
    "structured": _one_of("json_schema", "json_object", "prompt"),
    "token_field": _one_of("max_tokens", "max_completion_tokens"),
    "backoff": WAIT,
    "connect": SECONDS,
    "first_byte": SECONDS,
    "idle": SECONDS,
    "via": _one_of("wire", "pai"),
}
CLOCKS: Mapping[str, Kind] = {"first_byte": SECONDS, "idle": SECONDS}
PRICE: Mapping[str, Kind] = {"input": RATE, "cached": RATE, "write": RATE, "output": RATE}
ROSTER_SEAT: Mapping[str, Kind] = {"name": TEXT, "role": TEXT, "lens": TEXT, "stance": TEXT, "style": TEXT, **SEAT}
ROSTER: Mapping[str, Any] = {"about": TEXT, "seats": Rows(ROSTER_SEAT), "chair": SEAT}

# "*" matches any name the user chooses.
KEYS: Mapping[str, Any] = {
    "timeout": SECONDS,
    "report_dir": TEXT,
    "effort": _one_of("low", "medium", "high"),
    "providers": {"*": PROVIDER},
    "models": {"default": MEMBER, "strong": MEMBER, "fast": MEMBER, "other": MEMBER},
    "seats": {"*": SEAT},
    "chair": SEAT,
    "rosters": {"*": ROSTER},
    "search": {
        "provider": _one_of("tavily", "brave", "searxng", "files"),
        "max_results": RESULTS,
        "base_url": ADDRESS,
        "folder": TEXT,
    },
    "budget": {"max_cost": MONEY, "max_cost_per_day": MONEY, "confirm_above": MONEY},
    "prices": {"*": PRICE},
    "commands": {"claude": CLOCKS, "codex": CLOCKS, "gemini": CLOCKS},
    "general": {"deliberate": SWITCH},
    "human": {"timeout": SECONDS},
}
# Environment variables of the judges: type after number parsing, and default.
VARIABLES: Mapping[str, tuple[Kind, str | None]] = {
    "COUNCIL_CLAUDE_MODEL": (MEMBER, "sonnet"),
    "COUNCIL_CODEX_MODEL": (MEMBER, "gpt-5.3-codex"),
    "COUNCIL_EXPLORER_MODEL": (MEMBER, "sonnet"),
    "COUNCIL_EXPLORER_TIMEOUT": (SECONDS, "60"),
    "COUNCIL_R2_TIMEOUT": (SECONDS, "90"),
    "COUNCIL_JUDGE_COUNT": (COUNT, None),
}


def _written(key: str) -> str:
    """Quote a part of a dotted key if it may contain dots, as in TOML."""
    return f"'{key}'" if _PRICED.fullmatch(key) else key


def parts(dotted: str) -> list[str]:
    """Split a dotted key into its parts."""
    return [part.strip("'") for part in _PART.findall(dotted)]


def quoted(value: Any) -> str:
    """Return the value in quotes on one line, at most 80 characters long."""
    text = str(value)
    return json.dumps(text if len(text) <= 80 else text[:77] + "...", ensure_ascii=False)


def checked(
    table: Mapping[str, Any], where: str, known: Mapping[str, Any] = KEYS, under: str = ""
) -> Iterator[tuple[str, Any]]:
    """Validate a table; yield each dotted key and its value.

    A table with a user-chosen name is also yielded itself, with None, because it may be empty.
    """
    for key, value in table.items():
        dotted = f"{under}.{_written(key)}" if under else key
        given = key not in known or key == "*"  # a user-chosen name
        rule = _named(known, key, dotted, where) if given else known[key]
        if isinstance(rule, Mapping):
            if given:
                yield dotted, None
            yield from checked(_table(value, dotted, where), where, rule, dotted)
        else:
            yield dotted, _fitting(value, rule, dotted, where)


def _named(known: Mapping[str, Any], key: str, dotted: str, where: str) -> Any:
    if "*" not in known:
        raise _unknown(known, key, dotted, where)
    if dotted.startswith("prices.") and not _PRICED.fullmatch(key):
        raise ConfigError(
            f'{where}: {quoted(dotted)} is not a member: write [prices."openai:gpt-5.2"], or [prices."openai:*"] for every model of a provider'
        )
    if not dotted.startswith("prices.") and not _NAME.fullmatch(key):
        raise ConfigError(f"{where}: {quoted(dotted)} contains an invalid name: use letters, digits, - and _")
    if key in RESERVED.get(dotted.partition(".")[0], ()):
        other = "write [chair] for the chair" if key == "chair" else "choose another name"
        raise ConfigError(f"{where}: {quoted(dotted)} cannot be set because {quoted(key)} is a reserved name: {other}")
    return known["*"]


def _unknown(known: Mapping[str, Any], key: str, dotted: str, where: str) -> ConfigError:
    if _SECRET.search(key):
        return ConfigError(
            f"{where}: {quoted(dotted)} looks like a secret, and secrets are not allowed in configuration files: "
            "set an environment variable and put its name into api_key_env"
        )
    parent = dotted.removesuffix(key)
    return ConfigError(f"{where}: unknown key {quoted(dotted)}: did you mean {quoted(parent + nearest(key, known))}?")


def nearest(word: str, known: Mapping[str, Any]) -> str:
    from difflib import get_close_matches  # only needed for errors

    return str(get_close_matches(word, known, n=1, cutoff=0.0)[0])


def _table(value: Any, dotted: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where}: {quoted(dotted)} is {quoted(value)}, but it must be a table: write [{dotted}] and put its keys below"
        )
    return value


def _fitting(value: Any, rule: Kind | Rows, dotted: str, where: str) -> Any:
    if isinstance(rule, Rows):
        return [_row(row, rule, dotted, where) for row in _rows(value, dotted, where)]
    if isinstance(value, str) and _CREDENTIALS.match(value):
        raise ConfigError(
            f"{where}: {quoted(dotted)} is a URL with a password, and secrets are not allowed in configuration files: use api_key_env"
        )
    if not rule.fits(value):
        problem = "is invalid" if rule.secret else f"is {_a_text(value, rule)}{quoted(value)}"
        raise ConfigError(f"{where}: {quoted(dotted)} {problem}: it must be {rule.what}")
    return value


def _a_text(value: Any, rule: Kind) -> str:
    """Return "the string " for a quoted number, which would otherwise look valid in the error."""
    try:
        return "the string " if isinstance(value, str) and rule.fits(float(value)) else ""
    except ValueError:
        return ""


def _row(row: Mapping[str, Any], rule: Rows, dotted: str, where: str) -> dict[str, Any]:
    named = checked(row, where, rule.known, dotted)
    return {key.removeprefix(dotted + "."): value for key, value in named}


def _rows(value: Any, dotted: str, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise ConfigError(
            f"{where}: {quoted(dotted)} is {quoted(value)}, but it must be a list of tables: write one [[{dotted}]] for each"
        )
    return [_table(row, dotted, where) for row in value]
