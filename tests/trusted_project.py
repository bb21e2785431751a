"""The files of the user in a test: trust in a project, as `council trust` stores it, and the user's configuration."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from council.errors import CouncilError
from council.settings import load_settings
from council.settings.workspace_trust import store_trust


def trust_project(folder: Path | None = None, **env: str) -> None:
    """Trust the council.toml of a folder as it is now. A file that is not valid stays untrusted."""
    variables = {**os.environ, **env}
    with contextlib.suppress(CouncilError):
        if request := load_settings(folder or Path.cwd(), variables).untrusted:
            store_trust(request, variables)


def user_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "config.toml"


def write_user_file(text: str) -> None:
    """Write the user's own configuration."""
    user_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    user_file().write_text(text, encoding="utf-8")
