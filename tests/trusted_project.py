"""Trust the configuration that a test writes into a project, as `council trust` does."""

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
