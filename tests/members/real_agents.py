"""The real command-line agents from npm, in a cache folder: `python tests/members/real_agents.py` installs them.

The versions have bounds, because each release may change flags and output. Tests skip an agent that is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {"@anthropic-ai/claude-code": "~2.1", "@openai/codex": "~0.166", "@google/gemini-cli": "~0.61"}
NAMES = ("claude", "codex", "gemini")
MIN_NODE = 20
INSTALL_TIMEOUT_S = 240
HINT = "`python tests/members/real_agents.py` installs the agents from npm"


def agents_folder() -> Path:
    """Return the folder beside the weights of the embedded model. The script runs before packages are installed."""
    default = Path.home() / "Library/Caches" if sys.platform == "darwin" else Path.home() / ".cache"
    cache = os.environ.get("COUNCIL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or default) / "council"
    return Path(cache) / "test-agents"


def find_agent(name: str) -> Path | None:
    path = agents_folder() / "node_modules" / ".bin" / name
    return path if path.exists() and shutil.which("node") else None


def install_agents() -> str:
    """Install the agents unless they are there. Return the reason if it is not possible, else ""."""
    folder = agents_folder()
    wanted = {"private": True, "dependencies": PACKAGES}
    mark = folder / "installed.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted and all(map(find_agent, NAMES)):
        return ""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        return "npm is not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    if int(version.partition(".")[0] or 0) < MIN_NODE:
        return f"node {version} is too old: the agents need {MIN_NODE}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(wanted))
    command = [npm, "install", "--no-fund", "--no-audit", "--loglevel", "error"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"npm took longer than {INSTALL_TIMEOUT_S} s"
    if done.returncode:
        return f"npm failed: {done.stderr.strip()[-300:]}"
    mark.write_text(json.dumps(wanted))
    return ""


if __name__ == "__main__":
    reason = install_agents()
    print(f"the agents are not installed: {reason}" if reason else f"the agents are in {agents_folder()}")
    sys.exit(bool(reason))
