"""Citations in a text: source numbers and URLs, ignoring code, footnotes, checkboxes and years."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from urllib.parse import urlsplit

Sources = Mapping[int, Mapping[str, str]]

MAX_RANGE = 30  # sources: three searches of ten

FENCED = re.compile(r"^[ \t]*(```|~~~)[^`\n]*\n.*?(?:^[ \t]*\1[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`{1,3})(?!`)[^\n]*?(?<!`)\1(?!`)")
_ESCAPED = re.compile(r"\\([\[\]()_*~&#-])")
_NUMBERS = re.compile(r"\[\s*(\d{1,3}(?:\s*(?:[,;&–-]|and)\s*\d{1,3})*)\s*\]")  # a year has four digits
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)|(\d+)")
_URL = re.compile(r"https?://(?:(?![,;]https?://)[^\s<>\"`|\\^{}。，、；）」』】》”’“‘«»])+", re.IGNORECASE)
_TRAILING_PUNCTUATION = ".,;:!?'\"*_~…"
_BRACKET_PAIRS = {")": "(", "]": "["}
_LOCAL_HOST = re.compile(r"(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\])\Z", re.IGNORECASE)


def find_citations(text: str, sources: Sources | None = None) -> list[int]:
    """Return the numbers cited as [1], [2, 3], [1-3] or by a source's URL, once each, in order."""
    prose = _unescape(_INLINE.sub(" ", FENCED.sub(" ", text)))
    number = {_canonical_url(source.get("url", "")): n for n, source in (sources or {}).items()}
    found = [(match.start(), n) for match in _NUMBERS.finditer(prose) for n in _expand_numbers(match[1])]
    found += [(at, number[key]) for at, url in _find_urls(prose) if (key := _canonical_url(url)) in number]
    return list(dict.fromkeys(n for _, n in sorted(found, key=lambda one: one[0])))


def find_unknown_urls(text: str, known_urls: Collection[str]) -> list[str]:
    """Return the http(s) URLs that are not known, ignoring local hosts and code blocks.

    A known URL with another ending is unknown: that page was not retrieved.
    """
    known = {_canonical_url(url) for url in known_urls}
    prose = _unescape(FENCED.sub(" ", text))
    return list(
        dict.fromkeys(url for _, url in _find_urls(prose) if _canonical_url(url) not in known and not _is_local(url))
    )


def _expand_numbers(numbers: str) -> list[int]:
    """Expand a list or range; return nothing if it contains 0, which is an interval rather than a citation."""
    found: list[int] = []
    for first, last, one in _RANGE.findall(numbers):
        found += [int(one)] if one else _expand_range(int(first), int(last))
    return found if 0 not in found else []


def _expand_range(first: int, last: int) -> Iterable[int]:
    """Expand a range; return only its ends if it is too long or reversed."""
    return range(first, last + 1) if 0 <= last - first < MAX_RANGE else (first, last)


def _find_urls(text: str) -> Iterator[tuple[int, str]]:
    for match in _URL.finditer(text):
        url = _trim_unmatched_bracket(match.group()).rstrip(_TRAILING_PUNCTUATION)
        if re.match(r"https?://\[?\w", url):
            yield match.start(), url


def _trim_unmatched_bracket(url: str) -> str:
    """Cut the URL at a closing bracket that has no opening bracket inside it."""
    open_ = {"(": 0, "[": 0}
    for place, char in enumerate(url):
        if char in open_:
            open_[char] += 1
        elif char in _BRACKET_PAIRS:
            open_[_BRACKET_PAIRS[char]] -= 1
            if open_[_BRACKET_PAIRS[char]] < 0:
                return url[:place]
    return url


def _canonical_url(url: str) -> str:
    """Normalise for comparison: no trailing punctuation or slash, scheme and host in lower case."""
    url = url.strip().replace("&amp;", "&").rstrip(_TRAILING_PUNCTUATION + "/")
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{colon}{host.lower()}{slash}{path}"


def _is_local(url: str) -> bool:
    try:
        return bool(_LOCAL_HOST.match(re.sub(r":\d*\Z", "", urlsplit(url).netloc)))
    except ValueError:  # not a valid URL
        return False


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
