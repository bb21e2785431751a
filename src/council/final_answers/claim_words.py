"""Words of claims that the readers of all kinds need: remarks, reasons, stems, and a text in a form for comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from council.final_answers.markup import BOLD, BOLD_END, BOX, BOX_END, strip_marks, to_plain
from council.final_answers.numbers import replace_number_words
from council.final_answers.values import name_key

Fit = Literal["right", "wrong", "ambiguous"]
MARK_SIGNS = f"{BOLD}{BOLD_END}{BOX}{BOX_END}"
BOLD_SPAN = re.compile(f"{BOLD}([^{BOLD}{BOLD_END}]+){BOLD_END}")
REMARK = re.compile(
    r"(?<=[\w.%\"'!?\ue003])\s*\((?=[^()]*[A-Za-z=≈])[^()]*\)|(?<=\S)\s*\[(?=[^\[\]]*[A-Za-z])[^\[\]]*\]"
)
REASON = re.compile(
    r"(?:[,;.]?\s+(?:because|since|given that|as (?:the|it|there|we|they|this)|which (?:is|are|was|were)|where|rounded|rounding|rather than|instead of|not|"
    r"compared|assuming|due to|if (?:you|we|the|it)|based on|according to|after|from)\b|\s[—–]\s|;\s).*",
    re.IGNORECASE | re.DOTALL,
)
IS_EITHER = re.compile(
    r"\beither\b.*\bor\b|\b(?:two|both) (?:dates|answers|values|possibilities|years|options)\b.*\bor\b|\b(?:could|may|might) (?:also )?be\b.*\b(?:but|or|and)\b.*\b(?:could|may|might) (?:also |just as well |equally )?be\b",
    re.IGNORECASE | re.DOTALL,
)


def stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|e)\Z", "", word) if len(word) > 4 else word


def content(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"[^\W_]{3,}", text.casefold())} - SMALL_WORDS


SMALL_WORDS = {
    stem(word)
    for word in [
        "the",
        "that",
        "this",
        "does",
        "did",
        "can",
        "could",
        "may",
        "might",
        "must",
        "should",
        "shall",
        "will",
        "would",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "and",
        "for",
        "with",
        "not",
        "from",
        "its",
        "any",
        "isn",
        "doesn",
        "cannot",
        "which",
        "what",
        "there",
        "been",
        "being",
        "yet",
        "already",
        "they",
        "them",
        "then",
        "than",
        "true",
        "false",
        "statement",
    ]
}


_ORDINAL_DAYS = {word: n for n, word in enumerate(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"], 1)}  # fmt: skip
_ORDINAL_DAYS |= {f"twenty-{word}": 20 + n for word, n in list(_ORDINAL_DAYS.items())[:9]} | {
    "thirtieth": 30,
    "thirty-first": 31,
}
_ORDINAL_DAY = re.compile(rf"\b(?:{'|'.join(sorted(_ORDINAL_DAYS, key=len, reverse=True))})\b", re.IGNORECASE)


def spell_ordinals(text: str) -> str:
    return _ORDINAL_DAY.sub(lambda found: _ordinal(_ORDINAL_DAYS[found[0].casefold()]), text)


def compact(text: str) -> str:
    """Return a text for comparison. Signs count if the text is of code or a formula, else only words do."""
    plain = re.sub(r"_(?=\d)", "", strip_marks(to_plain(text))).strip(" .,;:\n\"'`*!")
    plain = join_parties(space_initials(plain))
    if is_code(plain):
        return (
            re.sub(r"\s+", "", re.sub(r"(?<=[nmk])\s?[·×*]\s?(?=log|ln|[a-z]\b)", " ", plain))
            .replace('"', "'")
            .casefold()
        )
    plain = spell_period(re.sub(r"(?<=\d)\s*(?::|to)\s*(?=\d)", ":", spell(plain)))
    return name_key(plain.replace("-", " "))


_INITIALS = re.compile(
    r"(?<![\w.])(?:[A-Z]\.){2,}(?![a-z(])|(?<![\w.])(?:[A-Z]\.)+(?=[A-Z][a-z])|(?<![\w.])[A-Z]\.[A-Z]\b(?=\.? [A-Z][a-z])"
)


def space_initials(text: str) -> str:
    """Return a text with "J R R Tolkien" for "J.R.R. Tolkien"."""
    return _INITIALS.sub(lambda found: " ".join(re.findall("[A-Z]", found[0])) + " ", text)


_VERSUS = re.compile(r"(?<=[^\W\d]) (?:v|vs)(?:\.(?= )|(?= ))(?= [A-Z])|(?<=[^\W\d]) versus(?= [A-Z])")


def join_parties(text: str) -> str:
    """Return a text with "Roe v Wade" for "Roe v. Wade" and "Roe vs Wade"."""
    return _VERSUS.sub(" v", text)


def spell(text: str) -> str:
    """Return a text with digits for words of numbers, and letters without accents."""
    plain = unicodedata.normalize("NFKD", replace_number_words(spell_ordinals(text)))
    return unicodedata.normalize("NFKC", "".join(letter for letter in plain if not unicodedata.combining(letter)))


_ROMAN_CENTURY = re.compile(r"\b(x{0,2}(?:ix|iv|v?i{0,3}))(?:th|st)?(?= century\b)", re.IGNORECASE)
_CENTURIES = {
    word: n
    for n, word in enumerate(
        [
            "i",
            "ii",
            "iii",
            "iv",
            "v",
            "vi",
            "vii",
            "viii",
            "ix",
            "x",
            "xi",
            "xii",
            "xiii",
            "xiv",
            "xv",
            "xvi",
            "xvii",
            "xviii",
            "xix",
            "xx",
            "xxi",
        ],
        1,
    )
}
_QUARTERS = (
    re.compile(
        r"\b(?:the )?(?:q(?P<number>[1-4])|(?P<word>[1-4])(?:st|nd|rd|th) quarter)(?: of|,|/|-)?(?: the year)? ?(?P<year>\d{4})\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?P<year>\d{4})[ /,-]*(?:q(?P<number>[1-4])|(?P<word>[1-4])(?:st|nd|rd|th) quarter)\b", re.IGNORECASE
    ),
)


def spell_period(text: str) -> str:
    """Return a text with "14th century", "1980s" and "Q3 2021" for other forms of them."""
    text = _ROMAN_CENTURY.sub(lambda found: _ordinal(_CENTURIES.get(found[1].casefold(), 0)) or found[0], text)
    text = re.sub(r"(?<=\d0)'s\b", "s", text)
    for pattern in _QUARTERS:
        text = pattern.sub(lambda found: f"q{found['number'] or found['word']} {found['year']}", text)
    return text


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}" if number else ""


def is_code(text: str) -> bool:
    """Return whether the signs of a text count, as in "O(n^2)" and "ls -la"."""
    bare = text.strip().strip(".,;:'\"!?")
    return bool(re.search(r"[(\[{<>=*/\\|^$#@~&_]|(?<=\s)-\w|\w\.\w|\+", bare)) and not re.search(r"\w \(", bare)


def are_alike(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether words are equal but for the ending of a plural."""
    return len(a) == len(b) and all(_singular(one) == _singular(other) for one, other in zip(a, b, strict=True))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
