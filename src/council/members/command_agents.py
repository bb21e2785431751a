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
