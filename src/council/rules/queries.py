"""What a query may be: short, of its own words, and of this year where the question asks for what is current."""

from __future__ import annotations

import re
from collections.abc import Sequence

from council.foreign import plain
from council.rules import likeness

MOST = 3
LONGEST = 500  # characters
READ = 4_000  # characters of a question or a query that are looked at
MOST_WORDS = 12  # of a query that is made of the question's own words
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
# What goes out of date by itself, also where nobody says "current".
PERISHABLE = re.compile(
    r"\b(?:pric(?:e|es|ed|ing)|costs? of|fees?|releas(?:e|es|ed)|versions?(?! control)|roadmap|changelog|deprecat(?:ed|ion)|end[- ]of[- ](?:life|support)"
    r"|laws?|legal(?:ly|ity)?|legislation|regulat(?:ion|ions|ory)|compliance|court|ruling|tax(?:es|ation)?|sanctions?|visas?"
    r"|stocks?|shares?|markets?|financial|inflation|(?:interest|exchange|mortgage) rates?|gdp|salar(?:y|ies)"
    r"|advisor(?:y|ies)|vulnerabilit(?:y|ies)|cves?|exploits?|zero[- ]days?|breach(?:es)?|security (?:updates?|patch(?:es)?|fix(?:es)?|bulletins?|incidents?)"
    r"|news|elections?|president|prime minister|ceo|weather|forecast|outages?|leaderboards?|benchmarks?)\b",
    re.I,
)
# A year that is part of a name, a date, a range or a number stays: Windows Server 2019, 2023-05-01, CVE-2021-44228.
STALE = re.compile(r"[(\[]?(?<![\w./:-])(?:\b(?:of|by|year)\s+)?(?P<year>20\d\d)(?![\w/:-]|\.\d)[)\]]?", re.I)
NAMED_BY_YEAR = re.compile(
    r"\b(?:server|windows|office|studio|exchange|sharepoint|excel|autocad|edition|iso|iec|rfc|es|ecmascript|fortran|directive|c\+\+)\s*$",
    re.I,
)
# A question's words that no page is found by, besides those that never carry meaning.
STOP = likeness.STOP | frozenset(
    re.findall(
        r"\w+",
        "about all also am any being best better between both did do doing each every explain get give got had having he her him his how i just know let make me "
        "might more most much must my need no nor not off only our out over please say shall she show some tell they think those too under up us use versus very vs "
        "want we were what who whom whose why without you your",
    )
)


def tidied(queries: Sequence[str], question: str, year: int) -> list[str]:
    """At most three different queries, each on one line and not too long; a stale year is dropped where it would mislead."""
    kept: dict[str, str] = {}
    for query in queries:
        words = cut_at_word(_of_this_year(_line(query), _line(question), year), LONGEST)
        if words:
            kept.setdefault(words.casefold(), words)
    return list(kept.values())[:MOST]


def keywords(question: str) -> str:
    """The question's own words as a query: what carries no meaning is left out, and something is always left."""
    line = _line(question)
    words = re.findall(r"[^\W_][\w.+#'’/&-]*[\w+#]|[^\W_]", line)
    telling = [word for word in dict.fromkeys(words) if word.casefold() not in STOP]
    return cut_at_word(" ".join((telling or words)[:MOST_WORDS]) or line, LONGEST)


def freshness(question: str) -> str:
    """How old a result may be: none (any age), day, week, month or year."""
    question = _line(question)
    if not asks_for_now(question) or is_historical(question):
        return "none"
    ages = {"day": TODAY, "week": WEEK, "month": MONTH}
    return next((age for age, pattern in ages.items() if pattern.search(question)), "year")


def is_timely(question: str) -> bool:
    """Whether the answer goes out of date: it asks for what is current, or for something that is never so for long."""
    question = _line(question)
    return asks_for_now(question) or (bool(PERISHABLE.search(question)) and not is_historical(question))


def asks_for_now(text: str) -> bool:
    return any(pattern.search(text) for pattern in (CURRENT, MONTH, WEEK, TODAY))


def is_historical(text: str) -> bool:
    return bool(PAST.search(text))


def cut_at_word(text: str, most: int) -> str:
    """Not longer than that, and whole words if the last one is not endless."""
    if len(text) <= most:
        return text
    whole = text[: most + 1].rpartition(" ")[0].rstrip(" ,;:-")
    return whole or text[:most]


def _line(text: str) -> str:
    return plain(text.strip()[:READ])


def _of_this_year(query: str, question: str, year: int) -> str:
    if is_historical(query) or is_historical(question) or not (asks_for_now(query) or asks_for_now(question)):
        return query

    def fresh(found: re.Match[str]) -> str:
        stale = int(found["year"]) < year and not NAMED_BY_YEAR.search(query[: found.start("year")])
        return " " if stale else found[0]

    return re.sub(r"\s+([,;:.?!])", r"\1", " ".join(STALE.sub(fresh, query).split())).strip(" ,;:") or query
