"""Running `council serve` processes of this user, so that `council open` can use one instead of starting another."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from council.settings.config_files import data_folder, write_private

CHECK_TIMEOUT_S = 2.0


@contextmanager
def register_server(url: str, env: Mapping[str, str]) -> Iterator[None]:
    """Keep the address with its token in a file that only the user can read, while the server runs."""
    file = _folder(env) / f"{os.getpid()}.url"
    _folder(env).mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(file, url)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def find_server(env: Mapping[str, str]) -> str | None:
    """Return the address of a server that answers. Remove the files of servers that do not."""
    for file in sorted(_folder(env).glob("*.url")):
        with suppress(OSError):
            url = file.read_text(encoding="utf-8").strip()
            if _answers(url):
                return url
            file.unlink(missing_ok=True)
    return None


def run_url(url: str, run: str) -> str:
    """Return the address of a run in the page."""
    return f"{url}&run={run}"


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    token = parts.fragment.removeprefix("token=")
    try:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CHECK_TIMEOUT_S)
        connection.request("GET", "/api/roots", headers={"Authorization": f"Bearer {token}"})
        answers = connection.getresponse().status == http.HTTPStatus.OK
        connection.close()
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return answers


def _folder(env: Mapping[str, str]) -> Path:
    return data_folder(env) / "servers"
