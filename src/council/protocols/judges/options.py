"""Options of the judges protocol."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from council.errors import UsageError, option, wording
from council.protocols.options import EARLY_STOP_HELP, PRESET_HELP, CaseInsensitive, Options, choices_of
from council.text_cleanup import slugify

Technique = Annotated[Literal["scamper", "six-hats", "reverse"], CaseInsensitive]
Profile = Annotated[Literal["thorough", "balanced", "fast"], CaseInsensitive]
Rule = Annotated[Literal["consensus", "corroborated"], CaseInsensitive]


MAX_FAMILIES = 4  # 3 judges of each are 12 agents


def _read_families(value: Any) -> Any:
    """Return True, False or the number of vendor families, also from text. Raise ValueError for other values."""
    words = {"true": True, "false": False}
    read = words.get(value.strip().lower(), value.strip()) if isinstance(value, str) else value
    if isinstance(read, str) and read.isdecimal():
        read = int(read)
    if isinstance(read, bool) or (isinstance(read, int) and 2 <= read <= MAX_FAMILIES):
        return read
    given = wording(python=f"mixed={value!r}", cli=f"--mixed={value}")
    raise ValueError(f"{given} is no number of vendor families: give 2 to {MAX_FAMILIES}")


class JudgesOptions(Options):
    quick: bool = Field(default=False, description="One judge, one call: a fast check with a lower confidence ceiling.")
    deep: bool = Field(default=False, description="3 judges instead of 2.")
    mixed: Annotated[bool | int, BeforeValidator(_read_families)] = Field(
        default=False,
        description="3 judges of each of two vendor families; with =3, of three.",
        json_schema_extra={"optional_value": True},
    )
    debate: bool = Field(
        default=False, description="Second round in which the judges answer each other (validate only)."
    )
    preset: str | None = Field(default=None, description=PRESET_HELP, json_schema_extra=choices_of("presets"))
    perspectives: tuple[str, ...] = Field(default=(), description="Names of custom perspectives, separated by commas.")
    perspectives_file: str | None = Field(
        default=None, description="YAML or TOML file with perspectives, each with a focus."
    )
    count: int | None = Field(default=None, ge=1, description="Judges per vendor family; overrides all other sizes.")
    explorers: int = Field(
        default=0, ge=0, le=5, description="Explorers per judge, 0 to 5; at most 12 agents in total."
    )
    explorer_model: str | None = Field(
        default=None, description="Model of the explorers.", json_schema_extra=choices_of("members")
    )
    technique: Technique | None = Field(default=None, description="Structured brainstorming technique.")
    profile: Profile | None = Field(
        default=None, description="Quality profile: model tier, number of judges and timeout."
    )
    rule: Rule = Field(
        default="consensus", description="Rule that combines the verdicts; corroborated requires evidence for a FAIL."
    )
    no_clerk: bool = Field(default=False, description="Group findings by rule, without the call of a clerk.")
    early_stop: bool = Field(default=False, description=EARLY_STOP_HELP)
    may_disagree: bool | None = Field(
        default=None,
        description="Whether PASS of one vendor family and FAIL of another is DISAGREE; filled in by the plan.",
        json_schema_extra={"internal": True},
    )

    @property
    def families(self) -> int:
        """The number of vendor families of `--mixed`; 1 without it."""
        return int(self.mixed) + 1 if isinstance(self.mixed, bool) else self.mixed

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
            raise ValueError(f"{option('perspectives')} contains a name without a letter: write names as a,b,c")
        if len(set(plain)) < len(plain):
            raise ValueError(f"{option('perspectives')} contains the same name twice: drop one")
        return names

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.quick and self.debate:
            raise ValueError(f"Error: {option('quick', True)} and {option('debate', True)} are incompatible.")
        sizes = ("deep", "mixed", "count", "explorers", "preset", "perspectives", "perspectives_file")
        if self.quick and (other := next((name for name in sizes if getattr(self, name)), None)):
            raise ValueError(
                f"{option('quick', True)} seats one judge and cannot be combined with {option(other)}: drop one of the two"
            )
        if self.perspectives and self.perspectives_file:
            raise ValueError(
                f"{option('perspectives')} and {option('perspectives_file')} cannot be combined: drop one of the two"
            )
        if self.debate and self.count == 1 and not self.mixed:
            one = wording(python="count=1", cli="--count=1")
            raise ValueError(
                f"{option('debate', True)} needs at least 2 judges, but {one} seats one: raise {option('count')}"
            )
        if self.early_stop and not self.debate:
            raise ValueError(
                f"{option('early_stop', True)} needs {option('debate', True)}: add it, or drop {option('early_stop')}"
            )
        return self

    def check_task(self, task: str) -> None:
        if self.debate and task != "validate":
            raise UsageError(f"Error: {option('debate', True)} is only supported with validate mode.")
        if self.technique and task != "brainstorm":
            raise UsageError(f"Error: {option('technique')} is only applicable to brainstorm mode.")
