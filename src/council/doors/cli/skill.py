"""`council skill`: install the skill for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from council.doors.cli.commands import JSON_OPTION
from council.doors.cli.given import print_json
from council.doors.cli.words import COMMAND_HELP
from council.doors.skills import (
    AGENT_FOLDERS,
    SkillTarget,
    detect_agents,
    install_files,
    installed_state,
    remove_files,
    skill_source,
    skill_targets,
)
from council.errors import UsageError

AGENT_OPTION = click.Option(
    ["--agent"], type=click.Choice(tuple(AGENT_FOLDERS)), help="Install for this agent. Default: the agents used here."
)
PROJECT_OPTION = click.Option(["--project"], is_flag=True, help="Use this repository (default).")
USER_OPTION = click.Option(["--user"], is_flag=True, help="Use your home folder, for all projects.")
FORCE_OPTION = click.Option(["--force"], is_flag=True, help="Overwrite or remove files that were edited.")


def skill_command() -> click.Group:
    group = click.Group(
        "skill", invoke_without_command=True, params=[JSON_OPTION], help=COMMAND_HELP["skill"], callback=_skill_default
    )
    where = [AGENT_OPTION, PROJECT_OPTION, USER_OPTION]
    file = click.Argument(["file"], required=False, default="SKILL.md")
    for one in (
        click.Command("install", callback=install_skill, params=[*where, FORCE_OPTION, JSON_OPTION], help="Install the skill for coding agents."),
        click.Command("list", callback=list_skills, params=[JSON_OPTION], help="List the skill folders of all agents and their state."),
        click.Command("show", callback=show_skill, params=[file], help="Print the skill or one of its files."),
        click.Command("rm", callback=remove_skill, params=[*where, FORCE_OPTION, JSON_OPTION], help="Remove the skill."),
    ):  # fmt: skip
        group.add_command(one)
    return group


@click.pass_context
def _skill_default(context: click.Context, /, json: bool) -> int | None:
    return list_skills(json) if context.invoked_subcommand is None else None


def install_skill(agent: str | None, project: bool, user: bool, force: bool, json: bool) -> int:
    rows = [
        {"agent": place.agent, "folder": str(place.folder), "written": install_files(place, force=force)}
        for place in _select_targets(agent, project, user)
    ]
    if json:
        print_json(rows)
    else:
        click.echo("\n".join(_format_install(row) for row in rows))
    return 0


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
    if json:
        print_json(rows)
    else:
        click.echo("\n".join(f"{row['folder']}: {len(row['removed'])} files removed" for row in rows))
    return 0


def list_skills(json: bool) -> int:
    rows = [
        {"agent": place.agent, "scope": place.scope, "folder": str(place.folder), "state": installed_state(place)}
        for place in skill_targets(Path.cwd())
    ]
    if json:
        print_json(rows)
    else:
        click.echo("\n".join(f"{row['agent']:<8} {row['scope']:<8} {row['state']:<12} {row['folder']}" for row in rows))
    return 0


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
    mine = {place.folder: place for place in reversed(skill_targets(Path.cwd())) if place.agent in names and place.scope == scope}  # fmt: skip
    return list(reversed(mine.values()))
