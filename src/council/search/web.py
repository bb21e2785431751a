"""HTTP client of search providers: returns hits or raises Trouble. aiohttp is imported on first use."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from council.foreign import plain, visible, without
from council.proxies import proxy_for
from council.rules.queries import cut_at_word
from council.search.hits import Hit, Trouble

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

LARGEST = 2 * 1024 * 1024  # bytes of an answer
LONGEST_TEXT = 10_000  # characters of a title or snippet that are read
LONGEST_URL = 1_000
PAUSE = 1.1  # seconds before a retry after a rate limit: free plans allow one query per second
LONGEST_PAUSE = 5.0
USED_UP = (402, 432, 433)  # quota exceeded
BUSY = (408, 429)
TAG = re.compile(
    r"<!--[^<>]*-->|<(?!/?script\b)/?[a-zA-Z][^<>]*>", re.I
)  # scripts are kept so that the scan marks them
INLINE = re.compile(r"</?(?:a|b|i|u|em|strong|span|mark|code|small|su[bp])\b", re.I)  # tags that do not separate words
ODD_IN_URL = re.compile(r"[\s<>\"\\\x7f-\xa0]")


class Site:
    """HTTP client of one provider."""

    def __init__(
        self, name: str, address: str, headers: Mapping[str, str], *,
        refused: str, secret: str = "", locked: tuple[int, ...] = (401, 403),
    ) -> None:  # fmt: skip
        self.name = name
        self.address = address.rstrip("/")
        self.headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self.secret = secret
        self.refused = refused  # hint for the user after a status in `locked`
        self.locked = locked
        self._session: ClientSession | None = None

    async def ask(self, method: str, path: str, **sent: Any) -> Any:
        """Send a request and return the JSON response; raise only Trouble."""
        async with self._troubles(), self._request(method, self.address + path, sent) as response:
            if not 200 <= response.status < 300:
                raise self._refusal(response)
            return self._read(await self._body(response), response.content_type)

    def hits(self, found: Any, snippet: str) -> list[Hit]:
        """Return the usable results; `snippet` is the provider's field name for the text."""
        if not isinstance(found, list):
            raise Trouble(f"{self.name} returned an unexpected response")
        rows = [row for row in found if isinstance(row, dict)]
        made = [
            Hit(self._text(row.get("title")), self._url(row.get("url")), self._text(row.get(snippet))) for row in rows
        ]
        return [hit for hit in made if hit.url]

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def _request(self, method: str, url: str, sent: Mapping[str, Any]) -> Any:
        import aiohttp

        if self._session is None:  # the caller sets the timeout
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), headers=self.headers)
            self._session._retry_connection = False  # the caller retries
        return self._session.request(method, url, proxy=proxy_for(url), allow_redirects=False, **sent)

    @asynccontextmanager
    async def _troubles(self) -> AsyncIterator[None]:
        import aiohttp

        try:
            yield
        except aiohttp.ClientSSLError:
            raise Trouble(f"{self.name} has an invalid TLS certificate") from None
        except aiohttp.ClientConnectorError:
            raise Trouble(f"{self.name} cannot be reached at {urlsplit(self.address).netloc}", again=True) from None
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionError):
            raise Trouble(f"{self.name} closed the connection", again=True) from None
        except (aiohttp.ClientError, ValueError):
            raise Trouble(f"{self.name} returned an invalid response") from None

    def _refusal(self, response: ClientResponse) -> Trouble:
        status = response.status
        if status < 400:
            return Trouble(f"{self.name} redirects ({status}), and redirects are not followed: check its address")
        if status in self.locked:
            return Trouble(f"{self.name} denied access ({status}): {self.refused}")
        if status in USED_UP:
            return Trouble(f"{self.name} quota exceeded ({status})")
        if status in BUSY:
            wait = _seconds(response.headers.get("Retry-After"))
            return Trouble(f"{self.name} rate limit reached ({status})", again=wait <= LONGEST_PAUSE, wait=wait)
        if status < 500:
            return Trouble(f"{self.name} rejected the query ({status})")
        return Trouble(f"{self.name} failed ({status})", again=True)

    async def _body(self, response: ClientResponse) -> bytes:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LARGEST:
                response.close()
                raise Trouble(f"{self.name} returned more than {LARGEST // 2**20} MB")
        return body

    def _read(self, body: bytes, kind: str) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            page = kind in ("text/html", "application/xhtml+xml") or body.lstrip()[:1] == b"<"
            raise Trouble(
                f"{self.name} returned {'a web page' if page else 'invalid JSON'} instead of results"
            ) from None

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            return ""
        return without(plain(html.unescape(TAG.sub(_gap, value[:LONGEST_TEXT]))), [self.secret])

    def _url(self, value: Any) -> str:
        """Return a valid http(s) URL without credentials or our key, else ""."""
        url = visible(value)[0].strip().replace(" ", "%20") if isinstance(value, str) else ""
        try:
            parts = urlsplit(url)
            good = (
                parts.scheme.lower() in ("http", "https")
                and parts.hostname
                and "@" not in parts.netloc
                and parts.port != 0
            )
        except ValueError:
            return ""
        leaks = self.secret and self.secret in unquote(url)
        return url if good and not leaks and len(url) <= LONGEST_URL and not ODD_IN_URL.search(url) else ""


def _gap(tag: re.Match[str]) -> str:
    return "" if INLINE.match(tag[0]) else " "


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value)) if value else PAUSE
    except ValueError:
        return PAUSE  # a date, or nonsense


def within(query: str, characters: int, words: int = 1_000) -> str:
    """Truncate a query to the provider's limits, at whole words."""
    return cut_at_word(" ".join(query.split()[:words]), characters)
