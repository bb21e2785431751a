"""Typed replies: the JSON schema sent with a request, and the parser of the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from council.answer_text import find_refusal, is_placeholder
from council.engine.reply_form import NO_TITLES, FormReader
from council.engine.reply_form import Choices as Choices  # used by all protocols
from council.errors import Fault
from council.json_text import clean_text, find_json, iter_strings, load_json
from council.text_cleanup import single_line, squash
from council.types import Json, ProseUse, Step

R = TypeVar("R", bound="Reply")
SMALL_STRING = 200
SMALL_ROWS = 2  # rows in a list of objects
SMALL_CELL = 80
SMALL_LIST = 3
MAX_PROBLEMS = 8  # listed in a repair turn
MISSING = " is missing"
MAX_QUOTE = 80  # characters of a wrong value
MIN_PROSE_CHARS = 80  # of an answer in prose; a shorter text is more likely a remark on the repair turn
MAX_WRAPPERS = 3  # nested wrapper objects
WRAPPERS = {  # keys under which models put the whole reply
    "result", "response", "reply", "output", "data", "arguments", "parameters", "input", "json", "content", "final",
    "properties", "object", "body", "payload", "value",
}  # fmt: skip
LOW_CONFIDENCE = 0.3  # numeric confidence that counts as LOW


class Reply(BaseModel):
    """Base of a typed reply."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    takes_a_position: ClassVar[bool] = True  # the reply states a position that a digest can show
    answer_field: ClassVar[str] = ""  # field that can hold a chair's prose when it gives no typed reply
    _is_prose: bool = PrivateAttr(default=False)
    open_choices: ClassVar[frozenset[str]] = frozenset()  # fields whose unknown values the protocol handles itself

    def prose(self) -> str:
        """Render the reply as Markdown."""
        raise NotImplementedError

    @classmethod
    def from_prose(cls, text: str) -> Self | None:
        """Return the reply that holds good prose as its answer and sets no other field; None if prose cannot replace it."""
        if not cls.answer_field:
            return None
        others = [(name, field) for name, field in cls.model_fields.items() if field.is_required()]
        empty = {name: _empty_value(field.annotation) for name, field in others}
        return cls.model_construct({cls.answer_field}, **{**empty, cls.answer_field: text})

    @property
    def missing_parts(self) -> list[str]:
        """Return the fields that a reply made from prose lacks; empty for any other reply."""
        if not self._is_prose:
            return []
        return [name.replace("_", " ") for name in type(self).model_fields if name not in self.model_fields_set]

    def check_choices(self, choices: Choices) -> None:
        """Raise ValueError, worded for the model, if a well-formed reply is not acceptable."""

    def with_low_confidence(self) -> Self:
        """Return a copy with low confidence, for a reply that was truncated after its end."""
        confidence = getattr(self, "confidence", None)
        if confidence is None:
            return self
        low = "LOW" if isinstance(confidence, str) else min(confidence, LOW_CONFIDENCE)
        return self.model_copy(update={"confidence": low})

    @classmethod
    def convert_older(cls, value: Json) -> Json:
        """Return a reply in the form of an older version in the present form."""
        return value

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return the rehearsal answer of the n-th request (from 0); `plain` is a valid one, `options` those of the protocol."""
        return plain if agree else cls.vary(plain, n)

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        """Return the rehearsal answer of the n-th seat (from 0) for a run in which seats disagree."""
        return plain


def _empty_value(annotation: Any) -> Any:
    return [] if get_origin(annotation) is list else "" if annotation is str else None


def one_row_per(field: str) -> Any:
    """Mark a list field that needs one row per allowed value of the rows' field `of` (or per value, for a list of strings)."""
    return {"each": field}


def build_schema(reply: type[Reply], choices: Choices, *, small: bool = False) -> Json:
    """Return the strict JSON schema of a reply: no extra fields, all required, values limited to `choices`."""
    schema = _model_schema(reply)
    strict: Json = _make_strict(
        {key: of for key, of in schema.items() if key != "$defs"}, schema.get("$defs", {}), choices
    )
    return _limit_lengths(strict) if small else strict


