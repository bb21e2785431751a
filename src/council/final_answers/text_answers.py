"""Names and short texts in claims, and their fit to a key."""

from __future__ import annotations

import re
from dataclasses import dataclass

from council.final_answers.claim_words import BOLD_SPAN, REASON, REMARK, Fit, are_alike, compact, is_code, spell
from council.final_answers.comparison import asks_literal
from council.final_answers.markup import strip_marks, to_plain
from council.final_answers.values import name_key


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
    bare = REMARK.sub("", plain)
    names = [
        plain,
        bare,
        *BOLD_SPAN.findall(text),
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
    return are_alike(said, wanted) and not is_code(form)


_FOREIGN_ARTICLES = frozenset(("der", "die", "das", "le", "la", "les", "el", "los", "il", "lo", "l"))


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
    plain = REMARK.sub("", strip_marks(text)).strip()
    found = re.match(r"[^,;\n]{0,80}?\b(?:is|are|was|were)\b[\s:]*(?=\S)", plain)
    rest = plain[found.end() :] if found and len(plain) > 40 else plain
    short = REASON.sub("", rest)
    return compact(short) or compact(rest)
