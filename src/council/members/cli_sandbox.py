"""Supported command-line agents: their flags, restrictions, variables and login files, and the workspace they run in.

A flag is passed only if `--help` lists each of its words, so older and newer versions work too. Even without the
restricting flags, each agent asks for confirmation before it acts, and in a run no confirmation is given.
docs/members.md says what each agent can still do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from council.errors import Fault
from council.settings.config_files import format_toml
from council.settings.disk_space import explain_full_temp_folder, find_full_temp_folder, is_full_error
from council.settings.private_files import make_private_folder, open_private_file
from council.types import Json, JsonSchema

# Agents

Flag = tuple[str, ...]  # words; {model}, {effort}, {schema} and the files in `write_request` are placeholders

# Replaces the agent's own prompt, which is about files and tools. The rules of the council are in the request.
AGENT_PROMPT = (
    "You answer one written request. Follow the instructions in it. "
    "You have no tools, no files and no network: reply with text only.\n"
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """Another way to the vendor's models, such as Bedrock: a variable selects it, and it has its own login."""

    switch: str
    variables: tuple[str, ...]
    folder: str = ""  # folder below HOME with its login


AWS = (
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
GCLOUD = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_QUOTA_PROJECT")


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    key_variables: tuple[str, ...]  # environment variables that may hold its API key or token
    variables: tuple[str, ...]  # other variables it gets: gateways, models, organisations
    folder: str  # configuration folder below HOME
    folder_variable: str  # environment variable that overrides the folder
    login_files: tuple[str, ...]  # login files in that folder
    output_flags: tuple[Flag, ...]  # flags for JSON output, best first
    flags: tuple[Flag, ...]
    login_hint: str  # instruction for the user to log in
    clouds: tuple[Cloud, ...] = ()
    args_before: tuple[str, ...] = ()
    args_after: tuple[str, ...] = ()
    extra_env: dict[str, str] = field(default_factory=dict)  # environment variables that are always set
    configure: Callable[[Workspace], Mapping[str, str]] | None = None  # writes settings files; returns more variables

    def config_folder(self, env: Mapping[str, str]) -> Path:
        """Return the agent's configuration folder for the current user."""
        moved = env.get(self.folder_variable, "") if self.folder_variable else ""
        return Path(moved) if moved else Path(env.get("HOME") or Path.home()) / self.folder

    def active_clouds(self, env: Mapping[str, str]) -> list[Cloud]:
        return [cloud for cloud in self.clouds if env.get(cloud.switch, "").lower() not in ("", "0", "false")]


CLAUDE = Agent(
    "claude",
    key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    variables=(
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    ),
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
    clouds=(
        Cloud("CLAUDE_CODE_USE_BEDROCK", (*AWS, "ANTHROPIC_BEDROCK_BASE_URL", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"), ".aws"),
        Cloud(
            "CLAUDE_CODE_USE_VERTEX",
            (
                *GCLOUD,
                "CLOUD_ML_REGION",
                "ANTHROPIC_VERTEX_PROJECT_ID",
                "ANTHROPIC_VERTEX_BASE_URL",
                "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            ),
            ".config/gcloud",
        ),
        Cloud(
            "CLAUDE_CODE_USE_FOUNDRY",
            (
                "ANTHROPIC_FOUNDRY_RESOURCE",
                "ANTHROPIC_FOUNDRY_BASE_URL",
                "ANTHROPIC_FOUNDRY_API_KEY",
                "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
            ),
            ".azure",
        ),
    ),
    # Its own retries are off: it would repeat a refused key ten times, and Council retries by its fault table.
    extra_env={
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    },
)


# Codex repeats a failed request nine times, and Council retries by its fault table.
CODEX_RETRIES = {"request_max_retries": 0, "stream_max_retries": 0}
# OpenAI as codex defines it, under another name: it refuses settings for its own providers.
CODEX_OPENAI: Json = {
    "name": "OpenAI",
    "wire_api": "responses",
    "requires_openai_auth": True,
    "env_http_headers": {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"},
}
CODEX_CLOUDS = ("amazon-bedrock", "gcp")  # providers of codex with a table in which it refuses these settings


class CodexSettings(TypedDict, total=False):
    """The settings of codex that say where its model is."""

    openai_base_url: str
    model_provider: str
    model_providers: dict[str, Json]  # the user's tables


def _write_codex_config(workspace: Workspace) -> dict[str, str]:
    """Copy the model provider of the user's configuration, and nothing else; return the variables that it names."""
    env = workspace.outer_env
    settings = read_codex_provider(env)
    passed = {name: env[name] for name in _provider_variables(settings) if env.get(name)}
    if not workspace.login_links and not any(env.get(name) for name in ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")):
        passed |= {"CODEX_API_KEY": env["OPENAI_API_KEY"]} if env.get("OPENAI_API_KEY") else {}  # codex exec ignores it
    has_key = bool(env.get("CODEX_API_KEY") or passed.get("CODEX_API_KEY"))
    settings = _limit_codex_retries(settings, has_key)
    if settings:
        text = "".join(f"{key} = {format_toml(value)}\n" for key, value in settings.items())
        workspace.write_home_file("config.toml", text)
    return passed


def _limit_codex_retries(settings: CodexSettings, has_key: bool) -> CodexSettings:
    """Turn codex's own retries off, except with a ChatGPT login: only its own provider sends all that OpenAI needs."""
    name = settings.get("model_provider", "openai")
    table = settings.get("model_providers", {}).get(name)
    if name == "openai" and has_key:
        address = {"base_url": settings["openai_base_url"]} if "openai_base_url" in settings else {}
        name, table = "council", CODEX_OPENAI | address
    if not isinstance(table, dict) or name in CODEX_CLOUDS:
        return settings
    return {"model_provider": name, "model_providers": {name: table | CODEX_RETRIES}}


def read_codex_provider(env: Mapping[str, str]) -> CodexSettings:
    """Return the settings of codex's configuration file that say where its model is."""
    try:
        config = tomllib.loads((CODEX.config_folder(env) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    texts = {name: of for name in ("openai_base_url", "model_provider") if isinstance(of := config.get(name), str)}
    settings = cast(CodexSettings, texts)
    name, providers = texts.get("model_provider", ""), config.get("model_providers")
    if isinstance(providers, dict) and isinstance(provider := providers.get(name), dict):
        settings["model_providers"] = {name: provider}
    return settings


def _provider_variables(settings: CodexSettings) -> Iterator[str]:
    for provider in settings.get("model_providers", {}).values():
        headers = provider.get("env_http_headers")
        yield from filter(None, [provider.get("env_key"), *(headers.values() if isinstance(headers, dict) else ())])
    if settings.get("model_provider") == "amazon-bedrock":
        yield from AWS


CODEX = Agent(
    "codex",
    key_variables=("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"),
    variables=("OPENAI_ORGANIZATION", "OPENAI_PROJECT", "CODEX_CA_CERTIFICATE"),
    folder=".codex",
    folder_variable="CODEX_HOME",
    login_files=("auth.json",),
    output_flags=(("--json",),),
    flags=(
        ("--sandbox", "read-only"),
        ("--skip-git-repo-check",),
        ("--ephemeral",),
        ("--ignore-rules",),
        ("--color", "never"),
        # The sandbox blocks writes but not reads; without a shell and images it cannot read files outside the packet.
        ("--config", "features.shell_tool=false"),
        ("--config", "features.unified_exec=false"),
        ("--config", "features.view_image=false"),
        ("--config", "features.sleep_tool=false"),
        ("--config", "agents.enabled=false"),
        ("--config", 'web_search="disabled"'),
        # These features contact other hosts, or wait for the network without an end.
        ("--config", "features.plugins=false"),
        ("--config", "features.apps=false"),
        ("--config", "features.goals=false"),
        ("--config", "features.unbounded_connection_retries=false"),
        ("--config", "analytics.enabled=false"),
        ("--config", "skills.include_instructions=false"),
        ("--config", "project_doc_max_bytes=0"),
        ("--config", 'model_instructions_file="{prompt_file}"'),
        ("--config", "model_reasoning_effort={effort}"),
        ("--model", "{model}"),
        ("--output-schema", "{schema_file}"),
    ),
    login_hint="run `codex login`",
    args_before=("exec",),
    args_after=("-",),
    configure=_write_codex_config,
)


class GeminiSettings(TypedDict):
    tools: dict[str, list[str]]
    model: dict[str, str]
    general: dict[str, int | bool]
    privacy: dict[str, bool]
    telemetry: dict[str, bool]
    security: NotRequired[dict[str, dict[str, str]]]


# "none" is no tool, so the agent has none. One attempt: in its plan mode it repeated a request without end.
GEMINI_SETTINGS: GeminiSettings = {
    "tools": {"core": ["none"]},
    "model": {"name": "pro"},  # `auto` lets a router choose, and may answer with a smaller model
    "general": {"maxAttempts": 1, "enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


def _write_gemini_settings(workspace: Workspace) -> dict[str, str]:
    """Write the settings, with the kind of login; return the variables of that login."""
    env = workspace.outer_env
    key = env.get("GEMINI_API_KEY", "").strip() or env.get("GOOGLE_API_KEY", "").strip()
    more: dict[str, str] = {"GEMINI_SYSTEM_MD": str(workspace.write_file("agent.md", AGENT_PROMPT))}
    if GEMINI.active_clouds(env):
        kind = "vertex-ai"
    elif key or not workspace.login_links:
        kind = "gemini-api-key"
        more |= {"GEMINI_API_KEY": key} if key else {}
    else:
        kind = "oauth-personal"
        more["GOOGLE_GENAI_USE_GCA"] = "true"
    settings: GeminiSettings = {**GEMINI_SETTINGS, "security": {"auth": {"selectedType": kind}}}
    workspace.write_home_file("settings.json", json.dumps(settings))
    return more


GEMINI = Agent(
    "gemini",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    variables=(
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_API_VERSION",
        "GEMINI_API_KEY_AUTH_MECHANISM",
        "GEMINI_CLI_CUSTOM_HEADERS",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
    ),
    folder=".gemini",
    folder_variable="",
    login_files=("oauth_creds.json", "google_accounts.json", "gemini-credentials.json"),
    output_flags=(("--output-format", "stream-json"), ("--output-format", "json")),
    flags=(("--approval-mode", "default"), ("--skip-trust",), ("--model", "{model}")),
    login_hint="set GEMINI_API_KEY, or log in with `gemini` (company accounts only)",
    clouds=(Cloud("GOOGLE_GENAI_USE_VERTEXAI", (*GCLOUD, "GOOGLE_VERTEX_BASE_URL"), ".config/gcloud"),),
    extra_env={"GEMINI_CLI_NO_RELAUNCH": "true"},  # else it starts a second process, only for more memory
    configure=_write_gemini_settings,
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
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|HEADERS|CREDENTIALS")
MIN_SECRET_CHARS = 8


class AgentRequest(TypedDict):
    model: str
    system: str
    prompt: str
    schema: JsonSchema | None
    effort: str | None
    bare: bool


class Workspace:
    """Workspace of one call, deleted afterwards."""

    def __init__(self, root: Path, agent: Agent, env: Mapping[str, str], pass_env: Iterable[str] = ()) -> None:
        self.root, self.agent, self.outer_env, self.pass_env = root, agent, dict(env), tuple(pass_env)
        self.work, self.home = root / "work", root / "home"
        for folder in (self.work, self.home, root / "tmp"):
            make_private_folder(folder)
        self.login_links: dict[Path, Path] = {}  # link → original
        config, real_config = self.home / agent.folder, agent.config_folder(env)
        make_private_folder(config)
        for name in agent.login_files:
            if _link_file(config / name, real_config / name):
                self.login_links[config / name] = real_config / name
        folders = [cloud.folder for cloud in agent.active_clouds(env) if cloud.folder]  # with logins, below HOME
        for name in [*folders, *([KEYCHAIN_FOLDER] if sys.platform == "darwin" else [])]:
            _link_file(self.home / name, Path(env.get("HOME") or Path.home()) / name)
        self.more_env = agent.configure(self) if agent.configure else {}

    def write_request(self, request: AgentRequest) -> dict[str, str]:
        """Write the request's files; return the values of the flag placeholders."""
        _write_text(self.work / "packet.md", request["prompt"])
        values = {name: value for name in ("model", "effort") if (value := str(request.get(name) or ""))}
        values["system_file"] = str(self.write_file("system.md", request.get("system") or AGENT_PROMPT))
        values["prompt_file"] = str(self.write_file("agent.md", AGENT_PROMPT))
        if request.get("schema") and not request.get("bare"):
            values["schema"] = json.dumps(request["schema"], ensure_ascii=False, separators=(",", ":"))
            values["schema_file"] = str(self.write_file("schema.json", values["schema"]))
        return values

    def write_file(self, name: str, text: str) -> Path:
        path = self.root / name
        _write_text(path, text)
        return path

    def write_home_file(self, name: str, text: str) -> None:
        _write_text(self.home / self.agent.folder / name, text)

    @property
    def env(self) -> dict[str, str]:
        outer = self.outer_env
        allowed = (
            *ALLOWED_VARIABLES,
            *self.agent.key_variables,
            *self.agent.variables,
            *(name for cloud in self.agent.active_clouds(outer) for name in (cloud.switch, *cloud.variables)),
            *NETWORK_VARIABLES,
            *(name.upper() for name in NETWORK_VARIABLES),
            *self.pass_env,
        )
        inside = {name: outer[name] for name in allowed if outer.get(name)}
        inside |= {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "TERM": "dumb", "NO_COLOR": "1"}
        return inside | {DEPTH_VARIABLE: str(council_depth(outer) + 1), **self.agent.extra_env, **self.more_env}

    def close(self) -> None:
        """Copy back login files that the agent replaced, then delete the workspace."""
        for here, home in self.login_links.items():
            if here.is_file() and not here.is_symlink():
                _copy_back(here, home)
        shutil.rmtree(self.root, ignore_errors=True)


@contextmanager
def open_workspace(agent: Agent, env: Mapping[str, str], pass_env: Iterable[str] = ()) -> Iterator[Workspace]:
    try:
        workspace = Workspace(Path(tempfile.mkdtemp(prefix="council-")), agent, env, pass_env)
    except OSError as error:
        why = f"its temporary folder cannot be made: {error.strerror or error}"
        if is_full_error(error) and (full := find_full_temp_folder()):
            why = explain_full_temp_folder(full)
        raise Fault("cli:start", why) from None
    try:
        yield workspace
    finally:
        workspace.close()


def find_secrets(env: Mapping[str, str], pass_env: Iterable[str] = ()) -> list[str]:
    """Return the values in an environment that must not be shown: by their names, and all that the user passes on."""
    names = [name for name in env if SECRET_NAME.search(name)]
    return [value for name in (*names, *pass_env) if len(value := env.get(name, "")) >= MIN_SECRET_CHARS]


def council_depth(env: Mapping[str, str]) -> int:
    """Return how many councils this one is nested in."""
    value = env.get(DEPTH_VARIABLE, "").strip()
    return int(value) if value.isdigit() else 1 if value else 0


def find_key_variable(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the name of the variable that holds the agent's API key or selects its cloud, or ""."""
    clouds = [cloud.switch for cloud in agent.active_clouds(env)]
    provider = [*_provider_variables(read_codex_provider(env))] if agent is CODEX else []
    return next((name for name in (*clouds, *provider, *agent.key_variables) if env.get(name, "").strip()), "")


def _write_text(path: Path, text: str) -> None:
    with open_private_file(path, encoding="utf-8") as file:
        file.write(text)


def _link_file(here: Path, there: Path) -> bool:
    """Link a file or folder if it exists; return whether it does."""
    if there.exists():
        make_private_folder(here.parent)
        here.symlink_to(there.absolute())
    return there.exists()


def _copy_back(here: Path, home: Path) -> None:
    with suppress(OSError):
        target = home.resolve()
        handle, fresh = tempfile.mkstemp(dir=target.parent)  # mkstemp creates it readable by the owner only
        with os.fdopen(handle, "wb") as file:
            file.write(here.read_bytes())
        Path(fresh).replace(target)
