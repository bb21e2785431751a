"""Comparison of two short answers to the same question: conclusions, votes and final answers.

"same" is said only where code can tell that two answers are the same. What it cannot tell is "unclear".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal, NamedTuple

from council.final_answers.dates import TIME_OF_DAY, read_time
from council.final_answers.markup import read_latex, strip_marks
from council.final_answers.numbers import SMALL_NUMBERS, place_value, read_exact, spell_numbers
from council.final_answers.units import is_unit
from council.final_answers.values import Quantity, Span, compare_answers, parse_answer

Comparison = Literal["same", "different", "unclear"]
MAX_CONCLUSION_CHARS = 300  # a longer one is no conclusion that code can compare
MAX_QUESTION_CHARS = 1_000  # the end of a long question, which asks


def compare_all(conclusions: Sequence[str], question: str = "") -> Comparison:
    """Compare all conclusions with each other: "same" if each pair is, "different" if one pair is."""
    found = {compare_conclusions(a, b, question) for a, b in combinations(conclusions, 2)}
    return "different" if "different" in found else "same" if found == {"same"} else "unclear"


# The comparison


def compare_conclusions(a: str, b: str, question: str = "") -> Comparison:
    """Compare two conclusions of answers to the same question."""
    texts = [_normalize(one[: 2 * MAX_CONCLUSION_CHARS]) for one in (a, b)]
    if not all(texts) or max(map(len, texts)) > MAX_CONCLUSION_CHARS or any(map(_NOTHING_SAID.fullmatch, texts)):
        return "unclear"
    asked = _Question(_normalize(question[-MAX_QUESTION_CHARS:]))
    for compare in (_compare_polarities, _compare_choices, _compare_values, _compare_words):
        found = compare(texts[0], texts[1], asked)
        if found:
            is_literal = asked.asks_literal and _strip_marks(a) != _strip_marks(b)
            return "unclear" if found == "same" and is_literal else found
    return "unclear"


def _strip_marks(text: str) -> str:
    return text.strip(" \n*`.")


class _Question:
    """A question, with what the comparison needs to know about it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = frozenset(map(_stem, _split_words(text)))
        last = re.split(r"(?<=[.!?:;])\s+", text.strip())[-1]
        self.last = last
        self.is_yes_no = bool(_YES_NO_START.match(last)) and not _OR.search(last)
        self.asks_when = bool(_WHEN.search(text))
        self.asks_time = bool(_TIME_OF_DAY.search(text))
        self.asks_version = bool(_VERSION.search(text))
        self.asks_literal = bool(_LITERAL.search(last))
        self.is_negative = bool(_count_negations(last) or _TRUTH.search(last))
        self.has_list = bool(_LIST.search(last))
        self.options = _find_options(last) or _find_options(text)

    def covers(self, words: Sequence[str]) -> bool:
        """Return whether the question, or words that say nothing, have all of these words.

        A question about several things covers no words of its own: an answer may be about one of them.
        """
        own = frozenset() if self.has_list else self.words
        return all(word in _FUNCTION_STEMS or word in _HEAD_STEMS or word in own for word in map(_stem, words))

    def is_repeated_by(self, text: str) -> bool:
        """Return whether a text only repeats words of the question, in their order; all of them if it asks about
        several things.
        """
        asked = [_stem(_bare(word)) for word in _split_tokens(self.last)]
        said = [word for word in map(_stem, map(_bare, _split_tokens(text))) if word not in _SMALL_STEMS]
        rest = iter(asked)
        if not all(word in rest for word in said):
            return False
        return not said or not self.has_list or said == [word for word in asked if word not in _SMALL_STEMS | {"?"}]


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(_stem, words.split()))


def _stem(word: str) -> str:
    """Return a word without the ending of its plural or third person."""
    word = word.casefold()
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word.isalpha():
        return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return word


