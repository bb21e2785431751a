"""The commands serve, open and worker, which start processes, and skill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import webbrowser
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from council.doors.cli.management import mcp_command, no_worker_option
from council.doors.cli.params import make_flag, print_result, run_argument
from council.doors.cli.runner import CONFIG_OPTION, JSON_OPTION, Runner, config_path, make_group, make_plain_command
from council.errors import CouncilError, UsageError
from council.runs.servers import code_url, find_server, load_token, request_code, run_url
from council.runs.service import Convener
from council.settings.config_files import find_root
from council.settings.private_files import make_named_folder, open_named_file
from council.types import Json

REQUIRED_PACKAGES = ("fastapi", "uvicorn")
ROOT = "Another folder whose files may be used; repeatable."
UNSAFE_HOST = "Listen on this address. Anyone who can reach it needs only the token."
PUBLIC_URL = "Address of a reverse proxy in front of the server; requests with its Host are accepted too."
SERVE_OPTIONS = (
    make_flag("--open", "open_page", help="Open the page in the browser."),
    click.Option(["--port"], type=click.IntRange(0, 65535), metavar="N", help="Port to listen on; 0 picks a free one."),
    click.Option(["--root"], type=click.Path(), multiple=True, metavar="FOLDER", help=ROOT),
    click.Option(["--max-cost"], type=click.FloatRange(min=0), metavar="DOLLARS", help="Cost limit per run."),
    click.Option(["--unsafe-host"], metavar="ADDRESS", help=UNSAFE_HOST),
    click.Option(["--public-url"], metavar="URL", help=PUBLIC_URL),
    no_worker_option(),
    make_flag("--new-token", help="Replace the token: addresses printed earlier and open pages end."),
    CONFIG_OPTION,
)


def serve_command() -> click.Group:
    from council.doors.cli.queue_commands import migrate_command, queue_command, workers_command
    from council.doors.cli.token_commands import tokens_command  # `council open` does not need it

    makers = (mcp_command, worker_command, workers_command, queue_command, migrate_command, tokens_command)
    commands = [make() for make in makers]
    return make_group("serve", _run_server, *SERVE_OPTIONS, commands=commands, on_command=_refuse_flags)


def _refuse_flags(context: click.Context, params: Json) -> None:
    """Refuse flags before a command inside of `serve`, because they would have no effect."""
    inner = context.invoked_subcommand
    for option in SERVE_OPTIONS:
        if context.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE:
            flag = option.opts[0]
            raise UsageError(
                f'{flag} stands before "{inner}", nothing was started: put flags after council serve {inner}'
            )


def open_command() -> click.Command:
    return make_plain_command("open", open_run, run_argument(), CONFIG_OPTION)


def open_run(run: str | None, **params: Any) -> int:
    """Open a run in the page of a running server, or start a server until Ctrl-C."""

    async def find_run(convener: Convener) -> int:
        found.append((await convener.run_state(run)).run if run else await convener.newest_run())
        return 0

    found: list[str] = []
    Runner.from_flags(params).with_convener(find_run)
    if url := find_server(os.environ):
        click.echo(run_url(url, found[0]))
        code = request_code(url)  # other users see the arguments of the browser
        if not webbrowser.open(run_url(code_url(url, code) if code else url, found[0])):
            click.echo("council: no browser could be opened: open the address above in one", err=True)
        return 0
    return _run_server(open_page=True, run=found[0], command="open", **params)


def _run_server(
    open_page: bool,
    port: int | None = None,
    root: tuple[str, ...] = (),
    max_cost: float | None = None,
    unsafe_host: str | None = None,
    public_url: str | None = None,
    no_worker: bool = False,
    new_token: bool = False,
    run: str = "",
    command: str = "serve",
    **params: Any,
) -> int:
    if missing := next((name for name in REQUIRED_PACKAGES if find_spec(name) is None), None):
        raise UsageError(f"council {command} needs the package {missing}: run `pip install 'model-council[web]'`")
    if run:
        click.echo("council: the page is served until Ctrl-C", err=True)
    from council.doors.limits import Owner
    from council.doors.web.app_state import AppState, name_roots
    from council.doors.web.serve import parse_address, serve

    where = parse_address(unsafe_host, port, public_url)
    config = config_path(params)
    roots = name_roots([Path.cwd(), *map(Path, root)])
    owner = Owner(
        Path.cwd().resolve(), dict(os.environ), config and config.absolute(), max_cost, has_worker=not no_worker
    )
    if new_token:
        load_token(os.environ, renew=True)
    if refused := owner.describe_untrusted():
        click.echo(refused, err=True)
    return serve(AppState(roots, owner), where, open_page=open_page, print_url=click.echo, run=run)


def worker_command() -> click.Command:
    queues = "Queues of a shared store, separated by commas: default, host, host:NAME. Default: default and host."
    number = "Runs at once, of a shared store. Default: 32."
    drain = "Time that runs have to end after TERM; the others return to the queue. Default: 30."
    port = "Serve /healthz, /readyz and /metrics on this port; 0 picks a free one."
    host = "Address of the metrics. Default: 127.0.0.1. Others than this machine need COUNCIL_METRICS_TOKEN."
    flags = (
        click.Option(["--queues"], metavar="NAMES", help=queues),
        click.Option(["--concurrency"], type=click.IntRange(1, 10_000), metavar="N", help=number),
        click.Option(["--drain"], type=click.FloatRange(min=0), metavar="SECONDS", help=drain),
        click.Option(["--metrics-port"], type=click.IntRange(0, 65535), metavar="N", help=port),
        click.Option(["--metrics-host"], metavar="ADDRESS", help=host),
        CONFIG_OPTION,
    )
    return make_plain_command("worker", work, *flags)


def work(
    queues: str | None,
    concurrency: int | None,
    drain: float | None,
    metrics_port: int | None,
    metrics_host: str | None,
    **params: Any,
) -> int:
    from council.runs.worker import run_worker
    from council.runs.worker_client import LOCK_VARIABLE

    if LOCK_VARIABLE in os.environ:  # started for a local store; settings that cannot be read are those of its runs
        return run_worker()
    config = config_path(params)
    options = {
        "queues": parse_queues(queues) or None,
        "concurrency": concurrency,
        "drain_seconds": drain,
        "metrics": parse_metrics_address(metrics_host, metrics_port),
        "config": config and config.absolute(),
    }
    given = {name: value for name, value in options.items() if value is not None}
    if (address := Convener(config=config).find_store()).url:
        from council.runs.database_worker import run_database_worker

        return run_database_worker(address, **given)
    if given:
        raise UsageError(
            "the worker of a local store has no options: it takes all runs; set COUNCIL_DATABASE for a shared store"
        )
    click.echo(
        "council: executing the queued runs of this machine, until there are none; with COUNCIL_DATABASE, a worker of a shared "
        "store runs until it is stopped",
        err=True,
    )
    return run_worker()


def parse_queues(text: str | None) -> list[str]:
    """Return the names of --queues."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in ("default", "host") and not (name.startswith("host:") and name != "host:"):
            raise UsageError(f'--queues has no queue "{name}": use default, host, or host:NAME')
    return names


