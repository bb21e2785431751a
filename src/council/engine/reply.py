"""Typed replies: the JSON schema sent with a request, and the parser of the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast, get_origin

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from council.answer_filter import clean_answer
from council.answer_text import find_refusal, is_placeholder
from council.engine.reply_form import NO_TITLES, FormReader
from council.engine.reply_form import Choices as Choices  # used by all protocols
from council.engine.reply_form import also_named as also_named
from council.engine.reply_form import main_field as main_field
from council.engine.reply_sections import read_sections
from council.errors import Fault
from council.json_text import (
    Ambiguous,
    clean_text,
    close_json,
    cut_json,
    escape_inner_quotes,
    find_json,
    iter_strings,
    load_json,
)
from council.text_cleanup import single_line, squash
from council.types import Json, JsonSchema, PartialReply, Step

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
MAX_MENDED_CHARS = 200_000
MAX_SALVAGE_STEPS = 5  # times that a reply is validated again without the values that do not fit
# Other names of the field that holds the answer.
ANSWER_NAMES = (
    *("final_answer", "answer", "final", "final_text", "response", "text"),
    *("answer_text", "content", "markdown", "result", "final_response"),
)
NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})


Place = tuple[str | int, ...]  # of a value in a reply: ("findings", 1, "severity")


class Loss(NamedTuple):
    """A value that did not fit, and what was left out because of it."""

    place: Place
    removed: Place  # a row, or a field that got its default
    is_required: bool = False  # the field is required, so its default was not meant
    is_cut: bool = False  # the reply ends inside the value

    @property
    def is_row(self) -> bool:
        return isinstance(self.removed[-1], int)


class Reply(BaseModel):
    """Base of a typed reply."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    takes_a_position: ClassVar[bool] = True  # the reply states a position that a digest can show
    answer_field: ClassVar[str] = ""  # field that can hold a chair's prose when it gives no typed reply
    open_choices: ClassVar[frozenset[str]] = frozenset()  # fields whose unknown values the protocol handles itself
    # Values of required fields that cannot be read. A required field without one is essential: without it the reply
    # cannot be used. With an `answer_field`, only this field is essential.
    defaults: ClassVar[Mapping[str, Any]] = NO_DEFAULTS
    decisive: ClassVar[frozenset[str]] = frozenset()  # optional fields whose loss is worth a repair turn
    decoration: ClassVar[frozenset[str]] = frozenset()  # lists that may lose a row without a repair turn
    _is_prose: bool = PrivateAttr(default=False)
    _losses: tuple[Loss, ...] = PrivateAttr(default=())

    def prose(self) -> str:
        """Render the reply as Markdown."""
        raise NotImplementedError

    @property
    def missing_parts(self) -> list[str]:
        """Return the fields that a reply made from prose lacks; empty for any other reply."""
        if not self._is_prose:
            return []
        return [name.replace("_", " ") for name in type(self).model_fields if name not in self.model_fields_set]

    @property
    def unread(self) -> list[str]:
        """Return the places of the values that could not be read, with rows counted from 1."""
        return [
            f"{_format_place(loss.place)}{' (cut off)' if loss.is_cut else ''}".replace("_", " ")
            for loss in self._losses
        ]

    def is_unread(self, field: str) -> bool:
        """Return whether a field, or a part of it, could not be read."""
        return any(loss.place[0] == field for loss in self._losses)

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
        """Return the rehearsal answer of request n; `plain` is a valid one, `options` those of the protocol."""
        return plain if agree else cls.vary(plain, n)

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        """Return the rehearsal answer of the n-th seat (from 0) for a run in which seats disagree."""
        return plain


def one_row_per(field: str) -> Any:
    """Mark a list that needs one row per allowed value of the rows' field, or of the strings themselves."""
    return {"each": field}


def build_schema(reply: type[Reply], choices: Choices, *, small: bool = False) -> JsonSchema:
    """Return the strict JSON schema of a reply: no extra fields, all required, values limited to `choices`."""
    strict: JsonSchema = _make_strict(_get_shape(reply), choices)
    return _limit_lengths(strict) if small else strict


def _make_strict(node: Any, choices: Choices) -> Any:
    if isinstance(node, list):
        return [_make_strict(item, choices) for item in node]
    if not isinstance(node, dict):
        return node
    many = str(node.get("each"))
    tight = {
        key: _make_strict(value, choices)
        for key, value in node.items()
        if key not in ("title", "default", "each", "also", "main", "properties")
    }
    if tight.get("type") == "object":
        fields = node.get("properties", {}).items()  # kept apart: a field may be named "title"
        properties = {name: _limit_values(name, _make_strict(of, choices), choices) for name, of in fields}
        tight |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    return tight | _limit_rows(tight["items"], choices[many]) if many in choices else tight


