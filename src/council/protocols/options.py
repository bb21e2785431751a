"""Options of protocols: the base model, the parser, and the table of flags.

The flags, the MCP schema and the form of the web page are generated from the model of each protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NotRequired, TypedDict, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from council.errors import UsageError, option
from council.protocols import SHIPPED_PROTOCOLS, get_protocol
from council.types import Json, JsonSchema

# Help of flags that two protocols share
ROSTER_HELP = "Roster name or TOML file: 2 to 9 advisors, up to 60 seats for --protocol ranking."
EARLY_STOP_HELP = "Stop after a round in which all seats agree with HIGH confidence."
PRESET_HELP = "Named set of perspectives for the judges; for general, a named roster."


KIND_HELP = {"int": "a whole number", "float": "a number", "bool": "true or false"}


def choices_of(kind: Literal["members", "presets", "rosters"]) -> Json:
    """Return what the schema of an option says about its values: a form offers the names of this kind as a menu."""
    return {"choices": kind}


def list_filled_options(model: type[BaseModel], kind: str) -> list[str]:
    """Return the options that the plan fills in with this kind of value."""
    return [name for name, field in model.model_fields.items() if _read_extra(field, "filled_with") == kind]


def lowercase(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


CaseInsensitive = BeforeValidator(lowercase)


class Options(BaseModel):
    """Base of the options of a protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def check_task(self, task: str) -> None:
        """Raise UsageError for options that do not fit the task."""


class NoOptions(Options):
    """Options of a protocol that has none."""


def parse_options(protocol: str, task: str, values: Json, model: type[BaseModel] | None = None) -> BaseModel:
    """Validate the options of a protocol, or raise UsageError with one line. `model` overrides its own model."""
    model = model or get_protocol(protocol).load_options()
    try:
        options = model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["options", *map(str, first["loc"][:1])])
        raise UsageError(_format_error(protocol, first, model.model_fields), field=field) from None
    if isinstance(options, Options):
        options.check_task(task)
    return options


def _format_error(protocol: str, error: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    name, value = str(error["loc"][0]), error["input"]
    if error["type"] == "extra_forbidden":
        return f"{option(name)} is not an option of the protocol {protocol}: drop it, or choose a protocol that has it"
    field = fields[name]
    if error["type"] == "missing":
        return f"the protocol {protocol} needs {option(name)}: {field.description or 'give a value'}"
    if error["type"] == "literal_error":
        return format_unknown_choice(name, str(value), _literal_choices(field.annotation))
    if (kind := _value_kind(field.annotation)) in KIND_HELP:
        return f'{option(name)} "{value}" cannot be used: give {KIND_HELP[kind]}{_format_bounds(field)}'
    problem = error["msg"].removeprefix("Input ")
    return f'{option(name)} "{value}" cannot be used: it {problem}'


def format_unknown_choice(name: str, value: str, choices: Sequence[str]) -> str:
    near = get_close_matches(value.strip().lower(), choices, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f'unknown {name.replace("_", "-")} "{value}": {hint}known are {", ".join(choices)}'


def _format_bounds(field: FieldInfo) -> str:
    limits = {name: getattr(part, name) for part in field.metadata for name in ("ge", "le") if hasattr(part, name)}
    if "le" in limits:
        return f" from {limits.get('ge', 0)} to {limits['le']}"
    return f" from {limits['ge']} on" if limits else ""


class FlagRow(TypedDict):
    """A flag of the protocols in `owners`."""

    flag: str
    name: str
    owners: list[str]
    kind: str  # bool | int | float | str | choice
    choices: list[str]
    help: str
    optional_value: NotRequired[bool]
    negatable: NotRequired[bool]


def build_flag_table(protocols: Iterable[str] = tuple(SHIPPED_PROTOCOLS)) -> list[FlagRow]:
    """Return one row for each flag with its protocols. data/flags.json holds those of the shipped protocols."""
    table: dict[str, FlagRow] = {}
    for protocol in protocols:
        for name, field in get_protocol(protocol).load_options().model_fields.items():
            if not _read_extra(field, "internal"):  # the plan fills in internal ones
                table.setdefault(name, _build_flag_row(name, field))["owners"].append(protocol)
    return list(table.values())


def _read_extra(field: FieldInfo, name: str) -> JsonValue:
    return field.json_schema_extra.get(name) if isinstance(field.json_schema_extra, dict) else None


def describe_options(model: type[BaseModel]) -> JsonSchema:
    """Return the JSON schema of the options that a user can set."""
    schema: Any = model.model_json_schema()
    fields = schema.get("properties", {}).items()
    shown = {name: of for name, of in fields if not _read_extra(model.model_fields[name], "internal")}
    described: JsonSchema = schema | {"properties": shown}
    return described


def _build_flag_row(name: str, field: FieldInfo) -> FlagRow:
    choices = _literal_choices(field.annotation)
    kind = "choice" if choices else _value_kind(field.annotation)
    row: FlagRow = {
        "flag": "--" + name.replace("_", "-"),
        "name": name,
        "owners": [],
        "kind": kind,
        "choices": choices,
        "help": field.description or "",
    }
    if _read_extra(field, "optional_value"):
        row["optional_value"] = True
    if kind == "bool" and field.default is not False:
        row["negatable"] = True
    return row


def _value_kind(annotation: Any) -> str:
    kinds = {annotation, *get_args(annotation)}
    return "bool" if bool in kinds else "float" if float in kinds else "int" if int in kinds else "str"


def _literal_choices(annotation: Any) -> list[str]:
    """Return the values of a Literal nested in optionals and annotations; [] for any other type."""
    parts = get_args(annotation)
    words = [part for part in parts if isinstance(part, str)]
    return words or [word for part in parts for word in _literal_choices(part)]
