"""Marks of replies: whether the final answer of a reply is that of a key, and the final answer in a form for votes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from council.answer_text import find_refusal
from council.final_answers import readings
from council.final_answers.choices import LETTERS, fold, read_choice
from council.final_answers.dates import Day, TimeRead, find_dates, find_times
from council.final_answers.finder import (
    Claim,
    Strength,
    find_claims,
    find_last_answer,
    is_aside,
    is_corrected,
    split_sentences,
    trim,
)
from council.final_answers.markup import strip_marks, to_plain
from council.final_answers.quantities import Number, read_number
from council.final_answers.values import parse_answer
from council.language import detect_language

Mark = Literal["right", "wrong", "ambiguous", "unreadable"]
ListForm = Literal["", "ordered", "set"]
Kind = Literal["choice", "number", "yes/no", "date", "time", "list", "text"]
_YES_KEYS = re.compile(r"yes|true|correct|ja|oui|sí|si|vrai|wahr|richtig|verdadero", re.IGNORECASE)
_NO_KEYS = re.compile(r"no|false|incorrect|nein|non|faux|falsch|falso", re.IGNORECASE)
_WHEN = re.compile(
    r"\b(?:when|deadline|(?:what|which) (?:\w+ )?(?:year|date|day)|(?:year|date) (?:was|is|did|of)|wann|quand|cuándo|welche[mns]? (?:jahr|tag|datum)|quelle (?:année|date))\b",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\b(?:it|that|this|the \w+|answer)? ?(?:really |largely |entirely |all )?(?:depends|varies)\b|\b(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to|impossible to|not possible to|hard to|difficult to) "
    r"(?:be |reliably |definitively |accurately |really |fully |provide |give |say |you )*(?:determined?|say|tell|answer(?:ed)?|know|given?|provided?|see|verif\w+|confirm|find|compute|calculated?|stated?|decided?|identif\w+|help|access|a definit\w+|an? (?:exact|single|specific|final))\b"
    r"|\b(?:not enough|insufficient|more) (?:information|data|context|details?|evidence)\b|\b(?:i|we) (?:do not|don't) (?:know|have)\b|\b(?:unknown|undetermined|indeterminate|unclear|inconclusive)\b|\bno (?:answer|definitive|clear answer)\b|\bn'est pas (?:mentionné|indiqué|précisé|connu)|\bnicht (?:erwähnt|angegeben|bekannt|bestimmbar)|\bno se (?:menciona|indica|puede)|"
    r"\bi(?:'m| am) not (?:sure|certain|able)\b|\bneed (?:more|further|additional|the|at least)\b|\brather not\b|\bprefer not to\b|\bwon't (?:speculate|guess)\b|\bi don't see any\b|\b(?:could|can|please|would) you (?:please )?(?:share|provide|clarify|specify|tell)\b|\bnot (?:stated|given|specified|provided|known)\b",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(
    r"(?:\b(?:is|be|are|was|the|a|an|of|to|and|or|that|by|in|on|at|from|between|for|because|since|which|if|when|as|we get|than|have|with|so|then|approximately|about)|[=:+×({,*/-]|\\frac\{?)\s*\Z"
)


MIN_CUT_CHARS = 12  # of a reply that may be cut off
MAX_KEY_CHARS = 60  # of an answer that may be a number or a date with a unit
MAX_DECISIVE_WORDS = 10  # of a concluding sentence that names an answer


@dataclass(frozen=True, slots=True)
class Question:
    """What the reader knows about the question that a reply answers."""

    text: str = ""
    choices: tuple[str, ...] = ()
    items: ListForm = ""
    language: str = "en"  # of the reply


@dataclass(frozen=True, slots=True)
class Reading:
    """The final answer in one form. It is empty if there is none or if the reply leaves open which of several."""

    answer: str = ""
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The right answer of a question, parsed by its kind."""

    question: Question
    answer: str
    kind: Kind
    value: int | Number | bool | Day | TimeRead | tuple[str, ...] | readings.TextKey | None = field(default=None)


