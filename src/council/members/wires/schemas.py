"""JSON Schema dialects of the vendors. Unsupported keywords move to the description; replies are still validated here."""

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
    """Keywords that one vendor's strict mode supports."""

    more: frozenset[str]  # in addition to the common keywords
    formats: frozenset[str] = FORMATS  # string formats
    few: bool = False  # minItems can only be 0 or 1
    bare_enums: bool = False  # an enum must not have a type

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
    """Convert a schema to a vendor's dialect."""
    if not isinstance(schema, dict):
        return schema
    supported: Json = {}
    unsupported: Json = {}
    for key, value in _plain(schema, grammar).items():
        if key in NAMED:
            supported[key] = {name: fitted(part, grammar) for name, part in value.items()}
        elif key in LISTS and grammar.knows(key, value):
            supported[key] = [fitted(part, grammar) for part in value]
        elif key == "items":
            supported[key] = fitted(value, grammar)
        elif grammar.knows(key, value):
            supported[key] = value
        elif key not in MUTE:
            unsupported[key] = value
    return _described(supported, unsupported)


def _plain(schema: Json, grammar: Grammar) -> Json:
    """Replace oneOf, const and typed enums where the dialect does not support them."""
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
