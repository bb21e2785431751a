"""Comparable values: read yes/no, dates and numbers with units from short answers, and compare two of them."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from council.final_answers.dates import DATE_FORMS, find_days
from council.final_answers.numbers import NUMBER_WORDS, place_value, read_digits
from council.final_answers.units import CURRENCIES, MULTIPLIERS, UNITS, find_asked_unit, look_up, rate

Relation = Literal["agree", "conflict"]
Kind = Literal["yes/no", "number", "date", "name"]

ABOUT = 0.1  # share of the value that "about" allows
ROUNDING = 0.05  # largest share by which a rounded number may differ from the exact one
MAX_ANSWER_CHARS = 200
TEMPERATURE = "temperature"
STANCES = frozenset(("supports", "opposes", "qualifies"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or an interval, in a unit. `step` is the place value of the last written digit."""

    low: float
    high: float
    unit: str = ""
    about: bool = False
    step: float = 1.0
    other: float | None = None  # the number if its point separates thousands, as in "1.200"

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    @property
    def is_bound(self) -> bool:
        return math.isinf(self.low) or math.isinf(self.high)


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `low` to `high`, as ordinals; a bound has an infinite end."""

    low: float
    high: float
    about: bool = False


class ParsedAnswer(NamedTuple):
    """A parsed answer: its value, and the words after it, which may be a condition."""

    kind: Kind
    value: bool | Quantity | Span | str
    tail: str = ""


class Result(NamedTuple):
    """The comparison of two answers. Without a relation, the values decide nothing."""

    kind: Kind | None
    relation: Relation | None


UNDECIDED = Result(None, None)


def compare_answers(a: str, b: str, questions: tuple[str, str] = ("", "")) -> Result:
    """Compare two answers to the same question."""
    stances = {a.strip().lower(), b.strip().lower()}
    if stances <= STANCES:  # replies of version 0.1: equal stances on a neutral topic mean nothing
        return Result("yes/no", "conflict" if stances == {"supports", "opposes"} else None)
    pair = _parse_pair(a, b, questions)
    if pair is None or pair[0].kind != pair[1].kind:
        return UNDECIDED
    one, other = pair
    if _differ_in_object(one, other):
        return Result(one.kind, None)
    relation = _compare_values(one.value, other.value, questions)
    is_spelling = a.casefold().split() == b.casefold().split()  # "100 Mb/s" and "100 MB/s" may mean the same
    return Result(one.kind, None if is_spelling and relation == "conflict" else relation)


def has_comparable_values(a: str, b: str, questions: tuple[str, str] = ("", "")) -> bool:
    """Return whether code can compare two answers: "at least 5" and "about 8" differ, but they can both be true."""
    pair = _parse_pair(a, b, questions)
    if pair is None:
        return False
    one, other = pair
    if isinstance(one.value, Quantity) and isinstance(other.value, Quantity):
        return _differ_in_object(one, other) or _align_units(one.value, other.value) is not None
    return isinstance(one.value, Span) and isinstance(other.value, Span)


def _parse_pair(a: str, b: str, questions: tuple[str, str]) -> tuple[ParsedAnswer, ParsedAnswer] | None:
    """Return the values of two answers, with a bare year beside a date as a date; None if one has none."""
    one, other = (parse_answer(text, question) for text, question in zip((a, b), questions, strict=True))
    return None if one is None or other is None else (_align_years(one, other), _align_years(other, one))


def parse_answer(text: str, question: str = "") -> ParsedAnswer | None:
    """Return the value of an answer; an answer such as "it depends" has none."""
    plain = _normalize(text)
    if not plain or _NO_VALUE.match(plain):
        return None
    asks_for_amount = _AMOUNT_QUESTION.search(question) and not _ASKS_YES_NO.match(question)
    if _NOTHING.fullmatch(plain) and asks_for_amount:
        return ParsedAnswer("number", Quantity(0.0, 0.0, find_asked_unit(question)[0]))
    found = None
    if not _NAME_QUESTION.search(question):
        found = _parse_date(plain, bool(_WHEN_QUESTION.search(question))) or _parse_number(plain, question)
    return (
        found
        or _parse_yes_no(plain)
        or _parse_phrase(plain, question)
        or ParsedAnswer("name", plain if re.search(r"\d", plain) else name_key(plain))  # "-10 °" is not "10 °"
    )


def condition_of(text: str, question: str = "") -> str:
    """Return the condition inside an answer, as in "yes, if the data fit"; three words after a yes may be one in any
    language.
    """
    found = parse_answer(text, question)
    if found is None or not (_CONDITION.match(found.tail) or (found.kind == "yes/no" and len(found.tail.split()) > 2)):
        return ""
    return found.tail


def name_key(text: str) -> str:
    """Return a name for comparison: words in lower case without articles; C, C++ and C# stay different."""
    words = re.findall(r"[\w+#]+", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(word for word in words if word not in ("a", "an", "the")) or text.strip().casefold()


_NO_VALUE = re.compile(
    r"(?:it |that )?(?:depends|varies)|(?:un(?:known|clear|certain)|n/?a|not (?:known|clear|sure|necessarily))\b|\?+\Z"
)
_NAME_QUESTION = re.compile(r"\b(?:which|what)(?: \S+){0,2} (?:version|release)\b", re.IGNORECASE)
_AMOUNT_QUESTION = re.compile(r"\bhow (?:many|much)\b|\b(?:number|count|cost|price|fee)\b", re.IGNORECASE)
_NOTHING = re.compile(r"none|nil|nothing|zero|no|not any|free(?: of charge)?|no (?:cost|charge|fee)")
_WHEN_QUESTION = re.compile(r"\b(?:when|year|date|since|until|deadline)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"(?:if|when|unless|only|until|once|provided|assuming|depending|but|except|with|without|under|on|for|during|in|at|after|before|while|as long as|partially|partly|somewhat|sometimes)\b"
)


def _normalize(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text[:MAX_ANSWER_CHARS]).replace("’", "'").replace("−", "-")
    plain = re.sub(
        r"(?<![A-Za-z])([KMGT])b(?:it)?(ps)?\b", r"\1bit\2", re.sub(r"(?<=\d) ?M\b", " million", plain)
    ).casefold()
    return re.sub(r"\s*\[\d+(?:, ?\d+)*\]", "", " ".join(plain.split())).strip(" .!*_`\"'")


def _differ_in_object(a: ParsedAnswer, b: ParsedAnswer) -> bool:
    """Return whether the words after both numbers name different things, as in "60 % of reads" and "70 % of writes"."""
    tails = [name_key(one.tail) if one.tail and not _CONDITION.match(one.tail) else "" for one in (a, b)]
    return a.kind == "number" and all(tails) and tails[0] != tails[1]


def _align_years(one: ParsedAnswer, other: ParsedAnswer) -> ParsedAnswer:
    """Read a bare year as a date if it is compared with one."""
    value = one.value
    if other.kind == "date" and isinstance(value, Quantity) and value.is_point and not value.unit:
        return _parse_date(str(int(value.low)), True) or one if 1000 <= value.low <= 2100 else one
    return one


def _compare_values(a: object, b: object, questions: tuple[str, str]) -> Relation | None:
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return _compare_quantities(a, b, questions)
    if isinstance(a, Span) and isinstance(b, Span):
        return _compare_spans(a, b)
    if isinstance(a, bool) and isinstance(b, bool):
        return "agree" if a == b else "conflict"
    return "agree" if a == b else None  # different names may mean the same


# Yes and no

_YES = "yes|yeah|yep|true|correct|ja|oui|sí|si|да|はい|是|是的"
_NO = "no|nope|not|never|false|incorrect|nein|non|нет|いいえ|否|不是"
_HEDGE = r"(?:(?:most|very|almost|quite|highly) )?(?:(?:probably|likely|mostly|generally|usually|clearly|definitely|certainly|broadly|overall|largely),? )?"
_YES_NO = re.compile(
    rf"{_HEDGE}(?:(?P<yes>{_YES})|(?P<no>{_NO}))(?:\Z| yet\Z|\s*[,.;:(—–-]+\s*(?P<tail>.+)|\s+(?P<more>.+))"
)


def _parse_yes_no(text: str) -> ParsedAnswer | None:
    found = _YES_NO.match(text)
    if not found or (found["more"] and not _CONDITION.match(found["more"])):
        return None
    return ParsedAnswer("yes/no", bool(found["yes"]), (found["tail"] or found["more"] or "").rstrip(")"))


# Words that answer a question with yes or no: each row has words of one meaning and their opposites.
_OPPOSITES = (
    ("required requires require needed need needs necessary mandatory compulsory obligatory must obliged", "optional unnecessary voluntary dispensable unneeded"),
    ("possible allowed allow allows permitted permit permits legal lawful can may permissible admissible", "impossible forbidden prohibited illegal unlawful banned disallowed impermissible"),
    ("supported support supports available compatible included include includes maintained", "unsupported unavailable incompatible excluded discontinued unmaintained"),
    ("safe harmless", "unsafe dangerous harmful"),
    ("recommended recommend should advisable worthwhile sensible", "inadvisable discouraged unwise"),
    ("enabled active on", "disabled inactive off"),
    ("reversible", "irreversible"),
    ("valid", "invalid"),
    ("sufficient enough adequate", "insufficient inadequate"),
    ("likely probable", "unlikely improbable"),
)  # fmt: skip
_MEANINGS = {
    word: (n, is_positive)
    for n, (positive, negative) in enumerate(_OPPOSITES)
    for words, is_positive in ((positive, True), (negative, False))
    for word in words.split()
}
_ASKS_YES_NO = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|may|might|must|should|shall|will|would|need)\b",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?:(?:it|this|that|they|one|we|you)(?: is| are|'s|'re)? )?(?P<no>not|isn't|aren't|never|no longer|hardly)?\s*"
    r"(?:(?:really|strictly|generally|usually|fully|always|currently|officially|legally|explicitly|be|any) )*(?P<word>[a-z]+)"
    r"(?: anymore| any more| at all)?"
)
_NO_LONGER = re.compile(r"(?:no longer|not any ?more|not at all|none|no need|not at present)(?:\Z| (?P<more>.+))")
_NEGATION = re.compile(r"\b(?:not|no longer|never|without)\b|n['’]t\b", re.IGNORECASE)


