"""Marks of replies: whether the final answer of a reply is that of a key, and the final answer in a form for votes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from council.answer_text import find_refusal
from council.final_answers.choices import LETTERS, fold, read_choice
from council.final_answers.claim_words import Fit, compact, content, is_code
from council.final_answers.date_answers import fits_days, fits_time, read_days, read_times
from council.final_answers.dates import Day, TimeRead, find_dates, find_times
from council.final_answers.finder import (
    Claim,
    Correction,
    Strength,
    find_claims,
    find_correction,
    find_last_answer,
    is_aside,
    is_corrected,
    split_sentences,
    trim,
)
from council.final_answers.list_answers import (
    drop_shared_noun,
    drop_shares,
    excludes,
    fits_item,
    fits_items,
    has_items,
    is_broken_off,
    is_hedged,
    is_prose,
    names_all,
    names_alternative,
    split_list,
)
from council.final_answers.markup import MARKS, strip_marks, to_plain
from council.final_answers.number_answers import fits_number, number_text, read_numbers
from council.final_answers.quantities import Number, read_number, spell_duration
from council.final_answers.text_answers import TextKey, fits_text, make_text_key, name_of, names_someone
from council.final_answers.values import parse_answer
from council.final_answers.yes_no_answers import opens_with_yes_or_no, read_spoken, read_yes_no
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
_DURATION = re.compile(
    r"\bhow long\b|\bduration\b|\bhow much time\b|\b(?:winning|finish\w*|run\w*|total) time\b", re.IGNORECASE
)
_NO_ANSWER = re.compile(
    r"\b(?:it|that|this|the \w+|answer)? ?(?:really |largely |entirely |all )?(?:depends|varies)\b|\b(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to|impossible to|not possible to|hard to|difficult to) "
    r"(?:be |reliably |definitively |accurately |really |fully |provide |give |say |you )*(?:determined?|say|tell|answer(?:ed)?|know|given?|provided?|see|verif\w+|confirm|find|compute|calculated?|stated?|decided?|identif\w+|help|access|a definit\w+|an? (?:exact|single|specific|final))\b"
    r"|\b(?:not enough|insufficient|more) (?:information|data|context|details?|evidence)\b|\b(?:i|we) (?:do not|don't) (?:know|have)\b|\b(?:unknown|undetermined|indeterminate|unclear|inconclusive)\b|\bno (?:answer|definitive|clear answer)\b|\bn'est pas (?:mentionné|indiqué|précisé|connu)|\bnicht (?:erwähnt|angegeben|bekannt|bestimmbar)|\bno se (?:menciona|indica|puede)|"
    r"\bi(?:'m| am) not (?:sure|certain|able)\b|\bneed (?:more|further|additional|the|at least)\b|\brather not\b|\bprefer not to\b|\b(?:can(?:no|')t|cannot|won't|not (?:able|allowed|permitted) to|unable to) (?:share|disclose|reveal|discuss|view|open|read|access|look up|process|display|speak for|comment)\b"
    r"|\bplease (?:share|provide|paste|send|attach|upload|specify|clarify|tell me|give me|include|supply)\b|\b(?:i|we)(?:'d| would) need\b|\boff limits\b|\bhave no (?:access|information|way|knowledge|record)\b"
    r"|\b(?:does|do|did)(?:n't| not) (?:actually |explicitly |really |clearly )?(?:say|state|mention|reveal|specify|indicate|disclose|name|tell us|identify|list|include)\b|\bno (?:\w+ ){1,2}?(?:was|were|is|are|has been|have been) (?:attached|provided|included|given|shared|uploaded|supplied|mentioned|named|stated)\b"
    r"|\bno (?:poem|text|image|picture|file|document|passage|article|attachment|link|table|chart|code)\b|\b(?:don't|do not) see (?:any|an|the)\b|\bas an ai\b|\A\W*(?:n/?a|no (?:response|answer|output|idea|clue))\W*\Z|\A\W*error\b|\b(?:would|'d) have to (?:look|check|know|see|guess)\b|\bbehind a paywall\b|\b(?:is|are)(?:n't| not) enough\b|\b(?:information|data|details?|answers?|records?)\b[^.]{0,30}(?:n't|\bnot) (?:publicly )?available\b|\bno (?:public|available|reliable|relevant) (?:information|data|records?)\b|\b(?:training|knowledge)\b[^.]{0,30}(?:n't|\bnot) (?:cover|include)\b|\bmany (?:aspects|factors|possibilities)\b|\bwhich one do you mean\b|\bleaves? (?:this|it|that) open\b|\bwon't (?:spoil|reveal|say|tell)\b|\bonce (?:i|you) (?:have|share|send|provide|paste)\b|\byou(?:'d| would|'ll| will)? (?:need|have) to (?:tell|give|send|share|provide|specify|clarify)\b|\bwon't (?:speculate|guess)\b|\bi don't see any\b|\b(?:could|can|please|would) you (?:please )?(?:share|provide|clarify|specify|tell|paste|send|attach|upload|give|include|confirm|let me know)\b|\bnot (?:stated|given|specified|provided|known)\b",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(
    r"(?:\b(?:is|be|are|was|the|a|an|of|to|and|or|that|by|in|on|at|from|between|for|because|since|which|if|when|as|we get|than|have|with|so|then|approximately|about|[Tt]hen|[Nn]ext|[Ff]irst,?|[Nn]ow|who|whom|whose|where|while|into|mod|becomes|gives|equals|called|named|one who|by the|its|their|his|her|my|your|but|not|also|will|would|must|should|could|can|may)|[=:+×({,*/≡≈≤≥<→⇒√^-]|(?<![\w\"'/])>|\\frac\{?)\s*\Z"
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
    value: int | Number | bool | Day | TimeRead | tuple[str, ...] | TextKey | None = field(default=None)


def make_key(answer: str, question: Question) -> AnswerKey:
    """Return a key. Its form decides the kind."""
    plain = strip_marks(to_plain(answer)).strip()
    if question.choices:
        return AnswerKey(question, answer, "choice", find_choice(answer, question.choices))
    if question.items:
        return AnswerKey(question, answer, "list", tuple(split_list(to_plain(answer), is_key=True)))
    if _YES_KEYS.fullmatch(plain) or _NO_KEYS.fullmatch(plain):
        return AnswerKey(question, answer, "yes/no", _YES_KEYS.fullmatch(plain) is not None)
    meaning = parse_answer(plain, question.text)
    if meaning and isinstance(meaning.value, bool) and not meaning.tail:
        return AnswerKey(question, answer, "yes/no", meaning.value)
    times = find_times(plain)
    if (
        _DURATION.search(question.text)
        and (spelled := spell_duration(plain)) != plain
        and (number := read_number(spelled))
    ):
        return AnswerKey(question, answer, "number", number)
    if re.fullmatch(r"(?:the )?'?\d{1,3}0'?s", plain, re.IGNORECASE):
        return AnswerKey(question, answer, "text", make_text_key(plain, question.text))
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
            tuple(split_list(to_plain(answer), is_key=True)),
        )
    return AnswerKey(question, answer, "text", make_text_key(to_plain(answer), question.text))


def find_kind(reply: str, question: str) -> Kind:
    """Return the kind of the answer that a reply states, without a key: that of its last line."""
    said = find_last_answer(reply) or reply.strip()
    kind = make_key(said, Question(question)).kind if len(said) <= MAX_KEY_CHARS else "text"
    if kind in ("text", "list") and read_spoken(said, question):
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
    reply = _spell_symbols(reply, key)
    decided = _decide(reply, key.question, key.kind, key)
    if decided is None:
        return "unreadable"
    answers, fits = decided
    if len(answers) > 1 and len(set(answers)) > 1:
        return "ambiguous"
    return "right" if "right" in fits else fits[0]


_BRACKETED = re.compile(r"(?P<name>[^\W\d_][\w'’ -]{0,40}?)[*_`]*\s*\([*_`]*(?P<inner>[^\W\d_][\w'’ -]{0,40})[*_`]*\)")
_SYMBOL = re.compile(r"[A-Z][a-z]?|[A-Z]{2,6}|(?:[A-Z][a-z]?[₀-₉\d]*){1,4}")


def _spell_symbols(reply: str, key: AnswerKey) -> str:
    """Return a reply with the name of the key for a symbol that the reply explains: "He (helium)"."""
    names = [str(one) for one in key.value] if isinstance(key.value, tuple) else [key.answer]
    if key.kind not in ("list", "text"):
        return reply
    for name in names:
        if _SYMBOL.fullmatch(name) or len(name) < MIN_NAME_CHARS:
            continue
        wanted = compact(name)
        for found in _BRACKETED.finditer(reply):
            words = found["name"].split()
            for symbol, said in ((found["inner"], found["name"]), (words[-1], found["inner"])):
                ends_with_name = f" {compact(said)}".endswith(f" {wanted}")
                if ends_with_name and _SYMBOL.fullmatch(symbol) and _abbreviates(symbol, name):
                    reply = re.sub(rf"(?<![\w-]){re.escape(symbol)}(?![\w-])", name, reply)
                    break
    return reply


MIN_NAME_CHARS = 3


def _abbreviates(symbol: str, name: str) -> bool:
    """Return whether a symbol is that of an element, or has the initials of a name."""
    if len(symbol) == 1 or symbol[1].islower():
        return symbol not in ("A", "I")
    initials = [
        word[0] for word in re.findall(r"[^\W\d_]+", name) if word.casefold() not in ("of", "the", "and", "for")
    ]
    return symbol.casefold() == "".join(initials).casefold()


def read_reply(reply: str, kind: Kind, question: Question) -> Reading:
    """Return the final answer of a reply in a form in which equal answers are equal."""
    decided = _decide(reply, question, kind, None)
    if decided is None:
        return Reading()
    answers = list(dict.fromkeys(decided[0]))
    return Reading(answers[0]) if len(answers) == 1 else Reading("", is_ambiguous=True)


_Decided = tuple[list[str], list[Fit]]


def _decide(reply: str, question: Question, kind: Kind, key: AnswerKey | None) -> _Decided | None:
    """Return the answers of the claim that decides, with the fit of each to the key; None if none can be read."""
    if kind == "number":
        languages = {detect_language(reply, question.text), detect_language(reply)}
        question = replace(question, language=next((one for one in languages if one != "en"), "en"))
    groups = _drop_retracted(find_claims(reply), reply, question, kind, key)
    strong = [group for group in groups if group[0].strength >= Strength.SENTENCE]
    for group in strong:
        read = [(claim, found) for claim in group if (found := _read_claim(claim, question, kind, key))]
        if read:
            return _join_claims(reply, read, groups, question, kind, key)
        if all(_NO_ANSWER.search(strip_marks(claim.text)) for claim in group):
            return None
    if not strong and (open_answers := _read_open(groups, reply, question, kind, key)):
        return open_answers
    says_yes_or_no = kind == "yes/no" and opens_with_yes_or_no(to_plain(reply))
    if not strong and (find_refusal(reply) or (not says_yes_or_no and _has_no_answer(reply, question, key))):
        return None
    weak = [group for group in groups if group[0].strength < Strength.SENTENCE]
    if kind == "yes/no":
        return _decide_yes_no(weak, to_plain(reply), question, key)
    if kind == "list" and key is not None and _leaves_items_open(weak, key):
        return [""], ["ambiguous"]
    return _decide_weak(weak, reply, question, kind, key)


def _drop_retracted(
    groups: list[list[Claim]], reply: str, question: Question, kind: Kind, key: AnswerKey | None
) -> list[list[Claim]]:
    """Return the claims after the last correction, if one of them states an answer, else all.

    A correction such as "actually" takes nothing back if it may be part of the answer itself.
    """
    correction = find_correction(reply)
    if correction is None:
        return groups
    cut = [[_cut_retracted(claim, correction) for claim in group] for group in groups]
    later = [kept for group in cut if (kept := [claim for claim in group if claim.start >= correction.start - 1])]
    for group in later:
        for claim in group:
            is_naming = kind != "text" or _NAMING.search(strip_marks(claim.text)) or claim.strength >= Strength.ALONE
            if is_naming and _read_claim(claim, question, kind, key):
                return _join_sentences(later)
    return groups


def _join_sentences(groups: list[list[Claim]]) -> list[list[Claim]]:
    """Return groups in which the last sentence comes first, whether or not one before it begins with "so"."""
    clear = [group for group in groups if group[0].strength > Strength.CONCLUSION]
    sentences = [claim for group in groups for claim in group if claim.strength <= Strength.CONCLUSION]
    return [*clear, *([claim] for claim in sorted(sentences, key=lambda claim: -claim.start))]


def _cut_retracted(claim: Claim, correction: Correction) -> Claim:
    """Return the part of a sentence after the correction in it: "A, no wait, C"."""
    inside = correction.start - claim.start
    if not correction.is_clear or not 0 < inside < len(claim.text) or claim.strength >= Strength.SENTENCE:
        return claim
    rest = re.sub(r"\A\w+(?: (?:that|on))?[\s,:;.!—–-]*", "", claim.text[inside:])
    return claim._replace(start=correction.start, text=rest) if rest.strip() else claim


_NAMING = re.compile(
    r"\b(?:it|that|this|answer|he|she)(?: is|'s| was| must be| should be| has to be)\b|\b(?:is|was) (?:the|in|by|at)\b|:",
    re.IGNORECASE,
)


def _decide_weak(
    groups: list[list[Claim]], reply: str, question: Question, kind: Kind, key: AnswerKey | None
) -> _Decided | None:
    """Return what the sentences and short lines of a reply without a label say, the clearest first."""
    weak: _Decided | None = None
    if kind == "number":
        groups = _put_asked_first(groups, question, key)
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


def _put_asked_first(groups: list[list[Claim]], question: Question, key: AnswerKey | None) -> list[list[Claim]]:
    """Return groups with the last sentence first, if it has words of the question and no "so" sentence has any.

    "So x = 12. Tom is 12 and Ann is 24" answers how old Ann is with its last sentence.
    """
    sentences = [claim for group in groups for claim in group if claim.strength <= Strength.CONCLUSION]
    if not sentences or any(group[0].strength > Strength.CONCLUSION for group in groups):
        return groups
    last = max(sentences, key=lambda claim: claim.start)
    asked = content(question.text)
    concluding = [claim for claim in sentences if claim.strength == Strength.CONCLUSION]
    is_asked = bool(content(strip_marks(last.text)) & asked)
    if (
        last.strength == Strength.CONCLUSION
        or not is_asked
        or any(content(strip_marks(one.text)) & asked for one in concluding)
    ):
        return groups
    if not re.search(r"\b(?:is|are|was|were|has|have|had|costs?|gets?|pays?|needs?|takes?)\b", last.text):
        return groups
    return [[last], *groups]


def _decide_yes_no(groups: list[list[Claim]], reply: str, question: Question, key: AnswerKey | None) -> _Decided | None:
    """Return the yes or no of a reply: a spoken one before a sentence that repeats the question."""
    claims = [claim for group in groups for claim in group if claim.strength != Strength.EMPHASIS]
    claims = [claim for claim in claims if not _answers_other(reply, claim, question)]
    claims = [claim for claim in claims if not _OF_OTHERS.match(strip_marks(claim.text))] or claims
    first = min(claims, key=lambda claim: (claim.start, claim.strength), default=None)
    concluding = [claim for claim in claims if claim.strength >= Strength.CONCLUSION]
    order = [*concluding, *([first] if first else []), *claims]
    if said_last := _read_closing_statement(claims, order, question):
        return _fit_yes_no(said_last, key)
    said = next((found for claim in order if (found := read_spoken(claim.text, question.text))), None)
    reasoned = [claim for claim in claims if _GIVES_REASON.match(strip_marks(claim.text))][:1]
    said = said or next(
        (found for claim in [*reasoned, *order] if (found := read_yes_no(claim.text, question.text))), None
    )
    if (
        first
        and said
        and len(said) == 1
        and concluding
        and (opening := read_spoken(first.text, question.text))
        and opening != said
    ):
        said = [True, False]
    return _fit_yes_no(said, key) if said else None


_OF_OTHERS = re.compile(
    r"\W*(?:some|many|most|other|critics|opponents|people)\b[^.,;]{0,40}\b(?:claim|say|think|believe|argue|assume)\b(?![^.]*\b(?:but|however)\b)[^.]*\.?\s*\Z",
    re.IGNORECASE,
)
_GIVES_REASON = re.compile(r"\W*(?:since|because|as|given that)\b[^.]*,", re.IGNORECASE)


def _answers_other(reply: str, claim: Claim, question: Question) -> bool:
    """Return whether a yes or no follows a question of the reply itself: "Is there an odd cycle? No." """
    before = strip_marks(reply[: claim.start]).rstrip()
    if not before.endswith("?") or not opens_with_yes_or_no(claim.text):
        return False
    asked = split_sentences(before)[-1][1]
    own = content(asked)
    return len(own & content(question.text)) * 2 < len(own)


def _read_closing_statement(claims: list[Claim], order: list[Claim], question: Question) -> list[bool]:
    """Return the yes or no of a concluding sentence that says it in the words of the question, if it comes last.

    "Yes" and "no" in the working before it are about its steps; the first words of the reply are not.
    """
    closing = [claim for claim in order if claim.strength == Strength.CONCLUSION and "\n" not in claim.text.strip()]
    last = max(closing, key=lambda claim: claim.start, default=None)
    if last is None:
        return []
    spoken = [claim for claim in claims if read_spoken(claim.text, question.text)]
    if not spoken or any(claim.start >= last.start for claim in spoken):
        return []
    first = min(claims, key=lambda claim: claim.start)
    if opens_with_yes_or_no(first.text):
        return []
    return read_yes_no(last.text, question.text)


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
        if claim.start >= last.start:
            later = _read_later_saying(reply, claim, question, key) if kind == "yes/no" else None
            if later and set(later[0]) != set(answers):
                return later
            continue
        if claim.strength == Strength.LABEL or is_corrected(reply, claim, last):
            continue
        if _TENTATIVE.search(strip_marks(claim.text)):
            continue
        if kind == "choice":
            found = read_choice(claim.text, question.choices, is_claim=claim.strength >= Strength.SENTENCE).chosen
            other: _Decided | None = _fit_choices(found, key) if len(found) == 1 else None
            is_explicit = True
        elif kind == "yes/no":
            spoken = read_spoken(claim.text, question.text)
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


def _read_later_saying(reply: str, claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    """Return the yes or no of "the answer is no" after the line with the answer."""
    plain = to_plain(reply)
    before = split_sentences(plain[: claim.start])[-1:]
    is_tentative = any(_TENTATIVE.search(text) for _, text in before if not text.endswith("\n"))
    if claim.strength != Strength.SENTENCE or is_tentative or not _SAYS_ANSWER.match(plain[claim.start :]):
        return None
    spoken = read_spoken(claim.text, question.text)
    return _fit_yes_no(spoken, key) if spoken else None


_SAYS_ANSWER = re.compile(r"answer (?:is|must be|should be|has to be|would be)\b", re.IGNORECASE)
_TENTATIVE = re.compile(
    r"\b(?:might|tempting|obvious|common(?:ly)?|many|people|initially|at first|first (?:thought|glance)|one could|could be|looks like|seems?|intuitive\w*)\b",
    re.IGNORECASE,
)


def _drop_remark(text: str) -> str:
    """Return a sentence without "…, depending on the year"."""
    return (
        re.sub(r"(?:(?<=\w),? \(?depending|(?<=\w), (?:it )?depends|\(it depends)\b.*", "", text)
        if re.search(r"\d", text)
        else text
    )


def _leaves_items_open(groups: list[list[Claim]], key: AnswerKey) -> bool:
    """Return whether a sentence names an item of the key and leaves open which other one belongs to the list."""
    wanted = key.value if isinstance(key.value, tuple) else ()
    for claim in (claim for group in groups for claim in group if claim.strength <= Strength.CONCLUSION):
        text = strip_marks(claim.text)
        if is_hedged(text) and any(
            re.search(rf"(?<!\w){re.escape(str(item))}(?!\w)", text, re.IGNORECASE) for item in wanted
        ):
            return True
    return False


_LEFT_OPEN = re.compile(
    r"\b(?:both|either) (?:one |of (?:these|them) )?(?:answers?|readings?|interpretations?|values?|dates?|results?|options?|may|can|could|might|is|are)\b|\bsome (?:sources |historians |scholars |people |authors |of them )?(?:say|give|state|claim|hold|argue|name|put|date)\b.*\bothers\b|\bsources (?:differ|disagree)\b|\bopen to interpretation\b",
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


_ASKS_BACK = re.compile(
    r"\b(?:could|can|would|will) you\b|\bdo you (?:have|mean)\b|\b(?:which|what) (?:\w+ )?(?:do|did|are) you\b",
    re.IGNORECASE,
)


def _repeats_question(text: str, question: str) -> bool:
    """Return whether a claim has no word of its own beside those of the question, which names no choices."""
    if not question or re.search(r"\bor\b|[\"'“‘«:]", question):
        return False
    has_signs = (
        _has_own_name(text, question)
        or is_code(strip_marks(text))
        or set(re.findall(r"\d+", text)) - set(re.findall(r"\d+", question))
    )
    return not has_signs and len(text.split()) > 2 and not content(strip_marks(text)) - content(question) - _IDLE_WORDS


def _has_own_name(text: str, question: str) -> bool:
    """Return whether a claim has a short word with a capital that the question has not, as "Ag"."""
    return bool(
        set(re.findall(r"(?<=\w\s)[A-Z]\w{0,2}\b", strip_marks(text))) - set(re.findall(r"\w+", question)) - {"I"}
    )


_IDLE_WORDS = content(
    "question find look where here who whom whose answer one now next first thus therefore hence would also have been being what when how let see need say tell determine identify asked asks"
)


def _has_no_answer(reply: str, question: Question, key: AnswerKey | None) -> bool:
    """Return whether a reply without a label says that it gives no answer, or breaks off."""
    plain = strip_marks(to_plain(reply)).rstrip()
    if plain.endswith(":") or not re.search(r"\w", plain):
        return True
    if len(plain) > MIN_CUT_CHARS and (_CUT_OFF.search(plain) or reply.rstrip().endswith(("{", "\\"))):
        return True
    if (key is not None and _NO_ANSWER.search(key.answer)) or any(map(_NO_ANSWER.search, question.choices)):
        return False
    if question.choices and len(read_choice(to_plain(reply), question.choices).chosen) in (1, 2):
        return False
    sentences = [strip_marks(text).strip() for _, text in split_sentences(to_plain(reply))]
    stated = [text for text in sentences if not text.endswith("?") and not is_aside(text)]
    shown = [*stated[:1], *stated[-1:], *(text for text in sentences if text.endswith("?") and _ASKS_BACK.search(text))]
    shown += [text for text in sentences[-1:] if text.endswith("?")]
    own = content(question.text) if key is not None and key.kind == "yes/no" else set()
    parts = [_drop_remark(re.split(r"\b(?:but|however)\b", text)[-1]) for text in shown]
    found = [match for part in parts for match in _NO_ANSWER.finditer(part)]
    # "The text does not mention it" answers whether the text mentions it.
    return any(not content(match[0]) & own for match in found)


def _read_claim(claim: Claim, question: Question, kind: Kind, key: AnswerKey | None) -> _Decided | None:
    """Return the answers of one claim, with the fit of each to the key; None if it has no answer of this kind."""
    is_lead = claim.strength >= Strength.SENTENCE
    if kind == "choice":
        return _read_choice_claim(claim, question, key)
    if kind != "list" and claim.strength < Strength.SENTENCE and "\n" in claim.text.strip():
        return None  # a list is an answer to a question that asks for one
    if kind == "number":
        text = spell_duration(claim.text) if _DURATION.search(question.text) else claim.text
        numbers = read_numbers(text, question.text, is_lead=is_lead)
        fits = [
            fits_number(one, key.value, question.text, question.language)
            if key and isinstance(key.value, Number)
            else "wrong"
            for one in numbers
        ]
        return _if_any([number_text(one, question.text) for one in numbers], fits)
    if kind == "yes/no":
        said = read_yes_no(claim.text, question.text)
        return _fit_yes_no(said, key) if said else None
    if kind == "date":
        days = read_days(claim.text, question.text, is_lead=is_lead)
        fits = [
            fits_days(one, key.value, question.text) if key and isinstance(key.value, Day) else "wrong" for one in days
        ]
        return _if_any(["/".join(map(str, one)) for one in days], fits)
    if kind == "time":
        times = read_times(claim.text, question.text, is_lead=is_lead)
        fits = [fits_time(one, key.value) if key and isinstance(key.value, TimeRead) else "wrong" for one in times]
        return _if_any([f"{one.minutes // 60:02}:{one.minutes % 60:02}" for one in times], fits)
    if kind == "list":
        return _read_list(claim, question, key)
    return _read_text(claim, question, key)


def _read_choice_claim(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    if claim.strength == Strength.ALONE and "\n" in claim.text:
        return None  # the choices with remarks
    found = read_choice(_turn_false(claim.text, question), question.choices)
    if key is not None and not found.chosen and key.value in found.rejected and claim.strength >= Strength.ALONE:
        return ["not " + LETTERS[next(iter(found.rejected))]], ["wrong"]
    return _fit_choices(found.chosen, key) if found.chosen else None


_ASKS_FALSE = re.compile(
    r"\b(?:is|are) (?:the )?(?:false|incorrect|untrue|not true|not correct|wrong)\b|\b(?:false|incorrect|untrue) (?:statement|claim|one)\b",
    re.IGNORECASE,
)


def _turn_false(text: str, question: Question) -> str:
    """Return a text in which, if the question asks for the false choice, "C is false" confirms C."""
    if not _ASKS_FALSE.search(question.text):
        return text
    text = re.sub(
        r"(\bis|\bare|[–—:-])( (?:also |clearly )?)true\b(?: as well| too)?",
        r"\1\2ruled out",
        text,
        flags=re.IGNORECASE,
    )
    return re.sub(
        r"(\bis|[–—:-]) (?:clearly |therefore |thus )?(?:false|untrue|incorrect)\b",
        r"\1 the answer",
        text,
        flags=re.IGNORECASE,
    )


def _fit_choices(chosen: Sequence[int], key: AnswerKey | None) -> _Decided:
    return [LETTERS[one] for one in chosen], ["right" if key and one == key.value else "wrong" for one in chosen]


def _read_choice_text(reply: str, question: Question, key: AnswerKey | None) -> _Decided | None:
    """Read the choice of a reply without a claim: a sentence that calls one correct, else all sentences together."""
    sentences = [_turn_false(text, question) for _, text in split_sentences(to_plain(reply)) if not is_aside(text)]
    called = (read_choice(text, question.choices, is_claim=False) for text in reversed(sentences))
    whole = read_choice("\n".join(sentences), question.choices)
    named = (read_choice(text, question.choices) for text in reversed(sentences))
    found = [next((one for one in called if one.chosen), None), whole, next((one for one in named if one.chosen), None)]
    known = [one.chosen for one in found if one and one.chosen]
    chosen = next((one for one in known if len(one) == 1), known[-1] if known else ())
    return _fit_choices(chosen, key) if chosen else None


def _if_any(answers: list[str], fits: list[Fit]) -> _Decided | None:
    return (answers, fits) if answers else None


def _read_list(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    wanted = [str(one) for one in key.value] if key is not None and isinstance(key.value, tuple) else []
    has_numbers = bool(wanted) and all(read_number(one) for one in wanted)
    items = drop_shares(split_list(claim.text, has_numbers=has_numbers), wanted or [""])
    if not items or (len(items) == 1 and claim.strength < Strength.ALONE):
        return None
    is_set = question.items == "set"
    shown = [compact(item) for item in items]
    answer = ", ".join(sorted(set(shown)) if is_set else shown)
    if key is None or not isinstance(key.value, tuple):
        return [answer], ["wrong"]
    if is_broken_off(claim.text, items, wanted):
        return None
    if all(len(one) == 1 for one in wanted) and compact(claim.text) == "".join(wanted).casefold():
        items = wanted
    if is_hedged(claim.text):
        return [answer], ["ambiguous"]
    if names_alternative(items, wanted, is_set=is_set):
        return [answer], ["ambiguous"]
    fits = not excludes(claim.text) and (
        fits_items(items, wanted, fits_item, is_set=is_set)
        or fits_items(drop_shared_noun(items), wanted, fits_item, is_set=is_set)
        or has_items(claim.text, wanted, is_set=is_set)
        or names_all(claim.text, wanted, question.text, is_set=is_set)
    )
    if not fits and claim.strength < Strength.SENTENCE and is_prose(claim.text, drop_shared_noun(items), wanted):
        return None
    return [answer], ["right" if fits else "wrong"]


_INDEFINITE = re.compile(r"\b(?:is|was|are|were|by|in|with|through)\s+an?\s+(?P<nouns>[a-z]+(?: [a-z]+)?)")
_DESCRIBES = re.compile(
    r"\b(?:is|was|are|were)\s+(?:one|some|two|three|among) (?:of )?the (?:most|best|greatest|oldest|first|major)\b"
)
_ANNOUNCES = re.compile(
    r"\W*(?:let's|let us|let me|we (?:need|have|must)\b|to (?:state|find|answer|determine|see|solve|identify|understand|decide|work out|figure out)\b[^.]*\bwe\b|"
    r"(?:i|we)(?:'ll| will| can)\b)",
    re.IGNORECASE,
)


def _names_nothing(text: str, key: TextKey, question: str) -> bool:
    """Return whether a sentence has no name of its own, or says only of what kind the answer is: "by a treaty"."""
    plain = strip_marks(text)
    if re.search(f'[{MARKS}"“«]', text) or (is_code(plain) and len(plain.split()) <= MAX_NAME_WORDS):
        return False
    if _ANNOUNCES.match(plain) or _DESCRIBES.search(plain) or _PRAISES.match(plain):
        return True
    asked = content(question)
    if any(content(found["nouns"]) & asked for found in _INDEFINITE.finditer(plain)):
        return True
    return key.is_title and len(plain.split()) > MAX_BARE_WORDS and not _has_name(plain, question)


_PRAISES = re.compile(
    r"\W*(?:(?:great|good|excellent|interesting|nice) (?:question|one)|sure|certainly|of course|absolutely)\W*\Z",
    re.IGNORECASE,
)
MAX_BARE_WORDS = 4
MAX_NAME_WORDS = 6  # of a text whose signs may be code


def _has_name(text: str, question: str) -> bool:
    """Return whether a sentence has a word with a capital, after its first word, that the question has not."""
    asked = set(re.findall(r"\w+", question.casefold()))
    return any(word.casefold() not in asked for word in re.findall(r"(?<=\S )[\"'(]*([A-Z]\w+)", text))


def _read_text(claim: Claim, question: Question, key: AnswerKey | None) -> _Decided | None:
    name = name_of(claim.text)
    if key is None or not isinstance(key.value, TextKey):
        return ([name], ["wrong"]) if name and claim.strength >= Strength.ALONE else None
    fit = fits_text(claim.text, key.value, question.text)
    is_weak = claim.strength < Strength.SENTENCE
    if fit == "wrong" and is_weak and key.value.is_person and not names_someone(claim.text, question.text):
        return None
    is_sentence = claim.strength <= Strength.ALONE
    if fit == "wrong" and is_sentence and _names_nothing(claim.text, key.value, question.text):
        return None
    if fit == "wrong" and claim.strength < Strength.LABEL and _repeats_question(claim.text, question.text):
        return None
    if fit == "wrong" and _NO_ANSWER.match(trim(claim.text)):
        return None
    return [name], [fit]
