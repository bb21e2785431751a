"""Run all queries in parallel and return rows of results and failures. A search failure never stops a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from urllib.parse import parse_qsl, urlencode, urlsplit

from council.foreign import strip_to_line, truncate
from council.search.hits import Hit, SearchError, SearchProvider
from council.search.scan import scan_text, scan_url
from council.types import Json

MAX_RESULTS = 10  # results of a query
MAX_TITLE_CHARS, MAX_SNIPPET_CHARS = 200, 600  # characters
NO_RESULTS = "no results"
# Query parameters that only track visitors.
TRACKING_PARAMS = {"gclid", "dclid", "fbclid", "msclkid", "yclid", "gbraid", "wbraid", "igshid", "mc_cid", "mc_eid", "ref_src", "_ga", "_hsenc", "_hsmi", "srsltid"}  # fmt: skip

QueryResult = list[Hit] | SearchError


async def research(
    provider: SearchProvider,
    queries: Sequence[str],
    *,
    max_results: int,
    freshness: str = "none",
    seconds: float = 15.0,
) -> list[Json]:
    """Return a row for each distinct URL, the first results of all queries first, then a row for each failed query.

    A provider's general remarks are rows with `remark: True`.
    """
    max_results = min(max(1, max_results), MAX_RESULTS)
    asked = [
        _search_with_retry(provider, query, max_results, freshness, seconds, turn)
        for turn, query in enumerate(queries, 1)
    ]
    found = list(zip(queries, await asyncio.gather(*asked), strict=True))
    remarks = (
        [{"query": provider.name, "why": strip_to_line(one), "remark": True} for one in provider.remarks]
        if queries
        else []
    )
    return [*_result_rows(found, max_results), *_failure_rows(found), *remarks]


async def _search_with_retry(
    provider: SearchProvider, query: str, max_results: int, freshness: str, seconds: float, turn: int
) -> QueryResult:
    """Search with one retry; if nothing matches the freshness, search results of any age."""
    found = await _search_once(provider, query, max_results, freshness, seconds)
    if isinstance(found, SearchError) and found.retryable:
        await asyncio.sleep(found.retry_after * turn)  # stagger the retries of parallel queries
        found = await _search_once(provider, query, max_results, freshness, seconds)
    if found == [] and freshness != "none":
        older = await _search_once(provider, query, max_results, "none", seconds)
        return [] if isinstance(older, SearchError) else older
    return found


async def _search_once(
    provider: SearchProvider, query: str, max_results: int, freshness: str, seconds: float
) -> QueryResult:
    try:
        async with asyncio.timeout(seconds):
            return await provider.search(query, max_results, freshness)
    except SearchError as trouble:
        return trouble
    except TimeoutError:
        return SearchError(f"{provider.name} did not answer within {seconds:g} s", retryable=True)
    except Exception as error:  # a search failure must not stop the run
        return SearchError(f"{provider.name} failed unexpectedly ({type(error).__name__})")


def _result_rows(results: Sequence[tuple[str, QueryResult]], max_results: int) -> Iterator[Json]:
    seen: set[tuple[str, str]] = set()
    for query, hit in _interleave(results, max_results):
        if (place := (normalise_url(hit.url), hit.position)) not in seen:
            seen.add(place)
            yield _format_row(query, hit)


def _interleave(results: Sequence[tuple[str, QueryResult]], max_results: int) -> Iterator[tuple[str, Hit]]:
    """Yield the first result of every query, then the second of every query, and so on."""
    lists = [[(query, hit) for hit in hits[:max_results]] for query, hits in results if isinstance(hits, list)]
    for rank in zip_longest(*lists):
        yield from (one for one in rank if one)


def _format_row(query: str, hit: Hit) -> Json:
    title, snippet = (
        _truncate_line(hit.title, MAX_TITLE_CHARS) or _truncate_line(hit.url, MAX_TITLE_CHARS),
        _truncate_line(hit.snippet, MAX_SNIPPET_CHARS),
    )
    marked = [*scan_text(f"{title}\n{snippet}"), *scan_url(hit.url)]
    return {"query": query, "title": title, "url": hit.url, "snippet": snippet, "marked": list(dict.fromkeys(marked))}


def _truncate_line(text: str, max_chars: int) -> str:
    return truncate(strip_to_line(text), max_chars)


def _failure_rows(results: Sequence[tuple[str, QueryResult]]) -> Iterator[Json]:
    for query, hits in results:
        if isinstance(hits, SearchError) or not hits:
            yield {"query": query, "why": hits.reason if isinstance(hits, SearchError) else NO_RESULTS}


def normalise_url(url: str) -> str:
    """Return a URL without scheme, default port and tracking parameters, to detect duplicates."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    port = f":{parts.port}" if parts.port and parts.port not in (80, 443) else ""
    asked = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _is_tracking_param(name.lower())
    ]
    return f"{(parts.hostname or '').rstrip('.')}{port}{parts.path.rstrip('/')}?{urlencode(asked)}"


def _is_tracking_param(name: str) -> bool:
    return name.startswith("utm_") or name in TRACKING_PARAMS
