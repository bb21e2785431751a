"""Readings of a claim by the kind of answer: a number, yes or no, a date, a time, a list, or a text.

A reader returns the answers that fit: none if the claim has no answer of this kind, several if it leaves the answer
open.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from council.final_answers.comparison import OPPOSITES, asks_literal, read_statement
from council.final_answers.dates import Day, TimeRead, find_dates, find_times
from council.final_answers.finder import split_items
from council.final_answers.markup import BOLD, BOLD_END, BOX, BOX_END, strip_marks, to_plain
from council.final_answers.numbers import replace_number_words
from council.final_answers.quantities import Chain, Number, find_chains, read_number
from council.final_answers.units import look_up
from council.final_answers.values import name_key, parse_answer

Fit = Literal["right", "wrong", "ambiguous"]
_MARK = f"{BOLD}{BOLD_END}{BOX}{BOX_END}"
_BOLD_SPAN = re.compile(f"{BOLD}([^{BOLD}{BOLD_END}]+){BOLD_END}")
_REMARK = re.compile(
    r"(?<=[\w.%\"'!?\ue003])\s*\((?=[^()]*[A-Za-z=≈])[^()]*\)|(?<=\S)\s*\[(?=[^\[\]]*[A-Za-z])[^\[\]]*\]"
)
_REASON = re.compile(
    r"(?:[,;.]?\s+(?:because|since|given that|as (?:the|it|there|we|they|this)|which (?:is|are|was|were)|where|rounded|rounding|rather than|instead of|not|"
    r"compared|assuming|due to|if (?:you|we|the|it)|based on|according to|after|from)\b|\s[—–]\s|;\s).*",
    re.IGNORECASE | re.DOTALL,
)
_CONCLUSION = re.compile(
    r"(?:\A|(?<=[\W_]))(?:so|thus|therefore|hence|consequently|which (?:gives|means|makes|leaves|is)|this (?:gives|means|leaves)|giving|leaving|making|we get|"
    r"that is|in total|altogether|also|somit|daher|donc)\b[,:]?|\bi\.e\.,?(?! (?:about|approximately|approx|roughly)|\s*[≈~])|[⇒→∴]|=>",
    re.IGNORECASE,
)


# Numbers

_NONE = re.compile(r"\W*(?:none|nil|nothing|no(?: \w+)?|not any)\W*", re.IGNORECASE)
_COUNTED = re.compile(r"\bhow (?:many|much)\b|\bnumber of\b", re.IGNORECASE)
_CHANCE = re.compile(r"\b(?:probability|chance|odds|fraction|likel\w+|proportion|share|ratio)\b", re.IGNORECASE)
_SHARE_OF = re.compile(r"\b(\d+) (?:in|out of) (?:every )?(\d+)\b")
_ONE_IN = re.compile(r"\b(1) (?:in|out of) (?:every )?(\d+)\b")
_PLUS_MINUS = re.compile(r"(?:\A|[=:]|\bis|\bare)\s*±\s*(\d[\d.,/√]*)\s*[.!]?\s*\Z")
_EITHER = re.compile(
    rf"[\s{_MARK},(]*(?:or|oder|and/or|or (?:maybe|perhaps|possibly|even))[\s{_MARK}]*(?:(?:maybe|perhaps|possibly|even|about|[a-z]\w? ?=) ?)*[$€£(]?[\s{_MARK}]*\Z",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    rf"(?:\b(?:is|are|was|were|be|equals?|gives?|gets?|got|makes?|(?:total|sum|value|count|number|result|average|mean|price|cost) of|(?:comes?|amounts?|adds up|rounds|equal|close|leads?) to|"
    rf"costs?|totals?|totall?ing|takes?|needs?|leaves?|has|have|about|approximately|around|roughly|exactly|only|just|answer|result|total|yields?|pays?|remain|contains?|ist|sind|est)"
    rf"|[:=≈])[\s{_MARK}$€£(]*\Z",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"percent|per cent|%|prozent|pour ?cent|por ciento", re.IGNORECASE)
_ASKED_UNIT = re.compile(r"\bhow many ([a-zµ]+)|\bin ([a-zµ°]+)\b|\((?:in )?([a-zµ°]+)\)", re.IGNORECASE)
_MEASURED = ("time", "data", "length", "mass", "volume")


def read_numbers(text: str, question: str, *, is_lead: bool) -> list[Number]:
    """Return the number that a claim ends with, or begins with if the whole claim is the answer."""
    if _NONE.fullmatch(strip_marks(text)) and _COUNTED.search(question):
        return [Number(Fraction(0), step=Fraction(1))]
    text = replace_number_words(text)
    pattern = _SHARE_OF if _CHANCE.search(question) else _ONE_IN
    text = pattern.sub(r"\1/\2", text)
    if _IS_EITHER.search(strip_marks(text)):
        stated = [chain.sides[-1] for chain in _find_stated(text)]
        if len({float(one.value) for one in stated}) == 2:
            return stated
    if both := _PLUS_MINUS.search(strip_marks(text)):
        number = read_number(both[1])
        return [number, replace(number, value=-number.value)] if number else []
    unit, factor = _find_asked_unit(question)
    in_unit = [
        chain.sides[-1]
        for chain in _find_stated(text)
        if unit and (chain.sides[-1].unit, chain.sides[-1].factor) == (unit, factor)
    ]
    if len(in_unit) == 1:
        return in_unit
    whole = _REMARK.sub("", text)
    whole = whole if find_chains(strip_marks(whole)) else text
    if is_lead:
        whole = _cut(whole)
    bold = [span for span in _BOLD_SPAN.findall(whole) if find_chains(span)]
    if len(bold) == 1 and not is_lead:
        whole = bold[0]
    elif not is_lead:
        kept = _keep_conclusion(whole)
        is_lead = kept is not whole and _begins_with_number(kept)
        whole = _cut(kept)
    whole = strip_marks(whole)
    chains = _find_stated(whole)
    if not chains:
        return []
    if len(chains) == 1:
        return _sides(chains[0])
    chosen = _choose_chain(chains, whole, question, is_lead=is_lead)
    at = chains.index(chosen)
    if (
        chosen.name
        and at
        and chains[at - 1].name == chosen.name
        and re.fullmatch(r"[\s,]*(?:and|or|,)\s*", whole[chains[at - 1].end : chosen.start].split(chosen.name)[0])
    ):
        return [chains[at - 1].sides[-1], chosen.sides[-1]]
    for other in (at - 1, at + 1):
        if 0 <= other < len(chains):
            first, second = sorted((chains[other], chosen), key=lambda chain: chain.start)
            if _EITHER.match(whole[first.end : second.start]):
                return [first.sides[-1], second.sides[-1]]
    return _sides(chosen)


_IS_EITHER = re.compile(
    r"\beither\b.*\bor\b|\b(?:two|both) (?:dates|answers|values|possibilities|years|options)\b.*\bor\b",
    re.IGNORECASE | re.DOTALL,
)
_AT_VALUE = re.compile(r"\b(?:at|when|for|with|where|if|using|given|taking)\s+(?:\w+\s*=\s*)?\Z", re.IGNORECASE)
_NOT_STATED = re.compile(
    r"(?:\bnot|n't(?: be)?|\bnever|\brather than|\binstead of|\bisn't)\s+(?:be |just |exactly |simply |only |about )?[$€£]?\Z",
    re.IGNORECASE,
)


def _begins_with_number(text: str) -> bool:
    chains = find_chains(strip_marks(text))
    return bool(chains) and len(strip_marks(text)[: chains[0].start].split()) <= 1


def _find_stated(text: str) -> list[Chain]:
    """Return the numbers of a text without those that it denies."""
    plain = strip_marks(text)
    return [chain for chain in find_chains(plain) if not _NOT_STATED.search(plain[: chain.start])]


def _cut(text: str) -> str:
    """Return a text without the reason after its number."""
    for found in _REASON.finditer(text):
        before = text[: found.start()]
        if _find_stated(before):
            return before
        break
    return text


def _keep_conclusion(text: str) -> str:
    marks = list(_CONCLUSION.finditer(text))
    for mark in reversed(marks):
        if find_chains(strip_marks(text[mark.end() :])):
            return text[mark.end() :]
    return text


def _sides(chain: Chain) -> list[Number]:
    return [chain.sides[-1]]


def _choose_chain(chains: Sequence[Chain], text: str, question: str, *, is_lead: bool) -> Chain:
    is_number_first = is_lead and not text[: chains[0].start].strip(" $€£~≈(") and len(chains[0].sides) == 1
    equations = (
        [] if is_number_first else [chain for chain in chains if len(chain.sides) > 1 or chain.name or chain.has_left]
    )
    at_value = [
        chain
        for chain in equations
        if chain.name
        and _AT_VALUE.search(text[: chain.start])
        and not re.search(rf"(?<!\w){re.escape(chain.name)}(?!\w)", question)
    ]
    if at_value and len(at_value) < len(chains):
        chains = [chain for chain in chains if chain not in at_value]
        equations = [chain for chain in equations if chain not in at_value]
    if len(chains) == 1:
        return chains[0]
    if equations:
        asked = [
            chain for chain in equations if chain.name and re.search(rf"(?<!\w){re.escape(chain.name)}(?!\w)", question)
        ]
        names = {chain.name for chain in asked}
        return asked[-1] if len(names) == 1 else equations[-1]
    counts = re.findall(r"\bhow (?:many|much) ([\w-]+)(?: (\w+))?", question, re.IGNORECASE)
    nouns = {noun.casefold() for words in counts for noun in words if noun}
    counted = [
        chain
        for chain in chains
        if chain.sides[-1].word
        and {chain.sides[-1].word, chain.sides[-1].word.removesuffix("s")}
        & {*nouns, *(noun.removesuffix("s") for noun in nouns)}
    ]
    asked_words = _content(question) - {_stem(noun) for noun in nouns}
    shared = [len(_content(_clause_of(text, chain)) & asked_words) for chain in chains]
    if not is_lead and shared.count(max(shared)) == 1 and max(shared):
        return chains[shared.index(max(shared))]
    if len(counted) == 1:
        return counted[0]
    if is_number_first:
        return chains[0]
    given = {float(chain.sides[-1].value) for chain in find_chains(strip_marks(question))}
    new = [chain for chain in chains if float(chain.sides[-1].value) not in given]
    said = [chain for chain in new or chains if _SAID_BEFORE.search(text[: chain.start])]
    if is_lead:
        return (said or new or list(chains))[0]
    return (said or new or list(chains))[-1]


def _clause_of(text: str, chain: Chain) -> str:
    """Return the part of a sentence that a number stands in."""
    start = max((found.end() for found in _CLAUSE_END.finditer(text, 0, chain.start)), default=0)
    end = _CLAUSE_END.search(text, chain.end)
    return text[start : end.start() if end else len(text)]


_CLAUSE_END = re.compile(r"[;,](?=\s)|\b(?:and|but|while|whereas)\b")


def fits_number(found: Number, key: Number, question: str, language: str = "en") -> Fit:
    """Return whether a number is that of the key, at the digits of the key."""
    asks_percent = _PERCENT.search(question) is not None
    if found.high is not None or key.high is not None:
        return _fits_range(found, key)
    if _is_equal(found, key, asks_percent, question):
        return "right"
    if found.other is not None:
        second = Number(found.other, found.unit, found.factor, Fraction(1), word=found.word)
        if _is_equal(second, key, asks_percent, question):
            return "ambiguous" if language == "en" else "right"
    return "wrong"


def _fits_range(found: Number, key: Number) -> Fit:
    if found.high is not None and key.high is not None:
        return "right" if (float(found.value), float(found.high)) == (float(key.value), float(key.high)) else "wrong"
    if found.high is not None and float(key.value) in (float(found.value), float(found.high)):
        return "ambiguous"
    return "wrong"


def _is_equal(found: Number, key: Number, asks_percent: bool, question: str) -> bool:
    value, goal = float(found.value), float(key.value)
    if key.is_share and not found.is_share:
        if found.unit:
            return False
        values = [value] if asks_percent or value > 1 else [value * 100]
        return any(_is_near(one, found, key) for one in values)
    if found.is_share and not key.is_share:
        if key.unit:
            return False
        values = [value] if asks_percent else [value / 100, *([value] if goal > 1 else [])]
        return any(_is_near(one, found, key) for one in values)
    if not _are_units_alike(found, key):
        if _kind(found.unit) == _kind(key.unit) and _is_measured(key.unit):
            return _is_near(value * found.factor / key.factor, found, key)
        if {found.unit, key.unit} == {"°c", "°f"}:
            return _is_near(value * 9 / 5 + 32 if found.unit == "°c" else (value - 32) * 5 / 9, found, key)
        return False
    if found.unit == key.unit and found.factor != key.factor:
        return _is_near(value * found.factor / key.factor, found, key)
    if not key.unit and _is_measured(found.unit):
        unit, factor = _find_asked_unit(question)
        if unit == found.unit and factor != found.factor:
            return _is_near(value * found.factor / factor, found, key)
    return _is_near(value, found, key)


def _kind(unit: str) -> str:
    return unit.rstrip("~")


def _is_measured(unit: str) -> bool:
    return any(unit == kind or unit.startswith(f"{kind}/") or unit.endswith(f"/{kind}") for kind in _MEASURED)


def _are_units_alike(a: Number, b: Number) -> bool:
    units = {a.unit, b.unit}
    if len(units) == 1 or "" in units:
        return True
    return "°" in units and len(units & {"°", "°c", "°f", "°k"}) == 2


def _find_asked_unit(question: str) -> tuple[str, float]:
    for found in _ASKED_UNIT.finditer(question):
        word = next(one for one in found.groups() if one).casefold()
        unit, factor = ("length", 1.0) if word == "m" else look_up(word)
        if unit.rstrip("~") in _MEASURED:
            return unit.rstrip("~"), factor
    return "", 1.0


def _is_near(value: float, found: Number, key: Number) -> bool:
    """Return whether a value is the key, or is rounded to it at the key's digits."""
    goal = float(key.value)
    apart, size = abs(value - goal), max(abs(value), abs(goal))
    if apart <= 1e-9 * size:
        return True
    step = float(key.step)
    if step:
        has_decimals = step < 1 or (step > 1 and step != int(step)) or (step >= 10)
        is_long_integer = abs(goal) >= 100 and found.step and float(found.step) < 1
        if not (has_decimals or is_long_integer):
            return False
        is_precise = not found.step or float(found.step) * (
            abs(value / float(found.value)) if found.value else 1
        ) <= step * (1 + 1e-9)
        return is_precise and apart <= step / 2 * (1 + 1e-9)
    # An exact key, such as a fraction or a root: three digits of it are enough.
    digits = float(found.step)
    return bool(digits) and digits < 1 and abs(goal) >= 100 * digits and apart <= digits / 2 * (1 + 1e-9)


