"""The commands list, doctor and keys, and the old words of list: presets, rosters, models and protocols."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, get_args

import click

from council.doors.cli.params import (
    complete_preset,
    complete_protocol,
    complete_roster,
    make_flag,
    print_result,
    user_presets_folder,
)
from council.doors.cli.runner import (
    CONFIG_OPTION,
    JSON_OPTION,
    config_path,
    make_command,
    make_group,
    make_plain_command,
    with_convener,
)
from council.doors.cli.tables import fit_table, format_table
from council.doors.cli.views import write_lines
from council.engine.layout import format_count
from council.errors import UsageError
from council.money import PriceObject, RateName, format_usd
from council.protocols import protocol_names
from council.protocols.common.perspectives import Preset, list_presets, load_preset
from council.protocols.common.rosters import DescribedRoster, RosterSeat
from council.render.terminal import format_calls
from council.runs.service import Convener
from council.settings import load_settings
from council.settings.key_storage import delete_key, load_key, store_key, stored_key_names
from council.text_cleanup import single_line
from council.types import JsonSchema

if TYPE_CHECKING:
    from council.engine.plan_object import CostEstimate
    from council.runs.doctor import (
        DoctorRow,
        ExtensionRow,
        MemberRow,
        ProtocolRow,
        SearchProviderRow,
        SeatingPreview,
        SeatPreview,
    )
    from council.runs.track_record import TrackRecordObject

# List


def list_command() -> click.Group:
    protocol = _show_option("Show only this protocol, with its seats, phases and options.", complete_protocol)
    preset = _show_option("Show the perspectives of this preset.", complete_preset)
    roster = _show_option("Show the seats of this roster, named or in a file.", complete_roster, "NAME|FILE")
    commands = (
        make_command("protocols", print_protocols, protocol),
        models_command(),
        make_plain_command("presets", print_presets, preset, JSON_OPTION),
        make_command("rosters", print_rosters, roster),
    )
    return make_group("list", count_kinds, JSON_OPTION, CONFIG_OPTION, commands=commands)


def _show_option(help: str, complete: Any, metavar: str = "NAME") -> click.Option:
    return click.Option(["--show", "name"], metavar=metavar, help=help, shell_complete=complete)


@with_convener
async def count_kinds(convener: Convener, json: bool, **params: Any) -> int:
    """Print how many there are of each kind, and the command that lists them."""
    from council.runs.doctor import list_members

    members = list_members(convener)
    available = sum(row["available"] for row in members)
    rows: list[ListKind] = [
        _describe_kind("protocols", len(protocol_names()), "how a council deliberates"),
        {**_describe_kind("models", len(members), f"{available} available"), "available": available},
        _describe_kind("presets", len(list_presets(user_presets_folder())), "sets of perspectives for judges"),
        _describe_kind("rosters", len(convener.rosters()), "sets of seats for advisors, general and ranking"),
    ]
    cells = [[row["kind"], str(row["count"]), row["about"], row["command"]] for row in rows]
    table = format_table(["KIND", "NUMBER", "", "COMMAND"], cells, right=[1])
    return print_result(json, rows, fit_table(table, sys.stdout))


class ListKind(TypedDict):
    """A kind of things that `council list` lists."""

    kind: str
    count: int
    about: str
    command: str
    available: NotRequired[int]  # models


def _describe_kind(kind: str, count: int, about: str) -> ListKind:
    return {"kind": kind, "count": count, "about": about, "command": f"council list {kind}"}


# Presets


def presets_command() -> click.Group:
    name = click.Argument(["name"], shell_complete=complete_preset)
    show = make_plain_command("show", print_presets, name, JSON_OPTION, help="Show the perspectives of a preset.")
    return make_group("presets", print_presets, JSON_OPTION, commands=[show])


def print_presets(json: bool, name: str | None = None) -> int:
    """Print all presets, or the one with this name and its perspectives."""
    folder = user_presets_folder()
    if name is not None:
        item = load_preset(name, folder)
        lines = (f"  {lens.name} ({lens.persona}): {lens.focus}" for lens in item.perspectives)
        return print_result(json, _preset_json(item), [f"{item.name}: {item.about}", *lines])
    found = [load_preset(name, folder) for name in list_presets(folder)]
    rows = (f"{item.name:<22} {', '.join(lens.name for lens in item.perspectives)}" for item in found)
    return print_result(json, [_preset_json(item) for item in found], rows)


class PerspectiveRow(TypedDict):
    """A perspective of a preset."""

    name: str
    persona: str
    focus: str


class PresetRow(TypedDict):
    """A preset with its perspectives."""

    name: str
    about: str
    own: bool  # the user's
    perspectives: list[PerspectiveRow]


def _preset_json(item: Preset) -> PresetRow:
    lenses: list[PerspectiveRow] = [
        {"name": lens.name, "persona": lens.persona, "focus": lens.focus} for lens in item.perspectives
    ]
    return {"name": item.name, "about": item.about, "own": item.is_user_defined, "perspectives": lenses}


# Rosters


def rosters_command() -> click.Group:
    name = click.Argument(["name"], metavar="NAME|FILE", shell_complete=complete_roster)
    show = make_command("show", print_rosters, name, help="Show the seats of a roster.")
    return make_group("rosters", print_rosters, JSON_OPTION, CONFIG_OPTION, commands=[show])


@with_convener
async def print_rosters(convener: Convener, json: bool, name: str | None = None, **params: Any) -> int:
    """Print all rosters, or the one with this name and its seats."""
    rows = convener.rosters(name)
    if name is not None:
        return print_result(json, rows[0], _format_roster(rows[0]))
    lines = (f"{row['name']:<14} {row['error'] or _format_seat_names(row)}  ({row['origin']})" for row in rows)
    return print_result(json, rows, lines)


def _format_seat_names(row: DescribedRoster) -> str:
    return ", ".join(seat["name"] for seat in row["seats"])


def _format_roster(row: DescribedRoster) -> list[str]:
    model = row["chair"]["model"] if row["chair"] else None
    chair = f"  chair: {model}" if model else ""
    head = f"{row['name']}: {row['about']}" if row["about"] else row["name"]
    return [head, *map(_format_seat, row["seats"]), *([chair] if chair else []), f"from {row['origin']}"]


def _format_seat(seat: RosterSeat) -> str:
    parts = [seat["lens"], f'"{seat["stance"]}"' if seat["stance"] else "", seat["style"]]
    member = f" [{seat['model']}]" if seat["model"] else ""
    return f"  {seat['name']} ({seat['role']}){member}: {' · '.join(filter(None, parts))}"


# Models


def models_command() -> click.Command:
    flags = (
        make_flag("--price", help="Show prices in dollars per million tokens."),
        make_flag("--refresh", help="Ask the vendors now which models they list."),
        make_flag("--retired", help="Show only retired models, with their successors."),
    )
    return make_command("models", print_models, *flags)


@with_convener
async def print_models(convener: Convener, price: bool, refresh: bool, retired: bool, json: bool, **params: Any) -> int:
    from council.runs.doctor import add_records, list_members

    failed = await _refresh_models(convener) if refresh else False
    rows = [row for row in list_members(convener, prices=price) if row["retired"] or not retired]
    if outcomes := await convener.store.list_outcomes():
        add_records(rows, outcomes)
    none = ["no retired models in the catalogue or the settings"]
    print_result(json, rows, fit_table(format_models(rows), sys.stdout) if rows else none)
    return 1 if failed else 0


async def _refresh_models(convener: Convener) -> bool:
    """Fetch the lists of the vendors whose keys are set and print one line for each. Return whether one failed."""
    from council.runs.model_refresh import refresh_models

    convener.settings.require_trust()  # its requests go where the settings say
    problems = await refresh_models(convener.settings, convener.env, convener.members, is_forced=True)
    if not problems:
        click.echo("no vendor was asked: no API key of Anthropic, OpenAI, Google or OpenRouter is set", err=True)
    for provider, problem in problems.items():
        click.echo(f"{provider}: {problem or 'list of models fetched'}", err=True)
    return any(problems.values())


PRICE_COLUMNS: dict[str, RateName] = {"IN": "input", "CACHED": "cached", "OUT": "output"}  # dollars per million tokens


def format_models(rows: Sequence[MemberRow]) -> list[str]:
    has_price = any("price" in row for row in rows)
    has_record = any("record" in row for row in rows)
    prices, record = PRICE_COLUMNS if has_price else (), ["RIGHT"] if has_record else ()
    head = ["MEMBER", "VENDOR", "CONTEXT", *prices, *record, "STATUS"]
    cells = [
        [
            row["member"],
            row["vendor"],
            _format_tokens(row["context"]),
            *(_format_price(row["price"]) if has_price else ()),
            *([_format_record(row.get("record"))] if has_record else ()),
            _format_status(row),
        ]
        for row in rows
    ]
    return format_table(head, cells, right=range(2, len(head) - 1))


def _format_record(record: TrackRecordObject | None) -> str:
    return f"{record['right']} of {record['labelled']}" if record else ""


def _format_status(row: MemberRow) -> str:
    """Return whether a model is available and retired, and the line that it is the newest of."""
    status = "available" if row["available"] else f"needs {row['needs']}"
    if retired := row["retired"]:
        verb = "retired" if retired["is_over"] else f"{status}, retires"
        what = f"{verb} on {retired['date']}" if retired["date"] else "not listed by its vendor"
        return f"{what}, use {retired['successor']}" if retired["successor"] else what
    return f"{status} ({row['line']})" if row["line"] else status


def _format_tokens(context: int | None) -> str:
    return "" if context is None else f"{context / 1e6:g}M" if context >= 1_000_000 else f"{context // 1000}k"


def _format_price(price: PriceObject | None) -> list[str]:
    """Return the cells of a price in dollars per million tokens; `+` marks a higher tier, which the JSON output has."""
    if price is None:
        return ["unknown", "", ""]
    if not float(price["input"]) and not float(price["output"]):
        return ["free", "", ""]
    return [f"${float(price[key]):g}{'+' if price['tiers'] else ''}" for key in PRICE_COLUMNS.values()]


# Doctor


def doctor_command() -> click.Command:
    deep = make_flag("--deep", help="Ask each seated member for one word and show the cost.")
    return make_command("doctor", check_members, deep)


@with_convener
async def check_members(convener: Convener, deep: bool, json: bool, **params: Any) -> int:
    from council.runs import doctor

    convener.settings.require_trust()  # its requests go where the settings say
    preview = await doctor.preview_seating(convener)
    rows = await doctor.diagnose(convener, deep=deep, seats=preview)
    seats = doctor.add_used_members(preview, rows)
    unusable = doctor.check_database(convener)
    warned = [*doctor.list_warnings(convener), *unusable]
    search, extensions = doctor.list_search_providers(convener), await doctor.list_extensions(convener)
    value = {"members": rows, **seats, "warnings": warned, "search": search, "extensions": extensions}
    lines = [*_format_doctor_rows(rows), "", *_format_seating(seats), "", *_format_search(search)]
    lines += [*_format_extensions(extensions), *(f"! {line}" for line in warned)]
    print_result(json, value, lines, write_lines)
    return 1 if unusable or any(row["answered"] is False for row in rows) else 0


DoctorStep = Literal["configured", "installed", "key", "answered"]
DOCTOR_STEPS: tuple[DoctorStep, ...] = get_args(DoctorStep)


def _format_doctor_rows(rows: list[DoctorRow]) -> list[str]:
    """Format a table of the four checks per member, with details and the next step."""
    width = max(len(row["member"]) for row in rows)
    head = f"{'':<{width}}  configured  installed  key  answered  context"
    return [head, *(f"{_format_steps(row, width)}  {single_line(_format_detail(row), 300)}".rstrip() for row in rows)]


def _format_steps(row: DoctorRow, width: int) -> str:
    marks = ("yes" if row[step] else "-" if row[step] is None else "no" for step in DOCTOR_STEPS)
    columns = " ".join(f"{mark:<{len(step) + 1}}" for mark, step in zip(marks, DOCTOR_STEPS, strict=True))
    return f"{row['member']:<{width}}  {columns} {_format_tokens(row['context']):>7}"


def _format_detail(row: DoctorRow) -> str:
    return " · ".join(part for part in (row["detail"], row["next"]) if part)


def _format_seating(seats: SeatingPreview) -> list[str]:
    width = max((len(place["seat"]) for place in seats["seats"]), default=0)
    lines = [f"{place['seat']:<{width}} {_format_used(place)}" for place in seats["seats"]]
    protocol = f" ({seats['protocol']})" if seats["protocol"] else ""
    return [
        f"seats of the next question{protocol}:",
        *lines,
        f"families: {seats['families']}",
        *(f"! {notice}" for notice in seats["notices"]),
    ]


def _format_used(place: SeatPreview) -> str:
    if place["used"] == place["member"]:
        return str(place["member"])
    if place["used"] is None:
        return f"{place['member']} (failed the check above, as did its fallbacks)"
    return f"{place['used']} (instead of {place['member']}, which failed the check above)"


def _format_search(rows: list[SearchProviderRow]) -> list[str]:
    states = ((row, row["error"] or (f"needs {row['needs']}" if row["needs"] else "available")) for row in rows)
    return ["search providers:", *(f"{row['provider']:<9} {state}{_format_package(row)}" for row, state in states)]


def _format_extensions(rows: list[ExtensionRow]) -> list[str]:
    lines = [f"{row['kind']} {row['name']}  {row['error'] or 'works'}{_format_package(row)}" for row in rows]
    return ["", "extensions:", *lines] if rows else []


def _format_package(row: SearchProviderRow | ExtensionRow | ProtocolRow) -> str:
    return f"  (package {row['package']})" if row["package"] else ""


# Protocols


def protocols_command() -> click.Command:
    name = click.Argument(["name"], required=False, shell_complete=complete_protocol)
    return make_command("protocols", print_protocols, name)


@with_convener
async def print_protocols(convener: Convener, name: str | None, json: bool, **params: Any) -> int:
    from council.runs.doctor import list_protocols

    rows = await list_protocols(convener, name)
    lines = (line for row in rows for line in _format_protocol(row, details=bool(name)))
    return print_result(json, rows[0] if name else rows, lines, write_lines)


def _format_protocol(row: ProtocolRow, *, details: bool) -> list[str]:
    """Format a protocol: size and price, purpose, example and options; with details also its seats and phases."""
    size = "cannot run now"
    if row["calls"]:
        seats, calls = format_count(len(row["seats"]), "seat"), format_calls(row["calls"])
        size = f"{seats}, {calls}, {_format_expected(row['cost'])}"
    head = f"{row['name']:<14} {size}{_format_package(row)}"
    purpose = [f"  for {row['purpose']}"] if row["purpose"] else []
    steps = [f"  how: {row['summary']}"] if row["summary"] else []
    note = [f"  ! {row['note']}"] if row["note"] else []
    lines = [head, *purpose, *steps, f"  example: {row['example']}"]
    options = row["options"].get("properties", {})
    flags = [_format_option(name, field) for name, field in options.items()]
    if not details:
        return [*lines, *([f"  options: {', '.join(flags)}"] if flags else []), *note, ""]
    about = [f"  {flag}  {field.get('description', '')}" for flag, field in zip(flags, options.values(), strict=True)]
    phases = ", ".join(f"{phase['name']} ({phase['calls']})" for phase in row["phases"])
    return [*lines, f"  seats: {', '.join(row['seats'])}", f"  phases and calls: {phases}", *about, *note]


def _format_expected(cost: CostEstimate | None) -> str:
    """Return the expected price of a question with the members of today."""
    if cost is None:
        return "price unknown"
    return f"about {format_usd(cost['expected'])}" if cost["worst"] else "no cost"


def _format_option(name: str, field: JsonSchema) -> str:
    """Return the flag of an option, and the flag that turns it off if it is on by default."""
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if field.get("default") is True else f"--{flag}"


# Keys

NAME_ARGUMENT = click.Argument(["name"])
VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


def keys_command() -> click.Group:
    commands = (
        make_command("list", list_keys, help="List the variables with a stored key, without the keys."),
        make_command("set", set_key, NAME_ARGUMENT, help="Store a key, read from standard input or a hidden prompt."),
        make_command("rm", remove_key, NAME_ARGUMENT, help="Remove a key from the keyring."),
    )
    return make_group("keys", list_keys, JSON_OPTION, CONFIG_OPTION, commands=commands)


def list_keys(json: bool, **params: Any) -> int:
    rows = [_key_status(name) for name in stored_key_names(os.environ)]
    lines = [f"{row['name']:<24} {row['used']}" for row in rows]
    none = ["no keys stored: store one with `council keys set ANTHROPIC_API_KEY`"]
    return print_result(json, rows, lines or none)


class KeyRow(TypedDict):
    """A stored key, and whether it is used."""

    name: str
    used: str


def _key_status(name: str) -> KeyRow:
    if os.environ.get(name, "").strip():
        return {"name": name, "used": "no: the environment variable takes precedence"}
    return {"name": name, "used": "yes" if load_key(name) else "no: the keyring did not return it"}


def set_key(name: str, **params: Any) -> int:
    variable = _resolve_variable(name, config_path(params))
    store_key(variable, _read_key(variable), os.environ)
    first = f"; the environment variable {variable} takes precedence" if os.environ.get(variable) else ""
    click.echo(f"stored {variable} in the system keyring{first}", err=True)
    return 0


def remove_key(name: str, **params: Any) -> int:
    variable = _resolve_variable(name, config_path(params))
    delete_key(variable, os.environ)
    click.echo(f"removed {variable} from the system keyring", err=True)
    return 0


def _resolve_variable(name: str, config: Path | None) -> str:
    """Return the variable for a variable or provider name. Do not echo an invalid name, because it may be a key."""
    providers = load_settings(Path.cwd(), os.environ, config=config).providers
    if name in providers and providers[name].api_key_env:
        return providers[name].api_key_env
    if not VARIABLE_NAME.fullmatch(name):
        raise UsageError(
            "the argument is neither a variable such as ANTHROPIC_API_KEY nor a provider with a key, nothing was done: "
            "run `council keys set NAME` and enter the key at the prompt, never on the command line"
        )
    return name


def _read_key(variable: str) -> str:
    key = getpass(f"{variable}: ") if sys.stdin.isatty() else sys.stdin.read(100_000)
    if not key.strip() or len(key.split()) > 1:
        raise UsageError(
            f"expected one key on standard input, nothing was stored: use `council keys set {variable} < FILE`"
        )
    return key.strip()
