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
RESERVED_OPTIONS = frozenset(
    [
        "allow_unpriced",
        "ascii",
        "base",
        "check",
        "config",
        "continued",
        "decision",
        "decisions",
        "detach",
        "dry_run",
        "effort",
        "exclude_family",
        "fail_on",
        "folder",
        "format",
        "grace",
        "hedge",
        "help",
        "json",
        "jsonl",
        "look",
        "max_cost",
        "members",
        "mode",
        "no_color",
        "no_input",
        "no_match",
        "no_resend",
        "no_stdin",
        "no_warm",
        "notify",
        "output",
        "packet_tokens",
        "priority",
        "protocol",
        "question",
        "quiet",
        "redact",
        "report_dir",
        "seat",
        "seat_count",
        "seats",
        "show",
        "skip_secrets",
        "spec",
        "strict",
        "timeout",
        "verbose",
        "version",
        "words",
        "yes",
    ]
)


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