def parse_metrics_address(host: str | None, port: int | None) -> tuple[str, int] | None:
    """Return the address of the metrics, or None without --metrics-port."""
    if port is None:
        if host is not None:
            raise UsageError("--metrics-host needs a port: add --metrics-port N")
        return None
    from council.runs.metrics import require_package

    require_package()
    return host or "127.0.0.1", port


SKILL_NAME = "council"
RECEIPT_FILE = ".installed.json"  # hashes of installed files; distinguishes edited files from older versions
# Skill folders of each agent: in a project, and in the home folder.
AGENT_FOLDERS = {
    "claude": (".claude/skills", ".claude/skills"),
    "codex": (".agents/skills", ".agents/skills"),
    "gemini": (".gemini/skills", ".gemini/skills"),
    "cursor": (".cursor/skills", ".cursor/skills"),
    "copilot": (".github/skills", ".copilot/skills"),
    "agents": (".agents/skills", ".agents/skills"),  # the folder that most agents share
}
# Files that show that an agent is used. Council writes reports to .agents, so that folder proves nothing.
AGENT_MARKERS = {
    "claude": (".claude", "CLAUDE.md"),
    "codex": (".codex",),
    "gemini": (".gemini", "GEMINI.md"),
    "cursor": (".cursor", ".cursorrules"),
    "copilot": (".copilot", ".github/skills", ".github/copilot-instructions.md"),
}