_YES_NO_START = re.compile(
    r"\W*(?:(?:and|so|but|then|please|now|today|currently),? )*"
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|may|might|must|should|shall|will|would)\b(?!\s+(?:you|we)\s+(?:tell|say|explain|list|compute|calculate))",
    re.I,
)
_WHEN = re.compile(r"\b(?:when|date|year|day|month|deadline|since|until)\b", re.I)
_TIME_OF_DAY = re.compile(r"\b(?:when|time|o'clock|hour|arrive|depart|start|end|begin|finish|leave)\w*\b", re.I)
_VERSION = re.compile(r"\b(?:version|release|edition|section|chapter|score|odds|signature|rating)s?\b", re.I)
_TRUTH = re.compile(r"\b(?:false|true|wrong|incorrect|correct|right)\b", re.I)
_OR = re.compile(r"\b(?:or|versus|vs\.?)\b", re.I)
_LIST = re.compile(r"\b(?:and|or|both|all|each|every|any|respectively|und|oder|et|ou|y|o|e)\b|,\s|[;&]", re.I)
# What a question asks for that every character of counts in: "5.0" is not "5".
_LITERAL = re.compile(
    r"\b(?:output|prints?|printed|returns?|returned|strings?|types?|commands?|regex|expressions?|paths?|files?|filenames?|globs?|flags?|"
    r"identifiers?|variables?|syntax|urls?|passwords?)\b",
    re.I,
)
# Words without a meaning of their own. A preposition has one: "from Rome" is not "to Rome".
_SMALL_STEMS = _stems("the that this it its is are be am do does has have we you they there")
_MODALS = _stems("was were did had will would can could may might must should shall need")
_FUNCTION_STEMS = _stems(
    "a an the of in on at to for by with from and so that this these those it its is are was were be been being am do does did has have "
    "had will would shall should can could may might must we you i they he she there here as than then what which who whom whose "
    "when where why how much many our your my their his her please just also about into per us me"
)
_HEAD_STEMS = _stems(
    "answer result total value sum solution conclusion final correct overall exactly equal equals amount number count need takes take "
    "cost costs get gets have has comes come make makes pay pays left remaining altogether hence therefore thus so called named known"
)
_NEGATIONS = _stems(
    "not no never none neither nor without cannot non isnt arent wasnt werent dont doesnt didnt wont cant couldnt shouldnt wouldnt "
    "mustnt hasnt havent hadnt avoid against nicht kein keine nie ne pas jamais nunca não nao mai"
)
# Words that make a conclusion a different one: a condition, a limit, a part.
_CONDITIONS = re.compile(
    r"\b(?:if|unless|only|until|once|provided|providing|assuming|depend\w*|but|except|however|though|although|when|whenever|while|"
    r"as long as|partial\w*|partly|somewhat|sometimes|subject to|in case|otherwise|mostly|usually|generally|technically|under|within|"
    r"after|before|except|barring|given|in (?:theory|principle|practice|some|most|many|certain)|for (?:some|most|many|certain|now|small|large)|"
    r"wenn|falls|sofern|nur|aber|außer|sobald|pero|solo|sólo|salvo|mais|sauf|seulement|sauf|se|si|mas|ma|quando)\b|如果|除非|只有|但|もし|ただし|場合",
    re.I,
)
_HEDGES = re.compile(
    r"\b(?:probably|likely|unlikely|perhaps|maybe|possibly|presumably|apparently|arguably|might|could|may|seems?|i think|i believe|almost|nearly)\b",
    re.I,
)
_NOTHING_SAID = re.compile(
    r"(?:it |that |this )?(?:depends|varies)\b.*|(?:it is |it's |that is )?(?:un(?:known|clear|certain|decided|determined|answerable)|n/?a|not (?:known|clear|sure|"
    r"certain|enough|determinable|specified|given|stated|applicable)|insufficient|impossible to (?:say|tell|know)|(?:it )?can(?:not|'t) be (?:determined|known|answered|said)|"
    r"can(?:no|')t (?:say|tell|determine|answer|know)|i (?:do not|don't|cannot|can't) (?:know|say|answer|tell)|no (?:answer|conclusion|idea)|"
    r"(?:no|not enough|insufficient) (?:\w+ )?(?:information|data|evidence)|(?:more|further) (?:information|data|analysis|research|investigation)|i(?:'m| am) (?:sorry|unable|not able|not sure)|sorry|i can(?:not|'t)|"
    r"it is hard to say)\b.*|\?+",
    re.I,
)


_EMPHASIS = re.compile(r"(?<![\w*])(\*\*|__|\*|_)(?=[^\s*_])([^*]*[^\s*_])\1(?![\w*/])")
_LABEL = re.compile(
    r"\A(?:(?:my|the|final|short|overall|main) )*(?:conclusion|answer|result|recommendation|verdict|decision|solution)\s*(?:[:=]|is(?: that)?\b:?)\s*",
    re.I,
)