def _parse_phrase(text: str, question: str) -> ParsedAnswer | None:
    """Read "not required" or "no longer" as the yes or no that they mean in answer to a question."""
    if not _ASKS_YES_NO.match(question):
        return None
    phrase = _PHRASE.fullmatch(text)
    meaning = _MEANINGS.get(phrase["word"]) if phrase else None
    if phrase and meaning:
        asked = [_MEANINGS[word] for word in re.findall(r"[a-z]+", question.casefold()) if word in _MEANINGS]
        same = [is_positive for n, is_positive in asked if n == meaning[0]]
        if len(set(same)) != 1 or _NEGATION.search(question):
            return None
        return ParsedAnswer("yes/no", (meaning[1] != bool(phrase["no"])) == same[0])
    found = _NO_LONGER.fullmatch(text)
    if not found or _NEGATION.search(question):
        return None
    return ParsedAnswer("yes/no", False, found["more"] or "")


# Numbers

_FIXED = {"twice": "2 x", "double": "2 x", "doubled": "2 x", "triple": "3 x", "half": "50 %", "a half": "50 %", "a third": "33 %",
          "one third": "33 %", "two thirds": "67 %", "a quarter": "25 %", "one quarter": "25 %", "three quarters": "75 %", "a fifth": "20 %",
          "four fifths": "80 %", "a tenth": "10 %"}  # fmt: skip