@dataclass(frozen=True, slots=True)
class SkillTarget:
    """A folder for the skill, and the root that contains all writes."""

    agent: str
    scope: str  # project | user
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / AGENT_FOLDERS[self.agent][self.scope == "user"] / SKILL_NAME


def skill_source() -> Path:
    """Return the packaged skill, or the one of the checkout."""
    shipped = Path(__file__).parents[2] / "data" / "skill"
    return shipped if shipped.is_dir() else Path(__file__).parents[4] / "skills" / SKILL_NAME


def skill_targets(folder: Path) -> list[SkillTarget]:
    roots = {"project": find_root(folder), "user": Path.home()}
    return [SkillTarget(agent, scope, root) for scope, root in roots.items() for agent in AGENT_FOLDERS]


def detect_agents(folder: Path, scope: str) -> list[str]:
    """Return the agents used here.

    Without markers in the project: the only agent in the home folder, else the shared folder.
    """
    if here := _find_markers(Path.home() if scope == "user" else find_root(folder)):
        return here
    at_home = _find_markers(Path.home())
    return at_home if len(at_home) == 1 else ["agents"]


def _find_markers(root: Path) -> list[str]:
    return [agent for agent, signs in AGENT_MARKERS.items() if any((root / sign).exists() for sign in signs)]


# Installed state


def installed_state(place: SkillTarget) -> str:
    """Return `-`, `up to date`, `older` or `changed`."""
    if not place.folder.exists():
        return "-"
    if _changed_files(place):
        return "changed"
    return "up to date" if _installed_digests(place) == _shipped_digests() else "older"


