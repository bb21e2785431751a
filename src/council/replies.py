"""What a seat may be asked to return. A reply is typed where the protocol reads it; `prose()` is how a person reads it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from council.errors import Fault
from council.types import Json

R = TypeVar("R", bound="Reply")
Choices = Mapping[str, Collection[str]]  # a field's name → the only values it may have in this ask
SMALL_STRING = 400
SMALL_LIST = 3


class Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    def prose(self) -> str:
        raise NotImplementedError


class Triage(Reply):
    """The chair's light reading of the drafts: who leads, what is agreed, whether an attack is needed."""

    leader: str = Field(description="the seat whose draft leads, by its name in lower case")
    reason: str = Field(description="why it leads, in one or two sentences")
    agreed: list[str] = Field(description="points on which all drafts agree")
    contested: list[str] = Field(description="points on which they differ")
    same_conclusion: bool = Field(description="true if all drafts reach the same core conclusion")
    no_critical_flag: bool = Field(description="true if no draft raises a CRITICAL or FATAL flag")
    no_contradiction: bool = Field(description="true if no two drafts contradict each other on a key claim")
    mostly_high: bool = Field(description="true if the confidence marks are mostly HIGH")

    @property
    def consensus(self) -> bool:
        """All four criteria must favour it."""
        return self.same_conclusion and self.no_critical_flag and self.no_contradiction and self.mostly_high

    def prose(self) -> str:
        lines = [f"Leading position: {self.leader.capitalize()}", f"Reason: {self.reason}"]
        lines += [f"Agreed: {point}" for point in self.agreed] + [f"Contested: {point}" for point in self.contested]
        return "\n".join(lines)


class Issue(BaseModel):
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    hits: str = Field(description="the claim or passage of the leading draft that this hits")
    flaw: str = Field(description="what is wrong with it, with the evidence")
    correction: str = Field(description="what should stand there instead")


class Attack(Reply):
    """What an attacker found. To have found nothing is a valid answer."""

    issues: list[Issue] = Field(description="every flaw found, the worst first; empty if there is none")
    case: str = Field(
        description="where your own draft differs, why yours is better, with evidence; empty if it does not"
    )
    verdict: Literal["STAND", "MODIFIED", "REJECTED"] = Field(
        description="what should become of the leading draft as a whole"
    )

    def prose(self) -> str:
        return "\n\n".join([self.listed(), *filter(None, [self.case]), f"Verdict: {self.verdict}"])

    def listed(self, name: str = "") -> str:
        """The issues by number; under names the chair can cite if `name` is given: beta-1, beta-2."""
        lines = []
        for n, issue in enumerate(self.issues, 1):
            mark = f"{name}-{n}:" if name else f"{n}."
            lines.append(f"{mark} **{issue.severity}** {issue.hits}: {issue.flaw} Correction: {issue.correction}")
        return "\n".join(lines) or "No issue found."


class Point(BaseModel):
    issue: str = Field(description="the number of the attack point, as listed")
    landed: bool = Field(description="true if the criticism is valid")
    why: str


class Ruling(Reply):
    """The chair's verdict on the leading draft after the attack."""

    points: list[Point] = Field(description="one entry for each numbered attack point")
    outcome: Literal["SURVIVED", "MODIFIED", "OVERTURNED"]
    answer: str = Field(description="the final answer itself, complete, in Markdown, with no word about the process")
    assessment: str = Field(
        description="how contested the answer was and what is still uncertain, two to four sentences"
    )

    @model_validator(mode="after")
    def overturned_only_on_a_landed_issue(self) -> Ruling:
        if self.outcome == "OVERTURNED" and not any(point.landed for point in self.points):
            raise ValueError(
                "OVERTURNED needs at least one attack point that landed; cite it in points, or rule otherwise"
            )
        return self

    def prose(self) -> str:
        return self.answer


def schema_of(reply: type[Reply], choices: Choices, *, small: bool = False) -> Json:
    """The strict JSON schema of a reply: nothing extra, everything required, names limited to those present."""
    schema = reply.model_json_schema()
    definitions = schema.pop("$defs", {})
    strict: Json = _strict(schema, definitions, choices, small)
    return strict


def _strict(node: Any, definitions: Json, choices: Choices, small: bool) -> Any:
    if isinstance(node, list):
        return [_strict(item, definitions, choices, small) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(definitions[node["$ref"].rsplit("/", 1)[1]], definitions, choices, small)
    tight = {
        key: _strict(value, definitions, choices, small)
        for key, value in node.items()
        if key not in ("title", "default")
    }
    if tight.get("type") == "object":
        properties = {name: _limited(name, value, choices) for name, value in tight.get("properties", {}).items()}
        tight |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    return tight | _small_limits(tight) if small else tight


def _limited(name: str, schema: Json, choices: Choices) -> Json:
    return schema | {"enum": list(choices[name])} if name in choices else schema


def _small_limits(schema: Json) -> Json:
    """A small model under a grammar would otherwise write until it is cut."""
    if schema.get("type") == "string" and "enum" not in schema:
        return {"maxLength": SMALL_STRING}
    return {"maxItems": SMALL_LIST} if schema.get("type") == "array" else {}


def read(reply: type[R], text: str, choices: Choices) -> R:
    """The typed reply in a member's words, or Fault("schema") in words a model can act on."""
    bare = unfence(text)
    try:
        value = reply.model_validate_json(bare)
        _check_choices(json.loads(bare), choices)
    except ValidationError as error:
        raise Fault("schema", "; ".join(_words(problem) for problem in error.errors()[:5]), said=text) from error
    except ValueError as error:
        raise Fault("schema", str(error), said=text) from error
    return value


def unfence(text: str) -> str:
    """Without a code fence that encloses the whole message."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3].strip()
    return bare


def _words(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _check_choices(value: Any, choices: Choices) -> None:
    if isinstance(value, list):
        for item in value:
            _check_choices(item, choices)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in choices and item not in choices[name]:
                raise ValueError(f'{name}: "{item}" is not one of {", ".join(choices[name])}')
            _check_choices(item, choices)
