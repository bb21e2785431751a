"""Running `council serve` processes of this user, so that `council open` can use one, and the token that they share."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
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
            if _send_request(url, "GET", "/api/roots")[0] == http.HTTPStatus.OK:
                return url
            file.unlink(missing_ok=True)
    return None


def request_code(url: str) -> str:
    """Return a one-time code of a running server, or "" if it gives none."""
    status, body = _send_request(url, "POST", "/api/codes", "{}")
    try:
        return str(json.loads(body)["code"]) if status == http.HTTPStatus.CREATED else ""
    except (ValueError, KeyError):
        return ""


def code_url(url: str, code: str) -> str:
    """Return the address of a page with a one-time code instead of the token."""
    return f"{url.partition('#')[0]}#code={code}"


def run_url(url: str, run: str) -> str:
    """Return the address of a run in the page."""
    return f"{url}&run={run}"


def _send_request(url: str, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    """Return the status and the body of an answer, or 0 if the server does not answer."""
    try:
        parts = urlsplit(url)
        head = {"Authorization": f"Bearer {parts.fragment.removeprefix('token=')}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CHECK_TIMEOUT_S)) as server:
            server.request(method, path, body, head)
            response = server.getresponse()
            return response.status, response.read()
    except (OSError, http.client.HTTPException, ValueError):
        return 0, b""


def _folder(env: Mapping[str, str]) -> Path:
    return data_folder(env) / "servers"
