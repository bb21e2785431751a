"""Clients of /v1, each in an environment in the cache folder: `python tests/doors/chat_clients.py` installs them.

Together they would force each other to old versions. Tests skip a client that cannot be installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "openai": ["openai>=3.49,<4"],
    "langchain": ["langchain-openai>=1.7,<2"],
    "litellm": ["litellm[proxy]>=1.106,<2"],
    "aider": ["aider-chat>=0.86,<1"],
    "llm": ["llm>=0.36,<1", "-e", str(ROOT)],
}
NODE_PACKAGES = {"ai-sdk": ["ai@^6", "@ai-sdk/openai@^3", "@ai-sdk/openai-compatible@^2", "zod@^4"]}
INSTALL_TIMEOUT_S = 600


def clients_folder() -> Path:
    """Return the folder beside the weights of the embedded model."""
    default = Path.home() / "Library/Caches" if sys.platform == "darwin" else Path.home() / ".cache"
    cache = os.environ.get("COUNCIL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or default) / "council"
    return Path(cache) / "test-clients"


def program(client: str, name: str) -> Path:
    return clients_folder() / client / "bin" / name


def install_client(client: str) -> str:
    """Install a client unless it is there. Return the reason if it is not possible, else ""."""
    if client in NODE_PACKAGES:
        return _install_with_npm(client)
    folder, wanted = clients_folder() / client, PACKAGES[client]
    mark = folder / "installed.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"pip took longer than {INSTALL_TIMEOUT_S} s"
    if done.returncode:
        return f"pip failed: {done.stderr.strip()[-300:]}"
    mark.write_text(json.dumps(wanted))
    return ""


def _install_with_npm(client: str) -> str:
    folder, wanted = clients_folder() / client, NODE_PACKAGES[client]
    mark = folder / "installed.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is missing"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    command = [npm, "install", "--no-audit", "--no-fund", *wanted]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"npm took longer than {INSTALL_TIMEOUT_S} s"
    if done.returncode:
        return f"npm failed: {done.stderr.strip()[-300:]}"
    mark.write_text(json.dumps(wanted))
    return ""


if __name__ == "__main__":
    for name in (*PACKAGES, *NODE_PACKAGES):
        reason = install_client(name)
        print(f"{name} is not installed: {reason}" if reason else f"{name} is in {clients_folder() / name}")