def number_text(found: Number, question: str) -> str:
    """Return a number in one form, for votes."""
    value = float(found.value)
    if found.is_share or (_PERCENT.search(question) and not found.unit and abs(value) > 1):
        value /= 100
    elif _is_measured(found.unit):
        unit, factor = _find_asked_unit(question)
        value = value * found.factor / factor if unit == found.unit else value
        if unit != found.unit and not found.unit.endswith(_MEASURED[0]):
            value = float(found.value)
    text = str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.9g}"
    return text if found.high is None else f"{text}-{float(found.high):.9g}"


# Yes and no

_YES = r"yes|yeah|yep|yup|true|correct|right|ja|oui|sí|si|да|はい|是|是的|sim|absolutely|definitely|certainly|indeed|of course|affirmative|vrai|wahr|richtig|verdadero"
_NO = r"no|nope|nah|false|incorrect|wrong|untrue|nein|non|нет|いいえ|否|不是|não|negative|never|faux|falsch|falso|not (?:really|at all|true|correct|right|quite|exactly|necessarily true)"
_OPENING = rf"[^\w]*(?:(?:the (?:short )?answer(?: here)? is|in short|short answer|well|it is|it's|it would be|that's|that is|this is|it is clearly|is|therefore|thus|so|hence|clearly|in fact|technically|yes and it is|(?:the|this|that) (?:statement|claim|assertion|sentence|equation|proposition|conclusion|answer) (?:is|must be|would be)|(?:the|this|that) (?:statement|claim|assertion)(?= cannot be| can't be)|unfortunately|sadly|fortunately|hmm|ah|oh|i(?:'d| would) say|probably|most likely|almost certainly|mostly|a definite|a clear|simply|just|actually|overall|verdict)[\s,:{_MARK}\"']+){{0,4}}"
_POLAR = re.compile(
    rf"{_OPENING}(?P<not>not |isn't |n't |cannot be |can't be )?(?P<hedge>(?:definitely|certainly|absolutely|entirely|strictly|generally|technically|logically|simply|almost certainly|most likely|probably|indeed) )?(?P<not2>not\b ?)?(?:(?P<yes>{_YES})|(?P<no>{_NO}))?(?![\w'])",
    re.IGNORECASE,
)
_POLAR_ANYWHERE = re.compile(
    rf"\b(?:so|therefore|thus|hence|answer is|answer would be|is|are|was|to be|be|as|remains|say|conclusion|verdict)[\s,:(\"'{_MARK}]+(?P<not>(?:definitely |certainly |actually |in fact )?not |indeed |clearly |therefore )?(?:(?P<yes>yes|true|correct|right)|(?P<no>no|false|incorrect|wrong|untrue))(?=[\s{_MARK}\"')]*(?:[.,;:!—–-]|\Z|\n| (?:because|since|as|for|that|here|indeed|overall)\b))",
    re.IGNORECASE,
)
_DENIED_BE = re.compile(r"(?:n't|\bnot|\bnever|\bhardly) be\Z", re.IGNORECASE)
_BOTH = re.compile(
    r"\byes ?/ ?no\b|\byes and no\b|\byes or no\b|\bno and yes\b|\bpartly (?:true|yes)\b|\b(?:both|either) true (?:and|or) false\b",
    re.IGNORECASE,
)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|may|might|must|should|shall|will|would|am)"
_TURN = re.compile(r"(?:yes|no)[\s,.—–-]+(?:wait|actually|sorry)[\s,.—–-]+", re.IGNORECASE)
_SPOKEN_LAST = re.compile(
    r"\w[^.!?\n]*[:—–,]\s*(yes|no|true|false)[\s.!]*\Z|(?:->|→|=>|⇒)\s*(?P<short>yes|no|true|false|[yn])[\s.!]*\Z|\A\W*(?P<letter>[yn])\W*\Z",
    re.IGNORECASE,
)
_SPOKEN_LEAD = re.compile(r"\A(?:[A-Za-z][\w' ]{2,40}, )(?=(?:yes|no)\b)")
_DENYING = (
    r"\W*(?:(?:i|we) (?:do not|don't) (?:think|believe) so|not (?:really|at all|quite|exactly|necessarily)|hardly)\b"
)
_PHRASES = (
    (re.compile(_DENYING, re.IGNORECASE), False),
    (re.compile(r"\W*(?:i|we) (?:think|believe) so\b", re.IGNORECASE), True),
)
_SHORT_ANSWER = re.compile(
    rf"\W*(?:(?:as far as i (?:can tell|know)|i think|i believe|in fact|yes|no),? )?(?:he|she|it|they|we|you|i|that|this|there)\s+{_AUXILIARY}(?P<not>n't|not|\s+not)?(?=\W*\Z|\s*[:;,—–])",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|cannot|neither|nor|without|hardly|nobody|nothing|unable|fails? to|impossible|false|incorrect|untrue|wrong)\b|n't\b|\bunable\b",
    re.IGNORECASE,
)
_SHORT_REMARK = re.compile(
    r"[\s,;:.!—–-]*(?:and |that |but )?(?:it|they|he|she|we|you|this|that|there|i)\b(?P<rest>[^.;,!?]*)", re.IGNORECASE
)
_ASKED_YES_NO = re.compile(
    rf"(?:\A|[.?!:\n])\W*(?:true or false\W+|yes or no\W+)?{_AUXILIARY}(?:n't)?\b", re.IGNORECASE
)


