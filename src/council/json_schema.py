"""JSON Schemas of callers: check a schema before anything is paid for, and a value against it.

The keywords are those of draft 2020-12 and of draft 7. A schema comes from a client, so it is limited: nothing is
fetched, patterns run in an engine without backtracking, and the steps of a check are counted. A keyword that would
change the result and is not known here is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from math import isfinite
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from council.text_cleanup import single_line
from council.types import Json, JsonSchema

MAX_SCHEMA_CHARS = 120_000
MAX_SCHEMA_DEPTH = 60
MAX_SUBSCHEMAS = 5_000
MAX_PATTERNS = 30
MAX_PATTERN_CHARS = 1_000
MAX_FORMS = 10_000  # of one value: schemas that apply to it by allOf, anyOf, $ref and so on
MAX_VALUE_DEPTH = 100
MAX_STEPS = 100_000  # of the check of a value
MAX_MATCHED_CHARS = 10_000  # of a string that is compared with a pattern
MAX_PROBLEMS = 8
MAX_PROBLEM_CHARS = 300
MAX_QUOTE = 60  # characters of a wrong value
MAX_STRICT_DEPTH = 10
MAX_STRICT_SUBSCHEMAS = 300

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
SCHEMA_KEYWORDS = frozenset(
    ("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
)
LIST_KEYWORDS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
MAP_KEYWORDS = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
COUNT_KEYWORDS = frozenset(
    (
        *("maxContains", "maxItems", "maxLength", "maxProperties"),
        *("minContains", "minItems", "minLength", "minProperties"),
    )
)
NUMBER_KEYWORDS = frozenset(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"))
REFUSED_KEYWORDS = frozenset(
    ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
)
SAME_VALUE_KEYWORDS = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
# What the strict modes of vendors accept; `members.wires.schema_dialects` leaves out what one of them does not.
STRICT_KEYWORDS = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description"),
        *("title", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "minLength", "maxLength", "default", "examples"),
    )
)


class SchemaError(ValueError):
    """A schema that cannot be used. The text names the place and the problem."""


# Schemas


def check_schema(schema: Any) -> None:
    """Raise SchemaError unless values can be checked against the schema."""
    try:
        text = json.dumps(schema)
    except (ValueError, RecursionError):
        raise SchemaError(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels, or has a number that is none") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaError(f"it has {len(text):,} characters, and at most {MAX_SCHEMA_CHARS:,} are checked")
    _SchemaReader(schema).check()


class _SchemaReader:
    """Checks each part of a schema, and how many parts can apply to one value."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.subschemas: list[tuple[str, Json]] = []
        self.patterns: set[str] = set()

    def check(self) -> None:
        self._visit(self.root, "", 0)
        known = {id(schema) for _, schema in self.subschemas}
        forms: dict[int, int] = {}
        for place, schema in self.subschemas:
            target = resolve(self.root, schema["$ref"]) if "$ref" in schema else True
            if not isinstance(target, bool) and id(target) not in known:
                raise SchemaError(f"$ref {_quote(schema['$ref'])} names no schema: use #/$defs/NAME")
            self._count_forms(schema, place, forms, ())

    def _visit(self, schema: Any, place: str, depth: int) -> None:
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise SchemaError(f"{place or 'it'} is {_quote(schema)}, not a schema: use an object, true or false")
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaError(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        self.subschemas.append((place, schema))
        if len(self.subschemas) > MAX_SUBSCHEMAS:
            raise SchemaError(f"it has more than {MAX_SUBSCHEMAS:,} parts")
        for keyword, value in schema.items():
            self._check_keyword(keyword, value, f"{place}.{keyword}".lstrip("."), bool(place))
        for where, inner in _iter_subschemas(schema):
            self._visit(inner, f"{place}.{where}".lstrip("."), depth + 1)

    def _check_keyword(self, keyword: str, value: Any, place: str, is_part: bool) -> None:
        if keyword in REFUSED_KEYWORDS or (keyword == "$id" and is_part):
            raise SchemaError(f"{place} is not supported: write the schema without {keyword}")
        if keyword == "$ref":
            resolve(self.root, value)
        elif keyword == "type":
            named = value if isinstance(value, list) else [value]
            if not named or any(name not in TYPES for name in named if isinstance(name, str)) or not _are_texts(named):
                raise SchemaError(f"{place} is {_quote(value)}: use {', '.join(TYPES)}")
        elif keyword == "enum":
            _require(isinstance(value, list) and value, place, value, "a list of values")
        elif keyword == "required":
            _require(isinstance(value, list) and _are_texts(value), place, value, "a list of names")
        elif keyword in COUNT_KEYWORDS:
            is_count = _is_number(value) and value >= 0 and int(value) == value
            _require(is_count, place, value, "a whole number from 0")
        elif keyword in NUMBER_KEYWORDS:
            _require(_is_number(value) and (keyword != "multipleOf" or value > 0), place, value, "a number")
        elif keyword == "pattern":
            self._check_pattern(value, place)
        elif keyword == "dependentRequired":
            is_map = isinstance(value, dict) and all(
                isinstance(row, list) and _are_texts(row) for row in value.values()
            )
            _require(is_map, place, value, "lists of names")
        elif keyword in LIST_KEYWORDS:
            _require(isinstance(value, list) and value, place, value, "a list of schemas")
        elif keyword in MAP_KEYWORDS or keyword == "dependencies":
            _require(isinstance(value, dict), place, value, "schemas by name")
            if keyword == "patternProperties":
                for pattern in value:
                    self._check_pattern(pattern, place)

    def _check_pattern(self, pattern: Any, place: str) -> None:
        _require(isinstance(pattern, str), place, pattern, "a regular expression")
        self.patterns.add(pattern)
        if len(self.patterns) > MAX_PATTERNS:
            raise SchemaError(f"it has more than {MAX_PATTERNS} patterns")
        if len(pattern) > MAX_PATTERN_CHARS:
            raise SchemaError(f"{place} has more than {MAX_PATTERN_CHARS:,} characters")
        try:
            _compile_pattern(pattern)
        except ValueError as error:
            raise SchemaError(f"{place} {_quote(pattern)} cannot be checked: {error}") from None

    def _count_forms(self, schema: Json, place: str, forms: dict[int, int], path: tuple[int, ...]) -> int:
        """Return how many schemas apply to a value of this schema. Raise SchemaError for a circle, and for too many."""
        if id(schema) in path:
            raise SchemaError(f"{place or 'it'} refers to itself for the same value, so its check never ends")
        if id(schema) not in forms:
            inner = [part for part in _iter_same_value(self.root, schema) if isinstance(part, dict)]
            count = 1 + sum(self._count_forms(part, place, forms, (*path, id(schema))) for part in inner)
            if count > MAX_FORMS:
                raise SchemaError(f"{place or 'it'} has more than {MAX_FORMS:,} alternatives for one value")
            forms[id(schema)] = count
        return forms[id(schema)]


def _require(is_right: object, place: str, value: Any, wanted: str) -> None:
    if not is_right:
        raise SchemaError(f"{place} is {_quote(value)}: use {wanted}")


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _iter_subschemas(schema: Json) -> Iterator[tuple[str, Any]]:
    """Yield the schemas inside a schema, each with its place."""
    for keyword, value in schema.items():
        if keyword in LIST_KEYWORDS or (keyword == "items" and isinstance(value, list)):
            yield from ((f"{keyword}[{n}]", part) for n, part in enumerate(value))
        elif keyword in SCHEMA_KEYWORDS:
            yield keyword, value
        elif keyword in MAP_KEYWORDS:
            yield from ((f"{keyword}.{name}", part) for name, part in value.items())
        elif keyword == "dependencies":
            yield from ((f"{keyword}.{name}", part) for name, part in value.items() if not isinstance(part, list))


def _iter_same_value(root: Any, schema: Json) -> Iterator[Any]:
    """Yield the schemas that apply to the same value as a schema."""
    if "$ref" in schema:
        yield resolve(root, schema["$ref"])
    for keyword in SAME_VALUE_KEYWORDS & schema.keys():
        value = schema[keyword]
        yield from value if isinstance(value, list) else value.values() if keyword == "dependentSchemas" else [value]
    yield from (part for part in schema.get("dependencies", {}).values() if not isinstance(part, list))


def resolve(root: Any, reference: Any) -> Any:
    """Return the schema that a reference means. Nothing is fetched: it has to be in the same schema."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise SchemaError(f"$ref {_quote(reference)} is not in the schema and is not fetched: use #/$defs/NAME")
    node = root
    for part in unquote(reference).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            raise SchemaError(f"$ref {_quote(reference)} names nothing in the schema")
    if not isinstance(node, dict | bool):
        raise SchemaError(f"$ref {_quote(reference)} names no schema")
    return node


# Patterns: the syntax of JavaScript, in an engine whose time is linear

ASCII_CLASSES = {"d": "[0-9]", "D": "[^0-9]", "w": "[0-9A-Za-z_]", "W": "[^0-9A-Za-z_]"}


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that searches a pattern. Raise ValueError if the engine does not support it."""
    from pydantic_core import SchemaError as PatternError
    from pydantic_core import SchemaValidator, core_schema

    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=_translate_pattern(pattern), strict=True))
    except PatternError as error:
        if "size limit" in str(error):
            raise ValueError("its repetitions are too many") from None
        reason = str(error).rpartition("error: ")[2].partition(",")[0]
        raise ValueError(single_line(reason, 100)) from None
    return validator.isinstance_python


