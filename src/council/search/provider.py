"""Search providers: their interface, and the HTTP client of those on the web."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol
from urllib.parse import unquote, urlsplit

from council.search.queries import truncate_at_word
from council.settings.network import proxy_for
from council.text_cleanup import mask_values, strip_invisible, strip_to_line
from council.types import Json

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


ReadFile = Callable[[Path], str | None]  # returns a file's text, or None if it must not be shown


# Interface


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `position` is the position in the document if one document has several results."""

    title: str
    url: str
    snippet: str
    position: str = ""
    invisible: int = 0  # invisible characters that were removed from title and snippet


class SearchError(Exception):
    """Failed search. If it is `retryable`, a retry after `retry_after` seconds may succeed."""

    def __init__(self, reason: str, *, retryable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class SearchSetup:
    """What a search provider is made from."""

    argument: str  # the address or folder after the colon of --search, or from [search]
    key: str  # value of the variable `key_env`
    base_url: str  # [search] base_url, if it belongs to this provider
    folder: Path  # the run's folder
    read_file: ReadFile


class SearchProvider(Protocol):
    """Search provider: a class that is made from a SearchSetup. A subclass needs `name` and `search`."""

    name: str
    key_env: ClassVar[str] = ""  # variable with the API key; empty if it needs none
    argument: ClassVar[Literal["", "ADDRESS", "FOLDER"]] = ""  # what --search NAME:… takes

    @property
    def remarks(self) -> Sequence[str]:
        """Limits of the last searches, such as skipped files."""
        return ()

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        """Return the results. `freshness` is none, day, week, month or year. Raise SearchError if it fails."""
        ...

    async def check(self) -> str:
        """Test key and address without cost, and return a line about it: "" if there is no free test. Raise SearchError
        if it fails.
        """
        return ""

    async def close(self) -> None:
        """Close connections."""


# HTTP client

MAX_BODY_BYTES = 2 * 1024 * 1024  # bytes of an answer
MAX_TEXT_CHARS = 10_000  # characters of a title or snippet that are read
MAX_URL_CHARS = 1_000
RETRY_WAIT_S = 1.1  # seconds before a retry after a rate limit: free plans allow one query per second
MAX_RETRY_WAIT_S = 5.0
QUOTA_STATUSES = (402, 432, 433)  # quota exceeded
RATE_LIMIT_STATUSES = (408, 429)
HTML_TAG = re.compile(
    r"<!--[^<>]*-->|<(?!/?script\b)/?[a-zA-Z][^<>]*>", re.I
)  # scripts are kept so that the scan marks them
INLINE_TAG = re.compile(
    r"</?(?:a|b|i|u|em|strong|span|mark|code|small|su[bp])\b", re.I
)  # tags that do not separate words
INVALID_URL_CHARS = re.compile(r"[\s<>\"\\\x7f-\xa0]")


@dataclass(slots=True)
class SearchClient:
    """HTTP client of one provider."""

    name: str
    base_url: str
    auth_hint: str  # for the user after a status in `auth_statuses`
    headers: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""
    auth_statuses: tuple[int, ...] = (401, 403)
    _session: ClientSession | None = field(default=None, init=False)

    async def request_json(self, method: str, path: str, **request_args: Any) -> Json:
        """Send a request and return the JSON response; raise only SearchError."""
        url = self.base_url.rstrip("/") + path
        async with self._convert_errors(), self._request(method, url, request_args) as response:
            if not 200 <= response.status < 300:
                raise self._status_error(response)
            return self._parse_json(await self._read_body(response), response.content_type)

    def parse_hits(self, results: Any, snippet_field: str) -> list[Hit]:
        """Return the usable results; `snippet_field` is the provider's field name for the text."""
        if not isinstance(results, list):
            raise self._unexpected()
        made = [
            Hit(
                self._clean_text(row.get("title")),
                self._clean_url(row.get("url")),
                self._clean_text(row.get(snippet_field)),
                invisible=sum(_count_invisible(row.get(field)) for field in ("title", snippet_field)),
            )
            for row in results
            if isinstance(row, dict)
        ]
        return [hit for hit in made if hit.url]

    def _unexpected(self) -> SearchError:
        return SearchError(f"{self.name} returned an unexpected response")

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def _request(self, method: str, url: str, request_args: Mapping[str, Any]) -> Any:
        import aiohttp

        if self._session is None:  # the caller sets the timeout
            headers = {"Accept": "application/json", "Accept-Encoding": "identity", **self.headers}
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), headers=headers)
            self._session._retry_connection = False  # the caller retries
        return self._session.request(method, url, proxy=proxy_for(url), allow_redirects=False, **request_args)

    @asynccontextmanager
    async def _convert_errors(self) -> AsyncIterator[None]:
        import aiohttp

        try:
            yield
        except aiohttp.ClientSSLError:
            raise SearchError(f"{self.name} has an invalid TLS certificate") from None
        except aiohttp.ClientConnectorError:
            raise SearchError(
                f"{self.name} cannot be reached at {urlsplit(self.base_url).netloc}", retryable=True
            ) from None
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionError):
            raise SearchError(f"{self.name} closed the connection", retryable=True) from None
        except (aiohttp.ClientError, ValueError):
            raise SearchError(f"{self.name} returned an invalid response") from None

    def _status_error(self, response: ClientResponse) -> SearchError:
        status = response.status
        if status < 400:
            return SearchError(f"{self.name} redirects ({status}), and redirects are not followed: check its address")
        if status in self.auth_statuses:
            return SearchError(f"{self.name} denied access ({status}): {self.auth_hint}")
        if status in QUOTA_STATUSES:
            return SearchError(f"{self.name} quota exceeded ({status})")
        if status in RATE_LIMIT_STATUSES:
            wait = _parse_retry_after(response.headers.get("Retry-After"))
            return SearchError(
                f"{self.name} rate limit reached ({status})", retryable=wait <= MAX_RETRY_WAIT_S, retry_after=wait
            )
        if status < 500:
            return SearchError(f"{self.name} rejected the query ({status})")
        return SearchError(f"{self.name} failed ({status})", retryable=True)

    async def _read_body(self, response: ClientResponse) -> bytes:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                response.close()
                raise SearchError(f"{self.name} returned more than {MAX_BODY_BYTES // 2**20} MB")
        return body

    def _parse_json(self, body: bytes, kind: str) -> Json:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            page = kind in ("text/html", "application/xhtml+xml") or body.lstrip()[:1] == b"<"
            raise SearchError(
                f"{self.name} returned {'a web page' if page else 'invalid JSON'} instead of results"
            ) from None
        if not isinstance(answer, dict):
            raise self._unexpected()
        return answer

    def _clean_text(self, value: Any) -> str:
        if not isinstance(value, str):
            return ""
        text = HTML_TAG.sub(lambda tag: "" if INLINE_TAG.match(tag[0]) else " ", value[:MAX_TEXT_CHARS])
        return mask_values(strip_to_line(html.unescape(text)), [self.secret])

    def _clean_url(self, value: Any) -> str:
        """Return a valid http(s) URL without credentials or our key, else ""."""
        url = strip_invisible(value)[0].strip().replace(" ", "%20") if isinstance(value, str) else ""
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
        except ValueError:
            return ""
        leaks = self.secret and self.secret in unquote(url)
        return url if good and not leaks and len(url) <= MAX_URL_CHARS and not INVALID_URL_CHARS.search(url) else ""


class WebSearch(SearchProvider):
    """A provider on the web, whose client is closed with it."""

    _client: SearchClient

    async def close(self) -> None:
        await self._client.close()


def _count_invisible(value: Any) -> int:
    return strip_invisible(html.unescape(value[:MAX_TEXT_CHARS]))[1] if isinstance(value, str) else 0


def _parse_retry_after(value: str | None) -> float:
    try:
        return max(0.0, float(value)) if value else RETRY_WAIT_S
    except ValueError:
        return RETRY_WAIT_S  # a date, or nonsense


def truncate_query(query: str, characters: int, words: int = 1_000) -> str:
    """Truncate a query to the provider's limits, at whole words."""
    return truncate_at_word(" ".join(query.split()[:words]), characters)