def opens_with_yes_or_no(text: str) -> bool:
    """Return whether a text begins with yes or no."""
    found = _POLAR.match(strip_marks(text).strip())
    return found is not None and bool(found["yes"] or found["no"])


def read_spoken(text: str, question: str) -> list[bool]:
    """Return the yes or no of a sentence that says the word; nothing for one that only repeats the question."""
    plain = strip_marks(text).strip()
    opening = _POLAR.match(plain)
    is_spoken = any(pattern.search(plain) for pattern in (_POLAR_ANYWHERE, _BOTH, _SPOKEN_LAST, _SPOKEN_LEAD))
    said = is_spoken or (opening and (opening["yes"] or opening["no"]))
    return read_yes_no(text, question) if said else []


def read_yes_no(text: str, question: str) -> list[bool]:
    """Return the yes or no of a claim; both if it says both."""
    plain = strip_marks(text).strip()
    if _BOTH.search(plain):
        return [True, False]
    if turn := _TURN.match(plain):
        return read_yes_no(plain[turn.end() :], question)
    for pattern, value in _PHRASES:
        if pattern.match(plain):
            return [value]
    if tail := _SPOKEN_LAST.search(plain):
        return [(tail[1] or tail["short"] or tail["letter"]).casefold() in ("yes", "y", "true")]
    plain = _SPOKEN_LEAD.sub("", plain)
    found = _POLAR.match(plain)
    if found and (found["yes"] or found["no"] or (found["hedge"] and found["not2"])):
        denials = bool(found["not"]) + bool(found["not2"])
        value = (bool(found["yes"]) or not found["no"]) == (denials % 2 == 0) if found["yes"] or found["no"] else False
        rest = plain[found.end() :]
        after = re.match(
            r"[\s,]*(?:or|and)[\s,]+(?:(?:maybe|possibly|perhaps) )?(?:yes|no|true|false)\b", rest, re.IGNORECASE
        )
        if after and not re.match(r"\s+and\b.{0,3}\bno\b \w", rest, re.IGNORECASE):
            return [True, False]
        if (
            found["yes"]
            and found["yes"].casefold() in ("right", "is", "true", "correct")
            and re.match(
                r"\s+(?:angle|triangle|side|hand|now|away|answer|option|after|before|value|way)", rest, re.IGNORECASE
            )
        ):
            return []
        if re.search(rf"\bbut (?:also )?{'no' if value else 'yes'}\b", rest, re.IGNORECASE):
            return [True, False]
        return [value] if _says_same(rest, question, value) else [True, False]
    spoken = list(_POLAR_ANYWHERE.finditer(plain))
    if spoken:
        last = spoken[-1]
        is_denied = bool(last["not"] and "not" in last["not"].casefold()) or bool(
            _DENIED_BE.search(plain[: last.start() + 2])
        )
        return [bool(last["yes"]) != is_denied]
    if short := _SHORT_ANSWER.match(plain):
        return [not short["not"]]
    phrase = parse_answer(plain, question)
    if phrase and isinstance(phrase.value, bool):
        return [phrase.value]
    statement = _read_statement_loosely(plain, question)
    return [] if statement is None else [statement]


