"""Run all queries in parallel and return rows of results and failures. A search failure never stops a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from urllib.parse import parse_qsl, urlencode, urlsplit

from council.foreign import cut, plain
from council.search.hits import Finder, Hit, Trouble
from council.search.scan import scan, scan_address
from council.types import Json

MOST = 10  # results of a query
TITLE, SNIPPET = 200, 600  # characters
NOTHING = "no results"
# Query parameters that only track visitors.
TRACKING = {"gclid", "dclid", "fbclid", "msclkid", "yclid", "gbraid", "wbraid", "igshid", "mc_cid", "mc_eid", "ref_src", "_ga", "_hsenc", "_hsmi", "srsltid"}  # fmt: skip

Found = list[Hit] | Trouble


async def research(
    finder: Finder, queries: Sequence[str], *, most: int, freshness: str = "none", seconds: float = 15.0
) -> list[Json]:
    """Return a row for each distinct URL, the first results of all queries first, then a row for each failed query.

    A provider's general remarks are rows with `remark: True`.
    """
    most = min(max(1, most), MOST)
    asked = [_searched(finder, query, most, freshness, seconds, turn) for turn, query in enumerate(queries, 1)]
    found = list(zip(queries, await asyncio.gather(*asked), strict=True))
    remarks = [{"query": finder.name, "why": plain(one), "remark": True} for one in finder.remarks] if queries else []
    return [*_rows(found, most), *_whys(found), *remarks]


async def _searched(finder: Finder, query: str, most: int, freshness: str, seconds: float, turn: int) -> Found:
    """Search with one retry; if nothing matches the freshness, search results of any age."""
    found = await _tried(finder, query, most, freshness, seconds)
    if isinstance(found, Trouble) and found.again:
        await asyncio.sleep(found.wait * turn)  # stagger the retries of parallel queries
        found = await _tried(finder, query, most, freshness, seconds)
    if found == [] and freshness != "none":
        older = await _tried(finder, query, most, "none", seconds)
        return [] if isinstance(older, Trouble) else older
    return found


async def _tried(finder: Finder, query: str, most: int, freshness: str, seconds: float) -> Found:
    try:
        async with asyncio.timeout(seconds):
            return await finder.find(query, most, freshness)
    except Trouble as trouble:
        return trouble
    except TimeoutError:
        return Trouble(f"{finder.name} did not answer within {seconds:g} s", again=True)
    except Exception as error:  # a search failure must not stop the run
        return Trouble(f"{finder.name} failed unexpectedly ({type(error).__name__})")


def _rows(found: Sequence[tuple[str, Found]], most: int) -> Iterator[Json]:
    seen: set[tuple[str, str]] = set()
    for query, hit in _in_turn(found, most):
        if (place := (normalised(hit.url), hit.at)) not in seen:
            seen.add(place)
            yield _row(query, hit)


def _in_turn(found: Sequence[tuple[str, Found]], most: int) -> Iterator[tuple[str, Hit]]:
    """Yield the first result of every query, then the second of every query, and so on."""
    lists = [[(query, hit) for hit in hits[:most]] for query, hits in found if isinstance(hits, list)]
    for rank in zip_longest(*lists):
        yield from (one for one in rank if one)


def _row(query: str, hit: Hit) -> Json:
    title, snippet = _line(hit.title, TITLE) or _line(hit.url, TITLE), _line(hit.snippet, SNIPPET)
    marked = [*scan(f"{title}\n{snippet}"), *scan_address(hit.url)]
    return {"query": query, "title": title, "url": hit.url, "snippet": snippet, "marked": list(dict.fromkeys(marked))}


def _line(text: str, most: int) -> str:
    return cut(plain(text), most)


def _whys(found: Sequence[tuple[str, Found]]) -> Iterator[Json]:
    for query, hits in found:
        if isinstance(hits, Trouble) or not hits:
            yield {"query": query, "why": hits.why if isinstance(hits, Trouble) else NOTHING}


def normalised(url: str) -> str:
    """Return a URL without scheme, default port and tracking parameters, to detect duplicates."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    port = f":{parts.port}" if parts.port and parts.port not in (80, 443) else ""
    asked = [
        (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not _tracks(name.lower())
    ]
    return f"{(parts.hostname or '').rstrip('.')}{port}{parts.path.rstrip('/')}?{urlencode(asked)}"


def _tracks(name: str) -> bool:
    return name.startswith("utm_") or name in TRACKING
