"""Fields of typed replies that two or more protocols share, and the synonyms that their words are read by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from council.answer_text import says_none

STEM_CHARS = 5  # "modifications" has the stem of "modified"
Synonyms = Mapping[str, str]  # value of an enum → its synonyms, separated by commas

# Words that change the meaning of the word beside them: "PASS with reservations" is no PASS.
_HEDGE = re.compile(
    r"\b(?:with|but|if|unless|except|only|though|although|however|not|no|never|conditional\w*|partial\w*|partly|pending|"
    r"provided|subject|caveats?|reserv\w*|concerns?|conditions?|changes?|or|to|and|leaning|borderline|almost|near\w*|some\w*|mixed|versus|vs)\b|[/|]",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\A\W*(?:my |the |final |overall )*(?:verdict|severity|confidence|outcome|stance|level|rating)\s*[:=]\s*", re.I
)
_MARKS = re.compile(r"\A[\W_]+|[\s*_`\"'#]+\Z")
_TAIL = re.compile(r"\s*[:;(\[,–—]\s*|\s+-\s+|\.\s+")
# Words for the size and kind of changes, so that "survived with minor revisions" is "survived with modifications".
_SIZE = re.compile(
    r"\b(?:minor|small|slight|some|few|several|light|modest|limited|substantial|major|significant|important|any)\b"
)
_CHANGES = re.compile(r"\b(?:modification|change|revision|amendment|adjustment|correction|edit|alteration)s?\b")
_CONNECTING_WORDS = {"with", "without", "after", "but", "and", "in", "no", "not", "did", "does", "it", "for", "to"}
_FILLER = re.compile(
    r"\b(?:very|strongly|clearly|confidence|level|severity|priority|the|a|an|is|draft|answer|position)\b"
)


def one_of(synonyms: Synonyms, *, firm: str = "") -> BeforeValidator:
    """Read a word of an enum in any case, with marks or a remark beside it, or as one of its synonyms.

    A word that is none of them stays as it is, so that validation reports it. `firm` is the value that conditions in a
    remark do not change: "MODIFIED – it holds with two corrections" is MODIFIED.
    """
    table = {_normalise(value): value for value in synonyms}
    for value, words in synonyms.items():
        table |= {word: value for word in map(_normalise, words.split(",")) if word}

    def read(text: Any) -> Any:
        return _read_word(text, table, firm) if isinstance(text, str) and text not in synonyms else text

    return BeforeValidator(read)


def _read_word(text: str, table: Mapping[str, str], firm: str = "") -> str:
    bare = _LABEL.sub("", text)
    if (whole := table.get(_normalise(bare)) or table.get(_normalise_changes(bare))) is not None:
        return whole
    head, *tail = _TAIL.split(_MARKS.sub("", bare), maxsplit=1)
    found = table.get(_normalise(head))
    rest = " ".join(tail)
    if found is not None and table.get(_normalise_changes(rest)) == found:  # "MODIFIED (survived with changes)"
        return found
    if found is None or (found != firm and _HEDGE.search(rest)):
        return text
    own = {words[:STEM_CHARS] for words, value in table.items() if value == found and " " not in words}
    named = {word for words, value in table.items() if value != found for word in words.split()}
    others = {word[:STEM_CHARS] for word in named - _CONNECTING_WORDS} - own
    return text if any(word[:STEM_CHARS] in others for word in re.findall(r"\w+", rest.casefold())) else found


def _normalise(text: str) -> str:
    """Return the words in lower case, without marks and words that say nothing: "**High** confidence" is "high"."""
    words = re.sub(r"[\W_]+", " ", text.casefold())
    return " ".join(_FILLER.sub(" ", words).split()) or " ".join(words.split())


def _normalise_changes(text: str) -> str:
    """Return words on changes of any size as words on modifications, or an empty string for other words."""
    if not _CHANGES.search(text.casefold()):
        return ""
    return " ".join(_SIZE.sub(" ", _CHANGES.sub("modifications", _normalise(text))).split())


def uppercase(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def none_to_empty(value: Any) -> Any:
    return "" if value is None else value


# Confidence, as a word or as a number

HIGH_SHARE, MEDIUM_SHARE = 0.8, 0.5  # numeric confidence from which the words HIGH and MEDIUM apply
_SHARES = {"HIGH": 0.9, "MEDIUM": 0.6, "LOW": 0.3}  # numbers for the words
_NUMBER = re.compile(
    r"\A[~≈]?\s*(\d{1,3}(?:[.,]\d+)?)\s*(%|percent|/\s*(\d{1,3}))?\s*(?:confiden\w+|sure|certain)?\.?\Z"
)
_CONFIDENCE_WORDS: Synonyms = {
    "HIGH": "strong, highly confident, very confident, certain, very certain, almost certain",
    "MEDIUM": "med, moderate, mid, fair, moderately confident",
    "LOW": "weak, uncertain, very uncertain, not confident, low to none",
}
_CONFIDENCE_TABLE = {
    _normalise(word): value for value, words in _CONFIDENCE_WORDS.items() for word in [value, *words.split(",")]
}


def parse_share(value: Any) -> float | None:
    """Return a confidence from 0 to 1: a share, a percentage, or "8/10". None if the scale is unclear, as for 7."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _scale(float(value))
    match = _NUMBER.match(value.strip().casefold()) if isinstance(value, str) else None
    if not match:
        return None
    number, mark, whole = float(match[1].replace(",", ".")), match[2], match[3]
    if whole:
        return number / int(whole) if 0 <= number <= int(whole) else None
    return _scale(number) if not mark else number / 100 if number <= 100 else None


