"""What each protocol can be told. Flags, the MCP schema and the page's form are made from these models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from council.errors import UsageError
from council.rules.bench import plain_name
from council.types import Json

ROSTER_HELP = "A named roster or a file with seats of your own: 2 to 9 advisors, up to 60 for --protocol ranking."
EARLY_HELP = "End a debate after a round in which all take the same stand with HIGH confidence."
PRESET_HELP = "A named set of perspectives for the judges; beside a flag of general, a named roster of its seats."


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


AnyCase = BeforeValidator(_lowered)
Flow = Annotated[Literal["parallel", "sequential", "debate"], AnyCase]
Tier = Annotated[Literal["light", "medium", "heavy"], AnyCase]
Technique = Annotated[Literal["scamper", "six-hats", "reverse"], AnyCase]
Profile = Annotated[Literal["thorough", "balanced", "fast"], AnyCase]
Rule = Annotated[Literal["consensus", "corroborated"], AnyCase]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DualOptions(Options):
    """Collaborative, adversarial and triad take no options of their own."""


class AdvisorsOptions(Options):
    flow: Flow = Field(default="parallel", description="How the advisors speak: at once, in turn, or in debate.")
    rounds: int = Field(default=1, ge=1, le=5, description="Rounds of deliberation, 1 to 5 (1; debate 3, at least 2).")
    tier: Tier | None = Field(
        default=None, description="Models: default everywhere (light), a strong referee, or strong everywhere."
    )
    roster: str | None = Field(default=None, description=ROSTER_HELP)
    early_stop: bool = Field(default=False, description=EARLY_HELP)

    @model_validator(mode="before")
    @classmethod
    def _debate_runs_three_rounds(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("rounds") is None:
            return {**given, "rounds": 3 if _lowered(given.get("flow")) == "debate" else 1}
        return given

    @model_validator(mode="after")
    def _debate_needs_an_answer(self) -> Self:
        if self.flow == "debate" and self.rounds < 2:
            raise ValueError("--flow debate needs at least 2 rounds, since the first only opens: set --rounds 2 to 5")
        return self

    @model_validator(mode="after")
    def _early_needs_a_later_round(self) -> Self:
        if self.early_stop and self.rounds < 2:
            raise ValueError(
                "--early-stop has nothing to stop in a single round: set --rounds 2 to 5 (judges: --debate), or drop it"
            )
        return self


class JudgesOptions(Options):
    quick: bool = Field(default=False, description="One judge, one call: a fast check with a lower confidence ceiling.")
    deep: bool = Field(default=False, description="3 judges instead of 2.")
    mixed: bool = Field(default=False, description="3 judges of each of two vendor families.")
    debate: bool = Field(default=False, description="A second round in which the judges answer each other (validate).")
    preset: str | None = Field(default=None, description=PRESET_HELP)
    perspectives: tuple[str, ...] = Field(
        default=(), description="Perspectives of your own, by name, separated by commas."
    )
    perspectives_file: str | None = Field(
        default=None, description="A YAML or TOML file of perspectives, each with its focus."
    )
    count: int | None = Field(default=None, ge=1, description="Judges per vendor family; overrides every other size.")
    explorers: int = Field(
        default=0, ge=0, le=5, description="Explorers per judge, 0 to 5; 12 agents in all at the most."
    )
    explorer_model: str | None = Field(default=None, description="The member the explorers run on.")
    technique: Technique | None = Field(default=None, description="A structured way to brainstorm.")
    profile: Profile | None = Field(
        default=None, description="Quality of the models, with the judges' number and time."
    )
    rule: Rule = Field(
        default="consensus", description="How verdicts become one; corroborated asks evidence of a FAIL."
    )
    early_stop: bool = Field(default=False, description=EARLY_HELP)

    @field_validator("perspectives", mode="before")
    @classmethod
    def _names_by_comma(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = given.split(",")
        if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
            return given
        names = [name.strip() for name in given]
        plain = [plain_name(name) for name in names]
        if not all(any(sign.isalpha() for sign in name) for name in plain):
            raise ValueError("--perspectives has a name without a letter, which no judge can bear: write it as a,b,c")
        if len(set(plain)) < len(plain):
            raise ValueError("--perspectives names one perspective twice, and two judges cannot share it: drop one")
        return names

    @model_validator(mode="after")
    def _quick_stands_alone(self) -> Self:
        if self.quick and self.debate:
            raise ValueError("Error: --quick and --debate are incompatible.")
        sizes = ("deep", "mixed", "count", "explorers", "preset", "perspectives", "perspectives_file")
        if self.quick and (other := next((name for name in sizes if getattr(self, name)), None)):
            raise ValueError(f"--quick seats one judge, which {flag_of(other)} contradicts: drop one of the two")
        return self

    @model_validator(mode="after")
    def _perspectives_come_from_one_place(self) -> Self:
        if self.perspectives and self.perspectives_file:
            raise ValueError("--perspectives and --perspectives-file both name the perspectives: drop one of the two")
        return self

    @model_validator(mode="after")
    def _debate_needs_two(self) -> Self:
        if self.debate and self.count == 1 and not self.mixed:
            raise ValueError("--debate needs 2 judges to answer each other, and --count=1 seats one: raise --count")
        return self

    @model_validator(mode="after")
    def _early_needs_a_debate(self) -> Self:
        if self.early_stop and not self.debate:
            raise ValueError("--early-stop has nothing to stop without --debate: add it, or drop --early-stop")
        return self


class GeneralOptions(Options):
    search: str | None = Field(
        default=None, description="Where to research: tavily, brave, searxng, or files:FOLDER for your own documents."
    )
    no_search: bool = Field(default=False, description="Go on without research; the report says so.")
    spec_review: bool = Field(default=False, description="Review a specification and end in proposed changes to it.")
    no_deliberate: bool = Field(default=False, description="Skip the second round, in which disputes are answered.")
    preset: str | None = Field(default=None, description=PRESET_HELP)

    @model_validator(mode="after")
    def _search_or_not(self) -> Self:
        if self.search and self.no_search:
            raise ValueError("--search and --no-search contradict each other: drop one of the two")
        return self


class RankingOptions(Options):
    roster: str | None = Field(default=None, description=ROSTER_HELP)


class QuickOptions(Options):
    """Quick takes no options of its own."""


OPTIONS: dict[str, type[BaseModel]] = {
    "collaborative": DualOptions,
    "adversarial": DualOptions,
    "triad": DualOptions,
    "advisors": AdvisorsOptions,
    "judges": JudgesOptions,
    "general": GeneralOptions,
    "ranking": RankingOptions,
    "quick": QuickOptions,
}


def parse_options(protocol: str, task: str, given: Json, model: type[BaseModel] | None = None) -> BaseModel:
    """The options of a protocol (`model`: one of its own) from the flags as given; anything wrong with them is one line."""
    model = model or OPTIONS.get(protocol, DualOptions)
    try:
        options = model.model_validate(given)
    except ValidationError as error:
        raise UsageError(_one_line(protocol, error.errors()[0], model.model_fields)) from None
    check_task(options, task)
    return options


def check_task(options: BaseModel, task: str) -> None:
    """What depends on the task as well as on the flags."""
    if not isinstance(options, JudgesOptions):
        return
    if options.debate and task != "validate":
        raise UsageError("Error: --debate is only supported with validate mode.")
    if options.technique and task != "brainstorm":
        raise UsageError("Error: --technique is only applicable to brainstorm mode.")


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def _one_line(protocol: str, error: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    name, value = str(error["loc"][0]), error["input"]
    if error["type"] == "extra_forbidden":
        return f"{flag_of(name)} is no option of the protocol {protocol}: drop it, or choose the protocol it belongs to"
    field = fields[name]
    if error["type"] == "literal_error":
        return unknown_choice(name, str(value), _choices(field.annotation))
    if _kind(field.annotation) == "int":
        return f'{flag_of(name)} "{value}" cannot be used, nothing was spent: give a whole number{_bounds(field)}'
    said = error["msg"].removeprefix("Input ")
    return f'{flag_of(name)} "{value}" cannot be used: it {said}'


def unknown_choice(name: str, value: str, known: Sequence[str]) -> str:
    near = get_close_matches(value.strip().lower(), known, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return f'unknown {name.replace("_", "-")} "{value}": {hint}known are {", ".join(known)}'


def _bounds(field: FieldInfo) -> str:
    least, most = (_limit(field, name) for name in ("ge", "le"))
    return f" from {least or 0} to {most}" if most is not None else f" from {least} on" if least is not None else ""


def _limit(field: FieldInfo, name: str) -> int | None:
    return next((getattr(part, name) for part in field.metadata if hasattr(part, name)), None)


def flags_table() -> list[Json]:
    """Every protocol-owned flag once, with all its owners: what data/flags.json holds."""
    table: dict[str, Json] = {}
    for protocol, model in OPTIONS.items():
        for name, field in model.model_fields.items():
            table.setdefault(name, _flag(name, field))["owners"].append(protocol)
    return list(table.values())


def _flag(name: str, field: FieldInfo) -> Json:
    choices = _choices(field.annotation)
    kind = "choice" if choices else _kind(field.annotation)
    return {
        "flag": flag_of(name),
        "name": name,
        "owners": [],
        "kind": kind,
        "choices": choices,
        "help": field.description,
    }


def _kind(annotation: Any) -> str:
    if annotation is bool:
        return "bool"
    return "int" if annotation is int or int in get_args(annotation) else "str"


def _choices(annotation: Any) -> list[str]:
    """The words of a Literal, however deep it stands in optionals and annotations; [] for any other type."""
    parts = get_args(annotation)
    words = [part for part in parts if isinstance(part, str)]
    return words or [word for part in parts for word in _choices(part)]