_NUM = r"\d{1,3}(?:[,' ]\d{3}(?!\d))+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}|\d+(?:[.,]\d+)?"
_CURRENCY = r"(?:us\$|[$€£¥]|(?:usd|eur|gbp|chf|jpy)\b)"
_MULTIPLIER = r"(?:k|thousand|mn|mio\.?|millions?|bn|b(?![a-z/])|billion|trillion|hundred|dozen)(?![a-z])"
_BOUNDS = {
    "high": r"at most|at the most|up to|no more than|not more than|no longer than|within|max(?:imum)?(?: of)?\.?|under|below|less than|fewer than|<=?|≤|höchstens",
    "low": r"at least|no less than|not less than|no fewer than|min(?:imum)?(?: of)?\.?|over|above|more than|greater than|>=?|≥|mindestens",
    "about": r"about|around|approximately|approx\.?|roughly|circa|ca\.?|~|≈|some|nearly|almost|close to|an estimated|etwa|environ",
}
_QUALIFIERS = f"(?:{'|'.join(_BOUNDS.values())})"
_NUMBER = re.compile(
    rf"(?:(?P<high>{_BOUNDS['high']})\s*|(?P<low>{_BOUNDS['low']})\s*|(?P<about>{_BOUNDS['about']})\s*|between\s+|from\s+|only\s+|just\s+|exactly\s+)*"
    rf"(?P<sign>[-+])?(?P<currency>{_CURRENCY})?\s*(?P<first>{_NUM})\s*(?P<times>{_MULTIPLIER})?"
    rf"(?:\s*(?:-|–|—|to|and|or|\.\.)\s*{_CURRENCY}?\s*(?P<last>{_NUM})\s*(?P<last_times>{_MULTIPLIER})?)?"
    r"(?P<plus>\+| or more| and more| plus| or (?:less|fewer))?\s*(?P<rest>.*)"
)
_UNIT = re.compile(
    r"-?(?P<unit>%|×|°?[a-zµμ]+)(?:\s*(?:/|\bper\b|\ba\b|\ban\b|\beach\b)\s*(?P<per>[a-zµ]+))?[\s,;:(]*(?P<tail>.*)"
)
_PER = re.compile(r"(?:/|per\b|a\b|an\b|each\b)\s*(?P<per>[a-zµ]+)[\s,;:(]*(?P<tail>.*)")


