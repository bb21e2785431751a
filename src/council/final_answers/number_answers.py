"""Numbers that claims state, and their fit to a key."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from council.final_answers.claim_words import BOLD_SPAN, IS_EITHER, MARK_SIGNS, REASON, REMARK, Fit, content, stem
from council.final_answers.markup import strip_marks
from council.final_answers.numbers import replace_number_words
from council.final_answers.quantities import Chain, Number, find_chains, read_number
from council.final_answers.units import look_up

_CONCLUSION = re.compile(
    r"(?:\A|(?<=[\W_]))(?:so|thus|therefore|hence|consequently|which (?:gives|means|makes|leaves|is)|this (?:gives|means|leaves)|(?:that|it) (?:gives|makes|leaves)(?: you| us)?|giving|leaving|making|we get|"
    r"that is|in total|altogether|also|somit|daher|donc)\b[,:]?|\bi\.e\.,?(?! (?:about|approximately|approx|roughly)|\s*[≈~])|[⇒→∴]|=>",
    re.IGNORECASE,
)


_NONE = re.compile(r"\W*(?:none|nil|nothing|no(?: \w+)?|not any)\W*", re.IGNORECASE)
_COUNTED = re.compile(r"\bhow (?:many|much)\b|\bnumber of\b", re.IGNORECASE)
_CHANCE = re.compile(r"\b(?:probability|chance|odds|fraction|likel\w+|proportion|share|ratio)\b", re.IGNORECASE)
_SHARE_OF = re.compile(r"\b(\d+) (?:in|out of) (?:every )?(\d+)\b")
_ONE_IN = re.compile(r"\b(1) (?:in|out of) (?:every )?(\d+)\b")
_PLUS_MINUS = re.compile(r"(?:\A|[=:]|\bis|\bare)\s*±\s*(\d[\d.,/√]*)\s*[.!]?\s*\Z")
_EITHER = re.compile(
    rf"[\s{MARK_SIGNS},(]*(?:or|oder|and/or|or (?:maybe|perhaps|possibly|even))[\s{MARK_SIGNS}]*(?:(?:maybe|perhaps|possibly|even|about|[a-z]\w? ?=) ?)*[$€£(]?[\s{MARK_SIGNS}]*\Z",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    rf"(?:\b(?:is|are|was|were|be|equals?|gives?|gets?|got|makes?|(?:total|sum|value|count|number|result|average|mean|price|cost) of|(?:comes?|amounts?|adds up|rounds|equal|close|leads?) to|"
    rf"costs?|totals?|totall?ing|takes?|needs?|leaves?|has|have|about|approximately|around|roughly|exactly|only|just|answer|result|total|yields?|pays?|remain|contains?|ist|sind|est)"
    rf"|[:=≈])[\s{MARK_SIGNS}$€£(]*\Z",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"percent|per cent|%|prozent|pour ?cent|por ciento", re.IGNORECASE)
_ASKED_UNIT = re.compile(r"\bhow many ([a-zµ]+)|\bin ([a-zµ°]+)\b|\((?:in )?([a-zµ°]+)\)", re.IGNORECASE)
_MEASURED = ("time", "data", "length", "mass", "volume")


def read_numbers(text: str, question: str, *, is_lead: bool) -> list[Number]:
    """Return the number that a claim ends with, or begins with if the whole claim is the answer."""
    if _NONE.fullmatch(strip_marks(text)) and _COUNTED.search(question):
        return [Number(Fraction(0), step=Fraction(1))]
    text = _drop_retracted(replace_number_words(text))
    if _ASKS_SIGNED.search(question):
        text = _LOSS.sub(r"-\1", text)
    pattern = _SHARE_OF if _CHANCE.search(question) else _ONE_IN
    text = pattern.sub(r"\1/\2", text)
    if IS_EITHER.search(strip_marks(text)):
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
    whole = REMARK.sub("", text)
    whole = whole if find_chains(strip_marks(whole)) else text
    if is_lead:
        whole = _cut(whole)
    bold = [span for span in BOLD_SPAN.findall(whole) if find_chains(span)]
    if len(bold) == 1 and not is_lead:
        whole = bold[0]
    elif not is_lead:
        kept = _keep_conclusion(whole)
        is_lead = kept is not whole and _begins_with_number(kept)
        whole = _cut(kept)
    whole = strip_marks(whole)
    chains = _drop_wholes(_find_stated(whole), whole)
    if not chains:
        return []
    if len(chains) == 1:
        return _sides(chains[0])
    if not is_lead and (pair := _find_last_pair(chains, whole)):
        return pair
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
            between = whole[first.end : second.start]
            if _EITHER.match(between):
                values = sorted(abs(float(one.sides[-1].value)) for one in (first, second))
                if _ROUNDLY.search(between) and values[1] - values[0] <= ROUNDED * values[1]:
                    return [first.sides[-1]]
                return [first.sides[-1], second.sides[-1]]
    return _sides(chosen)


def _find_last_pair(chains: Sequence[Chain], text: str) -> list[Number]:
    """Return the two numbers that a sentence ends with and leaves open: "the square root is 12 or -12"."""
    first, last = chains[-2:]
    between = text[first.end : last.start]
    if re.search(r"\w", text[last.end :]) or not _EITHER.match(between) or _ROUNDLY.search(between):
        return []
    return [first.sides[-1], last.sides[-1]] if first.sides[-1].value != last.sides[-1].value else []


_AT_VALUE = re.compile(r"\b(?:at|when|for|with|where|if|using|given|taking)\s+(?:\w+\s*=\s*)?\Z", re.IGNORECASE)
_NOT_STATED = re.compile(
    r"(?:\bnot|n't(?: be)?|\bnever|\brather than|\binstead of|\bisn't)\s+(?:be |just |exactly |simply |only |about )?[$€£]?\Z|[\w)]\s*[<>≤≥]=?\s*\Z",
    re.IGNORECASE,
)


_ASKS_SIGNED = re.compile(
    r"\b(?:profit|gain|net|change|balance|return|result)\b(?!.*\b(?:loss|decrease|drop|fall|lose|lost)\b)",
    re.IGNORECASE,
)
_LOSS = re.compile(
    r"\b(?:(?:a |the )?(?:net )?(?:loss|decrease|decline|drop|deficit) of|decreas\w+ by|fell by|dropped by|declined by|went down by|lost) (?=[$€£]?\d)([$€£]?)",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"\b(?:scratch that|strike that|no,? wait|wait,? no|make that|correction|i mean|or rather)\b[,:;]?", re.IGNORECASE
)


def _drop_retracted(text: str) -> str:
    """Return the part after "scratch that" if it has a number."""
    found = list(_RETRACTED.finditer(text))
    return text[found[-1].end() :] if found and find_chains(strip_marks(text[found[-1].end() :])) else text


def _begins_with_number(text: str) -> bool:
    chains = find_chains(strip_marks(text))
    return bool(chains) and len(strip_marks(text)[: chains[0].start].split()) <= 1


def _find_stated(text: str) -> list[Chain]:
    """Return the numbers of a text without those that it denies."""
    plain = strip_marks(text)
    return [chain for chain in find_chains(plain) if not _NOT_STATED.search(plain[: chain.start])]


def _cut(text: str) -> str:
    """Return a text without the reason after its number."""
    text = text.lstrip()
    for found in REASON.finditer(text):
        before = text[: found.start()]
        if (
            re.match(r"\W*(?:not|(?:it|that)(?:'s| is) not|it isn't)\b", before, re.IGNORECASE)
            and find_chains(strip_marks(before))
            and not _find_stated(before)
        ):
            return before  # it only denies a number
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


_ROUNDLY = re.compile(r"\b(?:about|roughly|approximately|around|just|nearly)\b|[≈~]")
ROUNDED = 0.05  # share by which "or about 58" may differ from the value before it
_OF_WHOLE = re.compile(r"\s*(?:[a-z]+ )?(?:out )?of (?:the |all |these |those |our )?(?:total )?", re.IGNORECASE)


def _drop_wholes(chains: list[Chain], text: str) -> list[Chain]:
    """Return numbers without the whole of "84 of the 120"."""
    kept = chains[:1]
    for before, chain in itertools.pairwise(chains):
        is_whole = (
            _OF_WHOLE.fullmatch(text[before.end : chain.start])
            and len(chain.sides) == 1
            and not before.sides[-1].is_share
        )
        if not is_whole:
            kept.append(chain)
    return kept


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
        if (
            chain.sides[-1].word
            and {chain.sides[-1].word, chain.sides[-1].word.removesuffix("s")}
            & {*nouns, *(noun.removesuffix("s") for noun in nouns)}
        )
        or _is_before_noun(text[chain.end :], counts)
    ]
    asked_words = content(question) - {stem(noun) for noun in nouns}
    shared = [len(content(_clause_of(text, chain)) & asked_words) for chain in chains]
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


def _is_before_noun(after: str, counts: Sequence[tuple[str, str]]) -> bool:
    """Return whether the noun that the question counts follows with a word before it: "24 trailing zeros"."""
    found = re.match(r"\s+[a-z-]+ ([a-z-]+)", after)
    return found is not None and any(found[1] == noun for noun, _ in counts)


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


_CENTS = ("cent", "cents", "¢", "pence")


def _fits_range(found: Number, key: Number) -> Fit:
    if found.high is not None and key.high is not None:
        return "right" if (float(found.value), float(found.high)) == (float(key.value), float(key.high)) else "wrong"
    if found.high is not None and float(key.value) in (float(found.value), float(found.high)):
        return "ambiguous"
    return "wrong"


def _is_equal(found: Number, key: Number, asks_percent: bool, question: str) -> bool:
    value, goal = float(found.value), float(key.value)
    if (
        found.word in _CENTS
        and key.word not in _CENTS
        and not re.search(r"\b(?:cents?|pence)\b", question, re.IGNORECASE)
    ):
        value, found = value / 100, replace(found, value=found.value / 100, step=found.step / 100, unit="", word="")
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