def _says_same(rest: str, question: str, value: bool) -> bool:
    """Return whether the words after a yes or no do not say the opposite, as in "Yes, it is not"."""
    remark = _SHORT_REMARK.match(rest)
    if remark is None or _NEGATIVE.search(question):
        return True
    said = remark["rest"]
    words = set(re.findall(r"[^\W\d_]{3,}", said.casefold()))
    asked = set(re.findall(r"[^\W\d_]{3,}", question.casefold()))
    small = {
        "not",
        "isn",
        "doesn",
        "does",
        "did",
        "didn",
        "can",
        "cannot",
        "will",
        "won",
        "was",
        "wasn",
        "are",
        "aren",
        "has",
        "have",
        "would",
        "could",
        "should",
        "been",
        "don",
    }
    if words - small - asked - {_stem(word) for word in asked} and not {_stem(word) for word in words - small} <= {
        _stem(word) for word in asked
    }:
        return True
    if not re.match(
        rf"\s*(?:{_AUXILIARY}|isn't|aren't|doesn't|don't|didn't|can't|cannot|won't|wasn't|hasn't|haven't|wouldn't|shouldn't)\b|'s\b|'re\b",
        said,
        re.IGNORECASE,
    ):
        return True
    return (len(_NEGATIVE.findall(said)) % 2 == 0) == value


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|e)\Z", "", word) if len(word) > 4 else word


