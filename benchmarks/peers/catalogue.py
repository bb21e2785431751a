"""The contestants, and their virtual environments.

Other libraries are installed once, each in its own environment in a cache folder, so that their imports and memory are
theirs alone. Nothing of them is part of this repository.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

HERE = Path(__file__).parent.parent
VENVS = Path(os.environ.get("COUNCIL_BENCHMARK_VENVS") or platformdirs.user_cache_path("council-benchmarks") / "venvs")
INSTALL_TIMEOUT_S = 600
PYTHONPATH = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
# No keys, no proxies and no telemetry.
QUIET = {
    "OPENAI_API_KEY": "x",
    "NO_PROXY": "127.0.0.1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A column of the table. Without packages it runs in the environment of Council."""

    name: str
    title: str
    module: str
    packages: tuple[str, ...] = ()
    streams: bool = True
    ours: bool = False


CONTESTANTS = (
    Contestant("floor", "floor", "floor", streams=False),
    Contestant("aiohttp", "aiohttp", "plain_aiohttp"),
    Contestant("openai", "OpenAI SDK", "openai_sdk", ("openai",)),
    Contestant("autogen", "AutoGen", "autogen_agents", ("autogen-agentchat", "autogen-ext[openai]")),
    Contestant("langgraph", "LangGraph", "langgraph_graph", ("langgraph", "langchain-openai")),
    Contestant("pydantic", "pydantic-ai", "pydantic_ai_agents", ("pydantic-ai-slim[openai]",)),
    Contestant("convene", "ours, convene()", "ours", ours=True),
    Contestant("shared", "ours, shared service", "ours_shared", ours=True),
)


class NotInstalled(Exception):
    """The reason why a contestant cannot run."""


class MeasurementFailed(Exception):
    """The reason why a worker has no figures."""


def find_python(contestant: Contestant, venvs: Path) -> Path:
    """Return the interpreter of a contestant. Install its packages first if they are missing."""
    if not contestant.packages:
        return Path(sys.executable)
    folder = venvs / contestant.name
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _run([sys.executable, "-m", "venv", str(folder)])
        if _find_version(contestant, python) is None:
            print(f"installing {', '.join(contestant.packages)} in {folder}", file=sys.stderr)
            _run([str(python), "-m", "pip", "install", "--quiet", *contestant.packages])
            _run([str(python), "-m", "compileall", "-q", str(folder / "lib")], check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotInstalled(_last_line(error)) from error
    return python


def find_version(contestant: Contestant, python: Path) -> str:
    """Return the version of the first package, of Council, or of Python for the floor."""
    if contestant.name == "floor":
        return f"Python {platform.python_version()}"
    if contestant.ours:
        import council

        return council.__version__
    return _find_version(contestant, python) or ""


def _find_version(contestant: Contestant, python: Path) -> str | None:
    name = (contestant.packages or ("aiohttp",))[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def run_worker(
    contestant: Contestant, python: Path, measure: str, base_url: str, limit: float = 120.0, **options: Any
) -> dict[str, Any]:
    """Measure a contestant in a new process and return the figures. Raise MeasurementFailed if there are none."""
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value not in (None, False)]
    arguments = [argument.removesuffix("=True") for argument in arguments]
    command = [str(python), "-m", "peers.worker", contestant.module, measure, base_url, f"--limit={limit}", *arguments]
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | QUIET
    env["PYTHONPATH"] = str(HERE) if contestant.packages else PYTHONPATH
    try:
        done = subprocess.run(
            command, env=env, cwd=HERE, capture_output=True, text=True, check=True, timeout=limit + 120
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasurementFailed(_last_line(error)) from error
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _run(command: list[str], check: bool = True) -> None:
    subprocess.run(command, capture_output=True, text=True, check=check, timeout=INSTALL_TIMEOUT_S)


def _last_line(error: Exception) -> str:
    """Return the last line of the error output of a process, or the error itself."""
    output = getattr(error, "stderr", None) or ""
    lines = (output.decode(errors="replace") if isinstance(output, bytes) else output).strip().splitlines()
    return (lines[-1] if lines else str(error))[:200]
