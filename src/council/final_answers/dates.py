"""Dates and times of day: forms in which they are written, and the days of a period."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

MONTHS = {name: n for n, name in enumerate(re.findall(r"\w+", "jan feb mar apr may jun jul aug sep oct nov dec"), 1)}
_MONTHS_ELSEWHERE = {"januar": 1, "februar": 2, "märz": 3, "mai": 5, "juni": 6, "juli": 7, "oktober": 10, "dezember": 12, "janvier": 1, "février": 2, "mars": 3, "avril": 4, "juin": 6, "juillet": 7, "août": 8, "septembre": 9, "octobre": 10, "novembre": 11, "décembre": 12, "enero": 1, "febrero": 2, "marzo": 3, "abril": 4, "mayo": 5, "junio": 6, "julio": 7, "agosto": 8, "septiembre": 9, "octubre": 10, "noviembre": 11, "diciembre": 12}  # fmt: skip
MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_ANY_MONTH = MONTH.replace("(?P<month>", rf"(?P<month>{'|'.join(_MONTHS_ELSEWHERE)}|").replace(r")\.?", r")\b\.?")
YEAR = r"(?P<year>1\d\d\d|20\d\d)"
DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
DATE_FORMS = (
    r"(?P<year>(?:19|20)\d\d)-(?P<number>[01]\d)-(?P<day>[0-3]\d)(?:t[\d:.z+]*)?",
    r"(?P<year>(?:19|20)\d\d)-(?P<number>[01]\d)",
    rf"(?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.{YEAR}",
    rf"(?P<day>1[3-9]|2\d|3[01])/(?P<number>0?[1-9]|1[0-2])/{YEAR}",
    rf"(?P<number>0?[1-9]|1[0-2])/(?P<day>1[3-9]|2\d|3[01])/{YEAR}",
    rf"{DAY}\.? (?:of )?{MONTH},? {YEAR}",
    rf"{MONTH} {DAY},? {YEAR}",
    rf"{MONTH},? {YEAR}",
    rf"q(?P<quarter>[1-4])[ /-]?{YEAR}",
    rf"{YEAR}[ /-]?q(?P<quarter>[1-4])",
    rf"h(?P<half>[12])[ /-]?{YEAR}",
    YEAR,
)


def find_days(fields: Mapping[str, str | None]) -> tuple[int, int] | None:
    """Return the first and the last day of a date, month, quarter, half year or year, as ordinals."""
    year = int(fields["year"] or 0)
    last, length = 12, 12  # the last month of the period, and its months
    if month := fields.get("number") or MONTHS.get((fields.get("month") or "")[:3]):
        last, length = int(month), 1
    elif quarter := fields.get("quarter"):
        last, length = int(quarter) * 3, 3
    elif half := fields.get("half"):
        last, length = int(half) * 6, 6
    first = last - length + 1
    try:
        if day := fields.get("day"):
            on = date(year, first, int(day)).toordinal()
            return on, on
        return date(year, first, 1).toordinal(), date(year, last, monthrange(year, last)[1]).toordinal()
    except ValueError:
        return None


# Dates in a text

_LONG_YEAR = r"(?P<year>\d{3,4})(?!\d)(?P<era> ?(?:bce?|ad|ce)\b)?"
_NUMBERS = r"(?P<first>\d{1,2})(?P<mark>[./-]) ?(?P<second>\d{1,2})(?P=mark) ?(?P<year>\d{4}|\d{2})(?!\d)"
_IN_TEXT = tuple(
    re.compile(rf"(?<![\w.,/-]){form}(?!\w)", re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})[-/.](?P<number>[01]?\d)[-/.](?P<day>[0-3]?\d)(?:t[\d:.z+]*)?",
        rf"(?P<day>[0-3]?\d)(?:st|nd|rd|th|º)?\.? (?:day )?(?:of |de )?{_ANY_MONTH}(?:,| of| de| in)* {_LONG_YEAR}",
        rf"{_ANY_MONTH} (?:the )?(?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?:,| of| in)* {_LONG_YEAR}",
        rf"(?P<year>\d{{4}}),? {_ANY_MONTH} (?P<day>[0-3]?\d)(?:st|nd|rd|th)?",
        rf"(?P<day>[0-3]?\d)[-/ ]{MONTH}[-/ ](?P<year>\d{{4}})",
        _NUMBERS,
        rf"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\.? (?:of )?{_ANY_MONTH}",
        rf"{_ANY_MONTH}(?:,| of| de)* (?P<year>\d{{4}})",
        rf"{_ANY_MONTH} (?:the )?(?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?!\d)",
        r"(?P<year>\d{4})-(?P<number>[01]\d)",
        r"(?P<era>ad) (?P<year>[1-9]\d{0,3})",
        r"(?P<year>[1-9]\d{2,3}) ?(?P<era>bce?|ad|ce)\b",
        r"(?P<year>[1-9]\d{0,3}) ?(?P<era>bce?|ad|ce)\b",
        r"(?P<year>1\d{3}|20\d\d)",
    )
)


class Day(NamedTuple):
    """A date of which parts may be missing."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def covers(self, other: Day) -> bool:
        """Return whether the other date has all parts of this one, and they are equal."""
        return all(mine is None or mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __str__(self) -> str:
        return "-".join(f"{part:02}" if part is not None else "?" for part in self)


class DateFound(NamedTuple):
    """A date in a text, with its readings: "03/04/2026" has two."""

    start: int
    end: int
    readings: tuple[Day, ...]


def find_dates(text: str) -> list[DateFound]:
    """Return the dates of a text in their order. The first fitting form counts at each place."""
    found: list[DateFound] = []
    for form in _IN_TEXT:
        for match in form.finditer(text):
            if any(match.start() < one.end and one.start < match.end() for one in found):
                continue
            if readings := _read_days(match.groupdict()):
                found.append(DateFound(match.start(), match.end(), readings))
    return sorted(found)


def _read_days(fields: Mapping[str, str | None]) -> tuple[Day, ...]:
    year = int(fields.get("year") or 0) or None
    if year is not None and re.match(r" ?bc", fields.get("era") or "", re.IGNORECASE):
        year = -year
    first, second = int(fields.get("first") or 0), int(fields.get("second") or 0)
    if first:
        year = year + (2000 if year < 50 else 1900) if year is not None and 0 < year < 100 else year
        days = (
            [Day(year, second, first)]
            if fields["mark"] == "."
            else [Day(year, first, second), Day(year, second, first)]
        )
    else:
        name = (fields.get("month") or "").casefold()
        month = int(fields.get("number") or 0) or _MONTHS_ELSEWHERE.get(name) or MONTHS.get(name[:3])
        days = [Day(year, month, int(fields.get("day") or 0) or None)]
    return tuple(dict.fromkeys(filter(_is_possible, days)))


def _is_possible(day: Day) -> bool:
    return (day.month is None or 1 <= day.month <= 12) and (day.day is None or 1 <= day.day <= 31)


# Times of day

TIME_OF_DAY = re.compile(
    r"(?:at )?(\d{1,2})(?:[:.h](\d{2}))?(?::\d{2})?\s*(a\.?m\.?|p\.?m\.?|o'clock|h)?(?:\s*\(?([A-Za-z]{2,5})\)?)?", re.I
)
_TIME_IN_TEXT = re.compile(
    r"(?<![\w.:])(?:(?P<hour>\d{1,2})(?:[:h]|[.](?=\d\d\s*(?:[ap]\.?\s?m\b|uhr\b|h\b|hours\b)))(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?!\d)\s*(?:(?P<mark>[ap]\.?\s?m)\b\.?|(?:h|hrs?|hours|uhr)\b|(?P<part>(?:in the |at )(?:morning|afternoon|evening|night)))?"
    r"|(?P<full_hour>\d{1,2})\s*(?:(?P<full_mark>[ap]\.?\s?m)\b\.?|o'clock|uhr\b))|\b(?P<word>noon|midday|midnight)\b",
    re.I,
)


class TimeRead(NamedTuple):
    """A time of day in minutes. Without `is_sure` it may be that of the other half of the day."""

    minutes: int
    is_sure: bool


def read_time(found: re.Match[str]) -> TimeRead | None:
    """Return the time of a match of TIME_OF_DAY; None if there is none such as 25:00 or 13 pm."""
    return make_time(int(found[1]), int(found[2] or 0), found[3] or "")


def make_time(hour: int, minute: int, mark: str) -> TimeRead | None:
    mark = re.sub(r"[.\s]", "", mark).casefold()
    if hour > 24 or (mark in ("am", "pm") and hour > 12):
        return None
    is_sure = mark in ("am", "pm") or hour > 12 or hour == 0
    hour = hour % 12 + 12 * (mark == "pm") if mark in ("am", "pm") else hour
    return TimeRead(hour * 60 + minute, is_sure)


def find_times(text: str) -> list[tuple[int, int, TimeRead]]:
    """Return the times of day in a text, with their places."""
    rows = []
    for found in _TIME_IN_TEXT.finditer(text):
        if found["word"]:
            time: TimeRead | None = TimeRead(0 if found["word"].casefold() == "midnight" else 720, True)
        else:
            hour, mark = found["hour"] or found["full_hour"], found["mark"] or found["full_mark"] or ""
            part = (found["part"] or "").split(" ")[-1]
            mark = mark or (
                "" if not part else "am" if part == "morning" or (part == "night" and int(hour) < 6) else "pm"
            )
            time = make_time(int(hour), int(found["minute"] or 0), mark)
            time = time._replace(is_sure=True) if time and hour.startswith("0") else time
        if time:
            rows.append((found.start(), found.end(), time))
    return rows
