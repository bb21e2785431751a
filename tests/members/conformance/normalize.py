"""Normalize request bodies for comparison. Each rule is an allowed difference, with its reason."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
TALK = ("title", "description", "default", "each", "also", "main", "ge", "le")  # annotations that no grammar uses


def alike(wire: str, body: Json) -> Json:
    forms = {"openai": _openai, "openai-responses": _responses, "anthropic": _anthropic, "google": _google}
    return forms[wire](body)


def _openai(body: Json) -> Json:
    if "response_format" in body:
        wanted = body["response_format"]["json_schema"]
        body = body | {"response_format": wanted | {"schema": plain(wanted["schema"])}}
    return body


def _responses(body: Json) -> Json:
    if "text" in body:
        wanted = body["text"]["format"]
        body = body | {"text": {"format": wanted | {"schema": plain(wanted["schema"])}}}
    return body


def _anthropic(body: Json) -> Json:
    """Join text blocks, which are equivalent to one string, and drop cache markers."""
    turns = [{"role": turn["role"], "content": _text(turn["content"])} for turn in body["messages"]]
    told = body | {"messages": turns} | ({"system": _text(body["system"])} if "system" in body else {})
    if "format" in (output := body.get("output_config", {})):
        wanted = output["format"]
        told["output_config"] = output | {"format": wanted | {"schema": plain(wanted["schema"])}}
    return told


def _text(content: Any) -> Any:
    if not isinstance(content, str) and any(block["type"] != "text" for block in content):
        return content
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _google(body: Json) -> Json:
    """Convert names to camelCase, drop the role of the system instruction, and drop empty objects.

    Bytes may be in either alphabet of base64.
    """
    told: Json = _camel(body)
    for part in (part for turn in told["contents"] for part in turn["parts"] if "inlineData" in part):
        part["inlineData"]["data"] = part["inlineData"]["data"].translate(str.maketrans("-_", "+/"))
    if "systemInstruction" in told:
        told["systemInstruction"].pop("role", None)
    config = told.pop("generationConfig", {})
    if "responseJsonSchema" in config:
        config["responseJsonSchema"] = plain(body["generationConfig"]["responseJsonSchema"])
    return told | ({"generationConfig": config} if config else {})


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): _camel(item) for name, item in value.items()}


def plain(schema: Any, names: Json | None = None) -> Any:
    """Resolve references and drop annotations. Mark every property as required, as our schemas do."""
    if isinstance(schema, list):
        return [plain(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    names = schema.get("$defs", names)
    if "$ref" in schema:
        return plain((names or {})[schema["$ref"].rsplit("/", 1)[-1]], names)
    told = {key: plain(value, names) for key, value in schema.items() if key not in (*TALK, "$defs", "properties")}
    if "properties" in schema:
        parts = {name: plain(part, names) for name, part in schema["properties"].items()}
        told |= {"properties": parts, "required": sorted(parts), "additionalProperties": False}
    return told
