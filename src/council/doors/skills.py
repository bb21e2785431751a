"""Install and remove the skill in the folders agents read, without touching other files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from council.errors import CouncilError, UsageError

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
    shipped = Path(__file__).parents[1] / "data" / "skill"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "skills" / SKILL_NAME


def skill_targets(folder: Path) -> list[SkillTarget]:
    roots = {"project": _find_repository(folder), "user": Path.home()}
    return [SkillTarget(agent, scope, root) for scope, root in roots.items() for agent in AGENT_FOLDERS]


def detect_agents(folder: Path, scope: str) -> list[str]:
    """Return the agents used here. Without markers in the project: the only agent in the home folder, else the shared folder."""
    if here := _find_markers(Path.home() if scope == "user" else _find_repository(folder)):
        return here
    at_home = _find_markers(Path.home())
    return at_home if len(at_home) == 1 else ["agents"]


def _find_markers(root: Path) -> list[str]:
    return [agent for agent, signs in AGENT_MARKERS.items() if any((root / sign).exists() for sign in signs)]


def _find_repository(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


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
        raise CouncilError(f'cannot write the skill to "{place.folder}" ({error.strerror}): choose another folder with --agent or --user') from error  # fmt: skip
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
        raise CouncilError(f'cannot remove the skill from "{place.folder}" ({error.strerror}): remove it by hand') from error  # fmt: skip
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
            raise UsageError(f'"{parent}" is a link that leads out of "{place.root}", nothing was done: choose another folder with --agent or --user')  # fmt: skip


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically, replacing a link instead of following it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("xb") as file:
        file.write(content)
    draft.replace(path)