def make_key(answer: str, question: Question) -> AnswerKey:
    """Return a key. Its form decides the kind."""
    plain = strip_marks(to_plain(answer)).strip()
    if question.choices:
        return AnswerKey(question, answer, "choice", find_choice(answer, question.choices))
    if question.items:
        return AnswerKey(question, answer, "list", tuple(readings.split_list(to_plain(answer), is_key=True)))
    if _YES_KEYS.fullmatch(plain) or _NO_KEYS.fullmatch(plain):
        return AnswerKey(question, answer, "yes/no", _YES_KEYS.fullmatch(plain) is not None)
    meaning = parse_answer(plain, question.text)
    if meaning and isinstance(meaning.value, bool) and not meaning.tail:
        return AnswerKey(question, answer, "yes/no", meaning.value)
    times = find_times(plain)
    if len(times) == 1 and times[0][0] == 0 and times[0][1] >= len(plain):
        return AnswerKey(question, answer, "time", times[0][2])
    dates = find_dates(plain)
    if len(dates) == 1 and _covers(plain, dates[0].start, dates[0].end):
        day = dates[0].readings[0]
        if day.month or _WHEN.search(question.text):
            return AnswerKey(question, answer, "date", day)
    if number := read_number(plain):
        is_name = len(number.word.split()) > 2 or (
            re.search(r"[A-Za-z]", plain)
            and re.search(r"\b(?:which|who|name|called)\b", question.text, re.IGNORECASE)
            and not number.unit
        )
        if not is_name:
            return AnswerKey(question, answer, "number", number)
    parts = plain.strip("[](){} ").split(",")
    if len(parts) > 1 and all(read_number(part) for part in parts):
        return AnswerKey(
            Question(question.text, (), "ordered"),
            answer,
            "list",
            tuple(readings.split_list(to_plain(answer), is_key=True)),
        )
    return AnswerKey(question, answer, "text", readings.make_text_key(to_plain(answer), question.text))


def find_kind(reply: str, question: str) -> Kind:
    """Return the kind of the answer that a reply states, without a key: that of its last line."""
    said = find_last_answer(reply) or reply.strip()
    kind = make_key(said, Question(question)).kind if len(said) <= MAX_KEY_CHARS else "text"
    if kind in ("text", "list") and readings.read_spoken(said, question):
        return "yes/no"
    return "text" if kind == "list" else kind


def _covers(text: str, start: int, end: int) -> bool:
    """Return whether a date is all of a text but a weekday."""
    rest = f"{text[:start]} {text[end:]}"
    return not re.sub(
        r"\b(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?\b|\b(?:the|on|in)\b|[\s,.]", "", rest, flags=re.IGNORECASE
    )


def find_choice(answer: str, choices: Sequence[str]) -> int | None:
    """Return the number of the choice that a key names by its letter or its text."""
    bare = answer.strip().strip("()[].: ").upper()
    texts = [fold(choice) for choice in choices]
    if texts.count(fold(answer)) == 1 and not (len(bare) == 1 and bare in LETTERS[: len(choices)]):
        return texts.index(fold(answer))
    if len(bare) == 1 and bare in LETTERS[: len(choices)]:
        return LETTERS.index(bare)
    found = read_choice(answer, choices).chosen
    return found[0] if len(found) == 1 else None


# Marks


def mark_reply(reply: str, key: AnswerKey) -> Mark:
    """Return the mark of a reply."""
    decided = _decide(reply, key.question, key.kind, key)
    if decided is None:
        return "unreadable"
    answers, fits = decided
    if len(answers) > 1 and len(set(answers)) > 1:
        return "ambiguous"
    return fits[0]


def read_reply(reply: str, kind: Kind, question: Question) -> Reading:
    """Return the final answer of a reply in a form in which equal answers are equal."""
    decided = _decide(reply, question, kind, None)
    if decided is None:
        return Reading()
    answers = list(dict.fromkeys(decided[0]))
    return Reading(answers[0]) if len(answers) == 1 else Reading("", is_ambiguous=True)


_Decided = tuple[list[str], list[readings.Fit]]


def _decide(reply: str, question: Question, kind: Kind, key: AnswerKey | None) -> _Decided | None:
    """Return the answers of the claim that decides, with the fit of each to the key; None if none can be read."""
    if kind == "number":
        languages = {detect_language(reply, question.text), detect_language(reply)}
        question = replace(question, language=next((one for one in languages if one != "en"), "en"))
    groups = find_claims(reply)
    strong = [group for group in groups if group[0].strength >= Strength.SENTENCE]
    for group in strong:
        read = [(claim, found) for claim in group if (found := _read_claim(claim, question, kind, key))]
        if read:
            return _join_claims(reply, read, groups, question, kind, key)
        if all(_NO_ANSWER.search(strip_marks(claim.text)) for claim in group):
            return None
    if not strong and (open_answers := _read_open(groups, reply, question, kind, key)):
        return open_answers
    says_yes_or_no = kind == "yes/no" and readings.opens_with_yes_or_no(to_plain(reply))
    if not strong and (find_refusal(reply) or (not says_yes_or_no and _has_no_answer(reply, question, key))):
        return None
    weak = [group for group in groups if group[0].strength < Strength.SENTENCE]
    if kind == "yes/no":
        return _decide_yes_no(weak, question, key)
    if kind == "list" and key is not None and _leaves_items_open(weak, key):
        return [""], ["ambiguous"]
    return _decide_weak(weak, reply, question, kind, key)


