"""Running `council serve` processes of this user, so that `council open` can use one, and the token that they share."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from council.errors import ConfigError
from council.settings.config_files import data_folder, write_private

CHECK_TIMEOUT_S = 2.0
TOKEN_BYTES = 32
TOKEN = re.compile(r"[\w-]{43}", re.ASCII)


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def load_token(env: Mapping[str, str], *, renew: bool = False) -> str:
    """Return the token of this user's servers, or a new one: pages stay signed in when a server starts again."""
    file = _folder(env) / "token"
    if not renew and (token := _read_token(file)):
        return token
    token = new_token()
    with suppress(ConfigError):  # without the file, the token ends with the server
        write_private(file, token)
    return token


def _read_token(file: Path) -> str:
    """Return the stored token, or "" if there is none or other users could have read or written it."""
    try:
        found = file.lstat()
        is_private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077 and found.st_uid == os.getuid()
        text = file.read_text(encoding="ascii") if is_private else ""
    except (OSError, UnicodeDecodeError):
        return ""
    return text if TOKEN.fullmatch(text) else ""


@contextmanager
def register_server(url: str, env: Mapping[str, str]) -> Iterator[None]:
    """Keep the address with its token in a file that only the user can read, while the server runs."""
    file = _folder(env) / f"{os.getpid()}.url"
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


def request_code(url: str) -> str:
    """Return a one-time code of a running server, or "" if it gives none."""
    parts = urlsplit(url)
    head = {"Authorization": f"Bearer {parts.fragment.removeprefix('token=')}", "Content-Type": "application/json"}
    try:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CHECK_TIMEOUT_S)
        connection.request("POST", "/api/codes", "{}", head)
        response = connection.getresponse()
        code = json.loads(response.read())["code"] if response.status == http.HTTPStatus.CREATED else ""
        connection.close()
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return ""
    return str(code)


def code_url(url: str, code: str) -> str:
    """Return the address of a page with a one-time code instead of the token."""
    return f"{url.partition('#')[0]}#code={code}"


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
