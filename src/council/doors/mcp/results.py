"""What the MCP tools return, and the output schemas of the tools.

An output schema names the fields that a client can rely on, without what is inside them: the whole schemas of the
report and the plan are 60 times as long, and other fields are allowed.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Union, cast, get_args, get_origin, get_type_hints

from council.engine.plan_object import PlanObject
from council.engine.records import (
    CallCounts,
    CostRow,
    DegradedRow,
    Disagreement,
    QuorumCounts,
    ReportObject,
    ReportSeatRow,
    TrustRow,
)
from council.store.interface import RunRow, RunStatus
from council.types import ChairNotes, Json, JsonSchema


class StartedRun(TypedDict):
    run: str


class RunStatusObject(TypedDict):
    """The status of a run, as council_wait returns it."""

    run: str
    status: RunStatus
    phase: str | None
    heard: int  # seats that have answered
    done: bool
    line: str  # the same in words


class CancelledRun(RunStatusObject):
    """The status of a run after council_cancel. `cancelled` is false if it had already ended."""

    cancelled: bool


class PanelResult(RunStatusObject):
    """The status of a panel, and what it found if it is done. The digest in `answer` repeats the texts of the seats."""

    question: NotRequired[str]
    seats: NotRequired[list[ReportSeatRow]]
    consensus: NotRequired[list[Any]]
    disagreements: NotRequired[list[Disagreement]]
    comparison: NotRequired[Json]  # absent if the seats were not compared
    notes: NotRequired[ChairNotes]
    trust: NotRequired[TrustRow]
    degraded: NotRequired[list[DegradedRow]]
    quorum: NotRequired[QuorumCounts]
    calls: NotRequired[CallCounts]
    cost: NotRequired[CostRow]
    seconds: NotRequired[float]


class RunList(TypedDict):
    runs: list[RunRow]


ToolResult = StartedRun | RunStatusObject | CancelledRun | PanelResult | RunList | PlanObject | ReportObject

PANEL_FIELDS = tuple(PanelResult.__annotations__.keys() - RunStatusObject.__annotations__.keys())
# Fields of a seat of a panel: a program needs no tokens and attempts to draw a conclusion.
PANEL_SEAT_FIELDS = ("name", "model", "served_by", "vendor", "state", "text", "conclusion", "confidence")
# Fields of the output schemas
STATUS_FIELDS = ("run", "status", "done", "line")
PANEL_RESULT_FIELDS = (*STATUS_FIELDS, "seats", "consensus", "disagreements", "trust", "degraded")
REPORT_FIELDS = (
    *("run", "status", "protocol", "answer", "tail", "trust", "verdict", "seats"),
    *("findings", "disagreements", "dissent", "degraded", "cost"),
)
PLAN_FIELDS = ("protocol", "seats", "calls", "packet", "cost", "warnings")


def add_panel_fields(status: RunStatusObject, report: ReportObject) -> PanelResult:
    """Return the status with the fields of a panel's report for a program that draws the conclusion itself."""
    seats = [{name: dict(seat).get(name) for name in PANEL_SEAT_FIELDS} for seat in report["seats"]]
    fields = {name: value for name, value in dict(report).items() if name in PANEL_FIELDS}
    return cast("PanelResult", {**status, **fields, "seats": seats})


# Schemas

JSON_NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def make_output_schema(record: type, names: Sequence[str] = ()) -> JsonSchema:
    """Return the JSON schema of an object with these fields of a record, or with all of them."""
    hints = get_type_hints(record, include_extras=True)
    shown = names or tuple(hints)
    return {
        "type": "object",
        "properties": {name: _describe_type(hints[name]) for name in shown},
        "required": [name for name in shown if not _is_optional(record, name)],
    }


def _is_optional(record: Any, name: str) -> bool:
    return (
        name in record.__optional_keys__ or get_origin(get_type_hints(record, include_extras=True)[name]) is NotRequired
    )


def _describe_type(hint: Any) -> JsonSchema:
    """Return the schema of a type, without what is inside an object or a list."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Annotated, NotRequired):
        return _describe_type(arguments[0])
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_describe_type(argument) for argument in arguments]}  # not every client reads a list of types
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [str(member) for member in hint]}
    if hint in JSON_NAMES:
        return {"type": JSON_NAMES[hint]}
    return {"type": "array" if (origin or hint) is list else "object"}
