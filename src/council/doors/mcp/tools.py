"""The MCP tools: names, descriptions, schemas, examples. Keep them short: a model reads them in every session."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from council import protocols
from council.doors.mcp import results
from council.engine.plan_object import PlanObject
from council.engine.records import ReportObject
from council.errors import UsageError
from council.flags import AUTO_PROTOCOL, flag_table
from council.planning.intent import format_suggestion
from council.protocols.options import FlagRow, parse_options
from council.settings.schema import quote_value
from council.text_cleanup import single_line
from council.types import Json, JsonSchema

MAX_WAIT_S = 45  # seconds; clients time out after a minute
MAX_LISTED = 100
EXAMPLE_RUN = "r2abcd"


def _parse_json_text(value: Any) -> Any:
    """Return the object of a JSON text: models often send one instead of an object. An empty text is no option."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else {}
    except (ValueError, RecursionError):
        return value


Options = Annotated[Json, BeforeValidator(_parse_json_text)]
Seconds = Annotated[float, Field(ge=0, json_schema_extra={"maximum": MAX_WAIT_S})]  # more is read as the maximum
Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CommonOptions(Arguments):
    """Options of every protocol."""

    max_cost: float | None = Field(default=None, ge=0)
    effort: Literal["low", "medium", "high"] | None = None
    timeout: float | None = None
    seats: dict[str, str] = Field(default_factory=dict)
    models: tuple[str, ...] = ()
    exclude_family: Names = ()
    cheap: bool = False
    check: bool = False
    spec: str | None = None
    base: str | None = None
    decisions: tuple[str, ...] = ()
    attach: tuple[str | dict[str, str], ...] = ()
    redact: bool = False
    skip_secrets: bool = False
    look: bool | None = None  # None: if the question names the project


COMMON_OPTIONS_HELP = "max_cost, effort low|medium|high, timeout, seats {seat: member}, models [1 to 8], exclude_family [vendors], cheap, check, spec FILE, base REF, decisions [], attach [FILE], redact, skip_secrets, look (read project files)"


def _format_options_help() -> str:
    """Summarise the options from the table of the CLI flags."""
    own = {
        name: ", ".join(_format_option(row) for row in flag_table().rows if name in row["owners"])
        for name in protocols.protocol_names()
    }
    return ". ".join([f"Any: {COMMON_OPTIONS_HELP}", *(f"{name}: {text}" for name, text in own.items() if text)])


def _format_option(row: FlagRow) -> str:
    return f"{row['name']} {'|'.join(row['choices'])}".strip()


PROTOCOL_HELP = (
    "collaborative (default): one merged answer; adversarial: stress-test; advisors: perspectives; judges: PASS/WARN/FAIL on code; "
    "general: web research; ranking: blind vote; refine: reworked, checked; panel: answers, compared; triad, solo, quick: cheap{added}. Omit it: the question decides."
)


def _usable_protocols() -> list[str]:
    return [name for name in protocols.protocol_names() if name not in flag_table().problems]


def _format_protocol_help() -> str:
    added = [name for name in _usable_protocols() if protocols.package_of(name)]
    return PROTOCOL_HELP.format(added="".join(f"; {name}: {protocols.get_protocol(name).summary}" for name in added))


class StartArguments(Arguments):
    question: str = Field(
        description='Self-contained: members do not see this chat. May name files, or begin with "validate recent", "brainstorm …", "research …".'
    )
    protocol: str | None = Field(
        default=None,
        description=_format_protocol_help(),
        json_schema_extra={"enum": [*_usable_protocols(), AUTO_PROTOCOL]},
    )
    options: Options = Field(default_factory=dict, description=_format_options_help())
    folder: str | None = Field(default=None, description="Usually the project root; its files may be read.")


class EstimateArguments(Arguments):
    """Arguments of council_estimate; council_start has their descriptions."""

    question: str
    protocol: str | None = None
    options: Options = Field(default_factory=dict)
    folder: str | None = None


class PanelArguments(Arguments):
    """Arguments of council_panel; council_start describes the question, the options and the folder."""

    question: str
    exclude_family: Names = Field(default=(), description="Your own vendor: it takes no part.")
    options: Options = Field(default_factory=dict)
    folder: str | None = None
    seconds: Seconds = MAX_WAIT_S


class WaitArguments(Arguments):
    run: str
    seconds: Seconds = MAX_WAIT_S


class ResultArguments(Arguments):
    run: str
    tail: bool = Field(default=True, description="false: without the lines after the answer.")


class CancelArguments(Arguments):
    run: str


class ResumeArguments(Arguments):
    run: str
    max_cost: float | None = Field(default=None, ge=0, description="If the budget stopped it.")


class ListArguments(Arguments):
    limit: int = Field(default=10, ge=1, le=MAX_LISTED)
    unfinished: bool = False
    owner: str | None = Field(default=None, description="Such as ann@laptop.")
    project: str | None = None
    all: bool = False  # also runs of evaluations


class ToolHints(TypedDict, total=False):
    """What a tool may do, for the client."""

    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool


class ToolDefinition(TypedDict):
    """A tool as the protocol describes it."""

    name: str
    description: str
    inputSchema: JsonSchema
    outputSchema: JsonSchema
    annotations: ToolHints


