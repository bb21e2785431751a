"""Options of each protocol. The flags, the MCP schema and the form of the web page are generated from these models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from council.errors import UsageError
from council.text_cleanup import slugify
from council.types import Json

ROSTER_HELP = "Roster name or TOML file: 2 to 9 advisors, up to 60 seats for --protocol ranking."
EARLY_STOP_HELP = "Stop after a round in which all seats agree with HIGH confidence."
PRESET_HELP = "Named set of perspectives for the judges; for general, a named roster."


def _lowercase(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


CaseInsensitive = BeforeValidator(_lowercase)
Flow = Annotated[Literal["parallel", "sequential", "debate"], CaseInsensitive]
Tier = Annotated[Literal["light", "medium", "heavy"], CaseInsensitive]
Technique = Annotated[Literal["scamper", "six-hats", "reverse"], CaseInsensitive]
Profile = Annotated[Literal["thorough", "balanced", "fast"], CaseInsensitive]
Rule = Annotated[Literal["consensus", "corroborated"], CaseInsensitive]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoOptions(Options):
    """No options: collaborative, adversarial and triad."""


class AdvisorsOptions(Options):
    flow: Flow = Field(
        default="parallel", description="Order of the advisors: all at once, one after another, or a debate."
    )
    rounds: int = Field(
        default=1, ge=1, le=5, description="Rounds of deliberation, 1 to 5 (default 1; debate 3, at least 2)."
    )
    tier: Tier | None = Field(
        default=None,
        description="Models: default for all seats (light), strong referee (medium), strong for all seats (heavy).",
    )
    roster: str | None = Field(default=None, description=ROSTER_HELP)
    early_stop: bool = Field(default=False, description=EARLY_STOP_HELP)

    @model_validator(mode="before")
    @classmethod
    def _default_rounds(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("rounds") is None:
            return {**values, "rounds": 3 if _lowercase(values.get("flow")) == "debate" else 1}
        return values

    @model_validator(mode="after")
    def _check_debate_rounds(self) -> Self:
        if self.flow == "debate" and self.rounds < 2:
            raise ValueError("--flow debate needs at least 2 rounds: set --rounds 2 to 5")
        return self

    @model_validator(mode="after")
    def _check_early_stop(self) -> Self:
        if self.early_stop and self.rounds < 2:
            raise ValueError("--early-stop needs at least 2 rounds: set --rounds 2 to 5 (judges: --debate), or drop it")
        return self


class JudgesOptions(Options):
    quick: bool = Field(default=False, description="One judge, one call: a fast check with a lower confidence ceiling.")
    deep: bool = Field(default=False, description="3 judges instead of 2.")
    mixed: bool = Field(default=False, description="3 judges of each of two vendor families.")
    debate: bool = Field(
        default=False, description="Second round in which the judges answer each other (validate only)."
    )
    preset: str | None = Field(default=None, description=PRESET_HELP)
    perspectives: tuple[str, ...] = Field(default=(), description="Names of custom perspectives, separated by commas.")
    perspectives_file: str | None = Field(
        default=None, description="YAML or TOML file with perspectives, each with a focus."
    )
    count: int | None = Field(default=None, ge=1, description="Judges per vendor family; overrides all other sizes.")
    explorers: int = Field(
        default=0, ge=0, le=5, description="Explorers per judge, 0 to 5; at most 12 agents in total."
    )
    explorer_model: str | None = Field(default=None, description="Model of the explorers.")
    technique: Technique | None = Field(default=None, description="Structured brainstorming technique.")
    profile: Profile | None = Field(
        default=None, description="Quality profile: model tier, number of judges and timeout."
    )
    rule: Rule = Field(
        default="consensus", description="Rule that combines the verdicts; corroborated requires evidence for a FAIL."
    )
    early_stop: bool = Field(default=False, description=EARLY_STOP_HELP)

    @field_validator("perspectives", mode="before")
    @classmethod
    def _split_perspectives(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            return value
        names = [name.strip() for name in value]
        plain = [slugify(name) for name in names]
        if not all(any(sign.isalpha() for sign in name) for name in plain):
            raise ValueError("--perspectives contains a name without a letter: write names as a,b,c")
        if len(set(plain)) < len(plain):
            raise ValueError("--perspectives contains the same name twice: drop one")
        return names

    @model_validator(mode="after")
    def _check_quick(self) -> Self:
        if self.quick and self.debate:
            raise ValueError("Error: --quick and --debate are incompatible.")
        sizes = ("deep", "mixed", "count", "explorers", "preset", "perspectives", "perspectives_file")
        if self.quick and (other := next((name for name in sizes if getattr(self, name)), None)):
            raise ValueError(
                f"--quick seats one judge and cannot be combined with {flag_name(other)}: drop one of the two"
            )
        return self

    @model_validator(mode="after")
    def _check_perspective_sources(self) -> Self:
        if self.perspectives and self.perspectives_file:
            raise ValueError("--perspectives and --perspectives-file cannot be combined: drop one of the two")
        return self

    @model_validator(mode="after")
    def _check_debate_size(self) -> Self:
        if self.debate and self.count == 1 and not self.mixed:
            raise ValueError("--debate needs at least 2 judges, but --count=1 seats one: raise --count")
        return self

    @model_validator(mode="after")
    def _check_early_stop(self) -> Self:
        if self.early_stop and not self.debate:
            raise ValueError("--early-stop needs --debate: add it, or drop --early-stop")
        return self


class GeneralOptions(Options):
    search: str | None = Field(
        default=None, description="Search provider: tavily, brave, searxng, or files:FOLDER for local documents."
    )
    no_search: bool = Field(default=False, description="Run without research; the report says so.")
    spec_review: bool = Field(default=False, description="Review a specification and propose changes to it.")
    no_deliberate: bool = Field(default=False, description="Skip the second round, in which seats answer disputes.")
    preset: str | None = Field(default=None, description=PRESET_HELP)

    @model_validator(mode="after")
    def _check_search(self) -> Self:
        if self.search and self.no_search:
            raise ValueError("--search and --no-search cannot be combined: drop one of the two")
        return self


class RankingOptions(Options):
    roster: str | None = Field(default=None, description=ROSTER_HELP)


class QuickOptions(Options):
    """No options: quick."""


OPTIONS: dict[str, type[BaseModel]] = {
    "collaborative": NoOptions,
    "adversarial": NoOptions,
    "triad": NoOptions,
    "advisors": AdvisorsOptions,
    "judges": JudgesOptions,
    "general": GeneralOptions,
    "ranking": RankingOptions,
    "quick": QuickOptions,
}


def parse_options(protocol: str, task: str, values: Json, model: type[BaseModel] | None = None) -> BaseModel:
    """Validate the options of a protocol, or raise UsageError with one line. `model` overrides the table."""
    model = model or OPTIONS.get(protocol, NoOptions)
    try:
        options = model.model_validate(values)
    except ValidationError as error:
        raise UsageError(_format_error(protocol, error.errors()[0], model.model_fields)) from None
    check_task(options, task)
    return options


def check_task(options: BaseModel, task: str) -> None:
    """Raise UsageError for options that do not fit the task."""
    if not isinstance(options, JudgesOptions):
        return
    if options.debate and task != "validate":
        raise UsageError("Error: --debate is only supported with validate mode.")
    if options.technique and task != "brainstorm":
        raise UsageError("Error: --technique is only applicable to brainstorm mode.")


def flag_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def _format_error(protocol: str, error: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    name, value = str(error["loc"][0]), error["input"]
    if error["type"] == "extra_forbidden":
        return (
            f"{flag_name(name)} is not an option of the protocol {protocol}: drop it, or choose a protocol that has it"
        )
    field = fields[name]
    if error["type"] == "literal_error":
        return format_unknown_choice(name, str(value), _literal_choices(field.annotation))
    if _value_kind(field.annotation) == "int":
        return f'{flag_name(name)} "{value}" cannot be used: give a whole number{_format_bounds(field)}'
    problem = error["msg"].removeprefix("Input ")
    return f'{flag_name(name)} "{value}" cannot be used: it {problem}'


def format_unknown_choice(name: str, value: str, choices: Sequence[str]) -> str:
    near = get_close_matches(value.strip().lower(), choices, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f'unknown {name.replace("_", "-")} "{value}": {hint}known are {", ".join(choices)}'


def _format_bounds(field: FieldInfo) -> str:
    least, most = (_get_limit(field, name) for name in ("ge", "le"))
    return f" from {least or 0} to {most}" if most is not None else f" from {least} on" if least is not None else ""


def _get_limit(field: FieldInfo, name: str) -> int | None:
    return next((getattr(part, name) for part in field.metadata if hasattr(part, name)), None)


def build_flag_table() -> list[Json]:
    """Return one row per protocol flag with the protocols that own it: the content of data/flags.json."""
    table: dict[str, Json] = {}
    for protocol, model in OPTIONS.items():
        for name, field in model.model_fields.items():
            table.setdefault(name, _build_flag_row(name, field))["owners"].append(protocol)
    return list(table.values())


def _build_flag_row(name: str, field: FieldInfo) -> Json:
    choices = _literal_choices(field.annotation)
    kind = "choice" if choices else _value_kind(field.annotation)
    return {
        "flag": flag_name(name),
        "name": name,
        "owners": [],
        "kind": kind,
        "choices": choices,
        "help": field.description,
    }


def _value_kind(annotation: Any) -> str:
    if annotation is bool:
        return "bool"
    return "int" if annotation is int or int in get_args(annotation) else "str"


def _literal_choices(annotation: Any) -> list[str]:
    """Return the values of a Literal nested in optionals and annotations; [] for any other type."""
    parts = get_args(annotation)
    words = [part for part in parts if isinstance(part, str)]
    return words or [word for part in parts for word in _literal_choices(part)]
