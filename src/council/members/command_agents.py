"""Supported command-line agents: their flags, restrictions and login files.

A flag is passed only if `--help` lists each of its words, so older and newer versions work too. Even without the
restricting flags, each agent asks for confirmation before it acts, and in a run no confirmation is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Flag = tuple[str, ...]  # words; {model}, {effort}, {schema}, {schema_file} and {system_file} are placeholders


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    keys: tuple[str, ...]  # environment variables that may hold its API key
    folder: str  # configuration folder below HOME
    moved: str  # environment variable that overrides the folder
    login: tuple[str, ...]  # login files in that folder
    outputs: tuple[Flag, ...]  # flags for JSON output, best first
    flags: tuple[Flag, ...]
    log_in: str  # instruction for the user to log in
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict)  # environment variables that are always set
    with_login: dict[str, str] = field(default_factory=dict)  # environment variables set if a login exists

    def home(self, env: dict[str, str]) -> Path:
        """Return the agent's configuration folder for the current user."""
        moved = env.get(self.moved, "") if self.moved else ""
        return Path(moved) if moved else Path(env.get("HOME") or Path.home()) / self.folder


CLAUDE = Agent(
    "claude",
    keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    folder=".claude",
    moved="CLAUDE_CONFIG_DIR",
    login=(".credentials.json",),
    outputs=(
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
    log_in="run `claude` and log in",
    fixed={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)
CODEX = Agent(
    "codex",
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    folder=".codex",
    moved="CODEX_HOME",
    login=("auth.json",),
    outputs=(("--json",),),
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
    log_in="run `codex login`",
    begin=("exec",),
    end=("-",),
)
GEMINI = Agent(
    "gemini",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    folder=".gemini",
    moved="",
    login=("oauth_creds.json", "google_accounts.json", "gemini-credentials.json"),
    outputs=(("--output-format", "stream-json"), ("--output-format", "json")),
    flags=(
        ("--approval-mode", "plan"),
        ("--skip-trust",),
        ("--model", "{model}"),
    ),
    log_in="run `gemini` and log in",
    with_login={"GOOGLE_GENAI_USE_GCA": "true"},
)
AGENTS = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI)}
