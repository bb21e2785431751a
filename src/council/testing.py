"""Isolation for tests of members, protocols and programs that use Council.

@pytest.fixture(autouse=True)
def isolated(tmp_path):
    with council.testing.isolate(tmp_path):
        yield
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import council
from council.settings.private_files import make_private_folder, open_private_file

# Without a member of its own, a seat gets generated answers.
SCRIPTED = """\
model_lists = false
vendors = ["scripted"]
[models]
default = "scripted:"
strong = "scripted:"
fast = "scripted:"
"""
KEPT = ("COUNCIL_CACHE",)  # the weights of the embedded model
# Variables with settings, keys and addresses of vendors, and the logins of command-line agents.
HIDDEN = re.compile(
    r"COUNCIL_.*|.*_API_KEY|.*_BASE_URL|.*_AUTH_TOKEN|.*_OAUTH_TOKEN|CODEX_.*|CLAUDE_.*|GEMINI_.*|AWS_BEARER_TOKEN_BEDROCK|OLLAMA_HOST"
)


def hidden_variables(variables: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that `isolate` removes."""
    return [name for name in variables if HIDDEN.fullmatch(name) and name not in KEPT]


@contextmanager
def isolate(folder: Path, settings: str = SCRIPTED) -> Iterator[None]:
    """Work in a folder with its own runs and settings, without the configuration, keys and logins of the user.

    `settings` is the text of a configuration file. By default, seats without a member get generated answers, so that no
    vendor is asked. The environment and the current folder belong to the process: do not isolate two tests at the same
    time.
    """
    before, previous_folder = dict(os.environ), Path.cwd()
    private = folder.resolve() / ".council-test"
    make_private_folder(private)
    with open_private_file(private / "config.toml", encoding="utf-8") as file:
        file.write(settings)
    for name in hidden_variables(os.environ):
        del os.environ[name]
    os.environ |= {
        "COUNCIL_CONFIG": str(private / "config.toml"),
        "COUNCIL_DATA": str(private / "data"),
        "COUNCIL_MODEL_LISTS": "off",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "XDG_CONFIG_HOME": str(private / "config"),
        "XDG_DATA_HOME": str(private / "share"),
        "CLAUDE_CONFIG_DIR": str(private / "claude"),
        "CODEX_HOME": str(private / "codex"),
    }
    os.chdir(folder)
    try:
        yield
    finally:
        council.close()
        os.chdir(previous_folder)
        os.environ.clear()
        os.environ.update(before)