def _scale(number: float) -> float | None:
    if 0 <= number <= 1:
        return number
    return number / 100 if 10 < number <= 100 else None  # 7 may be of 10 or of 100


def read_confidence(value: Any) -> Any:
    """Return HIGH, MEDIUM or LOW for a word or a number; any other value as it is."""
    if isinstance(value, str) and (word := _read_word(value, _CONFIDENCE_TABLE)) in _SHARES:
        beside = re.search(r"[\d.,]+\s*%?", value)
        share = parse_share(beside[0].strip(" .,")) if beside else None
        return word if share is None or _level_of(share) == word else value  # "HIGH (20%)" contradicts itself
    is_one = value == 1 if not isinstance(value, str | float) else str(value).strip() == "1"
    share = None if is_one else parse_share(value)  # 1 may be of 1 or of 10
    return value if share is None else _level_of(share)


def _level_of(share: float) -> str:
    return "HIGH" if share >= HIGH_SHARE else "MEDIUM" if share >= MEDIUM_SHARE else "LOW"


def _read_probability(value: Any) -> Any:
    if isinstance(value, str) and (word := _read_word(value, _CONFIDENCE_TABLE)) in _SHARES:
        return _SHARES[word]
    share = parse_share(value)
    if share is None and isinstance(value, int | float):
        said = str(value).lower() if isinstance(value, bool) else f"{value:g}"
        raise ValueError(f"{said} is not between 0 and 1")
    return value if share is None else share


ConfidenceField = Annotated[Literal["HIGH", "MEDIUM", "LOW"], BeforeValidator(read_confidence)]
Probability = Annotated[float, Field(ge=0, le=1), BeforeValidator(_read_probability)]
TextField = Annotated[str, BeforeValidator(none_to_empty)]


def _drop_none_items(points: list[str]) -> list[str]:
    return [point for point in points if not says_none(point)]


YES_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def _read_yes_or_no(value: Any) -> Any:
    """Return True or False for a clear word; None, which says nothing, for any other value."""
    return value if isinstance(value, bool) else YES_WORDS.get(str(value).strip(" .").lower())


YesOrNo = Annotated[bool | None, BeforeValidator(_read_yes_or_no)]


def require_text(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty: write the whole answer")
    return value


PointList = Annotated[list[str], AfterValidator(_drop_none_items)]  # without items which say that there is no point


class ReplyPart(BaseModel):
    """Part of a reply; extra fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
