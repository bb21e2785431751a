"""Files of the page: read once, compressed once, and all modules as one script."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from council.render.html import PAGE_DIR, bundle

SCRIPT, SOURCE_MAP = "app.js", "app.js.map"  # made from main.js and what it imports
FOLDER = "/page/"


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    compressed: bytes
    etag: str
    media_type: str


def respond(name: str, request: Request) -> Response:
    """Return a file of the page, or 304 if the browser has it."""
    if name not in list_page_files():
        raise HTTPException(404)
    file = load_page_file(name)
    headers = {"etag": file.etag, "vary": "accept-encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.body, headers=headers, media_type=file.media_type)
    return Response(file.compressed, headers=headers | {"content-encoding": "gzip"}, media_type=file.media_type)


@cache
def load_page_file(name: str) -> PageFile:
    if name == SCRIPT:
        body = f"{bundle('main.js').code}//# sourceMappingURL={SOURCE_MAP}\n".encode()
    elif name == SOURCE_MAP:
        body = json.dumps(bundle("main.js").source_map(FOLDER), separators=(",", ":")).encode()
    else:
        body = (PAGE_DIR / name).read_bytes()
    known = {"js": "text/javascript", "mjs": "text/javascript", "map": "application/json"}
    media_type = known.get(name.rpartition(".")[2]) or guess_type(name)[0] or "text/plain"
    return PageFile(body, gzip.compress(body, mtime=0), f'W/"{sha256(body).hexdigest()[:32]}"', media_type)


@cache
def list_page_files() -> frozenset[str]:
    folder = Path(str(PAGE_DIR))
    return frozenset(
        (SCRIPT, SOURCE_MAP, *(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()))
    )