def _translate_pattern(pattern: str) -> str:
    """Return a pattern in the syntax of the engine."""
    made: list[str] = []
    is_class, at = False, 0
    while at < len(pattern):
        pair = pattern[at : at + 2]
        if pair[0] == "\\":
            made.append(ASCII_CLASSES.get(pair[1:], pair))
            at += 2
            continue
        if is_class and pair in ("--", "&&", "~~"):
            raise ValueError(f'write "{pair[0]}" once, or with a backslash')
        if pair[0] == "[" and is_class:
            made.append("\\")
        is_class = pair[0] != "]" if is_class else pair[0] == "["
        made.append(pair[0])
        at += 1
    return "".join(made)


# Values


class _TooManySteps(Exception):
    """A check with more than MAX_STEPS steps."""


def find_problems(value: Any, schema: Any) -> list[str]:
    """Return the first problems of a value with a schema that `check_schema` has accepted; empty if it fits."""
    try:
        found = _Check(schema).list_problems(value, schema, "", 0)
        return [single_line(problem, MAX_PROBLEM_CHARS) for problem in found[:MAX_PROBLEMS]]
    except (_TooManySteps, RecursionError):
        return ["it is too large or too deeply nested to be checked against the schema"]


class _Check:
    """The check of one value."""

    def __init__(self, root: Any) -> None:
        self.root, self.steps = root, 0
        self.enums: dict[int, set[str]] = {}  # by the id of the schema

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise _TooManySteps

    def list_problems(self, value: Any, schema: Any, place: str, depth: int) -> list[str]:
        self.spend(1 + (len(value) // 1000 if isinstance(value, str) else 0))
        if depth > MAX_VALUE_DEPTH:
            raise _TooManySteps
        if schema is True:
            return []
        if schema is False:
            return [_describe(place, "is not allowed")]
        found: list[str] = []
        if "$ref" in schema:
            found += self.list_problems(value, resolve(self.root, schema["$ref"]), place, depth)
        found += self._list_wrong_types(value, schema, place)
        if found:  # its parts have no meaning
            return found
        found += self._combine(value, schema, place, depth)
        if isinstance(value, str):
            found += self._list_string_problems(value, schema, place)
        elif isinstance(value, dict):
            found += self._list_object_problems(value, schema, place, depth)
        elif isinstance(value, list):
            found += self._list_array_problems(value, schema, place, depth)
        elif _is_number(value):
            found += _list_number_problems(value, schema, place)
        return found

    def fits(self, value: Any, schema: Any, depth: int) -> bool:
        return not self.list_problems(value, schema, "", depth)

    def _combine(self, value: Any, schema: Json, place: str, depth: int) -> list[str]:
        found = [one for part in schema.get("allOf", ()) for one in self.list_problems(value, part, place, depth)]
        for keyword in ("anyOf", "oneOf"):
            if keyword not in schema:
                continue
            tried = [self.list_problems(value, part, place, depth) for part in schema[keyword]]
            fitting = sum(not one for one in tried)
            if not fitting:
                closest = min(tried, key=len)
                found.append(f"{_describe(place, 'fits none of its alternatives')} ({closest[0]})")
            elif keyword == "oneOf" and fitting > 1:
                found.append(_describe(place, f"fits {fitting} alternatives where only one may fit"))
        if "not" in schema and self.fits(value, schema["not"], depth):
            found.append(_describe(place, f"is {_quote(value)}, which is excluded"))
        if "if" in schema:
            branch = "then" if self.fits(value, schema["if"], depth) else "else"
            found += self.list_problems(value, schema.get(branch, True), place, depth)
        return found

    def _list_object_problems(self, value: Json, schema: Json, place: str, depth: int) -> list[str]:
        required = schema.get("required", ())
        self.spend(len(required) // 5)
        found = [_describe(_join(place, name), "is missing") for name in required if name not in value]
        found += _list_count_problems(len(value), schema, place, "Properties", "fields")
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, item in value.items():
            where = _join(place, name)
            parts = [properties[name]] if name in properties else []
            parts += [part for pattern, part in patterns.items() if self._matches(pattern, name)]
            if not parts and "additionalProperties" in schema:
                if schema["additionalProperties"] is False:
                    found.append(_describe(where, "is no field of the schema"))
                parts = [schema["additionalProperties"]] if schema["additionalProperties"] is not False else []
            for part in parts:
                found += self.list_problems(item, part, where, depth + 1)
            if "propertyNames" in schema:
                found += self.list_problems(name, schema["propertyNames"], where, depth + 1)
        return found + self._list_dependent_problems(value, schema, place, depth)

    def _list_dependent_problems(self, value: Json, schema: Json, place: str, depth: int) -> list[str]:
        dependents = {**schema.get("dependencies", {}), **schema.get("dependentSchemas", {})}
        found = []
        for name, part in [*dependents.items(), *schema.get("dependentRequired", {}).items()]:
            if name not in value:
                continue
            if isinstance(part, list):
                found += [_describe(_join(place, one), "is missing") for one in part if one not in value]
            else:
                found += self.list_problems(value, part, place, depth)
        return found

    def _list_array_problems(self, value: list[Any], schema: Json, place: str, depth: int) -> list[str]:
        found = _list_count_problems(len(value), schema, place, "Items", "items")
        items = schema.get("items", True)
        first = schema.get("prefixItems", items if isinstance(items, list) else ())
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        for n, item in enumerate(value):
            part = first[n] if n < len(first) else rest
            if part is not True:
                found += self.list_problems(item, part, f"{place}[{n}]", depth + 1)
        if schema.get("uniqueItems") is True and len({_identify(item) for item in value}) < len(value):
            found.append(_describe(place, "has the same item twice"))
        if "contains" in schema:
            count = sum(self.fits(item, schema["contains"], depth + 1) for item in value)
            limits = {"minContains": schema.get("minContains", 1), "maxContains": schema.get("maxContains", len(value))}
            found += _list_count_problems(count, limits, place, "Contains", "items of the required kind")
        return found

    def _list_wrong_types(self, value: Any, schema: Json, place: str) -> list[str]:
        if "type" in schema:
            named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(_is_type(value, name) for name in named):
                return [_describe(place, f"is {_quote(value)}, not {' or '.join(named)}")]
        if "enum" in schema and not self._is_listed(value, schema):
            allowed = ", ".join(map(_quote, schema["enum"][:20]))
            return [_describe(place, f"is {_quote(value)}, not one of {allowed}")]
        if "const" in schema and _identify(value) != _identify(schema["const"]):
            return [_describe(place, f"is {_quote(value)}, not {_quote(schema['const'])}")]
        if isinstance(value, float) and not isfinite(value):
            return [_describe(place, "is too large a number")]
        return []

    def _is_listed(self, value: Any, schema: Json) -> bool:
        if id(schema) not in self.enums:
            self.enums[id(schema)] = {_identify(one) for one in schema["enum"]}
        return _identify(value) in self.enums[id(schema)]

    def _list_string_problems(self, value: str, schema: Json, place: str) -> list[str]:
        found = _list_count_problems(len(value), schema, place, "Length", "characters")
        if "pattern" in schema and not self._matches(schema["pattern"], value):
            found.append(_describe(place, f"is {_quote(value)}, which does not match {_quote(schema['pattern'])}"))
        name = str(schema.get("format"))
        if name in FORMATS and not _has_format(value, name):
            found.append(_describe(place, f"is {_quote(value)}, not of the format {name}"))
        return found

    def _matches(self, pattern: str, text: str) -> bool:
        self.spend(20 + len(text) // 2)
        return len(text) <= MAX_MATCHED_CHARS and _compile_pattern(pattern)(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_type(value: Any, name: str) -> bool:
    match name:
        case "number":
            return _is_number(value)
        case "integer":
            return _is_number(value) and (isinstance(value, int) or value.is_integer())
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
    kinds: Mapping[str, type] = {"object": dict, "array": list, "string": str}
    return isinstance(value, kinds[name])


def _identify(value: Any) -> str:
    """Return a text that is the same for equal values: 1 equals 1.0, and not true."""

    def normalize(one: Any) -> Any:
        if isinstance(one, float) and one.is_integer():
            return int(one)
        if isinstance(one, dict):
            return {name: normalize(item) for name, item in one.items()}
        return [normalize(item) for item in one] if isinstance(one, list) else one

    return json.dumps(normalize(value), sort_keys=True)


def _list_count_problems(count: int, schema: Json, place: str, what: str, words: str) -> list[str]:
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}", count)
    if least <= count <= most:
        return []
    return [_describe(place, f"has {count} {words}, not {f'at least {least}' if count < least else f'at most {most}'}")]


def _list_number_problems(value: float, schema: Json, place: str) -> list[str]:
    wrong = [
        f"is {value}, not {words} {schema[keyword]}"
        for keyword, words, is_outside in (
            ("minimum", "at least", lambda limit: value < limit),
            ("maximum", "at most", lambda limit: value > limit),
            ("exclusiveMinimum", "more than", lambda limit: value <= limit),
            ("exclusiveMaximum", "less than", lambda limit: value >= limit),
            ("multipleOf", "a multiple of", lambda limit: Fraction(str(value)) % Fraction(str(limit)) != 0),
        )
        if keyword in schema and is_outside(schema[keyword])
    ]
    return [_describe(place, one) for one in wrong]


DAY = re.compile(r"\d{4}-\d\d-\d\d")
CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
DURATION = re.compile(r"P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)")
EMAIL_NAME = re.compile(r"[^\s@\"(),:;<>\[\\\]]{1,64}")


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(LABEL.fullmatch(label) for label in text.split("."))


def _is_email(text: str) -> bool:
    name, _, host = text.rpartition("@")
    return bool(EMAIL_NAME.fullmatch(name)) and _is_hostname(host)


def _is_date_time(text: str) -> bool:
    day, clock = text[:10], text[11:]
    return bool(text[10:11] in ("T", "t") and _is_date(day) and CLOCK.fullmatch(clock) and _parse(datetime, text))


def _is_date(text: str) -> bool:
    return bool(DAY.fullmatch(text)) and _parse(date, text)


def _parse(kind: type[date] | type[time], text: str) -> bool:
    """Return whether a date or a time exists."""
    plain = re.sub(r"\.\d+", "", text.upper().replace("Z", "+00:00"))
    try:
        kind.fromisoformat(plain)
    except ValueError:
        return False
    return True


def _is_address(kind: type[IPv4Address] | type[IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except AddressValueError:
        return False
    return True


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_uri(text: str) -> bool:
    try:
        found = urlsplit(text)
    except ValueError:
        return False
    return bool(found.scheme and (found.netloc or found.path)) and not re.search(r"\s", text)


FORMATS: Mapping[str, Callable[[str], bool]] = {  # others only describe
    "date": _is_date,
    "date-time": _is_date_time,
    "time": lambda text: bool(CLOCK.fullmatch(text)) and _parse(time, text),
    "duration": lambda text: bool(DURATION.fullmatch(text)),
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(IPv4Address, text),
    "ipv6": lambda text: _is_address(IPv6Address, text),
    "uuid": _is_uuid,
    "uri": _is_uri,
}


def _has_format(text: str, name: str) -> bool:
    return len(text) <= MAX_MATCHED_CHARS and FORMATS[name](text)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _describe(place: str, problem: str) -> str:
    return f"{place or 'it'} {problem}"


def _quote(value: Any) -> str:
    if isinstance(value, dict | list) and value:
        return "an object" if isinstance(value, dict) else "a list"
    return single_line(json.dumps(value, ensure_ascii=False, default=str), MAX_QUOTE)


# Strict schemas


class _NotStrict(Exception):
    """A schema that the strict modes of vendors do not accept."""


def make_strict(schema: Any) -> JsonSchema | None:
    """Return a schema as the strict modes of vendors want it, without references; None if they would refuse it.

    Each value that fits it fits the schema. An optional field has no strict form: a member would have to make it up.
    """
    if not isinstance(schema, dict):
        return None
    try:
        strict: JsonSchema = _make_strict(schema, schema, 0, [])
    except _NotStrict:
        return None
    return strict if strict.get("type") == "object" else None


def _make_strict(root: Any, schema: Any, depth: int, made: list[None]) -> Any:
    made.append(None)
    if not isinstance(schema, dict) or depth > MAX_STRICT_DEPTH or len(made) > MAX_STRICT_SUBSCHEMAS:
        raise _NotStrict
    if "$ref" in schema:
        beside = {name: value for name, value in schema.items() if name in ("description", "title")}
        if len(beside) + 1 < len(schema.keys() - {"$defs", "definitions"}):
            raise _NotStrict
        return _make_strict(root, resolve(root, schema["$ref"]), depth + 1, made) | beside
    known = {name: value for name, value in schema.items() if name not in ("$defs", "definitions", "$schema", "$id")}
    if not known or known.keys() - STRICT_KEYWORDS:
        raise _NotStrict
    if "anyOf" in known:
        return known | {"anyOf": [_make_strict(root, part, depth + 1, made) for part in known["anyOf"]]}
    if "type" not in known and not known.keys() & {"enum", "const"}:
        raise _NotStrict
    if known.get("type") == "array":
        return known | {"items": _make_strict(root, known.get("items"), depth + 1, made)}
    if known.get("type") == "object":
        properties = known.get("properties") or {}
        is_closed = known.get("additionalProperties", False) is False
        if not properties or not is_closed or {*known.get("required", ())} != properties.keys():
            raise _NotStrict
        parts = {name: _make_strict(root, part, depth + 1, made) for name, part in properties.items()}
        return known | {"properties": parts, "required": list(properties), "additionalProperties": False}
    if isinstance(kinds := known.get("type"), list):
        if {"object", "array"} & {*kinds}:
            raise _NotStrict
        plain = {name: value for name, value in known.items() if name != "type"}
        return plain if plain.keys() & {"enum", "const"} else {"anyOf": [{"type": kind, **plain} for kind in kinds]}
    return known