@dataclass(frozen=True, slots=True)
class Tool:
    description: str
    model: type[Arguments]
    example: Json
    record: type  # what it returns
    shown: tuple[str, ...] = ()  # fields of the record in the output schema; () for all
    hints: ToolHints = field(default_factory=lambda: ToolHints(readOnlyHint=True))

    @property
    def output_schema(self) -> JsonSchema:
        return results.make_output_schema(self.record, self.shown)

    @property
    def schema(self) -> JsonSchema:
        plain: JsonSchema = _simplify_schema(self.model.model_json_schema())
        plain.pop("description", None)  # the docstring of the model
        return plain | {"examples": [self.example]}

    def parse_arguments(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Validate the arguments, or raise UsageError with one line."""
        try:
            return self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise UsageError(_format_validation_error(name, self, error.errors()[0])) from None


TOOLS: dict[str, Tool] = {
    "council_start": Tool(
        "Ask several language models one question; returns {run} at once, costs money. "
        "For real trade-offs, architecture, research, security- or correctness-sensitive review, or when the user asks for a "
        "council or second opinions. NOT for lookups, arithmetic, command syntax, one-line rewrites, narrow yes/no or "
        "one obvious path: answer those yourself. Then council_wait until done, then council_result.",
        StartArguments,
        {"question": "Shard the database or buy a bigger machine?"},
        results.StartedRun,
        hints={"destructiveHint": False},
    ),
    "council_panel": Tool(
        "Independent answers of several models and where they agree and differ; you conclude. Costs money. "
        f"Waits {MAX_WAIT_S} s; if not done, council_wait, then council_result.",
        PanelArguments,
        {"question": "Does this cache need a lock? …", "exclude_family": ["anthropic"]},
        results.PanelResult,
        results.PANEL_RESULT_FIELDS,
        hints={"destructiveHint": False},
    ),
    "council_wait": Tool(
        f"Wait up to {MAX_WAIT_S} s for a run. Call again until done. The run continues if you stop waiting.",
        WaitArguments,
        {"run": EXAMPLE_RUN},
        results.RunStatusObject,
    ),
    "council_result": Tool(
        "Report of a finished run. Tell the user about `degraded` and `dissent`.",
        ResultArguments,
        {"run": EXAMPLE_RUN},
        ReportObject,
        results.REPORT_FIELDS,
    ),
    "council_cancel": Tool(
        "Stop a run. Answers so far are kept and paid.",
        CancelArguments,
        {"run": EXAMPLE_RUN},
        results.CancelledRun,
        (*results.STATUS_FIELDS, "cancelled"),
        hints={"idempotentHint": True},
    ),
    "council_resume": Tool(
        "Continue an unfinished run; its answers are not paid again. Then council_wait.",
        ResumeArguments,
        {"run": EXAMPLE_RUN},
        results.RunStatusObject,
        results.STATUS_FIELDS,
        hints={"destructiveHint": False, "idempotentHint": True},
    ),
    "council_estimate": Tool(
        "Plan of a council, free: seats, calls, files sent, cost, warnings. Arguments as for council_start.",
        EstimateArguments,
        {"question": "Which queue fits us?"},
        PlanObject,
        results.PLAN_FIELDS,
    ),
    "council_list": Tool(
        "Recent runs, unfinished first, with their questions.",
        ListArguments,
        {"unfinished": True},
        results.RunList,
    ),
}


def list_tool_definitions() -> list[ToolDefinition]:
    """Return the body of tools/list."""
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.hints,
        }
        for name, tool in TOOLS.items()
    ]


def find_tool(name: str) -> Tool:
    if name not in TOOLS:
        shown = quote_value(name)
        raise UsageError(f"unknown tool {shown}: {format_suggestion(name[:80], TOOLS)}available: {', '.join(TOOLS)}")
    return TOOLS[name]


TOOLS_OF_COMMANDS = {
    "resume": "council_resume",
    "watch": "council_wait",
    "cancel": "council_cancel",
    "report": "council_result",
}
COMMAND_OF_RUN = re.compile(r"`?\bcouncil (resume|watch|cancel|report) (r[0-9a-z]{4,60})\b(?: --max-cost USD)?`?")


def name_tools(text: str) -> str:
    """Return a text of Council with tools in place of the commands that do the same with a run."""
    if "council " not in text:
        return text
    return COMMAND_OF_RUN.sub(lambda found: f'{TOOLS_OF_COMMANDS[found[1]]} {{"run": "{found[2]}"}}', text)


def split_common_options(options: Json) -> tuple[CommonOptions, Json]:
    """Split the options into the common ones and those of the protocol."""
    shared = {name: value for name, value in options.items() if name in CommonOptions.model_fields}
    common = parse_options("council_start", "ask", shared, CommonOptions)
    assert isinstance(common, CommonOptions)
    return common, {name: value for name, value in options.items() if name not in shared}


def _simplify_schema(schema: Any) -> Any:
    """Drop titles, nulls, empty defaults and what is the default of a schema."""
    if isinstance(schema, list):
        return [_simplify_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:
        [only] = [part for part in schema["anyOf"] if part.get("type") != "null"]
        schema = only | {key: value for key, value in schema.items() if key != "anyOf"}
    return {key: _simplify_schema(value) for key, value in schema.items() if not _is_redundant(key, value)}


def _is_redundant(key: str, value: Any) -> bool:
    if key == "title":
        return isinstance(value, str)
    return (key == "default" and value in (None, False, [])) or key == "additionalProperties"  # code refuses others


def _format_validation_error(name: str, tool: Tool, error: ErrorDetails) -> str:
    where, value = single_line(".".join(map(str, error["loc"])), 80), error["input"]
    example = f"{name} {json.dumps(tool.example, ensure_ascii=False)}"
    if error["type"] == "missing":
        return f'{name} needs "{where}": call it like {example}'
    if error["type"] == "extra_forbidden":
        return f'{name} has no argument "{where}": it takes {", ".join(tool.model.model_fields)}'
    problem = error["msg"].removeprefix("Input ").replace("a valid dictionary", "a JSON object")
    return f"{name}: invalid {where} {quote_value(value)}: it {problem}, as in {example}"
