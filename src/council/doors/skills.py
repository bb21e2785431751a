"""The skill's files and the folders agents read: copied and taken away without touching what somebody else wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from council.errors import CouncilError, UsageError

NAME = "council"
RECEIPT = ".installed.json"  # what was put there, by hash: tells a file that somebody changed from an older one of ours
# Where each agent looks: in a project, and in the home of a person.
AGENTS = {
    "claude": (".claude/skills", ".claude/skills"),
    "codex": (".agents/skills", ".agents/skills"),
    "gemini": (".gemini/skills", ".gemini/skills"),
    "cursor": (".cursor/skills", ".cursor/skills"),
    "copilot": (".github/skills", ".copilot/skills"),
    "agents": (".agents/skills", ".agents/skills"),  # the folder that most agents share
}
# What tells that an agent is used there. Our own reports lie in .agents, so that folder says nothing.
SIGNS = {
    "claude": (".claude", "CLAUDE.md"),
    "codex": (".codex",),
    "gemini": (".gemini", "GEMINI.md"),
    "cursor": (".cursor", ".cursorrules"),
    "copilot": (".copilot", ".github/skills", ".github/copilot-instructions.md"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for the skill, and the root that nothing is written outside of."""

    agent: str
    scope: str  # project | user
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / AGENTS[self.agent][self.scope == "user"] / NAME


def source() -> Path:
    """The skill as it was shipped; in a checkout, as it stands there."""
    shipped = Path(__file__).parents[1] / "data" / "skill"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "skills" / NAME


def places(folder: Path) -> list[Place]:
    roots = {"project": _repository(folder), "user": Path.home()}
    return [Place(agent, scope, root) for scope, root in roots.items() for agent in AGENTS]


def find_agents(folder: Path, scope: str) -> list[str]:
    """The agents whose traces are there. A project that shows none is the person's: the one agent at home, else what all share."""
    if here := _signs(Path.home() if scope == "user" else _repository(folder)):
        return here
    at_home = _signs(Path.home())
    return at_home if len(at_home) == 1 else ["agents"]


def _signs(root: Path) -> list[str]:
    return [agent for agent, signs in SIGNS.items() if any((root / sign).exists() for sign in signs)]


def _repository(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


# What is there


def state(place: Place) -> str:
    """`-`, `up to date`, `older`, or `changed`."""
    if not place.folder.exists():
        return "-"
    if _changed(place):
        return "changed"
    return "up to date" if _there(place) == _shipped() else "older"


def _shipped() -> dict[str, str]:
    files = (path for path in sorted(source().rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source()).as_posix(): _digest(path) for path in files}


def _there(place: Place) -> dict[str, str]:
    names = dict.fromkeys([*_shipped(), *_receipt(place)])
    return {name: _digest(place.folder / name) for name in names if os.path.lexists(place.folder / name)}


def _changed(place: Place) -> list[str]:
    """The files that are neither as they are shipped nor as they were installed."""
    shipped, ours = _shipped(), _receipt(place)
    return [name for name, digest in _there(place).items() if digest not in (shipped.get(name), ours.get(name))]


def _receipt(place: Place) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads((place.folder / RECEIPT).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in kept.items() if _is_inside(str(name))}
    return {}


def _is_inside(name: str) -> bool:
    """A receipt is a file that anybody can write: no name in it may lead out of the folder."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _digest(path: Path) -> str:
    """Of a file's bytes; whatever else stands there is nobody's file."""
    if path.is_symlink() or not path.is_file():
        return "no file"
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Putting it there and taking it away


def install(place: Place, *, force: bool = False) -> list[str]:
    """The names of the files that were written."""
    _stay_inside(place)
    _refuse_changed(place, force, "overwritten")
    shipped, there = _shipped(), _there(place)
    stale = [name for name in there if name not in shipped]  # of an older version
    wanted = [name for name, digest in shipped.items() if there.get(name) != digest]
    try:
        for name in wanted:
            _write(place.folder / name, (source() / name).read_bytes())
        for name in stale:
            (place.folder / name).unlink()
        if wanted or stale or _receipt(place) != shipped:
            _write(place.folder / RECEIPT, json.dumps({"files": shipped}, indent=1).encode())
    except OSError as error:
        raise CouncilError(f'the skill could not be written to "{place.folder}" ({error.strerror}): mend that, or choose another folder by --agent or --user') from error  # fmt: skip
    return wanted


def remove(place: Place, *, force: bool = False) -> list[str]:
    """The names of the files that were removed; a folder goes only when nothing else is in it."""
    _stay_inside(place)
    _refuse_changed(place, force, "removed")
    gone = list(_there(place))
    try:
        for name in (*gone, RECEIPT):
            (place.folder / name).unlink(missing_ok=True)
        for folder in sorted(
            {place.folder, *(path for path in place.folder.rglob("*") if path.is_dir())}, reverse=True
        ):
            with contextlib.suppress(OSError):
                folder.rmdir()
    except OSError as error:
        raise CouncilError(f'the skill could not be removed from "{place.folder}" ({error.strerror}): remove it by hand') from error  # fmt: skip
    return gone


def _refuse_changed(place: Place, force: bool, what: str) -> None:
    if not force and (changed := _changed(place)):
        raise UsageError(
            f'"{place.folder}" has files that were changed there ({", ".join(changed)}), nothing was {what}: look at them, then say --force'
        )


def _stay_inside(place: Place) -> None:
    """No link on the way may lead out of the project or the home."""
    root = place.root.resolve()
    for name in ("", *_shipped(), *_receipt(place)):
        parent = (place.folder / name).parent if name else place.folder
        if not parent.resolve().is_relative_to(root):
            raise UsageError(f'"{parent}" leads out of "{place.root}" by a link, nothing was done: choose another folder by --agent or --user')  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    """In one step, and in the place of a link instead of through it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("xb") as file:
        file.write(content)
    draft.replace(path)
