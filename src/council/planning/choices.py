"""Choices between alternatives: the forms in which a question asks to decide, in each language of data/triggers.toml.

The forms are the same in all languages that have spaces between words; their words are data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from council.planning.phrases import UNSPACED, Sentence, compile_opening, find_phrases, join_words, load_triggers

MAX_SENTENCE_CHARS = 600  # a longer one is material
CLAUSE_START = r"(?:^|(?<=[,:;(–—])\s*|(?<=\s-)\s+)"
SET_OFF = r"(?:[,:(–—]|\s-)\s*"
LETTERS = re.compile(
    r"\((?:a|1|i)\).{1,300}?\((?:b|2|ii)\)|\b(?:option|plan|variant|alternative) (?:a|1|one)\b.{1,300}?"
    r"\b(?:option|plan|variant|alternative) (?:b|2|two)\b"
)


class Grammar:
    """The words of one language as patterns, each compiled when it is needed."""

    def __init__(self, language: str) -> None:
        self.words: dict[str, Any] = load_triggers()["choices"][language]
        self.or_word = rf"(?<!\w)(?:{join_words(self.words['or'])})(?!\w)"
        self._patterns: dict[tuple[str, str, str], re.Pattern[str]] = {}

    def starts(self, name: str, text: str) -> bool:
        """Return whether a text starts with one of the listed words."""
        return bool(self._compile("", name, r"(?!\w)").match(text))

    def find(self, name: str, text: str) -> re.Match[str] | None:
        """Find one of the listed words."""
        return self._compile(r"(?<!\w)", name, r"(?!\w)").search(text)

    def find_before_or(self, name: str, text: str) -> re.Match[str] | None:
        """Find one of the listed words with "or" after it."""
        return self._compile(r"(?<!\w)", name, rf"(?!\w).*?{self.or_word}").search(text)

    def find_clause(self, name: str, text: str) -> re.Match[str] | None:
        """Find a clause that starts with one of the listed words and has "or"."""
        return self._compile(CLAUSE_START, name, rf"(?!\w).*?{self.or_word}").search(text)

    def asks_to_choose(self, text: str) -> bool:
        """Return whether a text asks which of the options named before to take."""
        return bool(self._compile(r"(?<!\w)", "follow_ups", "").search(text))

    @cached_property
    def set_off(self) -> re.Pattern[str]:
        """Alternatives after a comma, a colon or a dash: ": A, B or C"."""
        return re.compile(rf"{SET_OFF}(?!{self.or_word})[^,:?]{{1,60}}(?:,[^,:?]{{1,60}}){{0,6}},?\s*{self.or_word}")

    def _compile(self, before: str, name: str, after: str) -> re.Pattern[str]:
        key = (before, name, after)
        if key not in self._patterns:
            words = join_words(self.words.get(name, ())) or "(?!)"  # an empty list matches nothing
            words = words.replace("{verbs}", f"(?:{'|'.join(self.words.get('verbs', ()))})")
            self._patterns[key] = re.compile(f"{before}(?:{words}){after}")
        return self._patterns[key]


load_grammar = cache(Grammar)


@cache
def list_languages() -> tuple[str, ...]:
    """Return the languages that have spaces between words."""
    return tuple(name for name, words in load_triggers()["choices"].items() if "or" in words)


@dataclass(frozen=True, slots=True)
class Context:
    """A sentence with its exceptions masked, and what a form needs to know about it."""

    text: str
    following: str  # the next two sentences
    or_place: tuple[int, int]  # of the first "or"
    starts_question: bool  # in any language, with a question word or an auxiliary
    is_first: bool  # the first sentence of the question

    @property
    def is_question(self) -> bool:
        return self.text.endswith("?")

    @property
    def is_writing(self) -> bool:
        return not self.is_question and bool(compile_opening("writing").match(self.text))

    @property
    def is_telling(self) -> bool:
        return not self.is_question and bool(compile_opening("telling").match(self.text))

    @property
    def before_or(self) -> str:
        return self.text[: self.or_place[0]]

    @property
    def after_or(self) -> str:
        return self.text[self.or_place[1] :]


def find_choice(sentences: Sequence[Sentence]) -> str:
    """Return the words of a choice in the sentences of a question, or ""."""
    for place, sentence in enumerate(sentences):
        if len(sentence.text) <= MAX_SENTENCE_CHARS and (found := _find_in_sentence(sentences, place)):
            return _shorten(found)
    return _find_letters(sentences)


def _find_in_sentence(sentences: Sequence[Sentence], place: int) -> str:
    sentence = sentences[place].without_opening()
    if UNSPACED.search(sentence.text):
        return _find_unspaced(sentence)
    following = " ".join(one.text for one in sentences[place + 1 : place + 3])[:MAX_SENTENCE_CHARS]
    for language in list_languages():
        grammar = load_grammar(language)
        if _is_comparison(sentence, grammar) or _lists_options(sentence, following, grammar):
            return sentence.written
        masked = sentence.mask(grammar.words["exceptions"]).text if re.search(grammar.or_word, sentence.text) else ""
        if not (parted := re.search(grammar.or_word, masked)):
            continue
        starts_question = bool(_compile_question_starts().match(sentences[place].text))
        context = Context(masked, following, parted.span(), starts_question, place == 0)
        for find_form in FORMS:
            if (start := find_form(context, grammar)) is not None:
                return sentence.written[start:]
    return ""


# Forms of a choice. Each returns where the choice starts in the sentence, or None.


def _find_clause(context: Context, grammar: Grammar) -> int | None:
    """Find "I can't decide whether to buy or rent", "We can either buy or rent"."""
    if context.is_writing or grammar.starts("question_words", context.text):
        return None
    found = grammar.find_before_or("whether", context.text) or grammar.find_before_or("options", context.text)
    return found.start() if found else None


def _find_set_off(context: Context, grammar: Grammar) -> int | None:
    """Find "What should we use: A, B or C?", "Pick one: A or B"."""
    if context.is_writing or not grammar.set_off.search(context.text):
        return None
    if grammar.starts("choosers", context.text):
        return 0
    is_asked = grammar.starts("question_words", context.text) and _asks_judgement(context.text, grammar)
    return 0 if is_asked else None


def _find_decision(context: Context, grammar: Grammar) -> int | None:
    """Find "Should we buy, or rent?", "Given the price, is it better to buy or to rent?"."""
    found = None if context.is_writing or context.is_telling else grammar.find_clause("decisions", context.text)
    return found.start() if found and not _is_inclusive(found.group(), grammar) else None


def _find_judged_pair(context: Context, grammar: Grammar) -> int | None:
    """Find "Is A or B the better choice?"."""
    if grammar.starts("factual", context.text) or not grammar.starts("auxiliaries", context.text):
        return None
    return 0 if grammar.find("judgements", context.after_or) else None


def _find_verb_pair(context: Context, grammar: Grammar) -> int | None:
    """Find "take it or wait another year"."""
    return 0 if grammar.starts("verb_pairs", context.text) else None


def _find_fragment(context: Context, grammar: Grammar) -> int | None:
    """Find "Redis or Postgres for sessions?", and without a question mark "monolith or microservices"."""
    if context.starts_question or context.is_telling or context.is_writing:
        return None
    limits = load_triggers()["choices"]["limits"]
    is_asked = context.is_question or grammar.asks_to_choose(f"{context.after_or} {context.following}")
    is_bare = context.is_first and grammar.starts("bare", context.text)
    most_words = limits["fragment_words"] if is_asked or is_bare else limits["bare_words"] if context.is_first else 0
    if len(context.text.split()) > most_words:
        return None
    if not context.before_or.strip(" ,\0") or not context.after_or.strip(" ?\0"):
        return None
    if grammar.starts("inclusive", context.text) or grammar.find("inclusive_before", context.before_or):
        return None
    other = grammar.find("clauses", context.text) or grammar.find("inclusive_after", context.after_or)
    return None if other or grammar.find("not_with", context.text) else 0


def _find_options(context: Context, grammar: Grammar) -> int | None:
    """Find "We could buy or rent. What should we do?"."""
    if context.is_writing or context.is_telling or not grammar.find("possible", context.text):
        return None
    return 0 if grammar.asks_to_choose(f"{context.after_or} {context.following}") else None


FORMS: tuple[Callable[[Context, Grammar], int | None], ...] = (
    _find_clause,
    _find_set_off,
    _find_decision,
    _find_judged_pair,
    _find_verb_pair,
    _find_fragment,
    _find_options,
)


# Choices without "or".


def _is_comparison(sentence: Sentence, grammar: Grammar) -> bool:
    """Return whether a sentence is like "Is A better than B?"."""
    if not next(find_phrases(grammar.words["comparatives"], sentence.text), None):
        return False
    is_question = sentence.text.endswith("?") or grammar.starts("unmarked", sentence.text)
    if not is_question or grammar.starts("question_words", sentence.text):
        return False
    masked = sentence.mask(grammar.words["exceptions"]).text
    return next(find_phrases(grammar.words["comparatives"], masked), None) is not None


def _lists_options(sentence: Sentence, following: str, grammar: Grammar) -> bool:
    """Return whether a list such as "I have two offers." is followed by a question which to take."""
    if not (found := grammar.find("listed", sentence.text)):
        return False
    return grammar.asks_to_choose(f"{sentence.text[found.end() :]} {following}")


def _find_unspaced(sentence: Sentence) -> str:
    for words in load_triggers()["choices"].values():
        if "patterns" not in words:
            continue
        masked = sentence.mask(words["exceptions"]).text
        if next(find_phrases(words["patterns"], masked), None):
            return sentence.written
    return ""


def _find_letters(sentences: Sequence[Sentence]) -> str:
    """Find "(a) buy (b) rent: which one?", "Option A is … Option B is …"."""
    written = " ".join(one.written for one in sentences)[:MAX_SENTENCE_CHARS]
    text = " ".join(one.text for one in sentences)[:MAX_SENTENCE_CHARS]
    found = LETTERS.search(text)
    return _shorten(written[found.start() : found.end()]) if found and load_grammar("en").asks_to_choose(text) else ""


def _asks_judgement(text: str, grammar: Grammar) -> bool:
    if grammar.find("judgements", text):
        return True
    return grammar.starts("named_sets", text) and not grammar.starts("factual", text)


def _is_inclusive(clause: str, grammar: Grammar) -> bool:
    """Return whether "or" joins things of one kind ("Should I avoid salt or sugar"), or is in a clause with "if"."""
    if re.search(r",\s*\S+$", clause):
        return False
    return bool(grammar.find("inclusive_before", clause) or grammar.find("conditions", clause))


@cache
def _compile_question_starts() -> re.Pattern[str]:
    """Compile the question words of all languages: "o" and "ou" mean "or" in several of them."""
    tables = [load_triggers()["choices"][language] for language in list_languages()]
    words = [word for table in tables for name in ("question_words", "auxiliaries") for word in table[name]]
    return re.compile(rf"(?:{join_words(words)})(?!\w)")


def _shorten(words: str) -> str:
    """Return the words of a choice as a phrase; a long one is cut at words."""
    phrase = " ".join(words.split()).rstrip(" ?？!.,;:。").lstrip(" ,:;–—-")
    if phrase.count(")") > phrase.count("("):
        phrase = phrase.removesuffix(")").rstrip(" ?!.")
    limit = load_triggers()["choices"]["limits"]["quoted_chars"]
    if len(phrase) <= limit:
        return phrase
    return f"{phrase[:limit].rpartition(' ')[0] or phrase[:limit]} …"
