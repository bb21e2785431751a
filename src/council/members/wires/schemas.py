"""Each vendor's grammar knows a part of JSON Schema. What it does not know is told in words; our own check stays the judge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from council.types import Json

EVERYWHERE = frozenset(
    ["type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs", "description"]
)
FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
MUTE = frozenset(["title", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"])
LISTS, NAMED = ("anyOf", "allOf", "prefixItems"), ("properties", "$defs")


@dataclass(frozen=True, slots=True)
class Grammar:
    """What one vendor's strict mode can hold a model to."""

    more: frozenset[str]  # keywords besides those that all of them know
    formats: frozenset[str] = FORMATS  # of strings
    few: bool = False  # minItems can only be 0 or 1
    bare_enums: bool = False  # a choice stands without its type

    def knows(self, key: str, value: Any) -> bool:
        if key == "format":
            return value in self.formats
        if key == "minItems" and self.few:
            return value in (0, 1)
        return key in EVERYWHERE or key in self.more


NUMBERS = ("minimum", "maximum")
OPENAI = Grammar(frozenset(["const", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", *NUMBERS, "minItems", "maxItems"]))  # fmt: skip
ANTHROPIC = Grammar(frozenset(["const", "allOf"]), FORMATS | {"uri"}, few=True, bare_enums=True)
GOOGLE = Grammar(frozenset([*NUMBERS, "minItems", "maxItems", "prefixItems"]))


def fitted(schema: Any, grammar: Grammar) -> Any:
    """The schema in the words of a grammar."""
    if not isinstance(schema, dict):
        return schema
    kept: Json = {}
    told: Json = {}
    for key, value in _plain(schema, grammar).items():
        if key in NAMED:
            kept[key] = {name: fitted(part, grammar) for name, part in value.items()}
        elif key in LISTS and grammar.knows(key, value):
            kept[key] = [fitted(part, grammar) for part in value]
        elif key == "items":
            kept[key] = fitted(value, grammar)
        elif grammar.knows(key, value):
            kept[key] = value
        elif key not in MUTE:
            told[key] = value
    return _described(kept, told)


def _plain(schema: Json, grammar: Grammar) -> Json:
    """The same in fewer keywords."""
    plain = {"anyOf" if key == "oneOf" else key: value for key, value in schema.items()}
    if "const" in plain and not grammar.knows("const", None):
        plain["enum"] = [plain.pop("const")]
    if grammar.bare_enums and ("enum" in plain or "const" in plain):
        plain.pop("type", None)
    return plain


def _described(kept: Json, told: Json) -> Json:
    if not told:
        return kept
    words = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items())
    return kept | {"description": f"{kept['description']} ({words})" if "description" in kept else f"({words})"}
