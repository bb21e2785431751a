"""The language of an answer, recognised by its script and its most frequent words."""

from __future__ import annotations

import re

MAX_CHARS = 4000
MIN_HITS = 3  # frequent words that a text needs before its language counts as known
MIN_LEAD = 1.5  # the best language needs so many times the hits of the second

# Frequent words that few other languages share.
FREQUENT_WORDS = {
    "en": "the and of to is that for with are this you it be not as on by from or have we should which when",
    "de": "der die das und ist nicht mit den von für auf ein eine dem des sich auch wird sind oder wenn werden bei nur wir sie",
    "fr": "le les des et est une dans pour que pas sur avec vous nous par plus ce cette sont qui aux ne il au ou",
    "es": "el los las y es una del para que con por no se lo más como está son pero si su este esta al o",
    "it": "il gli di è una per che non con del della sono più come questo anche se nel dei le alla ma si da",
    "pt": "os as do da é uma para que não com por dos das mais como em no na são ou se ao você mas um",
}
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]+")
_SETS = {language: frozenset(words.split()) for language, words in FREQUENT_WORDS.items()}


def detect_language(text: str) -> str:
    """Return the language of a text as a code such as "de"; "en" if it is not known."""
    prose = _CODE.sub(" ", text[:MAX_CHARS])
    letters = sum(map(str.isalpha, prose)) or 1
    kana = len(_KANA.findall(prose))
    han = len(_HAN.findall(prose))
    if kana + han > letters / 4:
        return "ja" if kana > (kana + han) / 10 else "zh"
    words = _WORDS.findall(prose.casefold())
    hits = {language: sum(word in known for word in words) for language, known in _SETS.items()}
    best, second = sorted(hits, key=lambda language: -hits[language])[:2]
    if hits[best] < MIN_HITS or hits[best] < MIN_LEAD * hits[second]:
        return "en"
    return best
