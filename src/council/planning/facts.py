"""Questions with one short factual answer, for which a council is not worth its price."""

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
    return bool(_compile_starts().match(text)) and not compile_words(tuple(facts["judgements"])).search(text)


@cache
def _compile_starts() -> re.Pattern[str]:
    return re.compile(join_starts(load_triggers()["facts"]["starts"]))
