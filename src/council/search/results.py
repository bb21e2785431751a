"""Research: run the queries, merge their results, and mark possible prompt injections.

Marked results are not dropped: a page may discuss injections. Ordinary prose ("the system: a description", "JavaScript:
The Good Parts", `eval()` by name, a Python session's `>>> print(x)`) is not marked. A line that begins with "System:"
is, because it cannot be told from a role header.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from council.errors import is_interrupt
from council.search.provider import Hit, SearchError, SearchProvider
from council.text_cleanup import strip_invisible, strip_to_line, truncate

# Prompt injections

MAX_SCAN_CHARS = 4_000  # characters that are scanned
_SENTENCE_START = r"(?:^|[\n.!?;>\]}\"'*#|-]\s*)"  # start of a line or sentence


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


INSTRUCTION_PATTERNS = {
    "tells its reader to ignore instructions": _any_of(
        r"\b(?:ignore|disregard|forget|override|bypass|do not follow)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|all|any|your|these|those|system)\b"
        r"[^.\n]{0,30}\b(?:instructions?|prompts?|rules|directions|guidelines|directives|messages?|context)\b",
        r"\b(?:new|updated|real|actual) instructions?\s*:",
    ),
    "gives its reader another role": _any_of(
        r"\byou are now (?:an? |the |my |acting|called|named|no longer|free\b|dan\b|in \w+ mode|unrestricted)",
        r"\b(?:from now on|for the rest of this conversation),? (?:you|act|respond|answer|always|only)\b",
        r"\b(?:act|behave|respond) as (?:if you (?:are|were)|an? (?:unrestricted|different|new|evil))\b",
        _SENTENCE_START + r"(?:system|assistant|developer)(?: (?:prompt|message|note|override))?\s*:(?!:)",
        r"<\|[a-z_]{2,30}\|>|\[/?INST\]|</?(?:system|assistant|instructions?)>",
    ),
    "asks for the prompt or the context": _any_of(
        r"\b(?:reveal|show|print|repeat|output|tell|disclose|send|leak|exfiltrate|recite|give|write out)\b[^.\n]{0,40}"
        r"\b(?:system prompt|system message|your (?:\w+ )?(?:instructions|prompt|context|rules|secrets|api keys?)"
        r"|(?:hidden|initial|original) (?:prompt|instructions)|(?:prompt|instructions|text|words|conversation|everything) above)\b",
    ),
}
MARKUP_PATTERNS = {
    "holds script": _any_of(
        r"<\s*/?\s*(?:script|iframe|object|embed)\b|\bjavascript:(?=[^\s])|\bdata:text/html|\bon(?:error|load|click|mouseover)\s*=\s*[\"'\w]",
        r"\b(?-i:eval|exec|Function|setTimeout|document\.write)\s*\(\s*[^\s)]",
    ),
    "gives commands to run": _any_of(
        r"\b(?:run|execute|paste|type in|enter) (?:the following|this|these)\b",
        r"\brm\s+-(?:rf|fr|r\s+-f|f\s+-r)\b|\b(?:curl|wget)\b[^\n|]{1,200}\|\s*(?:sudo\s+)?(?:ba|z)?sh\b|\bmkfs\.|:\(\)\s*\{",
        r"\b(?:call|invoke|use) your \S{1,40}(?: \S{1,40})? ?tools?\b|</?(?:tool_call|function_call|tool_use)\b",
    ),
    "holds a fence": _any_of(
        r"<<<|>>>(?! (?:import|from|print|def|class|for|if|with|[a-zA-Z_][\w.]*\s*[=(\[]|[\d\"'(\[{]))"
    ),
}
REASONS = INSTRUCTION_PATTERNS | MARKUP_PATTERNS
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{64,}={0,2}")
MIN_PART_CHARS = 20  # average characters between slashes and dashes of encoded text; path names are shorter


def scan_text(text: str) -> list[str]:
    """Return the reasons not to trust this text, each once."""
    scanned = text[:MAX_SCAN_CHARS]
    reasons = _match_reasons(REASONS, scanned)
    if any(_is_encoded(candidate) for candidate in BASE64.findall(scanned)):
        reasons.append("holds encoded text")
    return reasons


def scan_url(url: str) -> list[str]:
    """Return the instructions in the words of a URL, which is shown too.

    Its markup is separated away, so it is not scanned.
    """
    words = re.sub(r"[-_+./?=&]+", " ", unquote(url))
    return _match_reasons(INSTRUCTION_PATTERNS, words)


def _match_reasons(patterns: Mapping[str, re.Pattern[str]], text: str) -> list[str]:
    return [reason for reason, pattern in patterns.items() if pattern.search(text)]


def _is_encoded(run: str) -> bool:
    """Return whether a long run mixes upper case, lower case and digits; hex hashes and paths do not count."""
    parts = len(re.split(r"[-_/]", run))
    return all(re.search(kind, run) for kind in ("[a-z]", "[A-Z]", r"\d")) and len(run) / parts >= MIN_PART_CHARS


# Research

MAX_RESULTS = 10  # results of a query
MAX_TITLE_CHARS, MAX_SNIPPET_CHARS = 200, 600  # characters
NO_RESULTS = "no results"
# Query parameters that only track visitors.
TRACKING_PARAMS = {"gclid", "dclid", "fbclid", "msclkid", "yclid", "gbraid", "wbraid", "igshid", "mc_cid", "mc_eid", "ref_src", "_ga", "_hsenc", "_hsmi", "srsltid"}  # fmt: skip

QueryResult = list[Hit] | SearchError


class SearchRow(TypedDict):
    """A result of a query; with `why`, a query without results or a general remark of a provider."""

    query: str
    title: NotRequired[str]
    url: NotRequired[str]
    snippet: NotRequired[str]
    marked: NotRequired[list[str]]  # what looks like an instruction to a model
    invisible: NotRequired[int]  # removed characters
    why: NotRequired[str]
    remark: NotRequired[bool]


async def research(
    provider: SearchProvider,
    queries: Sequence[str],
    *,
    max_results: int,
    freshness: str = "none",
    seconds: float = 15.0,
) -> list[SearchRow]:
    """Return a row for each distinct URL, the first results of all queries first, then a row for each failed query.

    Duplicates are removed before the results of a query are cut to `max_results`. A provider's general remarks are rows
    with `remark: True`.
    """
    max_results = min(max(1, max_results), MAX_RESULTS)
    searches = [
        _search_with_retry(provider, query, MAX_RESULTS, freshness, seconds, turn)
        for turn, query in enumerate(queries, 1)
    ]
    results = list(zip(queries, await asyncio.gather(*searches), strict=True))
    remarks: list[SearchRow] = [
        {"query": provider.name, "why": remark, "remark": True} for remark in _read_remarks(provider) if queries
    ]
    return [*_result_rows(results, max_results), *_failure_rows(results), *remarks]


def list_failures(queries: Sequence[str], error: SearchError) -> list[SearchRow]:
    """Return the rows of queries that were not sent, because of this error."""
    return list(_failure_rows([(query, error) for query in queries]))


async def close_provider(provider: SearchProvider) -> None:
    """Close a provider. A failure of its code does not matter: the results are there."""
    task = asyncio.current_task()
    try:
        await provider.close()
    except BaseException as error:
        if is_interrupt(error, task):
            raise


def _read_remarks(provider: SearchProvider) -> list[str]:
    try:
        return [strip_to_line(remark) for remark in provider.remarks]
    except BaseException as error:
        if is_interrupt(error):
            raise
        return [f"{provider.name} failed unexpectedly ({type(error).__name__})"]


async def _search_with_retry(
    provider: SearchProvider, query: str, max_results: int, freshness: str, seconds: float, turn: int
) -> QueryResult:
    """Search with one retry; if nothing matches the freshness, search results of any age."""
    result = await _search_once(provider, query, max_results, freshness, seconds)
    if isinstance(result, SearchError) and result.retryable:
        await asyncio.sleep(result.retry_after * turn)  # stagger the retries of parallel queries
        result = await _search_once(provider, query, max_results, freshness, seconds)
    if result == [] and freshness != "none":
        older = await _search_once(provider, query, max_results, "none", seconds)
        return [] if isinstance(older, SearchError) else older
    return result


async def _search_once(
    provider: SearchProvider, query: str, max_results: int, freshness: str, seconds: float
) -> QueryResult:
    task = asyncio.current_task()
    try:
        async with asyncio.timeout(seconds):
            found = await provider.search(query, max_results, freshness)
            if not isinstance(found, list) or not all(isinstance(hit, Hit) for hit in found):
                raise TypeError("search returned no list of Hit")
            return found
    except SearchError as failure:
        return failure
    except TimeoutError:
        return SearchError(f"{provider.name} did not answer within {seconds:g} s", retryable=True)
    except BaseException as error:  # a search failure must not stop the run
        if is_interrupt(error, task):
            raise
        return SearchError(f"{provider.name} failed unexpectedly ({type(error).__name__})")


def _result_rows(results: Sequence[tuple[str, QueryResult]], max_results: int) -> Iterator[SearchRow]:
    """Yield the first new result of every query, then the second of every query, and so on."""
    seen: set[tuple[str, str]] = set()
    hits = {n: iter(found) for n, (_, found) in enumerate(results) if isinstance(found, list)}
    for _ in range(max_results):
        for n, left in hits.items():
            if hit := _next_new(left, seen):
                yield _format_row(results[n][0], hit)


def _next_new(hits: Iterator[Hit], seen: set[tuple[str, str]]) -> Hit | None:
    for hit in hits:
        if (place := (normalise_url(hit.url), hit.position)) not in seen:
            seen.add(place)
            return hit
    return None


def _format_row(query: str, hit: Hit) -> SearchRow:
    title = _truncate_line(hit.title, MAX_TITLE_CHARS) or _truncate_line(hit.url, MAX_TITLE_CHARS)
    snippet = _truncate_line(hit.snippet, MAX_SNIPPET_CHARS)
    marked = [*scan_text(f"{title}\n{snippet}"), *scan_url(hit.url)]
    row: SearchRow = {
        "query": query,
        "title": title,
        "url": hit.url,
        "snippet": snippet,
        "marked": list(dict.fromkeys(marked)),
    }
    if invisible := hit.invisible + strip_invisible(f"{hit.title}\n{hit.snippet}")[1]:
        row["invisible"] = invisible
    return row


def _truncate_line(text: str, max_chars: int) -> str:
    return truncate(strip_to_line(text), max_chars)


def _failure_rows(results: Sequence[tuple[str, QueryResult]]) -> Iterator[SearchRow]:
    for query, hits in results:
        if isinstance(hits, SearchError) or not hits:
            yield {"query": query, "why": hits.reason if isinstance(hits, SearchError) else NO_RESULTS}


def normalise_url(url: str) -> str:
    """Return a URL without what two addresses of one page may differ in, to detect duplicates.

    That is: scheme, the ports 80 and 443, tracking parameters, fragment and trailing slash. An invalid URL stays as it
    is.
    """
    try:
        parts = urlsplit(url)
        number = parts.port
    except ValueError:
        return url
    if not parts.netloc:
        return url
    port = f":{number}" if number and number not in (80, 443) else ""
    params = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name.lower() not in TRACKING_PARAMS and not name.lower().startswith("utm_")
    ]
    return f"{(parts.hostname or '').rstrip('.')}{port}{parts.path.rstrip('/')}?{urlencode(params)}"