def _read_statement_loosely(text: str, question: str) -> bool | None:
    """Read a sentence that repeats most words of the question, or denies them."""
    exact = read_statement(text, question)
    if exact is not None:
        return exact
    asked_at = _ASKED_YES_NO.search(question)
    asked_text = question[asked_at.start() :] if asked_at else question
    if _NEGATIVE.search(asked_text) or not asked_at:
        return None
    asked = {_stem(word) for word in re.findall(r"[^\W_]{3,}", asked_text.casefold())} - _SMALL
    text = re.split(r"(?<=\w),? (?:because|since) |, as ", text, maxsplit=1)[0]
    clauses = re.split(r"[,;:—–]|\b(?:so|therefore|thus|hence|which means|meaning)\b", text, flags=re.IGNORECASE)
    clause = max(
        reversed(clauses), key=lambda one: sum(any(_is_akin(word, other) for other in _content(one)) for word in asked)
    )
    said = _content(clause)
    prefixes = ("in", "un", "im", "il", "ir", "dis", "non")
    opposites = {word for word in said if any(word == prefix + one for prefix in prefixes for one in asked)}
    said |= {one for one in asked for word in opposites if word.endswith(one)}
    for pair in OPPOSITES:
        for word in pair:
            if _stem(word) in asked and _stem(next(iter(pair - {word}))) in said and _stem(word) not in said:
                opposites.add(word)
                said.add(_stem(word))
    denied = [
        found[1]
        for found in re.finditer(
            r"\b(?:not|rather than|instead of)(?: an?| the| for| in| by| of| on)? ([\w ]+)", text, re.IGNORECASE
        )
    ]
    if any({_stem(word) for word in re.findall(r"[^\W_]{3,}", words.casefold())} <= asked for words in denied):
        return False
    shared = sum(any(_is_akin(word, other) for other in said) for word in asked)
    if not asked or not said or _OPEN.search(clause):
        return None
    if shared / len(asked) < 0.5 and (shared < 2 or shared / len(said) < 0.75):
        return None
    return (len(_NEGATIVE.findall(clause)) + len(opposites)) % 2 == 0


def _is_akin(a: str, b: str) -> bool:
    """Return whether two stems are of one word, as "convergent" and "converges"."""
    return a == b or (
        min(len(a), len(b)) >= MIN_STEM
        and a[:MIN_STEM] == b[:MIN_STEM]
        and a[: min(len(a), len(b)) - 2] == b[: min(len(a), len(b)) - 2]
    )


MIN_STEM = 5


def _content(text: str) -> set[str]:
    return {_stem(word) for word in re.findall(r"[^\W_]{3,}", text.casefold())} - _SMALL


_OPEN = re.compile(r"\b(?:if|whether|depend\w*|may|might|unclear)\b", re.IGNORECASE)
_SMALL = {
    _stem(word)
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
        "they",
        "them",
        "then",
        "than",
        "true",
        "false",
        "statement",
    ]
}


# Dates and times


def read_days(text: str, question: str, *, is_lead: bool) -> list[tuple[Day, ...]]:
    """Return the date of a claim with its readings; two if the claim leaves open which."""
    plain = _spell_ordinals(strip_marks(_REMARK.sub("", text)))
    found = find_dates(plain) or find_dates(_spell_ordinals(strip_marks(text)))
    if not any(day.day or day.month for one in found for day in one.readings):
        with_remarks = find_dates(_spell_ordinals(strip_marks(text)))
        if any(day.day for one in with_remarks for day in one.readings):
            plain, found = _spell_ordinals(strip_marks(text)), with_remarks
    if not found:
        return []
    if _IS_EITHER.search(plain):
        pair = [one.readings for one in found]
        if len(set(pair)) == 2:
            return pair
    full = [one for one in found if any(day.day or day.month for day in one.readings)]
    rows = full or found
    for first, second in itertools.pairwise(rows):
        if re.fullmatch(
            r"[\s,]*(?:or|oder|or possibly|or maybe|or perhaps)\s*(?:on |in |the |possibly |maybe )*",
            plain[first.end : second.start],
            re.IGNORECASE,
        ):
            return [first.readings, second.readings]
    asked = {_stem(word) for word in re.findall(r"[^\W\d_]{3,}", question.casefold())} - _SMALL
    asked -= _TIME_WORDS
    near = [row for row in rows if _shares_word(plain[max(0, row.start - 25) : row.start], asked)]
    if len(near) == 1:
        return [near[0].readings]
    return [rows[0 if is_lead and "=" not in plain else -1].readings]


