"""Install and remove the skill in the folders agents read, without touching other files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from council.errors import CouncilError, UsageError

NAME = "council"
RECEIPT = ".installed.json"  # hashes of installed files; distinguishes edited files from older versions
# Skill folders of each agent: in a project, and in the home folder.
AGENTS = {
    "claude": (".claude/skills", ".claude/skills"),
    "codex": (".agents/skills", ".agents/skills"),
    "gemini": (".gemini/skills", ".gemini/skills"),
    "cursor": (".cursor/skills", ".cursor/skills"),
    "copilot": (".github/skills", ".copilot/skills"),
    "agents": (".agents/skills", ".agents/skills"),  # the folder that most agents share
}
# Files that show that an agent is used. Council writes reports to .agents, so that folder proves nothing.
SIGNS = {
    "claude": (".claude", "CLAUDE.md"),
    "codex": (".codex",),
    "gemini": (".gemini", "GEMINI.md"),
    "cursor": (".cursor", ".cursorrules"),
    "copilot": (".copilot", ".github/skills", ".github/copilot-instructions.md"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for the skill, and the root that contains all writes."""

    agent: str
    scope: str  # project | user
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / AGENTS[self.agent][self.scope == "user"] / NAME


def source() -> Path:
    """Return the packaged skill, or the one of the checkout."""
    shipped = Path(__file__).parents[1] / "data" / "skill"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "skills" / NAME


def places(folder: Path) -> list[Place]:
    roots = {"project": _repository(folder), "user": Path.home()}
    return [Place(agent, scope, root) for scope, root in roots.items() for agent in AGENTS]


def find_agents(folder: Path, scope: str) -> list[str]:
    """Return the agents used here. Without markers in the project: the only agent in the home folder, else the shared folder."""
    if here := _signs(Path.home() if scope == "user" else _repository(folder)):
        return here
    at_home = _signs(Path.home())
    return at_home if len(at_home) == 1 else ["agents"]


def _signs(root: Path) -> list[str]:
    return [agent for agent, signs in SIGNS.items() if any((root / sign).exists() for sign in signs)]


def _repository(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


# Installed state


def state(place: Place) -> str:
    """Return `-`, `up to date`, `older` or `changed`."""
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
    """Return the files that match neither the shipped nor the installed version."""
    shipped, ours = _shipped(), _receipt(place)
    return [name for name, digest in _there(place).items() if digest not in (shipped.get(name), ours.get(name))]


def _receipt(place: Place) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        files = json.loads((place.folder / RECEIPT).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in files.items() if _is_inside(str(name))}
    return {}


def _is_inside(name: str) -> bool:
    """Return whether a name stays in the folder. Receipts are untrusted: any user can write one."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _digest(path: Path) -> str:
    """Return the SHA-256 of a regular file, or "no file" for anything else."""
    if path.is_symlink() or not path.is_file():
        return "no file"
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Install and remove


def install(place: Place, *, force: bool = False) -> list[str]:
    """Install the skill and return the names of the written files."""
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
        raise CouncilError(f'cannot write the skill to "{place.folder}" ({error.strerror}): choose another folder with --agent or --user') from error  # fmt: skip
    return wanted


def remove(place: Place, *, force: bool = False) -> list[str]:
    """Remove the skill and return the names of the removed files. Keep folders that contain other files."""
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
        raise CouncilError(f'cannot remove the skill from "{place.folder}" ({error.strerror}): remove it by hand') from error  # fmt: skip
    return gone


def _refuse_changed(place: Place, force: bool, what: str) -> None:
    if not force and (changed := _changed(place)):
        raise UsageError(
            f'"{place.folder}" has edited files ({", ".join(changed)}), nothing was {what}: check them, then pass --force'
        )


def _stay_inside(place: Place) -> None:
    """Raise UsageError if a link leads out of the project or the home folder."""
    root = place.root.resolve()
    for name in ("", *_shipped(), *_receipt(place)):
        parent = (place.folder / name).parent if name else place.folder
        if not parent.resolve().is_relative_to(root):
            raise UsageError(f'"{parent}" is a link that leads out of "{place.root}", nothing was done: choose another folder with --agent or --user')  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, replacing a link instead of following it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("xb") as file:
        file.write(content)
    draft.replace(path)