def _limit_rows(items: JsonSchema, values: Collection[str]) -> JsonSchema:
    row: JsonSchema = {"type": "string", "enum": list(values)} if items.get("type") == "string" else items
    return {"items": row, "minItems": len(values), "maxItems": len(values)}


def _limit_values(name: str, schema: JsonSchema, choices: Choices) -> JsonSchema:
    if name not in choices:
        return schema
    values = list(choices[name])
    if schema.get("type") == "array":
        items: JsonSchema = {**schema["items"], "enum": values}
        return {**schema, "items": items}
    return {**schema, "enum": values}


def _limit_lengths(schema: JsonSchema, max_length: int = SMALL_STRING) -> JsonSchema:
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

    The first JSON object that is a valid reply and no echo of the schema counts; if another valid one differs from it,
    the reply is ambiguous.
    """
    found = _find_replies(reply, clean_text(text), choices, titles)
    own: list[R] = [
        one for one in found.valid if len(found.valid) == 1 or not _is_echo(reply, one, choices)
    ] or found.valid
    if own and all(one == own[0] for one in own):
        return own[0]
    kept: R | None = None if own else found.best_salvage
    if kept is not None and not any(_is_decisive(kept, loss, choices) for loss in kept._losses):
        return kept
    raise Fault("schema", _describe_failure(reply, len(own), found.failed, found.problem), said=text)


class _FoundReplies(NamedTuple):
    """What a text holds: valid replies, and objects that are none."""

    valid: list[Any]
    failed: list[tuple[int, list[str]]]  # number of known fields, problems
    salvaged: list[tuple[int, Any]]  # number of known fields, what can be read
    problem: str  # of the JSON itself

    @property
    def best_salvage(self) -> Any:
        """The reply with the most known fields; None if there is none or two differ."""
        most = max((known for known, _ in self.salvaged), default=0)
        best = [one for known, one in self.salvaged if known == most]
        return best[0] if best and all(one == best[0] for one in best) else None


def _find_replies(reply: type[R], text: str, choices: Choices, titles: Mapping[str, str]) -> _FoundReplies:
    try:
        values, problem = [load_json(text)], ""
    except (Ambiguous, ValueError):
        values, problem = find_json(text)
    found = _FoundReplies([], [], [], problem)
    for value in values:
        for candidate in _iter_candidates(reply, value):
            read, problems = _read_object(reply, candidate, choices, titles)
            if read is not None and not read.unread:
                found.valid.append(read)
                break
            known = _count_known_fields(reply, candidate)
            found.failed.append((known, problems))
            if read is not None:
                found.salvaged.append((known, read))
    return found


def read_partial(
    reply: type[R], text: str, choices: Choices, titles: Mapping[str, str] = NO_TITLES
) -> PartialReply | None:
    """Return what can be used of a text that is no complete reply: readable fields, or prose; None if nothing."""
    found = _find_replies(reply, clean_text(text), choices, titles)
    kept: R | None = found.valid[0] if len(found.valid) == 1 else found.best_salvage
    for read in (_read_mended, _read_with_prose, _read_sections):
        kept = read(reply, clean_text(text), choices, titles) if kept is None else kept
    if kept is not None and _is_usable(kept):
        return PartialReply(kept, len(reply.model_fields) - len(kept.unread))
    prose = read_prose(reply, text)
    return None if prose is None else PartialReply(prose, 1)


def _read_mended(reply: type[R], text: str, choices: Choices, titles: Mapping[str, str]) -> R | None:
    """Return what can be read of an object that is cut off or has quotes inside its strings; None for any other."""
    if len(text) > MAX_MENDED_CHARS:
        return None
    mended = text if find_json(text)[0] else escape_inner_quotes(text, _get_names(reply))
    cut = close_json(mended, reply.answer_field)
    if cut is None and mended == text:
        return None
    found = _find_replies(reply, cut.text if cut else mended, choices, titles)
    kept: R | None = found.valid[0] if len(found.valid) == 1 else found.best_salvage
    if kept is not None and cut and cut.field in reply.model_fields:
        others = [loss for loss in kept._losses if loss.place[0] != cut.field]
        kept = kept.model_copy()
        kept._losses = (*others, Loss((cut.field,), (cut.field,), is_cut=True))
    return kept


def _read_sections(reply: type[R], text: str, choices: Choices, titles: Mapping[str, str]) -> R | None:
    """Return what can be read of sections of Markdown with the names of fields, or None."""
    found = read_sections(text, _get_shape(reply))
    if not found or (reply.answer_field and reply.answer_field not in found):
        return None
    return _read_object(reply, found, choices, titles)[0]


def _read_with_prose(reply: type[R], text: str, choices: Choices, titles: Mapping[str, str]) -> R | None:
    """Return the reply whose answer stands as prose beside the object with the other fields, or None."""
    objects = [one for one in find_json(text)[0] if isinstance(one, dict)]
    if not reply.answer_field or len(objects) != 1 or not _count_known_fields(reply, objects[0]):
        return None
    prose = clean_answer(cut_json(text))
    if len(prose) < MIN_PROSE_CHARS or reply.answer_field in objects[0]:
        return None
    return _read_object(reply, {**objects[0], reply.answer_field: prose}, choices, titles)[0]


def _is_usable(read: Reply) -> bool:
    """Return whether the answer of a reply is one, where the reply has an answer."""
    if not read.answer_field:
        return True
    answer = getattr(read, read.answer_field)
    is_short = len(answer) < MIN_PROSE_CHARS and any(
        loss.is_cut and loss.place[0] == read.answer_field for loss in read._losses
    )
    return not is_short and not is_placeholder(answer) and not find_refusal(answer)


def read_prose(reply: type[R], text: str) -> R | None:
    """Return the reply with this prose as its answer if it is usable, or None. An attempt at JSON is no prose."""
    text = clean_text(text)
    if not reply.answer_field or is_json_reply(reply, text):
        return None
    text = clean_answer(text)
    if len(text) < MIN_PROSE_CHARS or is_placeholder(text) or find_refusal(text):
        return None
    made = reply.model_construct({reply.answer_field}, **{**_get_defaults(reply), reply.answer_field: text})
    made._is_prose = True
    return made


def read_accepted(step: Step, text: str) -> Reply | None:
    """Read an accepted answer. One that does not fit its schema was accepted as a part of a reply, or as prose."""
    try:
        read: Reply | None = step.read(text)
    except Fault:
        if (part := step.read_partial(text)) is None:
            raise
        read = part.reply
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
    """Return the reply, or what can be read of it, and the problems of a value that is no complete reply."""
    reader = FormReader(choices, titles)
    given = reader.read(reply.convert_older(value), _get_shape(reply))
    unknown = [one for one in reader.unknown if one[2] not in reply.open_choices]
    try:
        read = reply.model_validate(given)
        problems = list(_find_unknown_values(read.model_dump(warnings=False), _closed_choices(reply, choices)))
        if not problems:
            read.check_choices(choices)
            return _clean_answer_of(read), []
    except ValidationError as error:
        listed = [_describe_unknown(place, value, choices[name]) for place, value, name in unknown]
        problems = [*listed, *(_format_problem(one) for one in error.errors(include_url=False))]
    except ValueError as error:
        return None, [str(error)]
    places = [tuple(int(part) if part.isdigit() else part for part in place.split(".")) for place, _, _ in unknown]
    return _salvage(reply, given, choices, places), problems


def _closed_choices(reply: type[Reply], choices: Choices) -> Choices:
    return {name: choices[name] for name in choices if name not in reply.open_choices}


def _clean_answer_of(read: R) -> R:
    """Remove wrappers and openings from the answer of a reply."""
    if not (field := read.answer_field):
        return read
    answer = getattr(read, field)
    cleaned = clean_answer(answer)
    return read.model_copy(update={field: cleaned}) if cleaned != answer.strip() else read


# Salvage: what can be read of a reply in which some values do not fit


def _salvage(reply: type[R], given: Json, choices: Choices, unknown: Sequence[Place]) -> R | None:
    """Return the reply without the values that do not fit, or None if an essential one is among them."""
    if not given.keys() & reply.model_fields.keys():
        return None
    # Rows and parts are copies of the form reader.
    given, places, losses = dict(given), list(unknown), dict[Place, Loss]()
    for _ in range(MAX_SALVAGE_STEPS):
        read, wrong = _validate(reply, given)
        places += wrong
        if not places:
            break
        found = [_find_loss(reply, place) for place in places]
        if None in found:
            return None
        losses |= {loss.removed: loss for loss in found if loss}
        if not _remove(reply, given, [loss for loss in found if loss]):
            return None
        places = []
    if read is None or any(_find_unknown_values(read.model_dump(warnings=False), _closed_choices(reply, choices))):
        return None
    try:
        read.check_choices(choices)
    except ValueError:
        return None
    read = _clean_answer_of(read)
    read._losses = tuple(losses.values())
    return read


def _validate(reply: type[R], given: Json) -> tuple[R | None, list[Place]]:
    """Return the reply, or the places of the values that do not fit."""
    try:
        return reply.model_validate(given), []
    except ValidationError as error:
        return None, [one["loc"] for one in error.errors(include_url=False, include_input=False, include_context=False)]


def _find_loss(reply: type[Reply], place: Place) -> Loss | None:
    """Return the smallest part that can be left out with the value at a place, or None if the value is essential."""
    shape, found = _get_shape(reply), None
    for n, part in enumerate(place, 1):
        if isinstance(part, int):
            shape, found = shape.get("items", {}), Loss(place, place[:n])
        elif part in shape.get("properties", {}):
            is_required = part in shape.get("required", ())
            if not is_required or (n == 1 and part in _get_defaults(reply)):
                found = Loss(place, place[:n], is_required)
            shape = _skip_null(shape["properties"][part])
        else:
            break
    return found


def _remove(reply: type[Reply], given: Json, losses: Sequence[Loss]) -> bool:
    """Leave out what the losses name; return whether every list that needs rows still has some."""
    for removed in sorted(
        {loss.removed for loss in losses}, key=lambda place: [str(part).zfill(9) for part in place], reverse=True
    ):
        *path, last = removed
        holder: Any = given
        for part in path:
            holder = holder[part]
        if len(removed) == 1 and last in _get_shape(reply).get("required", ()):
            holder[last] = deepcopy(_get_defaults(reply)[str(last)])
        else:
            del holder[last]
        if isinstance(last, int) and not holder and len(path) == 1 and path[0] not in _get_defaults(reply):
            return path[0] not in _get_shape(reply).get("required", ())
    return True


def _get_defaults(reply: type[Reply]) -> Mapping[str, Any]:
    """Return the values of required fields that cannot be read; those without one are essential."""
    if not reply.answer_field:
        return reply.defaults
    others = {name: field for name, field in reply.model_fields.items() if name != reply.answer_field}
    empty: dict[str, Any] = {
        name: [] if get_origin(field.annotation) is list else "" if field.annotation is str else None
        for name, field in others.items()
        if field.is_required()
    }
    return {**empty, **reply.defaults}


def _skip_null(shape: JsonSchema) -> JsonSchema:
    """Return the shape of a field without the null that it may be."""
    branches = [one for one in shape.get("anyOf", ()) if one.get("type") != "null"]
    return branches[0] if len(branches) == 1 else shape


def _is_decisive(read: Reply, loss: Loss, choices: Choices) -> bool:
    top = str(loss.removed[0])
    shape = _skip_null(_get_shape(type(read))["properties"][top])
    if not loss.is_row:
        is_whole_list = len(loss.removed) == 1 and shape.get("type") in ("array", "object")
        return loss.is_required or is_whole_list or not read.decisive.isdisjoint(map(str, loss.removed))
    rows, each = getattr(read, top), str(shape.get("each"))
    if top not in read.decoration or not rows:
        return True
    return each in choices and not {*choices[each]} <= {getattr(row, each, row) for row in rows}


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


# JsonSchema of a reply: its JSON schema with the definitions inlined


@cache
def _get_shape(reply: type[Reply]) -> JsonSchema:
    schema = reply.model_json_schema()
    shape: JsonSchema = _inline(schema, schema.pop("$defs", {}))
    if field := reply.answer_field:
        names = [name for name in ANSWER_NAMES if name not in reply.model_fields]
        shape["properties"][field]["also"] = [*shape["properties"][field].get("also", ()), *names]
    return shape


def _inline(node: Any, definitions: Mapping[str, JsonSchema]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    return {key: _inline(value, definitions) for key, value in node.items()}


@cache
def _get_names(reply: type[Reply]) -> frozenset[str]:
    """Return the names of all fields of a reply and of its parts."""
    return frozenset(name for node in _iter_nodes(_get_shape(reply)) for name in node.get("properties", {}))


@cache
def _get_enum_values(reply: type[Reply]) -> set[str]:
    nodes = _iter_nodes(_get_shape(reply))
    return {value for node in nodes for value in [*node.get("enum", ()), node.get("const")] if isinstance(value, str)}


@cache
def _get_descriptions(reply: type[Reply]) -> set[str]:
    nodes = _iter_nodes(_get_shape(reply))
    return {squash(node["description"]) for node in nodes if isinstance(node.get("description"), str)}


def _iter_nodes(node: Any) -> Iterator[JsonSchema]:
    if isinstance(node, dict):
        yield cast("JsonSchema", node)
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

_EXPECTED = {  # by the start of pydantic's type of error: int_type, int_parsing, int_from_float
    "string": "text",
    "list": "a list",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "dict": "an object",
    "model": "an object",
}


def _describe_unknown(place: str, value: Any, allowed: Collection[str]) -> str:
    return f"{_format_place(place.split('.'))}: {_quote(value)} is not one of {', '.join(one or 'empty' for one in allowed)}"


def _format_problem(problem: Any) -> str:
    place, kind, value = _format_place(problem["loc"]), str(problem["type"]), problem.get("input")
    if kind == "missing":
        return f"{place}{MISSING}"
    if kind == "literal_error":
        allowed = str(problem["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        text = f"{_quote(value)} is not one of {allowed}"
    elif kind.endswith(("_type", "_parsing", "_from_float")):
        text = f"{_quote(value)} is not {_EXPECTED[kind.partition('_')[0]]}"
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
