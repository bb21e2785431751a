"""A search over HTTP: one address is asked, and whatever it does becomes hits or trouble. aiohttp is imported when used."""

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
LONGEST_TEXT = 10_000  # characters of a title or a snippet that are looked at
LONGEST_URL = 1_000
PAUSE = 1.1  # seconds before a provider that asks to slow down is asked again: the free plans allow one query a second
LONGEST_PAUSE = 5.0
USED_UP = (402, 432, 433)  # the plan's searches are spent
BUSY = (408, 429)
TAG = re.compile(r"<!--[^<>]*-->|<(?!/?script\b)/?[a-zA-Z][^<>]*>", re.I)  # a script is left to be seen and marked
INLINE = re.compile(r"</?(?:a|b|i|u|em|strong|span|mark|code|small|su[bp])\b", re.I)  # tags that part no words
ODD_IN_URL = re.compile(r"[\s<>\"\\\x7f-\xa0]")


class Site:
    """The address of one provider, and a session with it while it is asked."""

    def __init__(
        self, name: str, address: str, headers: Mapping[str, str], *,
        refused: str, secret: str = "", locked: tuple[int, ...] = (401, 403),
    ) -> None:  # fmt: skip
        self.name = name
        self.address = address.rstrip("/")
        self.headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self.secret = secret
        self.refused = refused  # what to do where it lets nobody in, which it says by a status that is `locked`
        self.locked = locked
        self._session: ClientSession | None = None

    async def ask(self, method: str, path: str, **sent: Any) -> Any:
        """What it answered, as JSON. Raises Trouble and nothing else."""
        async with self._troubles(), self._request(method, self.address + path, sent) as response:
            if not 200 <= response.status < 300:
                raise self._refusal(response)
            return self._read(await self._body(response), response.content_type)

    def hits(self, found: Any, snippet: str) -> list[Hit]:
        """The results that can be used; `snippet` is what this provider calls the text of one."""
        if not isinstance(found, list):
            raise Trouble(f"{self.name} answered, but not with results")
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

        if self._session is None:  # the clock is the one of whoever asks
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), headers=self.headers)
            self._session._retry_connection = False  # the one retry is ours
        return self._session.request(method, url, proxy=proxy_for(url), allow_redirects=False, **sent)

    @asynccontextmanager
    async def _troubles(self) -> AsyncIterator[None]:
        import aiohttp

        try:
            yield
        except aiohttp.ClientSSLError:
            raise Trouble(f"{self.name} offers no secure connection that can be trusted") from None
        except aiohttp.ClientConnectorError:
            raise Trouble(f"{self.name} cannot be reached at {urlsplit(self.address).netloc}", again=True) from None
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionError):
            raise Trouble(f"{self.name} broke the connection off", again=True) from None
        except (aiohttp.ClientError, ValueError):
            raise Trouble(f"{self.name} did not answer as a search does") from None

    def _refusal(self, response: ClientResponse) -> Trouble:
        status = response.status
        if status < 400:
            return Trouble(f"{self.name} redirects elsewhere ({status}), which is not followed: check its address")
        if status in self.locked:
            return Trouble(f"{self.name} let nobody in ({status}): {self.refused}")
        if status in USED_UP:
            return Trouble(f"{self.name} has no searches left on this plan ({status})")
        if status in BUSY:
            wait = _seconds(response.headers.get("Retry-After"))
            return Trouble(f"{self.name} asks to slow down ({status})", again=wait <= LONGEST_PAUSE, wait=wait)
        if status < 500:
            return Trouble(f"{self.name} refused the query ({status})")
        return Trouble(f"{self.name} failed ({status})", again=True)

    async def _body(self, response: ClientResponse) -> bytes:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LARGEST:
                response.close()
                raise Trouble(f"{self.name} answered with more than {LARGEST // 2**20} MB")
        return body

    def _read(self, body: bytes, kind: str) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            page = kind in ("text/html", "application/xhtml+xml") or body.lstrip()[:1] == b"<"
            raise Trouble(
                f"{self.name} answered with {'a web page' if page else 'something'} that holds no results"
            ) from None

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            return ""
        return without(plain(html.unescape(TAG.sub(_gap, value[:LONGEST_TEXT]))), [self.secret])

    def _url(self, value: Any) -> str:
        """The address of a page, if it is one that a person could open and that gives nothing away."""
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
    """As much of a query as a provider takes, in whole words."""
    return cut_at_word(" ".join(query.split()[:words]), characters)
