"""Dates and times that claims state, and their fit to a key."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from council.final_answers.claim_words import BOLD_SPAN, IS_EITHER, REMARK, SMALL_WORDS, Fit, spell_ordinals, stem
from council.final_answers.dates import DateFound, Day, TimeRead, find_dates, find_times
from council.final_answers.markup import strip_marks
from council.final_answers.numbers import replace_number_words

_DAY_FIRST = re.compile(r"\b(?:dd?\W?mm?\W?yy(?:yy)?|day\W{1,3}month\W{1,3}year|day[- ]first)\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"\b(?:mm?\W?dd?\W?yy(?:yy)?|month\W{1,3}day\W{1,3}year|month[- ]first)\b", re.IGNORECASE)


def read_days(text: str, question: str, *, is_lead: bool) -> list[tuple[Day, ...]]:
    """Return the date of a claim with its readings; two if the claim leaves open which."""
    days = _find_days(text, question, is_lead=is_lead)
    years = {day.year for one in find_dates(strip_marks(text)) for day in one.readings if day.year}
    if len(years) == 1 and not re.search(rf"{_BEYOND_YEAR}{min(years)}", text):  # "in 1969, on 20 July"
        days = [tuple(day._replace(year=day.year or min(years)) for day in readings) for readings in days]
    for said in (text, question):
        is_declared = bool(_DAY_FIRST.search(said)), bool(_MONTH_FIRST.search(said))
        if sum(is_declared) == 1:
            at = 1 if is_declared[0] else 0
            slashed: list[tuple[Day, ...]] = [(day[at],) for day in days if len(day) == 2]
            return slashed if len(slashed) == len(days) else days
    return days


def _find_days(text: str, question: str, *, is_lead: bool) -> list[tuple[Day, ...]]:
    bold = [
        span for span in BOLD_SPAN.findall(text) if any(one.readings[0].day for one in find_dates(strip_marks(span)))
    ]
    if len(bold) == 1 and len(find_dates(strip_marks(bold[0]))) == 1:
        text = bold[0]
    whole = spell_ordinals(strip_marks(text))
    dates = find_dates(whole)
    if (bound := _read_bound(whole, question, [(one.start, one.end) for one in dates])) is not None:
        return [dates[bound].readings]
    plain = spell_ordinals(strip_marks(REMARK.sub("", text)))
    found = find_dates(plain) or find_dates(spell_ordinals(strip_marks(text)))
    if not any(day.day or day.month for one in found for day in one.readings):
        with_remarks = find_dates(spell_ordinals(strip_marks(text)))
        if any(day.day for one in with_remarks for day in one.readings):
            plain, found = spell_ordinals(strip_marks(text)), with_remarks
    if not found:
        return []
    if len(found) == 1 and _BEYOND.search(plain[: found[0].start]) and not _BEYOND_ASKED.search(question):
        return []  # "after 4 July 1776" is no date
    if IS_EITHER.search(plain):
        pair = [one.readings for one in found]
        if len(set(pair)) == 2:
            return pair
    if (bound := _read_bound(plain, question, [(one.start, one.end) for one in found])) is not None:
        return [found[bound].readings]
    full = [one for one in found if any(day.day or day.month for day in one.readings)]
    rows = full or found
    for first, second in itertools.pairwise(rows):
        if re.fullmatch(
            r"[\s,]*(?:or|oder|or possibly|or maybe|or perhaps)\s*(?:on |in |the |possibly |maybe )*",
            plain[first.end : second.start],
            re.IGNORECASE,
        ):
            return [first.readings, second.readings]
    if joined := _join_parts(rows):
        return [joined]
    asked = {stem(word) for word in re.findall(r"[^\W\d_]{3,}", question.casefold())} - SMALL_WORDS
    asked -= _TIME_WORDS
    near = [row for row in rows if _shares_word(plain[max(0, row.start - 25) : row.start], asked)]
    if len(near) == 1:
        return [near[0].readings]
    if (
        len(rows) > 1
        and re.fullmatch(r"\W*(?:(?:on|in|the|le|am|el|it was|it is|it's)\W+)*", plain[: rows[0].start], re.IGNORECASE)
        and re.match(
            r"[^.;+=]*?(?:[.;(]|, (?:and |but )?(?:he|she|it|they|the|for|when|which|while|as|after|before|with|in time)\b)",
            plain[rows[0].end :],
        )
    ):
        return [rows[0].readings]  # it begins with the date, and the rest says something else
    return [rows[0 if is_lead and "=" not in plain else -1].readings]


def _join_parts(rows: Sequence[DateFound]) -> tuple[Day, ...] | None:
    """Return the date of "February 2024 ends on 29 February": the month with its year, and the day in it."""
    days = [one.readings[0] for one in rows]
    if len(rows) != 2 or any(len(one.readings) > 1 for one in rows):
        return None
    month, day = days if days[0].year else days[::-1]
    if month.day or not month.year or day.year or not day.day or month.month != day.month:
        return None
    return (day._replace(year=month.year),)


_BEYOND_YEAR = r"\b(?:after|before|since|until|than|not(?: in)?) "
_BEYOND = re.compile(r"\b(?:after|before|prior to|(?:later|earlier) than)\s+(?:the |about |around )?\Z", re.IGNORECASE)
_BEYOND_ASKED = re.compile(r"\b(?:after|before|prior|later|earlier|by)\b", re.IGNORECASE)
_BEGINS = re.compile(
    r"\b(?:begin|began|begun|start\w*|break out|broke out|open\w*|depart\w*|leave\w*|born|birth)\b", re.IGNORECASE
)
_ENDS = re.compile(
    r"\b(?:end|ends|ended|finish\w*|clos\w*|arriv\w*|die|died|death|conclude\w*|stop\w*)\b", re.IGNORECASE
)
_SPAN_LINK = re.compile(r"[\s)]*(?:[-–—]|to|until|till|through|bis)[\s(]*(?:its end |the )?(?:in |on )?", re.IGNORECASE)


def _read_bound(text: str, question: str, places: Sequence[tuple[int, int]]) -> int | None:
    """Return the number of the place that the question asks for of "from A to B", or of "begins A and ends B"."""
    asks_begin, asks_end = bool(_BEGINS.search(question)), bool(_ENDS.search(question))
    if asks_begin == asks_end or len(places) != 2:
        return None
    (first, after_first), (second, _) = places
    if _SPAN_LINK.fullmatch(text[after_first:second]):
        return 0 if asks_begin else 1
    before = [text[:first], text[after_first:second]]
    wanted, other = (_BEGINS, _ENDS) if asks_begin else (_ENDS, _BEGINS)
    said = [bool(wanted.search(part)) for part in before]
    denied = [bool(other.search(part)) for part in before]
    if said == denied[::-1] and sum(said) == 1:
        return said.index(True)
    return None


_TIME_WORDS = {
    stem(word)
    for word in [
        "day",
        "days",
        "date",
        "year",
        "years",
        "month",
        "months",
        "week",
        "weeks",
        "after",
        "before",
        "later",
        "earlier",
        "when",
        "what",
        "which",
        "come",
        "comes",
        "time",
    ]
}


def _shares_word(text: str, asked: set[str]) -> bool:
    words = re.findall(r"[^\W\d_]{3,}", text.casefold())
    return any(word.startswith(one[: max(3, len(one) - 1)]) for word in words for one in asked)


def fits_days(found: tuple[Day, ...], key: Day, question: str) -> Fit:
    fits = [_fits_day(day, key, question) for day in found]
    return "right" if all(fits) else "ambiguous" if any(fits) else "wrong"


def _fits_day(day: Day, key: Day, question: str) -> bool:
    if key.covers(day):
        return True
    # a date without the year that the question names
    return (
        day.year is None and key.year is not None and day._replace(year=key.year) == key and str(key.year) in question
    )


_PAST_OR_TO = re.compile(r"\b(quarter|half|\d{1,2})(?: minutes)? (past|to) (\d{1,2})\b(?![:.]?\d)", re.IGNORECASE)


def _spell_time(text: str) -> str:
    """Return a text with "3:15" for "quarter past three"."""

    def read(found: re.Match[str]) -> str:
        name = found[1].casefold()
        minutes = {"quarter": 15, "half": 30}.get(name) or int(name)
        total = int(found[3]) * 60 + (minutes if found[2].casefold() == "past" else -minutes)
        return f"{total // 60}:{total % 60:02}"

    text = re.sub(
        r"\bhalf (?=past\b)",
        "30 ",
        re.sub(r"\b(?:a )?quarter (?=past\b|to\b)", "15 ", text, flags=re.IGNORECASE),
        flags=re.IGNORECASE,
    )
    return _PAST_OR_TO.sub(read, replace_number_words(text)) if re.search(r"\b(?:past|to)\b", text) else text


def read_times(text: str, question: str, *, is_lead: bool) -> list[TimeRead]:
    text = re.sub(r"(?<![\w:.])([01]\d|2[0-3])([0-5]\d)\s*(?=(?:hours|hrs|h)\b)", r"\1:\2 ", text)
    plain = _spell_time(strip_marks(REMARK.sub("", text)))
    rows = find_times(plain) or find_times(strip_marks(text))
    for first, second in itertools.pairwise(rows):
        if re.fullmatch(r"\s*(?:or|oder)\s*(?:at )?", plain[first[1] : second[0]], re.IGNORECASE):
            return [first[2], second[2]]
    if (bound := _read_bound(plain, question, [(start, end) for start, end, _ in rows])) is not None:
        return [rows[bound][2]]
    return [rows[0 if is_lead and "=" not in plain else -1][2]] if rows else []


def fits_time(found: TimeRead, key: TimeRead) -> Fit:
    if found.minutes == key.minutes:
        return "right"
    return "ambiguous" if (found.minutes - key.minutes) % 720 == 0 and not (found.is_sure and key.is_sure) else "wrong"
