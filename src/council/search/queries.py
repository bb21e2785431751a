"""Search queries: clean and shorten them, drop stale years, and detect questions about current facts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from council.similarity import STOP_WORDS
from council.text_cleanup import strip_to_line

MAX_QUERIES = 3
MAX_QUERY_CHARS = 500  # characters
MAX_SCANNED_CHARS = 4_000  # characters of a question or query that are scanned
MAX_KEYWORDS = 12  # of a query made from the question's keywords
YEAR = r"(?:19|20)\d\d"
TODAY = re.compile(
    r"\b(?:today|tonight|now(?! that\b)|nowadays|at the moment|as of (?:today|now)|this (?:morning|afternoon|evening))\b",
    re.I,
)
WEEK = re.compile(r"\bthis week\b|\bpast week\b|\blast week\b", re.I)
MONTH = re.compile(r"\brecent(?:ly)?\b|\bthis month\b|\bpast month\b|\blast month\b", re.I)
CURRENT = re.compile(
    r"\blatest\b|(?<!alternating )(?<!direct )(?<!electric )(?<!eddy )\bcurrent(?:ly)?\b(?! director)|\bnewest\b|\bup[- ]to[- ]date\b|\bmost recent\b|\bthis year\b|\bthese days\b|\bstate[- ]of[- ]the[- ]art\b|\bsota\b",
    re.I,
)
PAST = re.compile(
    rf"\b(?:history|historical(?:ly)?|archived?|archives|(?:in|during|from|since|for|as of)\s+{YEAR})\b", re.I
)
# Topics that go out of date even if the question does not say "current".
TIME_SENSITIVE = re.compile(
    r"\b(?:pric(?:e|es|ed|ing)|costs? of|fees?|releas(?:e|es|ed)|versions?(?! control)|roadmap|changelog|deprecat(?:ed|ion)|end[- ]of[- ](?:life|support)"
    r"|laws?|legal(?:ly|ity)?|legislation|regulat(?:ion|ions|ory)|compliance|court|ruling|tax(?:es|ation)?|sanctions?|visas?"
    r"|stocks?|shares?|markets?|financial|inflation|(?:interest|exchange|mortgage) rates?|gdp|salar(?:y|ies)"
    r"|advisor(?:y|ies)|vulnerabilit(?:y|ies)|cves?|exploits?|zero[- ]days?|breach(?:es)?|security (?:updates?|patch(?:es)?|fix(?:es)?|bulletins?|incidents?)"
    r"|news|elections?|president|prime minister|ceo|weather|forecast|outages?|leaderboards?|benchmarks?)\b",
    re.I,
)
# Years in names, dates, ranges and numbers are kept: Windows Server 2019, 2023-05-01, CVE-2021-44228.
YEAR_MENTION = re.compile(r"[(\[]?(?<![\w./:-])(?:\b(?:of|by|year)\s+)?(?P<year>20\d\d)(?![\w/:-]|\.\d)[)\]]?", re.I)
NAMED_BY_YEAR = re.compile(
    r"\b(?:server|windows|office|studio|exchange|sharepoint|excel|autocad|edition|iso|iec|rfc|es|ecmascript|fortran|directive|c\+\+)\s*$",
    re.I,
)
# Words of a question that do not help a search, in addition to the general stop words.
QUERY_STOP_WORDS = STOP_WORDS | frozenset(
    re.findall(
        r"\w+",
        "about all also am any being best better between both did do doing each every explain get give got had having he her him his how i just know let make me "
        "might more most much must my need no nor not off only our out over please say shall she show some tell they think those too under up us use versus very vs "
        "want we were what who whom whose why without you your",
    )
)


def clean_queries(queries: Sequence[str], question: str, year: int) -> list[str]:
    """Return at most three distinct one-line queries, truncated and without stale years."""
    cleaned: dict[str, str] = {}
    for query in queries:
        text = truncate_at_word(_drop_stale_years(_clean_line(query), _clean_line(question), year), MAX_QUERY_CHARS)
        if text:
            cleaned.setdefault(text.casefold(), text)
    return list(cleaned.values())[:MAX_QUERIES]


def extract_keywords(question: str) -> str:
    """Return the question's keywords as a query, never empty unless the question is."""
    line = _clean_line(question)
    words = re.findall(r"[^\W_][\w.+#'’/&-]*[\w+#]|[^\W_]", line)
    keywords = [word for word in dict.fromkeys(words) if word.casefold() not in QUERY_STOP_WORDS]
    return truncate_at_word(" ".join((keywords or words)[:MAX_KEYWORDS]) or line, MAX_QUERY_CHARS)


def required_freshness(question: str) -> str:
    """Return the maximum age of results: none (any age), day, week, month or year."""
    question = _clean_line(question)
    if not asks_for_current(question) or is_historical(question):
        return "none"
    ages = {"day": TODAY, "week": WEEK, "month": MONTH}
    return next((age for age, pattern in ages.items() if pattern.search(question)), "year")


def is_time_sensitive(question: str) -> bool:
    """Return whether the answer goes out of date: the question asks for current facts or a changing topic."""
    question = _clean_line(question)
    return asks_for_current(question) or (bool(TIME_SENSITIVE.search(question)) and not is_historical(question))


def asks_for_current(text: str) -> bool:
    return any(pattern.search(text) for pattern in (CURRENT, MONTH, WEEK, TODAY))


def is_historical(text: str) -> bool:
    return bool(PAST.search(text))


def truncate_at_word(text: str, max_chars: int) -> str:
    """Truncate text at a word boundary, or inside a word if there is no boundary."""
    if len(text) <= max_chars:
        return text
    shortened = text[: max_chars + 1].rpartition(" ")[0].rstrip(" ,;:-")
    return shortened or text[:max_chars]


def _clean_line(text: str) -> str:
    return strip_to_line(text.strip()[:MAX_SCANNED_CHARS])


def _drop_stale_years(query: str, question: str, year: int) -> str:
    if is_historical(query) or is_historical(question) or not (asks_for_current(query) or asks_for_current(question)):
        return query

    def replace_year(match: re.Match[str]) -> str:
        stale = int(match["year"]) < year and not NAMED_BY_YEAR.search(query[: match.start("year")])
        return " " if stale else match[0]

    return (
        re.sub(r"\s+([,;:.?!])", r"\1", " ".join(YEAR_MENTION.sub(replace_year, query).split())).strip(" ,;:") or query
    )
