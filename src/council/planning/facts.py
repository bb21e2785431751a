"""Questions with one short factual answer, and questions whose answer can be checked."""

from __future__ import annotations

import re
from functools import cache

from council.planning.phrases import compile_words, join_starts, load_triggers, read_sentences


def is_short_fact(question: str) -> bool:
    """Return whether a question is a single short sentence that asks for a fact, and not for a judgement."""
    facts = load_triggers()["facts"]
    if len(question.split()) > facts["max_words"]:
        return False
    sentences = read_sentences(question)
    if len(sentences) != 1:
        return False
    text = sentences[0].without_opening().text.rstrip(" ?？.")
    return bool(_compile_list("facts", "starts").match(text)) and not compile_words(tuple(facts["judgements"])).search(
        text
    )


CALCULATION = re.compile(
    r"\bsqrt\(|\b(?:compound|simple) interest\b|\btotal (?:for|of|cost|price)\b|\d\s*(?:%|percent) of\b|"
    r"[\d)]\s*(?:[+*×÷^=<>]|mod\b)\s*\(?\d|\d\s+[-/]\s+\(?\d|\b(?:calculate|compute|simplify|factori[sz]e|evaluate the expression|solve for|how many|"
    r"what is the (?:sum|product|probability|remainder|value of|number of|greatest|smallest|least|square root)|which of the following)\b",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(r"[.:;!]\s+(?=\w)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
EXACT = re.compile(r"\d|[`=<>{}\[\]^\\_]|(?<!\w)['\"]\w")  # a number, code or a quotation
YEAR = re.compile(r"\b(?:19|20|21)\d\d\b")
# Of a calculation about the asker's own things: "How many buses do we need for 130 people at 48 seats?"
MIN_NUMBERS = 2


def has_checkable_answer(question: str) -> bool:
    """Return whether a question asks for a fact, a calculation, or a yes or no about how things are.

    A question for a decision, a plan, an explanation, a text, a judgement or a forecast has no such answer.
    """
    if is_short_fact(question):
        return True
    table = load_triggers()["checkable"]
    if not question.strip() or len(question.split()) > table["max_words"]:
        return False
    sentences = [sentence.without_opening().text.strip() for sentence in read_sentences(question)]
    questions = [text for text in sentences if text.endswith(("?", "？"))]
    asked = CLAUSE_END.split((questions or sentences or [""])[-1])[-1]
    if any(_compile_list("checkable", "creative").match(text) for text in sentences):
        return False
    if compile_words(tuple(table["judgements"])).search(asked):
        return False
    is_forecast = compile_words(tuple(table["forecasts"])).search(asked)
    if is_forecast and len(NUMBER.findall(YEAR.sub("", question))) < MIN_NUMBERS:
        return False
    is_measurable = bool(EXACT.search(question) or compile_words(tuple(table["measurable"])).search(asked))
    if _compile_list("checkable", "yes_no").match(asked) and not is_measurable:
        return False
    is_calculation = bool(CALCULATION.search(asked)) and len(NUMBER.findall(question)) >= MIN_NUMBERS
    if compile_words(tuple(table["own"])).search(asked):
        return is_calculation
    clauses = [asked, asked.rpartition(", ")[2]]  # "If a shirt costs $40 after 20 % off, what was its price?"
    starts = _compile_list("checkable", "starts")
    return is_calculation or any(starts.match(clause.rstrip(" ?？.")) for clause in clauses)


@cache
def _compile_list(table: str, name: str) -> re.Pattern[str]:
    return re.compile(join_starts(load_triggers()[table][name]))