def _parse_number(text: str, question: str) -> ParsedAnswer | None:
    found = _NUMBER.fullmatch(_spell_out(text))
    if not found:
        return None
    unit, factor, tail = _parse_unit(found["rest"], CURRENCIES.get(found["currency"] or ""))
    if unit is None or (re.search(r"\d", tail) and not _CONDITION.match(tail)):
        return None
    if not unit:
        unit, factor = find_asked_unit(question)
    times = _multiplier(found["times"]) * factor
    first = float(read_digits(found["first"])) * (-1 if found["sign"] == "-" else 1)
    step = float(place_value(found["first"])) * times
    about = bool(found["about"])
    if found["last"]:
        last, first_times, last_times = float(read_digits(found["last"])), found["times"], found["last_times"]
        if first * _multiplier(first_times) > last * _multiplier(last_times):  # "3 to 1" is a ratio
            return None
        if first < last:  # "5 to 10 million"
            first_times = first_times or last_times
        low, high = sorted((first * _multiplier(first_times) * factor, last * _multiplier(last_times) * factor))
        return ParsedAnswer("number", Quantity(low, high, unit, about, step), tail)
    value = first * times
    other = first * 1000 * times if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", found["first"]) and unit != "share" else None
    plus = found["plus"] or ""
    low = -math.inf if found["high"] or plus.endswith(("less", "fewer")) else value
    high = math.inf if found["low"] or (plus and math.isfinite(low)) else value
    return ParsedAnswer("number", Quantity(low, high, unit, about, step, other), tail)