@cache
def _model_schema(reply: type[Reply]) -> Json:
    """Return the schema that pydantic generates, which takes milliseconds. Do not change it."""
    return reply.model_json_schema()


def _make_strict(node: Any, definitions: Json, choices: Choices) -> Any:
    if isinstance(node, list):
        return [_make_strict(item, definitions, choices) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _make_strict(definitions[node["$ref"].rsplit("/", 1)[1]], definitions, choices)
    many = str(node.get("each"))
    tight = {
        key: _make_strict(value, definitions, choices)
        for key, value in node.items()
        if key not in ("title", "default", "each", "properties")
    }
    if tight.get("type") == "object":
        fields = node.get("properties", {}).items()  # kept apart: a field may be named "title"
        properties = {name: _limit_values(name, _make_strict(of, definitions, choices), choices) for name, of in fields}
        tight |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    return tight | _limit_rows(tight["items"], choices[many]) if many in choices else tight


def _limit_rows(items: Json, values: Collection[str]) -> Json:
    row = {"type": "string", "enum": list(values)} if items.get("type") == "string" else items
    return {"items": row, "minItems": len(values), "maxItems": len(values)}


def _limit_values(name: str, schema: Json, choices: Choices) -> Json:
    if name not in choices:
        return schema
    values = list(choices[name])
    if schema.get("type") == "array":
        return schema | {"items": schema["items"] | {"enum": values}}
    return schema | {"enum": values}


def _limit_lengths(schema: Json, max_length: int = SMALL_STRING) -> Json:
    """Limit lengths: a small model under a grammar would otherwise write until it is truncated."""
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        return {**schema, "maxLength": max_length}
    if kind == "array":
        rows = schema["items"].get("type") == "object"
        most, inside = (SMALL_ROWS, SMALL_CELL) if rows else (SMALL_LIST, max_length)
        return {"maxItems": most, **schema, "items": _limit_lengths(schema["items"], inside)}
    if kind == "object":
        return {
            **schema,
            "properties": {name: _limit_lengths(of, max_length) for name, of in schema["properties"].items()},
        }
    return schema


# Parsing


def parse_reply(reply: type[R], text: str, choices: Choices, titles: Mapping[str, str] = NO_TITLES) -> R:
    """Parse a reply, or raise Fault("schema") worded for the model. `titles` maps the title of a seat to its name.

    The first JSON object that is a valid reply and no echo of the schema counts; if another valid one differs from it, the
    reply is ambiguous.
    """
    text = clean_text(text)
    try:
        values, problem = [load_json(text)], ""
    except ValueError:
        values, problem = find_json(text)
    valid: list[R] = []
    failed: list[tuple[int, list[str]]] = []  # number of known fields, problems
    for value in values:
        for candidate in _iter_candidates(reply, value):
            read, problems = _read_object(reply, candidate, choices, titles)
            if read is not None:
                valid.append(read)
                break
            failed.append((_count_known_fields(reply, candidate), problems))
    own = [one for one in valid if len(valid) == 1 or not _is_echo(reply, one, choices)] or valid
    if own and all(one == own[0] for one in own):
        return own[0]
    raise Fault("schema", _describe_failure(reply, len(own), failed, problem), said=text)


def read_prose(reply: type[R], text: str) -> R | None:
    """Return the reply with this prose as its answer if the prose is usable, or None.

    Of a JSON reply that does not fit the schema only the text of its answer is used.
    """
    text = clean_text(text)
    made = reply.from_prose(text)
    if made is None:
        return None
    if is_json_reply(reply, text):
        field = reply.answer_field
        found = [one[field] for one in find_json(text)[0] if isinstance(one, dict) and isinstance(one.get(field), str)]
        text = found[0] if len(found) == 1 else ""
        made = reply.from_prose(text)
    if made is None or len(text.strip()) < MIN_PROSE_CHARS or is_placeholder(text) or find_refusal(text):
        return None
    made._is_prose = True
    return made


def rate_prose(reply: type[Reply] | None, text: str) -> ProseUse:
    """Return whether a text that is no typed reply can be used in place of one."""
    if reply is None or read_prose(reply, text) is None:
        return "none"
    return "last" if is_json_reply(reply, text) else "repaired"


def read_accepted(step: Step, text: str) -> Reply | None:
    """Read an accepted answer. One that does not fit its schema was accepted as prose."""
    try:
        read: Reply | None = step.read(text)
    except Fault:
        if step.reply is None or (read := read_prose(step.reply, text)) is None:
            raise
    return read


def is_json_reply(reply: type[Reply], text: str) -> bool:
    """Return whether a text is an attempt at the typed reply, readable or not, and no prose."""
    text = clean_text(text)
    if strip_code_fence(text).startswith(("{", "[{", '["')):
        return True
    return any(isinstance(one, dict) and _count_known_fields(reply, one) for one in find_json(text)[0]) or any(
        re.search(rf'[{{,]\s*"{name}"\s*:', text) for name in reply.model_fields
    )


def _describe_failure(reply: type[Reply], valid: int, failed: list[tuple[int, list[str]]], problem: str) -> str:
    if valid:
        return f"it has {valid} different JSON objects that fit the schema: send one"
    known, problems = max(failed, key=lambda one: one[0], default=(0, []))
    if known or (problems and not problem):
        return "; ".join(_join_missing(problems)[:MAX_PROBLEMS])
    required = ", ".join(name for name, field in reply.model_fields.items() if field.is_required())
    return problem or f"it has no JSON object with the fields {required}"


def _read_object(
    reply: type[R], value: Json, choices: Choices, titles: Mapping[str, str]
) -> tuple[R | None, list[str]]:
    """Return the reply, or the problems of a value that is none."""
    reader = FormReader(choices, titles)
    given = reader.read(reply.convert_older(value), _get_shape(reply))
    try:
        read = reply.model_validate(given)
        closed = {name: choices[name] for name in choices if name not in reply.open_choices}
        if closed and (problems := list(_find_unknown_values(read.model_dump(warnings=False), closed))):
            return None, problems
        read.check_choices(choices)
    except ValidationError as error:
        unknown = [one for one in reader.unknown if one[2] not in reply.open_choices]
        listed = [_describe_unknown(place, value, choices[name]) for place, value, name in unknown]
        return None, [*listed, *(_format_problem(one) for one in error.errors(include_url=False))]
    except ValueError as error:
        return None, [str(error)]
    return read, []


def _iter_candidates(reply: type[Reply], value: Any, depth: int = 0) -> Iterator[Json]:
    """Yield the objects that may be the reply: the value, the only item of a list, the content of a wrapper."""
    if isinstance(value, str):
        value = _load_string(value)
    fields = reply.model_fields
    if isinstance(value, list):
        objects = [item for item in value if isinstance(item, dict)]
        yield from objects if len(objects) == len(value) and (len(value) == 1 or len(fields) > 1) else ()
        if len(fields) == 1:
            yield dict.fromkeys(fields, value)
    if not isinstance(value, dict):
        return
    yield value
    if depth < MAX_WRAPPERS:
        for inner in _unwrap(reply, value):
            yield from _iter_candidates(reply, inner, depth + 1)


def _unwrap(reply: type[Reply], value: Json) -> list[Any]:
    """Return the content of a wrapper: the only key's object, or the value of the one key that names a reply."""
    if len(value) == 1 and isinstance(only := next(iter(value.values())), dict):
        return [only]
    known = {squash(name) for name in reply.model_fields}
    names = {*WRAPPERS, squash(reply.__name__)} - known
    if any(squash(key) in known for key in value):
        return []
    inside = [item for key, item in value.items() if squash(key) in names and isinstance(item, dict | list | str)]
    return inside if len(inside) == 1 else []


def _load_string(text: str) -> Any:
    """Return the JSON object that a string contains, or None."""
    bare = strip_code_fence(text)
    if not bare.startswith(("{", "[")):
        return None
    values, _ = find_json(bare)
    return values[0] if len(values) == 1 else None


def _count_known_fields(reply: type[Reply], value: Json) -> int:
    known = {squash(name) for name in reply.model_fields}
    return sum(squash(key) in known for key in value)


def _is_echo(reply: type[Reply], read: Reply, choices: Choices) -> bool:
    """Return whether all free text of a reply is a placeholder or repeats the descriptions in the schema."""
    words = {value for values in choices.values() for value in values} | _get_enum_values(reply)
    free = [text for text in iter_strings(read.model_dump(exclude_unset=True, warnings=False)) if text not in words]
    described = _get_descriptions(reply)
    return bool(free) and all(is_placeholder(text) or squash(text) in described for text in free)


def strip_code_fence(text: str) -> str:
    """Strip a code fence that encloses the whole message."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3].strip()
    return bare


# Shape of a reply: its JSON schema with the definitions inlined


@cache
def _get_shape(reply: type[Reply]) -> Json:
    schema = reply.model_json_schema()
    shape: Json = _inline(schema, schema.pop("$defs", {}))
    return shape


def _inline(node: Any, definitions: Json) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    return {key: _inline(value, definitions) for key, value in node.items()}


@cache
def _get_enum_values(reply: type[Reply]) -> set[str]:
    nodes = _iter_nodes(_get_shape(reply))
    return {value for node in nodes for value in [*node.get("enum", ()), node.get("const")] if isinstance(value, str)}


@cache
def _get_descriptions(reply: type[Reply]) -> set[str]:
    nodes = _iter_nodes(_get_shape(reply))
    return {squash(node["description"]) for node in nodes if isinstance(node.get("description"), str)}


def _iter_nodes(node: Any) -> Iterator[Json]:
    if isinstance(node, dict):
        yield node
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _iter_nodes(item)


def _find_unknown_values(value: Any, choices: Choices, place: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _find_unknown_values(item, choices, f"{place}.{n}")
    elif isinstance(value, dict):
        for name, item in value.items():
            where = f"{place}.{name}".lstrip(".")
            for one in item if isinstance(item, list) else [item]:
                if name in choices and not isinstance(one, dict) and one not in choices[name]:
                    yield _describe_unknown(where, one, choices[name])
            yield from _find_unknown_values(item, choices, where)


# Problems, worded for the model

_EXPECTED = {
    "string_type": "text", "list_type": "a list", "bool_parsing": "true or false", "bool_type": "true or false",
    "int_parsing": "a whole number", "int_type": "a whole number", "int_from_float": "a whole number",
    "float_parsing": "a number", "float_type": "a number", "dict_type": "an object", "model_type": "an object",
    "model_attributes_type": "an object",
}  # fmt: skip


def _describe_unknown(place: str, value: Any, allowed: Collection[str]) -> str:
    return f"{_format_place(place.split('.'))}: {_quote(value)} is not one of {', '.join(one or 'empty' for one in allowed)}"


def _format_problem(problem: Any) -> str:
    place, kind, value = _format_place(problem["loc"]), str(problem["type"]), problem.get("input")
    if kind == "missing":
        return f"{place}{MISSING}"
    if kind == "literal_error":
        allowed = str(problem["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        text = f"{_quote(value)} is not one of {allowed}"
    elif kind in _EXPECTED:
        text = f"{_quote(value)} is not {_EXPECTED[kind]}"
    else:
        text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {text}" if place else text


def _join_missing(problems: Sequence[str]) -> list[str]:
    """Return the problems with all missing fields of the reply in one, at the end."""
    single = [problem for problem in problems if problem.endswith(MISSING) and "," not in problem]
    if len(single) < 2:
        return list(problems)
    names = [problem.removesuffix(MISSING) for problem in single]
    others = [problem for problem in problems if problem not in single]
    return [*others, f"{', '.join(names[:-1])} and {names[-1]} are missing"]


def _format_place(parts: Sequence[Any]) -> str:
    """Return the place of a value, with rows counted from 1: "findings 2, severity"."""
    words: list[str] = []
    for part in parts:
        number = str(part)
        if number.isdigit() and words:
            words[-1] += f" {int(number) + 1}"
        else:
            words.append(number)
    return ", ".join(words)


def _quote(value: Any) -> str:
    if isinstance(value, str):
        return f'"{single_line(value, MAX_QUOTE)}"'
    names = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value)) or str(value)
