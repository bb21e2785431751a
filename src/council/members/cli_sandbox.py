"""Supported command-line agents: their flags, restrictions and login files, and the workspace they run in.

A flag is passed only if `--help` lists each of its words, so older and newer versions work too. Even without the
restricting flags, each agent asks for confirmation before it acts, and in a run no confirmation is given.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from council.types import Json

# Agents

Flag = tuple[str, ...]  # words; {model}, {effort}, {schema}, {schema_file} and {system_file} are placeholders


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    key_variables: tuple[str, ...]  # environment variables that may hold its API key
    folder: str  # configuration folder below HOME
    folder_variable: str  # environment variable that overrides the folder
    login_files: tuple[str, ...]  # login files in that folder
    output_flags: tuple[Flag, ...]  # flags for JSON output, best first
    flags: tuple[Flag, ...]
    login_hint: str  # instruction for the user to log in
    args_before: tuple[str, ...] = ()
    args_after: tuple[str, ...] = ()
    extra_env: dict[str, str] = field(default_factory=dict)  # environment variables that are always set
    extra_env_with_login: dict[str, str] = field(default_factory=dict)  # environment variables set if a login exists

    def config_folder(self, env: dict[str, str]) -> Path:
        """Return the agent's configuration folder for the current user."""
        moved = env.get(self.folder_variable, "") if self.folder_variable else ""
        return Path(moved) if moved else Path(env.get("HOME") or Path.home()) / self.folder


CLAUDE = Agent(
    "claude",
    key_variables=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    folder=".claude",
    folder_variable="CLAUDE_CONFIG_DIR",
    login_files=(".credentials.json",),
    output_flags=(
        ("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        ("--output-format", "json"),
    ),
    flags=(
        ("--print",),
        ("--tools", ""),
        ("--strict-mcp-config",),
        ("--setting-sources", ""),
        ("--disable-slash-commands",),
        ("--no-session-persistence",),
        ("--model", "{model}"),
        ("--effort", "{effort}"),
        ("--system-prompt-file", "{system_file}"),
        ("--json-schema", "{schema}"),
    ),
    login_hint="run `claude` and log in",
    extra_env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)
CODEX = Agent(
    "codex",
    key_variables=("CODEX_API_KEY", "OPENAI_API_KEY"),
    folder=".codex",
    folder_variable="CODEX_HOME",
    login_files=("auth.json",),
    output_flags=(("--json",),),
    flags=(
        ("--sandbox", "read-only"),
        ("--skip-git-repo-check",),
        ("--ephemeral",),
        ("--ignore-user-config",),
        ("--ignore-rules",),
        ("--color", "never"),
        # The sandbox blocks writes but not reads; without a shell it cannot read files outside the packet.
        ("--config", "features.shell_tool=false"),
        ("--config", "features.unified_exec=false"),
        ("--config", 'web_search="disabled"'),
        ("--config", "project_doc_max_bytes=0"),
        ("--config", "model_reasoning_effort={effort}"),
        ("--model", "{model}"),
        ("--output-schema", "{schema_file}"),
    ),
    login_hint="run `codex login`",
    args_before=("exec",),
    args_after=("-",),
)
GEMINI = Agent(
    "gemini",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    folder=".gemini",
    folder_variable="",
    login_files=("oauth_creds.json", "google_accounts.json", "gemini-credentials.json"),
    output_flags=(("--output-format", "stream-json"), ("--output-format", "json")),
    flags=(
        ("--approval-mode", "plan"),
        ("--skip-trust",),
        ("--model", "{model}"),
    ),
    login_hint="run `gemini` and log in",
    extra_env_with_login={"GOOGLE_GENAI_USE_GCA": "true"},
)
AGENTS = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI)}


# Workspace

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
        folder = self.home / self.agent.folder
        folder.mkdir()
        for name in self.agent.login_files:
            yield from _link_file(folder / name, self.agent.config_folder(self.outer_env) / name)
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
        outer = self.outer_env
        allowed = (
            *ALLOWED_VARIABLES,
            *self.agent.key_variables,
            *NETWORK_VARIABLES,
            *(name.upper() for name in NETWORK_VARIABLES),
        )
        inside = {name: outer[name] for name in allowed if outer.get(name)}
        inside |= {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "TERM": "dumb", "NO_COLOR": "1"}
        inside |= {
            DEPTH_VARIABLE: str(council_depth(outer) + 1),
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
    workspace = Workspace(Path(tempfile.mkdtemp(prefix="council-")), agent, env)
    try:
        yield workspace
    finally:
        workspace.close()


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
