"""Flags of protocols: the generated table of the shipped ones, and the options of installed packages.

The command line, the planner and the MCP server read this table. It imports the option models only if a package adds
protocols.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from council.errors import CouncilError
from council.extensions import SEARCH, installed

if TYPE_CHECKING:  # the module needs pydantic
    from council.protocols.options import FlagRow

FLAGS_FILE = Path(__file__).parent / "data" / "flags.json"
PROTOCOL_GROUP = "council.protocols"
AUTO_PROTOCOL = "auto"  # the words choose, and advice may choose another one
# Options of every protocol, on the command line, in the library or over MCP.
MATERIAL_OPTIONS = (
    "base",
    "decision",
    "decisions",
    "folder",
    "look",
    "no_match",
    "packet_tokens",
    "redact",
    "skip_secrets",
    "spec",
)
SEAT_OPTIONS = ("effort", "exclude_family", "members", "mode", "seat", "seat_count", "seats", "words")
CALL_OPTIONS = ("allow_unpriced", "check", "grace", "hedge", "max_cost", "no_resend", "no_warm", "timeout")
OUTPUT_OPTIONS = (
    "ascii",
    "fail_on",
    "format",
    "json",
    "jsonl",
    "no_color",
    "notify",
    "output",
    "quiet",
    "report_dir",
    "show",
    "verbose",
)
COMMAND_OPTIONS = (
    "config",
    "continued",
    "detach",
    "dry_run",
    "help",
    "no_input",
    "no_stdin",
    "priority",
    "protocol",
    "question",
    "strict",
    "version",
    "yes",
)
RESERVED_OPTIONS = frozenset((*MATERIAL_OPTIONS, *SEAT_OPTIONS, *CALL_OPTIONS, *OUTPUT_OPTIONS, *COMMAND_OPTIONS))


@dataclass(frozen=True, slots=True)
class FlagTable:
    rows: list[FlagRow]  # one per flag
    problems: Mapping[str, str]  # installed protocol that cannot be used → why


@cache
def flag_table() -> FlagTable:
    """Return the flags of all shipped and installed protocols."""
    rows: list[FlagRow] = json.loads(FLAGS_FILE.read_text(encoding="utf-8"))
    shipped = {name for row in rows for name in row["owners"]}
    table = {row["name"]: row for row in rows}
    problems = {
        name: problem for name in installed(PROTOCOL_GROUP) if name not in shipped and (problem := _add(name, table))
    }
    if added := ", ".join(SEARCH.added):
        table["search"]["help"] += f" Added by packages: {added}."
    return FlagTable(list(table.values()), problems)


def negatable_options() -> frozenset[str]:
    """Return the on/off options that are not off by default: a value of false is a choice, not an empty field."""
    return frozenset(row["name"] for row in flag_table().rows if row.get("negatable"))


def _add(protocol: str, table: dict[str, FlagRow]) -> str:
    """Add the flags of an installed protocol, or return why it cannot be used."""
    from council.protocols.options import build_flag_table

    try:
        own = build_flag_table([protocol])
    except CouncilError as error:
        return str(error)
    for row in own:
        if problem := _find_clash(row, table):
            package = installed(PROTOCOL_GROUP)[protocol].package
            return f'the protocol "{protocol}" of the package "{package}" cannot be used: {problem}; rename it in the package'
    for row in own:
        known = table.setdefault(row["name"], {**row, "owners": []})
        known["owners"].append(protocol)
        if row.get("negatable"):
            known["negatable"] = True
    return ""


def _find_clash(row: FlagRow, table: Mapping[str, FlagRow]) -> str:
    name = row["name"]
    if name in RESERVED_OPTIONS:
        return f"its option {row['flag']} has the name of a common option"
    if row.get("negatable") and f"no_{name}" in RESERVED_OPTIONS | set(table):
        return f"its option {row['flag']} is on by default, and --no-{row['flag'][2:]} exists already"
    if table.get(name.removeprefix("no_"), row).get("negatable") and name.startswith("no_"):
        return f"its option {row['flag']} has the name of the flag that turns off --{row['flag'][5:]}"
    known = table.get(name, row)
    if (known["kind"], known["choices"]) != (row["kind"], row["choices"]):
        return f"its option {row['flag']} has another type than the option of {known['owners'][0]}"
    return ""
