"""Temporary workspace of an agent: a folder with only the packet, and a HOME with only its login.

Only the environment variables listed here are passed on, so the agent does not see other API keys.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from council.members.command_agents import Agent
from council.types import Json

ALLOWED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME")
# Proxy and certificate settings: without them an agent behind a proxy has no network.
NETWORK = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
KEYCHAIN = "Library/Keychains"  # logins on macOS; the system still checks access to each entry
DEPTH = "COUNCIL_DEPTH"


class Room:
    """Workspace of one call, deleted afterwards."""

    def __init__(self, place: Path, agent: Agent, env: Mapping[str, str]) -> None:
        self.place, self.agent, self.outside = place, agent, dict(env)
        self.work, self.home = place / "work", place / "home"
        for folder in (self.work, self.home, place / "tmp"):
            folder.mkdir()
        self.lent = dict(self._lend())

    def _lend(self) -> Iterator[tuple[Path, Path]]:
        """Link the login files; yield link → original."""
        own = self.home / self.agent.folder
        own.mkdir()
        for name in self.agent.login:
            yield from _linked(own / name, self.agent.home(self.outside) / name)
        if sys.platform == "darwin":
            real = Path(self.outside.get("HOME") or Path.home())
            yield from _linked(self.home / KEYCHAIN, real / KEYCHAIN)

    def furnish(self, request: Json) -> dict[str, str]:
        """Write the request's files; return the values of the flag placeholders."""
        (self.work / "packet.md").write_text(request["prompt"], encoding="utf-8")
        values = {name: str(request[name]) for name in ("model", "effort") if request.get(name)}
        if request.get("system"):
            values["system_file"] = self._write("system.md", request["system"])
        if request.get("schema") and not request.get("bare"):
            values["schema"] = json.dumps(request["schema"], ensure_ascii=False, separators=(",", ":"))
            values["schema_file"] = self._write("schema.json", values["schema"])
        return values

    def _write(self, name: str, text: str) -> str:
        path = self.place / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    @property
    def env(self) -> dict[str, str]:
        known = self.outside
        own = (*ALLOWED, *self.agent.keys, *NETWORK, *(name.upper() for name in NETWORK))
        inside = {name: known[name] for name in own if known.get(name)}
        inside |= {"HOME": str(self.home), "TMPDIR": str(self.place / "tmp"), "TERM": "dumb", "NO_COLOR": "1"}
        inside |= {DEPTH: str(depth(known) + 1), **self.agent.fixed, **(self.agent.with_login if self.lent else {})}
        return inside

    def leave(self) -> None:
        """Copy back login files that the agent replaced, then delete the workspace."""
        for here, home in self.lent.items():
            if here.is_file() and not here.is_symlink():
                _carry(here, home)
        shutil.rmtree(self.place, ignore_errors=True)


@contextmanager
def room(agent: Agent, env: Mapping[str, str]) -> Iterator[Room]:
    made = Room(Path(tempfile.mkdtemp(prefix="council-")), agent, env)
    try:
        yield made
    finally:
        made.leave()


def depth(env: Mapping[str, str]) -> int:
    """Return how many councils this one is nested in."""
    value = env.get(DEPTH, "").strip()
    return int(value) if value.isdigit() else 1 if value else 0


def has_login(agent: Agent, env: Mapping[str, str]) -> bool:
    """Return whether a login file exists. The system keyring is not checked."""
    return any((agent.home(dict(env)) / name).is_file() for name in agent.login)


def own_key(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the name of the variable that holds the agent's API key, or ""."""
    return next((name for name in agent.keys if env.get(name, "").strip()), "")


def _linked(here: Path, there: Path) -> Iterator[tuple[Path, Path]]:
    if there.exists():
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(there.absolute())
        yield here, there


def _carry(here: Path, home: Path) -> None:
    with suppress(OSError):
        target = home.resolve()
        handle, fresh = tempfile.mkstemp(dir=target.parent)  # mkstemp creates it readable by the owner only
        with os.fdopen(handle, "wb") as file:
            file.write(here.read_bytes())
        Path(fresh).replace(target)