def _normalize(text: str) -> str:
    """Return a text without marks of Markdown and LaTeX, quotes and labels, on one line."""
    plain = strip_marks(read_latex(text)).replace("–", "-")
    plain = re.sub(r"(?<=\d)\s*[x*]\s*(?=10\s*(?:\^|\*\*))", " × ", re.sub(r"\"([^\"]*)\"", r"\1", plain))
    plain = re.sub(r"`|(?<!\d)\"|(?<!\w)'|(?<![\ds])(?<!\b[^\W\d_])'(?!\w)", "", plain)  # 5', 5" and x' are values
    plain = _LABEL.sub("", _EMPHASIS.sub(r"\2", " ".join(plain.split())), count=1)
    plain = _EMPHASIS.sub(r"\2", plain).strip(" ;,")
    plain = re.sub(r"(?<!\.)\.\Z", "", plain)  # "0.333..." keeps its dots
    return re.sub(r"(?<=[^\W\d_]{2})!+\Z", "", plain)  # "Yes!", not "5!"


_WORD = re.compile(r"[-+]?\d+(?:[.,:/]\d+)*%?|[^\W\d_](?:[\w'.]*\w)?(?:\+\+|[+#]|-(?=\s|\Z))?|[%$€£¥<>=≤≥≠^×*/°+-]")


def _split_words(text: str) -> list[str]:
    """Return words, numbers with their sign, and marks that change the meaning."""
    spaced = re.sub(r"(?<=[^\W\d_])-(?=\w)", " ", text)  # a hyphen, not a sign
    return _WORD.findall(spaced)


_TOKEN = re.compile(
    r"[-+]?\d+(?:[.,:/]\d+)*(?:e[-+]?\d+|(?:\^|\*\*)\{?[-+]?\d+\}?)?%?|[A-Za-z]{1,3}\$|\.{2,}|\.(?=[^\s,;:])|[^\W\d_](?:[\w'.]*\w)?(?:\+\+|[+#]|-(?=\s|\Z))?|[^\w\s,;:.]|_"
)


def _split_tokens(text: str) -> list[str]:
    """Return words, numbers and every other mark but those between sentences and the parts of a list."""
    return _TOKEN.findall(re.sub(r"(?<=[^\W\d_])-(?=\w)", " - ", text))


def _bare(word: str) -> str:
    return word.casefold().replace("'", "")


# Yes and no

_YES_WORDS = "yes|yeah|yep|true|correct|right|ja|oui|sí|да|はい|是|是的|sim"
_NO_WORDS = "no|nope|false|incorrect|wrong|nein|нет|いいえ|否|不是|não"
_POLARITY = re.compile(
    rf"(?:(?:definitely|certainly|clearly|absolutely|of course|indeed|it is|that is|the statement is|the claim is),? )?"
    rf"(?:(?P<yes>{_YES_WORDS})|(?P<no>{_NO_WORDS}))(?![\w'])(?:\Z|\s*[,.;:(-]+\s*(?P<tail>.+)|\s+(?P<more>.+))",
    re.I,
)


_LIMIT = re.compile(r"(?:with|without|for|in|at|on|from|to|up to|above|below|over)\b", re.I)  # begins a scope


class _Polarity(NamedTuple):
    value: bool
    remark: str = ""  # what follows the yes or no


