"""The command-line agents we know: how each is spoken to, what it is allowed, where its login lies.

A flag is passed only if `--help` lists each of its words, so that an older or a newer agent than ours is asked in words
it knows. Without any of the restrictions each agent's own default for unattended use still asks before it acts, and
nobody is there to say yes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Flag = tuple[str, ...]  # its words; {model}, {effort}, {schema}, {schema_file} and {system_file} stand for values


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    keys: tuple[str, ...]  # the variables that may hold its own key
    folder: str  # where it keeps its things, in HOME
    moved: str  # the variable that names another folder
    login: tuple[str, ...]  # the files of that folder that are its login
    outputs: tuple[Flag, ...]  # ways to ask for JSON, the best first
    flags: tuple[Flag, ...]
    log_in: str  # what a person does to be logged in
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict)  # variables it always gets
    with_login: dict[str, str] = field(default_factory=dict)  # and those it gets where its login is there

    def home(self, env: dict[str, str]) -> Path:
        """Where its own folder is for the person at this machine."""
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
        # Its sandbox keeps it from writing, not from reading: without a shell it cannot read what is not in the packet.
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
