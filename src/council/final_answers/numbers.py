"""Numbers: digits with separators, words, fractions and powers."""

from __future__ import annotations

import re
from fractions import Fraction

# Digits

_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_QUOTIENT = re.compile(r"(?:(\d+) )?([-+]?\d+)/(\d+)")
_POWER = re.compile(r"([-+]?\d{1,4})(?:\^|\*\*)(\d{1,2})")
_SCIENTIFIC = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:[×x*]\s*10\s*(?:\^|\*\*)\s*|e)\(?\{?([-+]?\d{1,2})\}?\)?", re.I)


def read_exact(text: str) -> Fraction | None:
    """Return the value of a bare number, fraction, power, or number in scientific notation."""
    if _PLAIN_NUMBER.fullmatch(text):
        return Fraction(text.replace(",", ""))
    if (found := _QUOTIENT.fullmatch(text)) and int(found[3]):
        return int(found[1] or 0) + Fraction(int(found[2]), int(found[3]))
    if found := _POWER.fullmatch(text):
        return Fraction(int(found[1])) ** int(found[2])
    if found := _SCIENTIFIC.fullmatch(text):
        return Fraction(found[1]) * Fraction(10) ** int(found[2])
    return None


def read_digits(text: str) -> Fraction:
    """Return the value of digits with separators: the last of two kinds is the decimal point."""
    text = re.sub(r"(?<=\d)[ '\u202f](?=\d{3}(?!\d))", "", text)
    last = max(text.rfind("."), text.rfind(","))
    if "." in text and "," in text:
        other = "," if text[last] == "." else "."
        text = text.replace(other, "")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:,\d{2,3})*,\d{3}", text):
        text = re.sub(r"[.,]", "", text)
    return Fraction(text.replace(",", "."))


def place_value(text: str) -> Fraction:
    """Return the place value of the last digit of a bare number; 0 for a fraction or a power."""
    if decimals := re.search(r"\.(\d+)\Z|,(\d{1,2})\Z", text):
        return Fraction(1, 10 ** len(decimals[1] or decimals[2]))
    return Fraction(re.fullmatch(r"[-+]?\d[\d,' ]*", text) is not None)


# Words

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
SMALL_NUMBERS = {word: n for n, word in enumerate(_SMALL.split())}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
NUMBER_WORDS = {**SMALL_NUMBERS, **_TENS}
NUMBER_WORD = rf"(?:{'|'.join([*SMALL_NUMBERS, *_TENS, *_SCALES, 'hundred'])})"
_SEVERAL_WORDS = re.compile(rf"\b{NUMBER_WORD}(?:(?:[ -]| and ){NUMBER_WORD})+\b", re.I)


def spell_numbers(text: str) -> str:
    """Return a text with digits for "one hundred and five", "7 and a half" and ".375"."""
    text = _SEVERAL_WORDS.sub(lambda found: read_number_words(found[0]), text)
    text = re.sub(r"\b(\d+) and a half\b", r"\1.5", text)
    return re.sub(r"(?<![\w.])\.(?=\d)", "0.", text)


def read_number_words(text: str) -> str:
    """Return the number that words spell, or the words if they are a list: "one two three"."""
    total, group, last = 0, 0, 10**9
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word == "and":
            continue
        value = NUMBER_WORDS.get(word)
        if value is not None:
            size = 1 if value < 10 else 10 if value < 20 else 20
            if size >= last or (last == 10 and size == 1):
                return text
            group, last = group + value, size
        elif word == "hundred" and 0 < group < 10:
            group, last = group * 100, 100
        elif word in _SCALES and group:
            total, group, last = total + group * _SCALES[word], 0, 10**9
        else:
            return text
    return str(total + group)


_FRACTION_NAMES = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "twelfth": 12, "hundredth": 100}  # fmt: skip
_FRACTION_NAME = r"(?:hal(?:f|ves)|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|hundredth)s?)"
_FRACTION_WORDS = re.compile(
    rf"\b(?:(?P<whole>\d+) and )?(?P<count>an?|\d+)[ -](?P<name>{_FRACTION_NAME})\b(?! (?:place|time|one|century|day))",
    re.I,
)
_HALF_A = re.compile(r"\bhalf an? (?=\w)", re.I)
_BARE_HALF = re.compile(r"\bhalf\b(?! an?\b)", re.I)
# "one" that is no number: "the only one", "one of them"
_ONE = re.compile(
    r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\bonly )(?<!\bno )(?<!\bany )(?<!\bevery )(?<!\beach )(?<!\bwhich )(?<!\bother )(?<!\bhow )(?<!\bif )(?<!\bas )(?<!\bwhen )"
    r"(?<!\bcorrect )(?<!\bright )\bone\b(?! (?:of|that|which|another|who|could|can|might|should|must|would|needs?|by)\b)",
    re.I,
)
_ONE_WORD = re.compile(rf"\b(?:{'|'.join(word for word in NUMBER_WORDS if word != 'one')})\b", re.I)


def replace_number_words(text: str) -> str:
    """Return a text with digits for all number words, also for one alone and for fractions."""
    text = _AND_A_HALF.sub(r"1.5 \1", spell_numbers(text))
    text = _ONE_WORD.sub(lambda found: str(NUMBER_WORDS[found[0].casefold()]), _ONE.sub("1", text))
    text = re.sub(r"\b(\d+) and a half\b", r"\1.5", text)
    text = _FRACTION_WORDS.sub(_read_fraction_words, text)
    text = re.sub(r"\ban? (?=(?:hundred|thousand|million|billion|dozen)\b)", "1 ", text, flags=re.I)
    text = _MONEY.sub(_read_money, text)
    text = _BELOW_ZERO.sub(r"-\1", text)
    return re.sub(
        r"\b(?:minus|negative) (?=[\d$€£.√])", "-", _BARE_HALF.sub("1/2", _HALF_A.sub("1/2 ", text)), flags=re.I
    )


_AND_A_HALF = re.compile(
    r"\b(?:an?|one) (hours?|minutes?|days?|weeks?|months?|years?|miles?|meters?|metres?|million|billion|dozen|cups?|inch|foot|lit(?:er|re)s?|kilos?|percent) and a half\b",
    re.I,
)
_MONEY = re.compile(
    r"\b(?P<whole>\d+) (?P<unit>dollars?|euros?|pounds?|francs?)(?:,? and|,)? (?P<part>\d\d?)(?: (?:cents?|pence|p|rappen))?(?![\w.,]*\d)(?! [a-z]+s\b)",
    re.I,
)
_BELOW_ZERO = re.compile(
    r"\b(\d+(?:\.\d+)? ?(?:°|degrees?) ?(?:[CF]\b|celsius|fahrenheit)?) ?below (?:zero|0|freezing)\b", re.I
)


def _read_money(found: re.Match[str]) -> str:
    """Return "3.50 dollars" for "3 dollars and 50 cents"."""
    return f"{found['whole']}.{int(found['part']):02} {found['unit']}"


def _read_fraction_words(found: re.Match[str]) -> str:
    name = found["name"].casefold()
    part = 2 if name.startswith("hal") else _FRACTION_NAMES[name.removesuffix("s")]
    count = 1 if found["count"].casefold() in ("a", "an") else int(found["count"])
    return f"{found['whole'] + ' ' if found['whole'] else ''}{count}/{part}"