def _decide_weak(
    groups: list[list[Claim]], reply: str, question: Question, kind: Kind, key: AnswerKey | None
) -> _Decided | None:
    """Return what the sentences and short lines of a reply without a label say, the clearest first."""
    weak: _Decided | None = None
    for group in groups:
        if kind == "choice" and group[0].strength < Strength.EMPHASIS:
            return _read_choice_text(reply, question, key)
        read = [found for claim in group if (found := _read_claim(claim, question, kind, key))]
        if not read:
            continue
        is_decisive = group[0].strength == Strength.EMPHASIS or (
            group[0].strength == Strength.CONCLUSION and len(group[-1].text.split()) <= MAX_DECISIVE_WORDS
        )
        is_part = kind == "date" and "?" in read[-1][0][0]  # a date in full comes first
        if is_part or (read[-1][1] == ["wrong"] and (kind == "list" or (kind == "text" and not is_decisive))):
            weak = weak or read[-1]
            continue
        return read[-1]
    return weak


def _decide_yes_no(groups: list[list[Claim]], question: Question, key: AnswerKey | None) -> _Decided | None:
    """Return the yes or no of a reply: a spoken one before a sentence that repeats the question."""
    claims = [claim for group in groups for claim in group if claim.strength != Strength.EMPHASIS]
    first = min(claims, key=lambda claim: (claim.start, claim.strength), default=None)
    concluding = [claim for claim in claims if claim.strength >= Strength.CONCLUSION]
    order = [*concluding, *([first] if first else []), *claims]
    said = next((found for claim in order if (found := readings.read_spoken(claim.text, question.text))), None)
    said = said or next((found for claim in order if (found := readings.read_yes_no(claim.text, question.text))), None)
    if (
        first
        and said
        and len(said) == 1
        and concluding
        and (opening := readings.read_spoken(first.text, question.text))
        and opening != said
    ):
        said = [True, False]
    return _fit_yes_no(said, key) if said else None


def _fit_yes_no(said: list[bool], key: AnswerKey | None) -> _Decided:
    return ["yes" if one else "no" for one in said], ["right" if key and one == key.value else "wrong" for one in said]


def _join_claims(
    reply: str,
    read: list[tuple[Claim, _Decided]],
    groups: list[list[Claim]],
    question: Question,
    kind: Kind,
    key: AnswerKey | None,
) -> _Decided:
    """Return the answers of the last claim, with those of other claims that contradict it and are not taken back."""
    last, (answers, fits) = read[-1]
    for earlier, (others, other_fits) in read[:-1]:
        is_settled = (
            last.strength < Strength.LABEL
            or (last.is_final and not earlier.is_final)
            or is_corrected(reply, earlier, last)
        )
        if not is_settled and set(others) != set(answers) and (key is None or other_fits != fits):
            return [*answers, *others], [*fits, *other_fits]
    if len(set(answers)) == 1 and (
        other := _find_contradiction(reply, last, (answers, fits), groups, question, kind, key)
    ):
        return [*answers, *other[0]], [*fits, *other[1]]
    return answers, fits


def _find_contradiction(
    reply: str,
    last: Claim,
    decided: _Decided,
    groups: list[list[Claim]],
    question: Question,
    kind: Kind,
    key: AnswerKey | None,
) -> _Decided | None:
    """Return what the text beside the last line concludes, if that is another answer.

    A conclusion before the last line counts if it says that it is the answer, or if it is right and the line wrong.
    """
    answers, fits = decided
    if last.strength < Strength.LABEL:
        return None
    for claim in sorted((claim for group in groups for claim in group), key=lambda claim: -claim.start):
        if claim.start >= last.start or claim.strength == Strength.LABEL or is_corrected(reply, claim, last):
            continue
        if _TENTATIVE.search(strip_marks(claim.text)):
            continue
        if kind == "choice":
            found = read_choice(claim.text, question.choices, is_claim=claim.strength >= Strength.SENTENCE).chosen
            other: _Decided | None = _fit_choices(found, key) if len(found) == 1 else None
            is_explicit = True
        elif kind == "yes/no":
            spoken = readings.read_spoken(claim.text, question.text)
            other = _fit_yes_no(spoken, key) if spoken else None
            is_explicit = claim.strength >= Strength.SENTENCE or not strip_marks(to_plain(reply)[: claim.start]).strip()
        else:
            is_explicit = claim.strength >= Strength.SENTENCE
            other = _read_claim(claim, question, kind, key) if claim.strength >= Strength.CONCLUSION else None
        if other is None:
            continue
        is_right_before = key is not None and fits == ["wrong"] and other[1] == ["right"]
        if is_right_before or (is_explicit and kind in ("choice", "yes/no") and set(other[0]) != set(answers)):
            return other
        if is_explicit:
            return None
    return None


