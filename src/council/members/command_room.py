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

ALLOWED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME")
# Proxy and certificate settings: without them an agent behind a proxy has no network.
NETWORK_VARIABLES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
KEYCHAIN_FOLDER = "Library/Keychains"  # logins on macOS; the system still checks access to each entry
DEPTH_VARIABLE = "COUNCIL_DEPTH"


class Workspace:
    """Workspace of one call, deleted afterwards."""

    def __init__(self, root: Path, agent: Agent, env: Mapping[str, str]) -> None:
        self.root, self.agent, self.outer_env = root, agent, dict(env)
        self.work, self.home = root / "work", root / "home"
        for folder in (self.work, self.home, root / "tmp"):
            folder.mkdir()
        self.login_links = dict(self._link_login())

    def _link_login(self) -> Iterator[tuple[Path, Path]]:
        """Link the login files; yield link → original."""
        own = self.home / self.agent.folder
        own.mkdir()
        for name in self.agent.login_files:
            yield from _link_file(own / name, self.agent.config_folder(self.outer_env) / name)
        if sys.platform == "darwin":
            real = Path(self.outer_env.get("HOME") or Path.home())
            yield from _link_file(self.home / KEYCHAIN_FOLDER, real / KEYCHAIN_FOLDER)

    def write_request(self, request: Json) -> dict[str, str]:
        """Write the request's files; return the values of the flag placeholders."""
        (self.work / "packet.md").write_text(request["prompt"], encoding="utf-8")
        values = {name: str(request[name]) for name in ("model", "effort") if request.get(name)}
        if request.get("system"):
            values["system_file"] = self._write_file("system.md", request["system"])
        if request.get("schema") and not request.get("bare"):
            values["schema"] = json.dumps(request["schema"], ensure_ascii=False, separators=(",", ":"))
            values["schema_file"] = self._write_file("schema.json", values["schema"])
        return values

    def _write_file(self, name: str, text: str) -> str:
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    @property
    def env(self) -> dict[str, str]:
        known = self.outer_env
        own = (
            *ALLOWED_VARIABLES,
            *self.agent.key_variables,
            *NETWORK_VARIABLES,
            *(name.upper() for name in NETWORK_VARIABLES),
        )
        inside = {name: known[name] for name in own if known.get(name)}
        inside |= {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "TERM": "dumb", "NO_COLOR": "1"}
        inside |= {
            DEPTH_VARIABLE: str(council_depth(known) + 1),
            **self.agent.extra_env,
            **(self.agent.extra_env_with_login if self.login_links else {}),
        }
        return inside

    def close(self) -> None:
        """Copy back login files that the agent replaced, then delete the workspace."""
        for here, home in self.login_links.items():
            if here.is_file() and not here.is_symlink():
                _copy_back(here, home)
        shutil.rmtree(self.root, ignore_errors=True)


@contextmanager
def open_workspace(agent: Agent, env: Mapping[str, str]) -> Iterator[Workspace]:
    made = Workspace(Path(tempfile.mkdtemp(prefix="council-")), agent, env)
    try:
        yield made
    finally:
        made.close()


def council_depth(env: Mapping[str, str]) -> int:
    """Return how many councils this one is nested in."""
    value = env.get(DEPTH_VARIABLE, "").strip()
    return int(value) if value.isdigit() else 1 if value else 0


def has_login(agent: Agent, env: Mapping[str, str]) -> bool:
    """Return whether a login file exists. The system keyring is not checked."""
    return any((agent.config_folder(dict(env)) / name).is_file() for name in agent.login_files)


def find_key_variable(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the name of the variable that holds the agent's API key, or ""."""
    return next((name for name in agent.key_variables if env.get(name, "").strip()), "")


def _link_file(here: Path, there: Path) -> Iterator[tuple[Path, Path]]:
    if there.exists():
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(there.absolute())
        yield here, there


def _copy_back(here: Path, home: Path) -> None:
    with suppress(OSError):
        target = home.resolve()
        handle, fresh = tempfile.mkstemp(dir=target.parent)  # mkstemp creates it readable by the owner only
        with os.fdopen(handle, "wb") as file:
            file.write(here.read_bytes())
        Path(fresh).replace(target)
