"""JSON Schema dialects of the vendors. Unsupported keywords move to the description; replies are still validated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from council.types import Json

COMMON_KEYWORDS = frozenset(
    ["type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs", "description"]
)
STRING_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
IGNORED_KEYWORDS = frozenset(
    ["title", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"]
)
RANGE_KEYWORDS = ("minimum", "maximum", "minItems", "maxItems")
LIST_KEYWORDS, MAP_KEYWORDS = ("anyOf", "allOf", "prefixItems"), ("properties", "$defs")


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """Keywords that one vendor's strict mode supports."""

    extra_keywords: frozenset[str]  # in addition to the common keywords
    formats: frozenset[str] = STRING_FORMATS  # string formats
    limits_min_items: bool = False  # minItems can only be 0 or 1
    drops_enum_types: bool = False  # an enum must not have a type

    def supports(self, key: str, value: Any) -> bool:
        if key == "format":
            return value in self.formats
        if key == "minItems" and self.limits_min_items:
            return value in (0, 1)
        return key in COMMON_KEYWORDS or key in self.extra_keywords


OPENAI = SchemaDialect(
    frozenset(["const", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", *RANGE_KEYWORDS])
)
ANTHROPIC = SchemaDialect(
    frozenset(["const", "allOf"]), STRING_FORMATS | {"uri"}, limits_min_items=True, drops_enum_types=True
)
GOOGLE = SchemaDialect(frozenset([*RANGE_KEYWORDS, "prefixItems"]))


def convert_schema(schema: Any, dialect: SchemaDialect) -> Any:
    if not isinstance(schema, dict):
        return schema
    supported: Json = {}
    unsupported: Json = {}
    for key, value in _simplify_keywords(schema, dialect).items():
        if key in MAP_KEYWORDS:
            supported[key] = {name: convert_schema(part, dialect) for name, part in value.items()}
        elif key in LIST_KEYWORDS and dialect.supports(key, value):
            supported[key] = [convert_schema(part, dialect) for part in value]
        elif key == "items":
            supported[key] = convert_schema(value, dialect)
        elif dialect.supports(key, value):
            supported[key] = value
        elif key not in IGNORED_KEYWORDS:
            unsupported[key] = value
    return _append_description(supported, unsupported)


def _simplify_keywords(schema: Json, dialect: SchemaDialect) -> Json:
    """Replace oneOf, const and typed enums where the dialect does not support them."""
    plain = {"anyOf" if key == "oneOf" else key: value for key, value in schema.items()}
    if "const" in plain and not dialect.supports("const", None):
        plain["enum"] = [plain.pop("const")]
    if dialect.drops_enum_types and ("enum" in plain or "const" in plain):
        plain.pop("type", None)
    return plain


def _append_description(supported: Json, unsupported: Json) -> Json:
    keywords = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in unsupported.items())
    described = f"{supported.get('description', '')} ({keywords})".strip()
    return supported | {"description": described} if keywords else supported