def _spell_out(text: str) -> str:
    """Replace number words by digits, "1 in 10" by 10 %, and the first unit of "20 % to 30 %"."""
    for words in sorted(_FIXED, key=len, reverse=True):
        if found := re.match(
            rf"({_QUALIFIERS}\s+)?{words}\b(?! (?:an? )?(?:day|hour|minute|week|month|year|dozen|million)\b)", text
        ):
            return (found[1] or "") + _FIXED[words] + text[found.end() :]
    scale = r"hundred|thousand|million|billion|dozen"
    text = re.sub(rf"\ban? (?=(?:{scale}|day|hour|minute|week|month|year)\b)", _count_one, text)  # "5 a day" is a rate
    text = re.sub(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", lambda word: str(NUMBER_WORDS[word[0]]), text)
    text = re.sub(r"\b([1-9]) nines\b", lambda found: f"{100 - 10.0 ** (2 - int(found[1])):.10g} %", text)
    text = re.sub(r"\b(?:degrees?|deg\.?|°) ?(celsius|fahrenheit|[cf])\b", lambda found: f"°{found[1][0]}", text)
    text = re.sub(r"(?<![\d/.])(\d{1,3})/(\d{1,3})(?![\d/.])", _to_percent, text)
    text = re.sub(rf"({_CURRENCY} ?[\d.,]+) ?m\b", r"\1 million", text)
    text = re.sub(r"\b(\d+) (?:in|of|out of) (\d{1,6})(?![\d.,]|\s*[a-z%])", _to_percent, text)
    return re.sub(rf"({_NUM})\s*(%|[a-zµ]+)(\s*(?:-|–|—|to|or|and)\s*(?:{_NUM})\s*\2(?![a-z]))", r"\1\3", text)


def _count_one(found: re.Match[str]) -> str:
    """Return "1 " for an article, unless a number before it makes it a rate: "$1.5k a month"."""
    has_number = re.search(r"\d|\b(?:one|two|three|four|five|six|ten|twelve)\b", found.string[: found.start()])
    return found[0] if has_number else "1 "


def _to_percent(found: re.Match[str]) -> str:
    part, whole = int(found[1]), int(found[2])
    return f"{100 * part / whole:.10g} %" if 0 < part <= whole else found[0]


def _parse_unit(rest: str, currency: str | None) -> tuple[str | None, float, str]:
    """Return the unit, its factor and the words after it; None if the rest is not a unit."""
    if currency:
        found = _PER.match(re.sub(r"\A(?:usd|dollars?|euros?)\b\s*", "", rest))
        return (*rate(currency, 1.0, found["per"]), found["tail"]) if found else (currency, 1.0, rest.strip(" ,;:("))
    if not rest.strip(" ,;:()"):
        return "", 1.0, ""
    if rest[0] in ",;:(":
        return "", 1.0, rest.strip(" ,;:()")
    if per := re.match(
        r"/\s*([a-zµ]+)[\s,;:(]*(.*)|(?:per|each|an?(?= (?:second|minute|hour|day|week|month|year)\b)) ([a-z]+)[\s,;:(]*(.*)",
        rest,
    ):
        return (*rate("", 1.0, per[1] or per[3]), per[2] or per[4] or "")
    found = _UNIT.match(rest)
    if not found:
        return None, 1.0, ""
    if _CONDITION.match(found["unit"]) and found["unit"] not in UNITS:
        return "", 1.0, rest
    unit, factor = look_up(found["unit"])
    if found["per"]:
        unit, factor = rate(unit, factor, found["per"])
    tail = re.sub(r"\A(?:of|as|in)\s+(?=\w+\Z)", "", found["tail"]).strip(" )")
    return unit, factor, tail


def _multiplier(word: str | None) -> float:
    return MULTIPLIERS[word.rstrip(".")] if word else 1.0


def _compare_quantities(a: Quantity, b: Quantity, questions: tuple[str, str]) -> Relation | None:
    pair = _align_units(a, b)
    if pair is None:
        return None
    a, b = pair
    if questions[0] != questions[1] and _are_complements(a, b):
        return None
    relation = _compare_intervals(a, b)
    for one, other in ((a, b), (b, a)):  # "1.200" may be a thousand two hundred
        if one.other is not None:
            thousands = replace(one, low=one.other, high=one.other, step=1.0)
            relation = relation if _compare_intervals(thousands, other) == relation else None
    return relation


def _align_units(a: Quantity, b: Quantity) -> tuple[Quantity, Quantity] | None:
    a, b = _to_celsius(_read_m(a, b)), _to_celsius(_read_m(b, a))
    if (a.low == a.high == 0 and not a.unit) or (b.low == b.high == 0 and not b.unit):
        return a, b  # nothing is nothing in any unit
    if a.unit != b.unit and a.unit.endswith("/time") and b.unit.endswith("/time") and "/time" in (a.unit, b.unit):
        return a, b  # "500 rps" and "1 million per day"
    if a.unit.rstrip("~") == b.unit.rstrip("~"):
        inexact = "~" in a.unit + b.unit and a.step != b.step
        return (replace(a, about=a.about or inexact), replace(b, about=b.about or inexact))
    for one, other in ((a, b), (b, a)):
        if one.unit:
            continue
        kind = other.unit.rstrip("~")
        if kind == "share":  # a bare 0 or 1, or the same digits as the percentage, may be either
            share = 0 < one.low <= one.high < 1 and not math.isclose(one.low, other.low * 100)
            return (a, b) if share else None
        if kind in ("time", "data", "length", "mass", "x") or "/" in kind:
            return (a, b) if kind in ("transaction/time", "request/time", "query/time") else None
        return a, b
    return None


def _to_celsius(one: Quantity) -> Quantity:
    if one.unit == "°c":
        return replace(one, unit=TEMPERATURE)
    if one.unit != "°f":
        return one
    low, high = (5 / 9 * (value - 32) for value in (one.low, one.high))
    return replace(one, low=low, high=high, unit=TEMPERATURE, step=one.step * 5 / 9)


def _read_m(one: Quantity, other: Quantity) -> Quantity:
    """Read the unit "m" as metres beside a length and as minutes beside a time."""
    kind = other.unit.rstrip("~")
    if one.unit != "m" or kind not in ("length", "time"):
        return one
    factor = 60.0 if kind == "time" else 1.0
    return replace(one, low=one.low * factor, high=one.high * factor, unit=kind, step=one.step * factor)


def _are_complements(a: Quantity, b: Quantity) -> bool:
    """Return whether two shares make up the whole: questions in opposite words, as in 90 % hits and 10 % misses."""
    return a.is_point and b.is_point and "share" in (a.unit, b.unit) and math.isclose(a.low + b.low, 1.0, rel_tol=0.01)


def _compare_intervals(a: Quantity, b: Quantity) -> Relation | None:
    if a.is_point and b.is_point:
        return _compare_points(a, b)
    one, other = _widen(a), _widen(b)
    if one.high < other.low or other.high < one.low:
        return "conflict"
    if a.is_bound or b.is_bound:
        return "agree" if (a.low, a.high) == (b.low, b.high) else None
    middles = ((a.low + a.high) / 2, (b.low + b.high) / 2)
    return "agree" if one.low <= middles[1] <= one.high or other.low <= middles[0] <= other.high else None


def _compare_points(a: Quantity, b: Quantity) -> Relation | None:
    apart, size = abs(a.low - b.low), max(abs(a.low), abs(b.low))
    if apart <= 1e-9 * size:
        return "agree"
    if a.about or b.about:
        return "agree" if apart <= ABOUT * size * (1 + 1e-9) else "conflict"
    if apart > max(a.step, b.step) / 2 or (apart > ROUNDING * size and a.unit != TEMPERATURE):
        return "conflict"
    return "agree" if a.unit or b.unit else None  # 3.1 and 3.12 may be versions


def _widen(one: Quantity) -> Quantity:
    if not one.about:
        return one
    return replace(one, low=one.low - ABOUT * abs(one.low), high=one.high + ABOUT * abs(one.high))


# Dates

_DATE_FORMS = tuple(re.compile(form + r"(?:[\s,;:(]+(?P<tail>.*))?\Z") for form in DATE_FORMS)
_DATE_PREFIX = re.compile(
    r"(?:(?P<high>by|before|until|no later than|not later than|at the latest)|(?P<low>after|since|from|not before|no earlier than|not earlier than|earliest)"
    r"|(?P<about>about|around|circa|ca\.|approximately|roughly)|(?P<part>early|mid|late|(?:the )?(?:start|beginning|end|middle) of)|in|on|the)[ -](?:the )?"
)


def _parse_date(text: str, year_alone: bool) -> ParsedAnswer | None:
    marks: dict[str, str] = {}
    while prefix := _DATE_PREFIX.match(text):
        marks |= {name: word for name, word in prefix.groupdict().items() if word}
        text = text[prefix.end() :]
    found = next((match for form in _DATE_FORMS if (match := form.match(text))), None)
    fields = found.groupdict() if found else {}
    if not fields or (set(fields) == {"year", "tail"} and not year_alone and not marks.get("part")):
        return None
    span = find_days(fields)
    if span is None:
        return None
    first, last = _cut(span, marks.get("part", ""))
    low, high = (-math.inf if "high" in marks else first), (math.inf if "low" in marks else last)
    if marks.get("low") == "after":
        low = last + 1
    if marks.get("high") == "before":
        high = first - 1
    return ParsedAnswer("date", Span(low, high, "about" in marks), fields.get("tail") or "")


def _cut(span: tuple[int, int], part: str) -> tuple[int, int]:
    """Return a third of a period: its start, middle or end."""
    if not part:
        return span
    third = (span[1] - span[0]) // 3
    if part.startswith(("early", "the start", "start", "the begin", "begin")):
        return span[0], span[0] + third
    if part.startswith(("mid", "the mid")):
        return span[0] + third, span[1] - third
    return span[1] - third, span[1]


def _compare_spans(a: Span, b: Span) -> Relation | None:
    if a.high < b.low or b.high < a.low:
        gap = max(a.low, b.low) - min(a.high, b.high)
        reach = max((one.high - one.low + 1 for one in (a, b) if one.about), default=0.0)
        return "conflict" if gap > reach else None
    if math.inf in (a.high, b.high) or -math.inf in (a.low, b.low):
        return "agree" if (a.low, a.high) == (b.low, b.high) else None
    return "agree" if (a.low <= b.low and b.high <= a.high) or (b.low <= a.low and a.high <= b.high) else None