def _shipped_digests() -> dict[str, str]:
    files = (path for path in sorted(skill_source().rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(skill_source()).as_posix(): _digest(path) for path in files}


def _installed_digests(place: SkillTarget) -> dict[str, str]:
    names = dict.fromkeys([*_shipped_digests(), *_read_receipt(place)])
    return {name: _digest(place.folder / name) for name in names if os.path.lexists(place.folder / name)}


def _changed_files(place: SkillTarget) -> list[str]:
    """Return the files that match neither the shipped nor the installed version."""
    shipped, ours = _shipped_digests(), _read_receipt(place)
    return [
        name for name, digest in _installed_digests(place).items() if digest not in (shipped.get(name), ours.get(name))
    ]


def _read_receipt(place: SkillTarget) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        files = json.loads((place.folder / RECEIPT_FILE).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in files.items() if _is_relative_inside(str(name))}
    return {}


def _is_relative_inside(name: str) -> bool:
    """Return whether a name stays in the folder. Receipts are untrusted: any user can write one."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _digest(path: Path) -> str:
    """Return the SHA-256 of a regular file, or "no file" for anything else."""
    if path.is_symlink() or not path.is_file():
        return "no file"
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Install and remove


def install_files(place: SkillTarget, *, force: bool = False) -> list[str]:
    """Install the skill and return the names of the written files."""
    _refuse_escaping_links(place)
    _refuse_changed(place, force, "overwritten")
    shipped, there = _shipped_digests(), _installed_digests(place)
    stale = [name for name in there if name not in shipped]  # of an older version
    wanted = [name for name, digest in shipped.items() if there.get(name) != digest]
    try:
        for name in wanted:
            _write_atomically(place.folder / name, (skill_source() / name).read_bytes())
        for name in stale:
            (place.folder / name).unlink()
        if wanted or stale or _read_receipt(place) != shipped:
            _write_atomically(place.folder / RECEIPT_FILE, json.dumps({"files": shipped}, indent=1).encode())
    except OSError as error:
        raise CouncilError(
            f'cannot write the skill to "{place.folder}" ({error.strerror}): choose another folder with --agent or --user'
        ) from error
    return wanted


def remove_files(place: SkillTarget, *, force: bool = False) -> list[str]:
    """Remove the skill and return the names of the removed files. Keep folders that contain other files."""
    _refuse_escaping_links(place)
    _refuse_changed(place, force, "removed")
    gone = list(_installed_digests(place))
    try:
        for name in (*gone, RECEIPT_FILE):
            (place.folder / name).unlink(missing_ok=True)
        for folder in sorted(
            {place.folder, *(path for path in place.folder.rglob("*") if path.is_dir())}, reverse=True
        ):
            with contextlib.suppress(OSError):
                folder.rmdir()
    except OSError as error:
        raise CouncilError(
            f'cannot remove the skill from "{place.folder}" ({error.strerror}): remove it by hand'
        ) from error
    return gone


def _refuse_changed(place: SkillTarget, force: bool, what: str) -> None:
    if not force and (changed := _changed_files(place)):
        raise UsageError(
            f'"{place.folder}" has edited files ({", ".join(changed)}), nothing was {what}: check them, then pass --force'
        )


def _refuse_escaping_links(place: SkillTarget) -> None:
    """Raise UsageError if a link leads out of the project or the home folder."""
    root = place.root.resolve()
    for name in ("", *_shipped_digests(), *_read_receipt(place)):
        parent = (place.folder / name).parent if name else place.folder
        if not parent.resolve().is_relative_to(root):
            raise UsageError(
                f'"{parent}" is a link that leads out of "{place.root}", nothing was done: choose another folder with --agent or --user'
            )


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically, replacing a link instead of following it."""
    make_named_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open_named_file(draft, "xb") as file:
        file.write(content)
    draft.replace(path)


def skill_command() -> click.Group:
    agent = "Install for this agent. Default: the agents used here."
    flags = (
        click.Option(["--agent"], type=click.Choice(tuple(AGENT_FOLDERS)), help=agent),
        make_flag("--project", help="Use this repository (default)."),
        make_flag("--user", help="Use your home folder, for all projects."),
        make_flag("--force", help="Overwrite or remove files that were edited."),
        JSON_OPTION,
    )
    file = click.Argument(["file"], required=False, default="SKILL.md")
    about = "List the skill folders of all agents and their state."
    commands = (
        make_plain_command("install", install_skill, *flags, help="Install the skill for coding agents."),
        make_plain_command("list", list_skills, JSON_OPTION, help=about),
        make_plain_command("show", show_skill, file, help="Print the skill or one of its files."),
        make_plain_command("rm", remove_skill, *flags, help="Remove the skill."),
    )
    return make_group("skill", list_skills, JSON_OPTION, commands=commands)


def install_skill(agent: str | None, project: bool, user: bool, force: bool, json: bool) -> int:
    rows = [
        {"agent": place.agent, "folder": str(place.folder), "written": install_files(place, force=force)}
        for place in _select_targets(agent, project, user)
    ]
    return print_result(json, rows, map(_format_install, rows))


def _format_install(row: dict[str, Any]) -> str:
    what = f"{len(row['written'])} files" if row["written"] else "up to date, nothing to do"
    return f"{row['folder']} ({row['agent']}): {what}"


def remove_skill(agent: str | None, project: bool, user: bool, force: bool, json: bool) -> int:
    installed = [place for place in _select_targets(agent, project, user, among_all=True) if place.folder.exists()]
    if not installed:
        raise UsageError("the skill is not installed there, nothing was removed: see `council skill list`")
    rows = [
        {"agent": place.agent, "folder": str(place.folder), "removed": remove_files(place, force=force)}
        for place in installed
    ]
    return print_result(json, rows, (f"{row['folder']}: {len(row['removed'])} files removed" for row in rows))


def list_skills(json: bool) -> int:
    rows = [
        {"agent": place.agent, "scope": place.scope, "folder": str(place.folder), "state": installed_state(place)}
        for place in skill_targets(Path.cwd())
    ]
    lines = (f"{row['agent']:<8} {row['scope']:<8} {row['state']:<12} {row['folder']}" for row in rows)
    return print_result(json, rows, lines)


def show_skill(file: str) -> int:
    known = {
        str(path.relative_to(skill_source())): path for path in sorted(skill_source().rglob("*")) if path.is_file()
    }
    if file not in known:
        raise UsageError(f'the skill has no file "{file}": use one of {", ".join(known)}')
    click.echo(known[file].read_text(encoding="utf-8"), nl=False)
    return 0


def _select_targets(agent: str | None, project: bool, user: bool, *, among_all: bool = False) -> list[SkillTarget]:
    """Return the folder of the named agent, or one for each agent used here."""
    if project and user:
        raise UsageError("--project and --user conflict, nothing was done: give one of them")
    scope = "user" if user else "project"
    names = [agent] if agent else list(AGENT_FOLDERS) if among_all else detect_agents(Path.cwd(), scope)
    mine = {
        place.folder: place
        for place in reversed(skill_targets(Path.cwd()))
        if place.agent in names and place.scope == scope
    }
    return list(reversed(mine.values()))