_TENTATIVE = re.compile(
    r"\b(?:might|tempting|obvious|common(?:ly)?|many|people|initially|at first|first (?:thought|glance)|one could|could be|looks like|seems?|intuitive\w*)\b",
    re.IGNORECASE,
)


def _drop_remark(text: str) -> str:
    """Return a sentence without "…, depending on the year"."""
    return re.sub(r"(?<=\w),? \(?(?:it )?depend(?:s|ing)\b.*", "", text) if re.search(r"\d", text) else text


def _leaves_items_open(groups: list[list[Claim]], key: AnswerKey) -> bool:
    """Return whether a sentence names an item of the key and leaves open which other one belongs to the list."""
    wanted = key.value if isinstance(key.value, tuple) else ()
    for claim in (claim for group in groups for claim in group if claim.strength <= Strength.CONCLUSION):
        text = strip_marks(claim.text)
        if readings.is_hedged(text) and any(
            re.search(rf"(?<!\w){re.escape(str(item))}(?!\w)", text, re.IGNORECASE) for item in wanted
        ):
            return True
    return False


_LEFT_OPEN = re.compile(
    r"\b(?:both|either) (?:one |of (?:these|them) )?(?:answers?|readings?|interpretations?|values?|dates?|results?|options?|may|can|could|might|is|are)\b|\bsources (?:differ|disagree)\b|\bopen to interpretation\b",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(r"(?:\A|(?<=[.;\n])\s*)\W*(?:If|Assuming)\b[^:,]{0,80}[:,]")


def _read_open(
    groups: list[list[Claim]], reply: str, question: Question, kind: Kind, key: AnswerKey | None
) -> _Decided | None:
    """Return several answers that a reply gives without a decision: "some say X, others Y; either may be right"."""
    sentences = [strip_marks(text) for _, text in split_sentences(to_plain(reply))]
    conditional = _CONDITIONAL.split(strip_marks(to_plain(reply)))[1:]
    is_open = any(_LEFT_OPEN.search(text) for text in sentences[:1] + sentences[-1:])
    if kind in ("choice", "yes/no") or not (is_open or len(conditional) > 1):
        return None
    texts = [claim.text for group in groups for claim in group if is_open or claim.strength <= Strength.CONCLUSION]
    texts = texts if is_open else conditional
    parts = [part for text in texts for part in re.split(r",\s+(?=others?\b|and\b|while\b|or\b)|\n|:\s", text)]
    found = [one for part in parts if (one := _read_claim(Claim(Strength.LAST, 0, part), question, kind, key))]
    fits = {fit for _, row in found for fit in row}
    if key is not None:
        return (["", "?"], ["right", "wrong"]) if {"right", "wrong"} <= fits else None
    answers = list(dict.fromkeys(answer for row, _ in found for answer in row))
    return (answers, ["wrong"] * len(answers)) if len(answers) > 1 else None


def _has_no_answer(reply: str, question: Question, key: AnswerKey | None) -> bool:
    """Return whether a reply without a label says that it gives no answer, or breaks off."""
    plain = strip_marks(to_plain(reply)).rstrip()
    if len(plain) > MIN_CUT_CHARS and (_CUT_OFF.search(plain) or reply.rstrip().endswith(("{", "\\"))):
        return True
    if (key is not None and _NO_ANSWER.search(key.answer)) or any(map(_NO_ANSWER.search, question.choices)):
        return False
    if question.choices and len(read_choice(to_plain(reply), question.choices).chosen) in (1, 2):
        return False
    sentences = [strip_marks(text).strip() for _, text in split_sentences(to_plain(reply))]
    stated = [text for text in sentences if not text.endswith("?") and not is_aside(text)]
    shown = [*stated[:1], *stated[-1:], *(text for text in sentences[-1:] if text.endswith("?"))]
    return any(_NO_ANSWER.search(_drop_remark(re.split(r"\b(?:but|however)\b", text)[-1])) for text in shown)


def _read_claim(claim: Claim, question: Question, kind: Kind, key: AnswerKey | None) -> _Decided | None:
    """Return the answers of one claim, with the fit of each to the key; None if it has no answer of this kind."""
    is_lead = claim.strength >= Strength.SENTENCE
    if kind == "choice":
        return _read_choice_claim(claim, question, key)
    if kind != "list" and claim.strength < Strength.SENTENCE and "\n" in claim.text.strip():
        return None  # a list is an answer to a question that asks for one
    if kind == "number":
        numbers = readings.read_numbers(claim.text, question.text, is_lead=is_lead)
        fits = [
            readings.fits_number(one, key.value, question.text, question.language)
            if key and isinstance(key.value, Number)
            else "wrong"
            for one in numbers
        ]
        return _if_any([readings.number_text(one, question.text) for one in numbers], fits)
    if kind == "yes/no":
        said = readings.read_yes_no(claim.text, question.text)
        return _fit_yes_no(said, key) if said else None
    if kind == "date":
        days = readings.read_days(claim.text, question.text, is_lead=is_lead)
        fits = [
            readings.fits_days(one, key.value, question.text) if key and isinstance(key.value, Day) else "wrong"
            for one in days
        ]
        return _if_any(["/".join(map(str, one)) for one in days], fits)
    if kind == "time":
        times = readings.read_times(claim.text, is_lead=is_lead)
        fits = [
            readings.fits_time(one, key.value) if key and isinstance(key.value, TimeRead) else "wrong" for one in times
        ]
        return _if_any([f"{one.minutes // 60:02}:{one.minutes % 60:02}" for one in times], fits)
    if kind == "list":
        return _read_list(claim, question, key)
    return _read_text(claim, question, key)


def _read_choice_claim(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    if claim.strength == Strength.ALONE and "\n" in claim.text:
        return None  # the choices with remarks
    found = read_choice(claim.text, question.choices)
    if key is not None and not found.chosen and key.value in found.rejected and claim.strength >= Strength.ALONE:
        return ["not " + LETTERS[next(iter(found.rejected))]], ["wrong"]
    return _fit_choices(found.chosen, key) if found.chosen else None


def _fit_choices(chosen: Sequence[int], key: AnswerKey | None) -> _Decided:
    return [LETTERS[one] for one in chosen], ["right" if key and one == key.value else "wrong" for one in chosen]


def _read_choice_text(reply: str, question: Question, key: AnswerKey | None) -> _Decided | None:
    """Read the choice of a reply without a claim: a sentence that calls one correct, else all sentences together."""
    sentences = [text for _, text in split_sentences(to_plain(reply)) if not is_aside(text)]
    called = (read_choice(text, question.choices, is_claim=False) for text in reversed(sentences))
    whole = read_choice("\n".join(sentences), question.choices)
    named = (read_choice(text, question.choices) for text in reversed(sentences))
    found = [next((one for one in called if one.chosen), None), whole, next((one for one in named if one.chosen), None)]
    known = [one.chosen for one in found if one and one.chosen]
    chosen = next((one for one in known if len(one) == 1), known[-1] if known else ())
    return _fit_choices(chosen, key) if chosen else None


def _if_any(answers: list[str], fits: list[readings.Fit]) -> _Decided | None:
    return (answers, fits) if answers else None


def _read_list(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    items = readings.split_list(claim.text)
    if not items or (len(items) == 1 and claim.strength < Strength.ALONE):
        return None
    is_set = question.items == "set"
    shown = [readings.compact(item) for item in items]
    answer = ", ".join(sorted(set(shown)) if is_set else shown)
    if key is None or not isinstance(key.value, tuple):
        return [answer], ["wrong"]
    wanted = [str(one) for one in key.value]
    if all(len(one) == 1 for one in wanted) and readings.compact(claim.text) == "".join(wanted).casefold():
        items = wanted
    if readings.is_hedged(claim.text):
        return [answer], ["ambiguous"]
    fits = readings.fits_items(items, wanted, readings.fits_item, is_set=is_set) or readings.has_items(
        claim.text, wanted, is_set=is_set
    )
    return [answer], ["right" if fits else "wrong"]


def _read_text(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    name = readings.name_of(claim.text)
    if key is None or not isinstance(key.value, readings.TextKey):
        return ([name], ["wrong"]) if name and claim.strength >= Strength.ALONE else None
    fit = readings.fits_text(claim.text, key.value, question.text)
    if fit == "wrong" and _NO_ANSWER.match(trim(claim.text)):
        return None
    return [name], [fit]