def _compare_polarities(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare two answers with yes or no. A condition or a hedge beside one leaves it open."""
    one, other = _read_polarity(a, question), _read_polarity(b, question)
    if one is None or other is None:
        says_one = one is not other  # only one of them says yes or no
        return "unclear" if says_one and question.is_yes_no else None
    if _word_keys(a) == _word_keys(b):
        return "same"
    if question.is_negative or any(_CONDITIONS.search(text) or _HEDGES.search(text) for text in (a, b)):
        return "unclear"
    remarks = [one.remark, other.remark]
    if one.value != other.value:
        return "unclear" if any(map(_LIMIT.match, remarks)) else "different"
    return "same" if all(map(question.is_repeated_by, remarks)) else "unclear"


def _read_polarity(text: str, question: _Question) -> _Polarity | None:
    """Return the yes or no of an answer, also of one that repeats the statement of the question or denies it."""
    found = _POLARITY.fullmatch(text)
    if found and not (found["more"] and not _CONDITIONS.match(found["more"]) and not question.is_yes_no):
        remark = found["tail"] or found["more"] or ""
        said = _read_statement(remark, question)
        if said is not None and said != bool(found["yes"]):
            return None  # "Yes, it is not safe" says both
        return _Polarity(bool(found["yes"]), remark)
    said = _read_statement(text, question)
    return None if said is None else _Polarity(said)


def _read_statement(text: str, question: _Question) -> bool | None:
    """Return whether a sentence says the statement of a question with yes or no, or denies it; None for any other.

    Its words have to be those of the question, all of them and in the same order.
    """
    if not question.is_yes_no or _count_negations(question.text):
        return None
    said, asked = (
        [word for word in map(_stem, map(_bare, _split_tokens(one))) if word not in _SMALL_STEMS and word != "?"]
        for one in (text, question.last)
    )
    modals = [_MODALS.intersection(words) - {"should", "shall"} for words in (said, asked)]
    content = [word for word in said if word not in _MODALS and not _is_negation(word)]
    if not content or content != [word for word in asked if word not in _MODALS] or modals[0] != modals[1]:
        return None
    return _count_negations(text) % 2 == 0


def asks_literal(question: str) -> bool:
    """Return whether a question asks for something of which every character counts."""
    return _LITERAL.search(question) is not None


def read_statement(text: str, question: str) -> bool | None:
    """Return whether a sentence says the statement of a question with yes or no, or denies it; None for any other."""
    return _read_statement(
        _normalize(text[:MAX_CONCLUSION_CHARS]), _Question(_normalize(question[-MAX_QUESTION_CHARS:]))
    )


def _count_negations(text: str) -> int:
    return sum(_is_negation(word) for word in _split_words(text))


def _is_negation(word: str) -> bool:
    return _bare(word) in _NEGATIONS or word.casefold().endswith("n't")


def _content_stems(text: str) -> list[str]:
    return [stem for stem in map(_stem, map(_bare, _split_words(text))) if stem not in _FUNCTION_STEMS]


# Named options of the question

_DECISION_WORDS = _stems(
    "use using choose pick select go take adopt opt prefer recommend recommended option choice better best stay buy should we you with for "
    "i would suggest deploy run want first one either both instead rather switch is it the a an now"
) - {"buy", "stay", "switch", "run", "deploy", "both"}
_INSTEAD = re.compile(r",?\s*\b(?:(?:and )?not|instead of|rather than|over|versus|vs\.?|in preference to)\s+(.*)", re.I)
_REASON = re.compile(r"[,;]?\s*\b(?:because(?! of)|since it|since they)\b.*", re.I)
_CHOICE_STEMS = _stems(
    "use using choose pick select take adopt prefer recommend recommended suggest option choice i the would should we you"
)
_ENUMERATED = re.compile(
    r"\((\w)\)\s*(.*?)(?=[,;]?\s*(?:or\s+)?\(\w\)|[?.]|\Z)|(?<![\w)])([A-Da-d]|[1-4])[).:]\s+(.*?)(?=[,;]?\s+(?:or\s+)?[A-Da-d1-4][).:]\s|[?\n]|\Z)"
)
_OPTION_LABEL = re.compile(r"(?:(?:option|answer|choice) )?\(?([A-Da-d1-4])(?:\Z|\)\.?|[.:])\s*.*", re.I)


def _find_options(text: str) -> tuple[frozenset[str], ...]:
    """Return the words that tell the named options of a question apart; empty if it names none."""
    rows = [(found[1] or found[3], found[2] or found[4] or "") for found in _ENUMERATED.finditer(text)]
    if len(rows) >= 2:
        own = _tell_apart([words for _, words in rows]) or (frozenset(),) * len(rows)
        return tuple(words | {f"({label.casefold()})"} for (label, _), words in zip(rows, own, strict=True))
    found = re.search(r"\bbetween\s+(.{1,80}?)\s+and\s+(.{1,80}?)(?:[?.,;:]|\Z)", text, re.I)
    if found and re.search(r"\b(?:choose|decide|choice|pick|which)\b", text, re.I):
        return _tell_apart([found[1], found[2]])
    parts = re.split(r",?\s+(?:or|vs\.?|versus)\s+", re.split(r"[?.!](?:\s|\Z)", text)[0], flags=re.I)
    if len(parts) != 2 or re.match(r"(?:not|more|less|fewer|so|later|earlier|another|other)\b", parts[1], re.I):
        return ()
    listed = [part for part in re.split(r"[:;(]", parts[0])[-1].split(",") if part.strip()]
    if any(len(part.split()) > 4 for part in listed[1:]):
        listed = listed[-1:]
    first = [" ".join(_strip_decision(part)[-3:]) for part in listed[:1]]
    last = " ".join(_strip_decision(re.split(r"[,;:)]", parts[1])[0])[:3])
    return _tell_apart([*first, *listed[1:], last])


def _strip_decision(text: str) -> list[str]:
    return [word for word in _split_words(text) if _stem(_bare(word)) not in _DECISION_WORDS | _FUNCTION_STEMS - {"a"}]


def _tell_apart(options: Sequence[str]) -> tuple[frozenset[str], ...]:
    """Return the stems that only one option has; empty if an option has none."""
    stems = [frozenset(map(_stem, map(_bare, _split_words(option)))) - _DECISION_WORDS for option in options]
    own = [
        words - frozenset().union(*(other for m, other in enumerate(stems) if m != n)) for n, words in enumerate(stems)
    ]
    return tuple(own) if len(own) >= 2 and all(own) else ()


def _compare_choices(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare two answers that each choose one of the named options of the question."""
    if not question.options:
        return None
    found = [_find_choice(one, question) for one in (a, b)]
    if found[0] is None or found[1] is None:
        return None
    if found[0] != found[1]:
        return "different"
    own = question.options[found[0]]
    rest = [_drop_choice(_drop_alternative(one, question), own) for one in (a, b)]
    return "same" if rest[0] == rest[1] or all(map(question.is_repeated_by, rest)) else "unclear"


def _drop_choice(text: str, own: frozenset[str]) -> str:
    """Return what an answer says beside its choice."""
    if _OPTION_LABEL.fullmatch(text) and len(_split_words(text)) == 1:
        return ""
    return " ".join(word for word in _split_tokens(text) if _stem(_bare(word)) not in own | _CHOICE_STEMS)


def _drop_alternative(text: str, question: _Question) -> str:
    """Return a choice without its reason and the option that it does not choose: "Redis, not Postgres" is "Redis"."""
    text = _REASON.sub("", text)
    found = _INSTEAD.search(text)
    if not found:
        return text
    words = frozenset(map(_stem, map(_bare, _split_words(found[1])))) - _ARTICLES
    return text[: found.start()] if any(words and words <= own for own in question.options) else text


def _find_choice(text: str, question: _Question) -> int | None:
    """Return the index of the one option that an answer names without a condition, a hedge or a negation."""
    first, _, more = text.partition(";")
    bare = _drop_alternative(first if _count_negations(more) else text, question)
    if _CONDITIONS.search(bare) or _HEDGES.search(bare) or _count_negations(bare):
        return None
    label = _OPTION_LABEL.fullmatch(bare)
    words = frozenset([f"({label[1].casefold()})"] if label else map(_stem, map(_bare, _split_words(bare))))
    named = [n for n, own in enumerate(question.options) if words & own]
    return named[0] if len(named) == 1 else None


# Values

_LEADING_NUMBER = r"\d+(?:\.\d+)?\s*[×x*]\s*10\s*\^\s*\{?[-+]?\d{1,2}\}?|\d[\d.,]*\d|\d"
_BEFORE_NUMBER = re.compile(
    r"(?P<lead>[^\d]*?)(?P<rest>(?:[-+]|about |around |approximately |approx\.? |roughly |~|≈|at least |at most |up to |over |under |more than |less than |fewer than |between )*(?:us\$|[$€£¥]\s?)?\d.*)",
    re.I | re.S,
)
_APPROXIMATE = re.compile(
    r"\A(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|~|≈|nearly|almost|some)\s*", re.I
)
_VALUE_TOKEN = re.compile(
    r"[-+]?\d.*|[=≈%/×°]|at|on|of|in|per|st|nd|rd|th|am|pm|a\.m|p\.m|o'?clock|h|hundred|thousand|million|billion|trillion|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*"
)
_INEXACT = frozenset(("month", "year", "mo", "yr"))
_OTHER_SCALES = re.compile(r"\b(?:milliard\w*|mrd|crores?|lakhs?)\b", re.I)
# Words that change a value also where the question has them
_NOT_REPEATED = frozenset(("a", "i", "to", "by", "minus", "negative"))
MIN_DIGITS = 3  # significant digits of a number that may be the rounding of another


def _compare_values(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare numbers, dates and times of day. Values are the same only if nothing but their spelling differs."""
    a, b = spell_numbers(a), spell_numbers(b)
    found = _compare_found_values(_find_value(a, question), _find_value(b, question), question)
    if found == "different" and any(map(_OTHER_SCALES.search, (a, b))):
        return "unclear"
    return "unclear" if found == "same" and not _differ_in_spelling(a, b, question) else found


def _differ_in_spelling(a: str, b: str, question: _Question) -> bool:
    """Return whether two texts differ only in numbers, units, months, and words that one of them repeats from the
    question.
    """
    tokens = [Counter(_stem(_bare(word)) for word in _split_tokens(_REASON.sub("", text))) for text in (a, b)]
    alone = [set(tokens[0] - tokens[1]), set(tokens[1] - tokens[0])]
    words = [{word for word in side if not _is_spelling(word)} for side in alone]
    others = words[0] | words[1]
    repeated = frozenset() if question.has_list else question.words
    if all(words) or not others <= repeated - _NOT_REPEATED or any(map(_is_negation, others)):
        return False
    if any(_stem(found[1]) in others for found in re.finditer(r"([^\W\d_]+)\s+\d", f"{a} | {b}")):
        return False  # "move 7" is not "7"
    if _differ_in_case(a, b):
        return False
    units = [{word for word in side if _is_unit(word)} for side in tokens]
    converted = {word for side in alone for word in side if _is_unit(word)}
    if converted & _INEXACT and converted - _INEXACT:
        return False  # "1 month" and "30 days"
    return all(units) or (units[0] | units[1]) <= question.words | {"%", "°"}


def _is_spelling(word: str) -> bool:
    return (
        bool(_VALUE_TOKEN.fullmatch(word))
        or word in SMALL_NUMBERS
        or word in _HEAD_STEMS | _SMALL_STEMS
        or _is_unit(word)
    )


def _is_unit(word: str) -> bool:
    return word == "m" or (is_unit(word) and not re.fullmatch(r"[x×]|[kmgtp]i(?:b|bit)|ton", word))  # GiB is not GB


def _compare_found_values(a: str, b: str, question: _Question) -> Comparison | None:
    if question.asks_time and (found := _compare_times(a, b)):
        return found
    exact = _compare_exact(a, b, question)
    if exact:
        return exact
    one, other = parse_answer(a, question.text), parse_answer(b, question.text)
    if one is None or other is None or {one.kind, other.kind} - {"number", "date"}:
        return _compare_with_equal_rest(a, b, question)
    relation = compare_answers(a, b, (question.text, question.text)).relation
    if relation is None:
        return _compare_with_equal_rest(a, b, question) or "unclear"
    tails = [frozenset(_content_stems(answer.tail)) - question.words for answer in (one, other)]
    is_detailed = any(
        _CONDITIONS.search(answer.tail) for answer in (one, other) if not question.covers(_split_words(answer.tail))
    )
    if relation == "conflict":
        return "unclear" if is_detailed or _are_close(one.value, other.value) else "different"
    is_same = tails[0] == tails[1] and not is_detailed and _are_equal(one.value, other.value, question)
    return "same" if is_same else "unclear"


def _find_value(text: str, question: _Question) -> str:
    """Return the value in a sentence: "The total is $45.50" is "$45.50", "x = 5" is "5"."""
    text = _REASON.sub("", text)
    for mark in re.finditer(r"\s(?:is|are|was|were|equals|be|in|on|of)\s|:\s+|\s*[=≈]\s*", text):
        lead, rest = text[: mark.start()], text[mark.end() :]
        if "=" in mark[0] and (text.count("=") > 1 or re.search(r",\s|;|\band\b", text)):
            continue  # "x = 2, y = 3"
        if "=" not in mark[0] and re.search(r"\d", lead):
            continue  # "3 of 5"
        is_subject = _is_subject(lead, question) or ("equals" in mark[0] and bool(re.match(r"[-+]?[\d.]", rest)))
        if rest and lead and is_subject and not _count_negations(lead) and not _OR.search(rest):
            return _find_value(rest, question)
    found = _BEFORE_NUMBER.fullmatch(text)
    if not found or len(re.findall(r"\d+(?:[.,]\d+)*", text)) != 1:
        return text
    lead = found["lead"]
    words = _split_words(lead)
    is_repeated = bool(words) and question.covers(words) and not _count_negations(lead)
    return found["rest"] if is_repeated and not _CONDITIONS.search(lead) else text


def _is_subject(text: str, question: _Question) -> bool:
    """Return whether words only repeat what the question asks for."""
    words = _split_words(text)
    is_symbol = not question.has_list and len(words) == 1 and len(words[0]) == 1 and words[0].isalpha()
    return is_symbol or question.covers(words)


def _compare_exact(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare bare numbers, also fractions, powers and scientific notation."""
    if question.asks_version:
        return None
    if question.asks_when and any("/" in one for one in (a, b)):
        return None
    approximate = any(_APPROXIMATE.match(one) for one in (a, b))
    texts = [_APPROXIMATE.sub("", one) for one in (a, b)]
    if any(re.fullmatch(r"[-+]?[1-9]\d{0,2}[.,]\d{3}", one) for one in texts) and texts[0] != texts[1]:
        return None  # "1.200" may be a thousand two hundred
    numbers = [read_exact(one) for one in texts]
    one, other = numbers
    if one is None or other is None:
        return None
    return _compare_numbers((one, texts[0]), (other, texts[1]), approximate)


def _compare_numbers(a: tuple[Fraction, str], b: tuple[Fraction, str], approximate: bool) -> Comparison:
    if a[0] == b[0]:
        return "same"
    if _is_rounded(*a, b[0]) or _is_rounded(*b, a[0]):
        return "same"
    apart = abs(a[0] - b[0])
    is_close = apart <= max(place_value(a[1]), place_value(b[1])) and apart <= max(abs(a[0]), abs(b[0])) / 20
    if approximate:
        is_close = is_close or apart <= max(abs(a[0]), abs(b[0])) / 10
    has_decimals = any("." in text or "/" in text for _, text in (a, b))
    return "unclear" if is_close and (approximate or has_decimals) else "different"


def _is_rounded(number: Fraction, text: str, other: Fraction) -> bool:
    """Return whether a number with a decimal point and three digits is the rounding of another."""
    digits = len(re.sub(r"\D", "", text).lstrip("0"))
    place = place_value(text)
    return "." in text and "e" not in text.casefold() and digits >= MIN_DIGITS and abs(number - other) <= place / 2


def _compare_with_equal_rest(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare two numbers with the same words or the same unknown unit after them."""
    found = [re.fullmatch(rf"([-+]?(?:us\$|[$€£¥])?\s?)({_LEADING_NUMBER})(.*)", one, re.I) for one in (a, b)]
    if found[0] is None or found[1] is None or question.asks_version:
        return None
    rests = [re.sub(r"[\s()]", "", one[3]) for one in found if one]  # "Mb/s" is not "MB/s"
    if rests[0] != rests[1] or not rests[0] or found[0][1].strip() != found[1][1].strip():
        return None
    return _compare_exact(found[0][2], found[1][2], question)


def _are_equal(a: object, b: object, question: _Question) -> bool:
    """Return whether two values that agree are the same: an overlap of ranges is not enough."""
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        if not (a.is_point and b.is_point):
            return (a.low, a.high, a.unit) == (b.low, b.high, b.unit)
        apart, size = abs(a.low - b.low), max(abs(a.low), abs(b.low))
        rounding = max(a.step, b.step) / 2 if max(a.step, b.step) <= size / 10 ** (MIN_DIGITS - 1) else 0.0
        # "about", also where the units are converted inexactly
        return not (a.about or b.about) or apart <= max(1e-9 * size, rounding)
    if isinstance(a, Span) and isinstance(b, Span):
        return (a.low, a.high, a.about) == (b.low, b.high, b.about) or bool(
            re.search(r"\b(?:what|which) year\b", question.text, re.I)
        )
    return True  # a bare year beside a date


def _are_close(a: object, b: object) -> bool:
    """Return whether two numbers may be the same one with a sloppy rounding."""
    if not (isinstance(a, Quantity) and isinstance(b, Quantity) and a.is_point and b.is_point and a.unit == b.unit):
        return False
    apart = abs(a.low - b.low)
    has_decimals = a.step != b.step or min(a.step, b.step) < 1
    return has_decimals and apart <= max(a.step, b.step) and apart <= max(abs(a.low), abs(b.low)) / 20


def _compare_times(a: str, b: str) -> Comparison | None:
    found = [TIME_OF_DAY.fullmatch(one) for one in (a, b)]
    if found[0] is None or found[1] is None or not any(one[2] or one[3] for one in found if one):
        return None
    times = [read_time(one) for one in found if one]
    if times[0] is None or times[1] is None:
        return None
    zones = [(one[4] or "").casefold() for one in found if one]
    if zones[0] != zones[1]:
        return "unclear"
    apart = times[0].minutes - times[1].minutes
    if times[0].is_sure == times[1].is_sure:
        return "different" if apart else "same"
    return "unclear" if apart % 720 == 0 else "different"


# Words

_ADVICE = re.compile(
    r"(?:(?:i|we) (?:would )?(?:recommend|suggest|advise|choose|prefer)(?: that)?(?: you| we| to)?|(?:you|we|they|one) should|it(?: is|'s) best to|"
    r"the best (?:option|choice|answer) is(?: to)?)\s+",
    re.I,
)
_TAKE = re.compile(r"(?:use|using|choose|pick|select|go with|go for|opt for|adopt)\s+(?=\S)", re.I)
_ARTICLES = frozenset(("a", "an", "the"))
_OPPOSITE_WORDS = (
    "likely/unlikely possible/impossible safe/unsafe legal/illegal increase/decrease increases/decreases "
    "rise/fall rises/falls before/after more/less higher/lower larger/smaller longer/shorter faster/slower "
    "add/remove accept/reject buy/sell keep/remove keep/replace all/none always/never even/odd "
    "positive/negative valid/invalid true/false left/right up/down enable/disable prime/composite open/closed "
    "early/late earlier/later"
)
OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in _OPPOSITE_WORDS.split())


def _compare_words(a: str, b: str, question: _Question) -> Comparison | None:
    """Compare the words of two conclusions: equal ones are the same, and those that only a negation tells apart
    differ.
    """
    one, other = (_word_keys(_find_name(text, question)) for text in (a, b))
    if one == other and one and not _differ_in_case(a, b):
        return "same"
    if one and other and one != other and _without_negations(one) == _without_negations(other):
        is_negated = [sum(map(_is_negation, words)) % 2 for words in (one, other)]
        return "different" if is_negated[0] != is_negated[1] else None
    return "different" if _are_opposites(one, other) else None


def _find_name(text: str, question: _Question) -> str:
    """Return what a sentence names: "The capital of Peru is Lima" and "Lima is the capital" are "Lima"."""
    text = _ADVICE.sub("", text, count=1) if _ADVICE.match(text) else text
    if re.search(r"\b(?:which|what|or)\b", question.text, re.I) and not _count_negations(text):
        text = _TAKE.sub("", text, count=1) if _TAKE.match(text) else text
    verbs = "is|are|was|were" if question.words & {"was", "were"} else "is|are"
    for found in re.finditer(rf"\s(?:{verbs})\s|:\s+|\s*=\s*", text):
        lead, rest = text[: found.start()], text[found.end() :]
        if not lead or not rest or _count_negations(text) or re.search(r"\d", lead) or re.search(r"[,;]\s", text):
            continue
        is_lead, is_rest = (_is_subject(part, question) for part in (lead, rest))
        if is_lead and not is_rest:
            return rest
        if is_rest and not is_lead and ":" not in found[0] and "=" not in found[0]:
            return lead
    return text


def _word_keys(text: str) -> list[str]:
    """Return the words and marks for comparison. An "a" stays, because it can be a name: "vitamin A"."""
    return [word.casefold() for word in _split_tokens(text) if word.casefold() not in ("the", "an")]


def _without_negations(words: Sequence[str]) -> list[str]:
    small = ("do", "does", "did", "is", "should", "to")
    return [word for word in words if not _is_negation(word) and word not in small]


def _are_opposites(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether only one word tells two conclusions apart, and the two words are opposites."""
    if len(one) != len(other):
        return False
    pairs = [frozenset(pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return len(pairs) == 1 and pairs[0] in OPPOSITES


def _differ_in_case(a: str, b: str) -> bool:
    """Return whether short words or units differ in the case of letters: "Mb" and "MB", "CO" and "Co"."""
    spellings: dict[str, set[str]] = {}
    others: set[str] = set()
    for word in _split_tokens(f"{a} {b}"):
        is_title = len(word) == 3 and word[1:].islower()  # "Red" and "red"
        is_mixed = not word.isupper() and word[1:] != word[1:].lower()  # "fooBar"
        is_common = word.casefold() in _FUNCTION_STEMS | {"yes", "no", "am", "pm"}
        if (len(word) <= 3 or is_mixed) and not is_title and not is_common:
            spellings.setdefault(word.casefold(), set()).add(word)
        elif len(word) > 3:
            others.add(word)
    folded = {word.casefold() for word in others}
    return any(len(words) > 1 or (len(key) > 3 and key in folded) for key, words in spellings.items())