_ORDINAL_DAYS = {word: n for n, word in enumerate(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"], 1)}  # fmt: skip
_ORDINAL_DAYS |= {f"twenty-{word}": 20 + n for word, n in list(_ORDINAL_DAYS.items())[:9]} | {
    "thirtieth": 30,
    "thirty-first": 31,
}
_ORDINAL_DAY = re.compile(rf"\b(?:{'|'.join(sorted(_ORDINAL_DAYS, key=len, reverse=True))})\b", re.IGNORECASE)


def _spell_ordinals(text: str) -> str:
    return _ORDINAL_DAY.sub(lambda found: f"{_ORDINAL_DAYS[found[0].casefold()]}th", text)


_TIME_WORDS = {
    _stem(word)
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

    return _PAST_OR_TO.sub(read, replace_number_words(text)) if re.search(r"\b(?:past|to)\b", text) else text


def read_times(text: str, *, is_lead: bool) -> list[TimeRead]:
    plain = _spell_time(strip_marks(_REMARK.sub("", text)))
    rows = find_times(plain) or find_times(strip_marks(text))
    for first, second in itertools.pairwise(rows):
        if re.fullmatch(r"\s*(?:or|oder)\s*(?:at )?", plain[first[1] : second[0]], re.IGNORECASE):
            return [first[2], second[2]]
    return [rows[0 if is_lead and "=" not in plain else -1][2]] if rows else []


def fits_time(found: TimeRead, key: TimeRead) -> Fit:
    if found.minutes == key.minutes:
        return "right"
    return "ambiguous" if (found.minutes - key.minutes) % 720 == 0 and not (found.is_sure and key.is_sure) else "wrong"


# Lists

_STEPS = re.compile(
    r"\b(?:first|second|third|fourth|fifth|last|next|finally|lastly|followed by|after that|firstly|secondly|thirdly)\b,?",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\beither\b.*\bor\b|\b(?:maybe|perhaps|possibly|not sure|might|could also|arguably)\b", re.IGNORECASE
)


def has_items(text: str, wanted: Sequence[str], *, is_set: bool) -> bool:
    """Return whether the wanted items stand in a text as a list of their own, with nothing else in it."""
    plain = strip_marks(text)
    places = []
    for item in wanted:
        flags = 0 if len(item) == 1 else re.IGNORECASE
        found = re.search(rf"(?<![\w-]){re.escape(item)}(?!\w)", plain, flags)
        if not found:
            return False
        places.append(found.span())
    if not is_set and places != sorted(places):
        return False
    start, end = min(places)[0], max(end for _, end in places)
    is_more = re.search(r"(?:,|;|&|\band|\bor)\s*\Z", plain[:start]) or re.match(
        r"\s*(?:\([^()]*\)\s*)?(?:,?\s*(?:(?:and|or|plus)\b|&)|;\s*\w+\s*[,;.]|,\s*(?:[A-Z]\w*|\d+)\s*(?:,|and\b|\Z))",
        plain[end:],
    )
    return not is_more and fits_items(split_list(plain[start:end]), wanted, fits_item, is_set=is_set)


def split_list(text: str, *, is_key: bool = False) -> list[str]:
    """Return the items of a list that is written in any common form."""
    items = split_items(text) or _split_table(text)
    if items:
        return [_clean_item(item) for item in items]
    bold = [span for span in _BOLD_SPAN.findall(text) if re.search(r"[,;&\n]|\band\b|\bor\b", span)]
    plain = strip_marks(bold[0] if len(bold) == 1 else text).strip()
    plain = plain if is_key else re.split(r"(?:,\s+|\A|;\s+)(?:so|thus|therefore|hence)\b,?", plain)[-1]
    plain = re.sub(r"±\s*([\w./√]+)", r"\1, -\1", plain)
    plain = re.sub(r"\A```\w*|```\Z", "", plain).strip(" .!`*")
    if inner := re.search(r"[\[{(]([^\[\]{}()]*[,;][^\[\]{}()]*)[\]})]", plain):
        plain = inner[1]
    elif not is_key:
        plain = _cut_opening(plain)
    plain = _STEPS.sub(",", _REMARK.sub("", plain))
    if ";" in plain:
        rows = re.split(r"\s*;\s*(?:and\b)?|\n", plain)
    elif re.search(r"→|->|⇒", plain):
        rows = re.split(r"\s*(?:→|->|⇒)\s*", plain)
    elif "\n" in plain:
        rows = plain.split("\n")
    elif re.search(r"\s[>|<≤≥]\s", plain):
        rows = re.split(r"\s+[>|<≤≥]\s+", plain)
    elif "," in plain:
        rows = [
            part
            for row in re.split(r",\s*(?:(?:and|und|et|then|or|&)\b\s*)?", plain)
            for part in _split_last(row, plain)
        ]
    else:
        rows = re.split(r"\s+(?:and|und|et|&|or|then|[-–—])\s+|\s*&\s*|\s*/\s*", plain)
        if len(rows) == 1 and re.fullmatch(r"[-\d.\s]+", plain):
            rows = plain.split()
    return [item for item in map(_clean_item, rows) if item]


def _split_table(text: str) -> list[str]:
    """Return the first cells of the rows of a Markdown table; the second ones if the first are numbers of rows."""
    lines = [line.strip() for line in text.split("\n") if line.strip().startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rule = next((n for n, row in enumerate(rows) if all(re.fullmatch(r":?-+:?", cell) for cell in row)), None)
    rows = rows if rule is None else rows[rule + 1 :]
    is_numbered = len(rows) > 1 and all(len(row) > 1 and row[0] == str(n) for n, row in enumerate(rows, 1))
    return [row[1 if is_numbered else 0] for row in rows]


def is_hedged(text: str) -> bool:
    """Return whether a list leaves open what belongs to it."""
    return _HEDGED.search(strip_marks(text)) is not None


def _split_last(row: str, plain: str) -> list[str]:
    """Split "c and d" at the end of "a, b, c and d"."""
    if re.search(r",\s*(?:and|und|et|&)\b", plain) or not plain.rstrip().endswith(row.rstrip()):
        return [row]
    return re.split(r"\s+(?:and|und|et|&|or|then)\s+", row)


def _cut_opening(text: str) -> str:
    found = re.match(
        r"[^,;\n]*?(?:\b(?:is|are|include|includes|were|was|would be|gives|contains|has)\b|:|=(?!=))\s*(?=\S)",
        text,
        re.IGNORECASE,
    )
    if not found:
        return text
    rest = text[found.end() :]
    is_behind = re.search(r",|;|\band\b|&", found[0]) and not re.search(r",|;|\band\b|&", rest)
    if is_behind and ":" not in found[0]:
        return re.split(r"\s+(?:is|are|were|was|would be)\s", found[0])[0]  # "Ann and Bo are the winners"
    if re.fullmatch(r"\s*[A-Za-z]\w*\s*=\s*", found[0]):
        return text  # "x = 3 or x = 2" is read item by item
    return _cut_opening(rest) if ":" in rest[:60] and "," not in rest[: rest.find(":")] else rest


def _clean_item(item: str) -> str:
    item = strip_marks(item)
    item = re.sub(r"(?<=\w)\s*\([^()]*\)", "", _REMARK.sub("", item))
    item = re.sub(r"\A\s*(?:[-*•]|\(?\d{1,2}[.)](?!\d)|\d{1,2}(?:st|nd|rd|th)\b:?)\s+", "", item)
    item = re.split(r"\s[-–—]\s|:\s", item)[0]
    item = re.sub(r"\A\s*(?:[A-Za-z](?:_?\d)?\s*=\s*|(?:and|then|also|the|or|only|just|both|exactly)\s+)", "", item)
    return item.strip(" .,;:'\"`*()[]{}")


def fits_items(found: Sequence[str], key: Sequence[str], fits: Callable[[str, str], bool], *, is_set: bool) -> bool:
    """Return whether two lists have the same items, in the same order unless they are sets."""
    if is_set:
        left = list(dict.fromkeys(found))
        for wanted in dict.fromkeys(key):
            at = next((n for n, item in enumerate(left) if fits(item, wanted)), None)
            if at is None:
                return False
            left.pop(at)
        return not left
    return len(found) == len(key) and all(map(fits, found, key))


def fits_item(item: str, wanted: str) -> bool:
    """Return whether an item of a list is the wanted one: as a number, a date or a name."""
    numbers = read_number(to_plain(item)), read_number(to_plain(wanted))
    if numbers[0] and numbers[1]:
        return fits_number(numbers[0], numbers[1], "") == "right"
    said, goal = compact(item), compact(wanted)
    if len(goal) == 1 and re.match(rf"\(?{re.escape(goal)}\)?(?:[\s.:)]|\Z)", item.strip().casefold()):
        return True
    if goal and (said == goal or _are_alike(said.split(), goal.split())):
        return True
    rest = said.split()
    words = goal.split()
    if not words or not set(words) <= set(rest):
        return False
    return not [
        word
        for word in rest
        if word not in words and word not in _RANKING and not re.fullmatch(r"\d+(?:st|nd|rd|th):?", word)
    ]


_RANKING = frozenset(["came", "come", "finished", "followed", "by", "then", "ended", "up", "was", "is", "in", "ahead", "first", "last", "next", "place", "1st", "2nd", "3rd", "after", "that", "finally", "only"])  # fmt: skip


# Texts


def compact(text: str) -> str:
    """Return a text for comparison. Signs count if the text is of code or a formula, else only words do."""
    plain = re.sub(r"_(?=\d)", "", strip_marks(to_plain(text))).strip(" .,;:\n\"'`*!")
    if is_code(plain):
        return re.sub(r"\s+", "", plain).replace('"', "'").casefold()
    plain = re.sub(r"(?<=\d)\s*(?::|to)\s*(?=\d)", ":", spell(plain))
    return name_key(plain.replace("-", " "))


def spell(text: str) -> str:
    """Return a text with digits for words of numbers, and letters without accents."""
    plain = unicodedata.normalize("NFKD", _spell_ordinals(replace_number_words(text)))
    return unicodedata.normalize("NFKC", "".join(letter for letter in plain if not unicodedata.combining(letter)))


def is_code(text: str) -> bool:
    """Return whether the signs of a text count, as in "O(n^2)" and "ls -la"."""
    bare = text.strip().strip(".,;:'\"!?")
    return bool(re.search(r"[(\[{<>=*/\\|^$#@~&_]|(?<=\s)-\w|\w\.\w|\+", bare)) and not re.search(r"\w \(", bare)


@dataclass(frozen=True, slots=True)
class TextKey:
    """A key that is a text, in the forms that are right."""

    forms: tuple[str, ...]
    is_person: bool = False
    spelling: str = ""  # of an output whose capitals count


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def make_text_key(answer: str, question: str) -> TextKey:
    forms = [answer]
    if not is_code(answer) and (inner := re.fullmatch(r"(.+?)\s*\(([^()]+)\)", answer.strip())):
        forms += [inner[1], inner[2]]
    if not is_code(answer.replace("/", "")) and re.search(r"\s/\s|\bor\b|\baka\b", answer):
        forms += re.split(r"\s+/\s+|\s+or\s+|,?\s+aka\s+", answer)
    is_person = (
        re.search(
            r"\bwho\b|\bwhom\b|\bwhose\b|\b(?:author|scientist|president|composer|painter|inventor|physicist|writer|poet|king|queen|emperor|philosopher|mathematician|astronaut|director|artist|explorer)\b",
            question,
            re.IGNORECASE,
        )
        is not None
    )
    if (day := answer.strip().casefold()) in _WEEKDAYS:
        forms += [day[:3], day[:4]]
    bare = strip_marks(to_plain(answer)).strip(" `\"'")
    is_spelled = asks_literal(question) and re.search(r"[a-z].*[A-Z]|[A-Z].*[A-Z].*[a-z]", bare) is not None
    return TextKey(tuple(dict.fromkeys(filter(None, map(compact, forms)))), is_person, bare if is_spelled else "")


_ENDS_NAME = re.compile(
    r"[,;:.!?()\[\]\n\"“”]|\s[-–—]\s|\s[—–]|\s(?:because|since|which|who|whose|as|in|on|at|from|around|not|with|for|rather|instead|and its|that|after|during|by|when|where|followed|so|but|while)\b",
    re.IGNORECASE,
)
_BEFORE_NAME = re.compile(
    r"\A\W*(?:(?:it's|it is|it was|that's|that is|this is|they are|he is|she is|i think|i believe|i'd say|i would say|probably|most likely|likely|clearly|definitely|so|therefore|thus|hence|the answer is)[\s,:]+)+",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"\b(?:is|are|was|were|be|been|called|named|known as|by|as|gives?|yields?|prints?|outputs?|returns?|shows?|displays?|produces?|use|uses|means?|stands for|said|say|choose|to|of)\b(?: indeed| therefore| thus| probably| likely| most likely| clearly| commonly| the)?[\s:,]*|[:=]\s*",
    re.IGNORECASE,
)
_GENERIC = frozenset(["ocean", "sea", "river", "lake", "mount", "mountain", "mt", "city", "desert", "island", "islands", "republic", "kingdom", "university", "theorem", "law", "effect", "company", "inc", "corporation", "street", "state", "country", "novel", "poem", "book", "film", "movie", "element", "metal", "gas", "acid", "tower", "bridge", "war", "battle", "treaty", "empire", "dynasty", "language", "system", "protocol", "command", "algorithm", "sort", "method", "test", "rule", "cells", "cell", "bone", "muscle", "color", "colour", "planet", "of", "dr", "sir", "professor", "king", "queen", "saint", "st", "president", "emperor", "mr", "mrs", "ms"])  # fmt: skip
_FUNCTION = frozenset(["either", "both", "or", "spelled", "spelt", "aka", "formerly", "a", "an", "the", "of", "in", "on", "at", "to", "for", "by", "with", "from", "and", "so", "that", "this", "it", "its", "is", "are", "was", "were", "be", "been", "being", "as", "also", "then", "than", "indeed", "clearly", "simply", "thus", "therefore", "hence", "here", "who", "which", "what", "has", "have", "had", "gives", "give", "giving", "makes", "make", "called", "named", "known", "around", "about", "circa", "near", "during", "because", "since", "when", "while", "after", "before", "would", "should", "must", "will", "can", "could", "do", "does", "did", "we", "i", "you", "he", "she", "they", "there", "using", "use", "uses", "wrote", "written", "painted", "invented", "discovered", "founded", "composed", "directed", "built", "made", "said", "says", "say", "think", "believe", "answer", "means", "mean", "stands", "stand", "prints", "print", "outputs", "output", "returns", "return", "likely", "probably", "definitely", "certainly", "most", "just", "not", "but"])  # fmt: skip
_DENIES = re.compile(
    r"(?:\bnot|n't(?: be)?|\bnever|\brather than|\binstead of|\bunlike|\bneither|\bnor|\bthan|\bno longer|\bisn't|\bwrong(?:ly)?|\bmistaken(?:ly)?(?: for)?|\bconfused with)(?:\s+(?:in|the|a|an|be|it|really|actually|just|simply|called|by))*[\s\"'(]*\Z",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\A[\s\"')]*(?:is|was|are|were)(?:n't| not| incorrect| wrong| false)\b(?! only)|\A[\s\"')]*(?:is|was)\s+(?:wrong|incorrect|a common (?:mistake|misconception))",
    re.IGNORECASE,
)
_OR_BEFORE = re.compile(
    r"(?<!,)(?<!;)\s+or\s+(?:(?:possibly|maybe|perhaps|even|the|a|an|it's|by|in)\s+)*[\"'(]*\Z", re.IGNORECASE
)
_OR_AFTER = re.compile(
    r"\A[\"')]*\s*\(?(?:,?\s*or\s+(?:possibly|maybe|perhaps|even)|\s+or)\s+(?!more\b|less\b|so\b|simply\b)",
    re.IGNORECASE,
)


def fits_text(text: str, key: TextKey, question: str) -> Fit:
    """Return whether a claim names the text of the key."""
    if key.spelling and "".join(key.spelling.split()) not in "".join(strip_marks(text).split()):
        return "wrong"
    plain = spell(re.sub(r"_(?=\d)", "", strip_marks(text)))
    places = list(_find_forms(plain, key))
    said = [(plain[:start], plain[end:]) for start, end in places]
    is_denied = [bool(_DENIES.search(before) or _DENIED.match(after)) for before, after in said]
    if places and all(is_denied):
        return "wrong"
    names = {compact(name) for name in _list_names(text)}
    if names & set(key.forms) or any(_is_same_name(name, form, key) for name in names for form in key.forms):
        return "ambiguous" if any(map(_has_alternative, said)) else "right"
    asked = {name_key(word) for word in re.findall(r"[\w+#-]+", question)}
    lead = compact(_find_leading_name(plain, asked))
    if lead and any(_is_same_name(lead, form, key) for form in key.forms):
        return (
            "ambiguous"
            if re.match(rf"\W*{re.escape(_find_leading_name(plain, asked).strip())}\s+or\b", plain)
            else "right"
        )
    for (start, end), denied in zip(places, is_denied, strict=True):
        if not denied and _stands_alone(plain, start, end, asked):
            return "ambiguous" if _has_alternative((plain[:start], plain[end:])) else "right"
    return "wrong"


def _find_leading_name(plain: str, asked: set[str]) -> str:
    """Return the name at the beginning of a sentence that repeats the verb of the question."""
    found = re.match(r"\W*((?:[A-Z][\w.'-]*\s+(?:(?:von|van|de|da|di|der|la|le|of|the)\s+)*)+)([a-z]+)", plain)
    return found[1] if found and (name_key(found[2]) in asked or found[2] in _FUNCTION) else ""


def _has_alternative(said: tuple[str, str]) -> bool:
    return bool(_OR_BEFORE.search(said[0]) or _OR_AFTER.match(said[1]))


def _find_forms(plain: str, key: TextKey) -> list[tuple[int, int]]:
    rows = []
    for form in key.forms:
        words = form.split() if not is_code(form) else [form]
        pattern = r"[\s\"'-]+(?:(?:the|a|an)\s+)?".join(map(re.escape, words))
        if is_code(form):
            pattern = r"\s*".join(map(re.escape, form)).replace(r"\'", "['\"]")
        rows += [found.span() for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", plain, re.IGNORECASE)]
    return sorted(set(rows))


def _list_names(text: str) -> list[str]:
    """Return what a claim may name: itself, its parts in brackets, quotes and emphasis, and what follows a verb."""
    plain = strip_marks(text).strip()
    bare = _REMARK.sub("", plain)
    names = [
        plain,
        bare,
        *_BOLD_SPAN.findall(text),
        *re.findall(r"\"([^\"\n]+)\"", plain),
        *re.findall(r"(?<!\w)'([^'\n]+)'(?!\w)", plain),
    ]
    if len(plain) <= 120:
        names += re.findall(r"\(([^()]+)\)", plain)
    lines = [line for line in plain.split("\n") if line.strip()]
    names += lines[:1] if len(lines) > 1 else []
    names += [re.sub(r"\A\s*(?:\$|>>>|>|%)\s+", "", line) for line in lines]
    for part in (plain, bare):
        part = _BEFORE_NAME.sub("", part)
        names.append(_ENDS_NAME.split(part, maxsplit=1)[0])
        for found in list(_NAMES.finditer(part))[-6:]:
            rest = part[found.end() :]
            names += [_ENDS_NAME.split(rest, maxsplit=1)[0], rest]
    return [name for name in names if name.strip()]


def _is_same_name(name: str, form: str, key: TextKey) -> bool:
    said, wanted = (
        [word for n, word in enumerate(words) if n or len(words) == 1 or word not in _FOREIGN_ARTICLES]
        for words in (name.split(), form.split())
    )
    if not said or not wanted:
        return False
    if key.is_person and len(said) <= 5:
        shorter, longer = sorted((said, wanted), key=len)
        if (
            len(shorter) < len(longer)
            and longer[-len(shorter) :] == shorter
            and len(shorter[-1]) > 2
            and not set(said) & _FUNCTION
        ):
            return True
        if said[: len(wanted)] == wanted and not set(said) & _FUNCTION:
            return True
        if len(wanted) > 1 and len(said) > 1 and (said[0], said[-1]) == (wanted[0], wanted[-1]):
            return True
    if [word for word in said if word not in _GENERIC] == [word for word in wanted if word not in _GENERIC] and set(
        said
    ) - _GENERIC:
        return True
    return _are_alike(said, wanted) and not is_code(form)


_FOREIGN_ARTICLES = frozenset(("der", "die", "das", "le", "la", "les", "el", "los", "il", "lo", "l"))


def _are_alike(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether words are equal but for the ending of a plural."""
    return len(a) == len(b) and all(_singular(one) == _singular(other) for one, other in zip(a, b, strict=True))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _stands_alone(plain: str, start: int, end: int, asked: set[str]) -> bool:
    """Return whether the words beside a name do not belong to it, as in "dark green" and "Papua New Guinea"."""
    before = re.search(r"([\w+#'-]+)[\s\"'(]*\Z", plain[:start])
    after = re.match(r"[\s\"')]*([\w+#'-]+)", plain[end:])
    for found in (before, after):
        if found is None:
            continue
        between = found[0].replace(found[1], "", 1)
        if re.search(r"[(,;:.]", between):
            continue
        word = found[1].casefold()
        is_asked = name_key(word) in asked or any(len(one) > 3 and word.startswith(one) for one in asked)
        if word not in _FUNCTION and not is_asked and word not in _GENERIC:
            return False
    return True


def name_of(text: str) -> str:
    """Return what a claim names in one form, for votes."""
    plain = _REMARK.sub("", strip_marks(text)).strip()
    found = re.match(r"[^,;\n]{0,80}?\b(?:is|are|was|were)\b[\s:]*(?=\S)", plain)
    rest = plain[found.end() :] if found and len(plain) > 40 else plain
    short = _REASON.sub("", rest)
    return compact(short) or compact(rest)
