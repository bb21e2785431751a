"""Names and short texts in claims, and their fit to a key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from council.final_answers.claim_words import (
    BOLD_SPAN,
    REASON,
    REMARK,
    Fit,
    are_alike,
    compact,
    is_code,
    join_parties,
    space_initials,
    spell,
    spell_period,
)
from council.final_answers.comparison import OPPOSITES, asks_literal
from council.final_answers.markup import strip_marks, to_plain
from council.final_answers.values import name_key


@dataclass(frozen=True, slots=True)
class TextKey:
    """A key that is a text, in the forms that are right."""

    forms: tuple[str, ...]
    is_person: bool = False
    spelling: str = ""  # of an output whose capitals count
    is_title: bool = False  # whether it is a proper name of several words


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def make_text_key(answer: str, question: str) -> TextKey:
    forms = [answer]
    if not is_code(answer) and (inner := re.fullmatch(r"(.+?)\s*\(([^()]+)\)", answer.strip())):
        forms += [inner[1], inner[2]]
    if not is_code(answer.replace("/", "")) and re.search(r"\s/\s|\bor\b|\baka\b", answer):
        forms += re.split(r"\s+/\s+|\s+or\s+|,?\s+aka\s+", answer)
    is_person = (
        re.search(
            r"\bwho\b|\bwhom\b|\bwhose\b|\bqui\b|\bwer\b|\bwem\b|\bwen\b|\bqui[ée]n(?:es)?\b|\bchi\b|\bquem\b|\b(?:author|scientist|president|composer|painter|inventor|physicist|writer|poet|king|queen|emperor|philosopher|mathematician|astronaut|director|artist|explorer)\b",
            question,
            re.IGNORECASE,
        )
        is not None
    )
    is_person = is_person and re.match(r"\W*[A-ZÀ-Þ]", strip_marks(answer)) is not None
    if (day := answer.strip().casefold()) in _WEEKDAYS:
        forms += [day[:3], day[:4]]
    if decade := re.fullmatch(r"(?:the )?\d\d(\d0)'?s", answer.strip(), re.IGNORECASE):
        forms.append(f"{decade[1]}s")
    bare = strip_marks(to_plain(answer)).strip(" `\"'")
    is_spelled = asks_literal(question) and re.search(r"[a-z].*[A-Z]|[A-Z].*[A-Z].*[a-z]", bare) is not None
    is_spelled = is_spelled or _HAS_CASE.search(bare) is not None
    is_title = len(re.findall(r"(?<![\w'-])[A-Z][\w'-]+", bare)) > 1 and not is_code(bare)
    known = tuple(dict.fromkeys(filter(None, map(compact, forms))))
    return TextKey(known, is_person, bare if is_spelled else "", is_title)


_HAS_CASE = re.compile(r"\\[A-Za-z]\b|(?<!\S)-[A-Za-z]\b|%[A-Za-z]\b")  # an escape, a flag, a format: "\d", "-r", "%Y"


_ENDS_NAME = re.compile(
    r"[,;:.!?()\[\]\n\"“”]|\s[-–—]\s|\s[—–]|\s(?:because|since|which|who|whose|qui|que|der|die|das|geschrieben|gemalt|komponiert|erfunden|escrito|as|in|on|at|from|around|not|with|for|rather|instead|and its|that|after|during|by|when|where|followed|so|but|while)\b",
    re.IGNORECASE,
)
_BEFORE_NAME = re.compile(
    r"\A\W*(?:(?:c'est|it's|it is|it was|that's|that is|this is|they are|he is|she is|i think|i believe|i'd say|i would say|probably|most likely|likely|clearly|definitely|so|therefore|thus|hence|the answer is)[\s,:]+)+",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"\b(?:c'est|s'agit(?: bien)?(?: sûr)? d[eu]|trata de|il est|est|ist|war|waren|heißt|von|par|por|fue|es|era|é|foi|è)\b(?: bien sûr| natürlich)?[\s,:]*"
    r"|\b(?:is|are|was|were|be|been|called|named|known as|by|as|gives?|yields?|prints?|outputs?|returns?|shows?|displays?|produces?|use|uses|means?|stands for|said|say|choose|(?:points?|belongs?|refers?|due|leads?|attributed|ascribed|credited|thanks|corresponds?|amounts?|comes?|back|moved?[^.;,]{0,40}|changed?[^.;,]{0,40}|equal|simplif\w+|reduc\w+|evaluat\w+|resolves?|translat\w+) to|(?:city|town|state|country|island|river|kingdom|republic|province|name|title|case|family|genus|element|village|planet|work|pen|hands|hand|form|symbol|language|colou?r|capital|instead) of)\b(?: indeed| therefore| thus| probably| likely| most likely| clearly| commonly| the)?[\s:,]*|[:=]\s*",
    re.IGNORECASE,
)
_GENERIC = frozenset(["ocean", "sea", "river", "lake", "mount", "mountain", "mt", "city", "desert", "island", "islands", "republic", "kingdom", "university", "theorem", "law", "effect", "company", "inc", "corporation", "street", "state", "country", "novel", "poem", "book", "film", "movie", "element", "metal", "gas", "acid", "tower", "bridge", "war", "battle", "treaty", "empire", "dynasty", "language", "system", "protocol", "command", "algorithm", "sort", "method", "test", "rule", "cells", "cell", "bone", "muscle", "color", "colour", "planet", "of", "dr", "sir", "professor", "king", "queen", "saint", "st", "president", "emperor", "mr", "mrs", "ms"])  # fmt: skip
_FUNCTION = frozenset(["either", "both", "or", "spelled", "spelt", "aka", "formerly", "a", "an", "the", "of", "in", "on", "at", "to", "for", "by", "with", "from", "and", "so", "that", "this", "it", "its", "is", "are", "was", "were", "be", "been", "being", "as", "also", "then", "than", "indeed", "clearly", "simply", "thus", "therefore", "hence", "here", "who", "which", "what", "has", "have", "had", "gives", "give", "giving", "makes", "make", "called", "named", "known", "around", "about", "circa", "near", "during", "because", "since", "when", "while", "after", "before", "would", "should", "must", "will", "can", "could", "do", "does", "did", "we", "i", "you", "he", "she", "they", "there", "using", "use", "uses", "wrote", "written", "painted", "invented", "discovered", "founded", "composed", "directed", "built", "made", "said", "says", "say", "think", "believe", "answer", "means", "mean", "stands", "stand", "prints", "print", "outputs", "output", "returns", "return", "likely", "probably", "definitely", "certainly", "most", "just", "not", "but", "himself", "herself", "itself", "themselves", "myself", "it's", "that's", "he's", "she's", "they're", "i'd", "it'd"])  # fmt: skip
_DENIES = re.compile(
    r"(?:\bnot|n't(?: be)?|\bnever|\brather than|\binstead of|\bunlike|\bafter|\bbefore|\bbeside|\bnext to|\bnear|\bagainst|\bfrom|\bneither|\bnor|\bthan|\bno longer|\bisn't|\bwrong(?:ly)?|\bmistaken(?:ly)?(?: for)?|\bconfused with)(?:\s+(?:in|the|a|an|be|it|really|actually|just|simply|called|by))*[\s\"'(]*\Z",
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
    text = join_parties(_drop_concession(text))
    plain = spell(re.sub(r"_(?=\d)", "", strip_marks(text)))
    if not any(map(is_code, key.forms)):
        plain = spell_period(space_initials(plain))
    places = list(_find_forms(plain, key))
    said = [(plain[:start], plain[end:]) for start, end in places]
    is_denied = [bool(_DENIES.search(before) or _DENIED.match(after)) for before, after in said]
    if places and all(is_denied):
        return "wrong"
    if (
        any(
            re.match(
                r"'s\s+(?!(?:invention|work|idea|creation|discovery|theory|novel|book|play|painting|poem|design)\b)[a-z]",
                plain[end:],
            )
            for _, end in places
        )
        and len(places) == 1
    ):
        return "wrong"  # "Mary Shelley's husband"
    if _says_opposite(plain, question):
        return "wrong"
    if _leaves_pair_open(plain, key):
        return "ambiguous"
    spelled = _list_names(text)
    if key.is_person:  # "Holmes suspects Moriarty" is no name
        spelled = [name for name in spelled if _is_name_like(name)]
    names = {compact(name) for name in spelled}
    if not names & set(key.forms) and any(_is_shared_name(name, form, key) for name in names for form in key.forms):
        return "ambiguous"
    if places and _is_second(plain, places[0][0]):
        return "wrong"
    if names & set(key.forms) and any(_has_other_bound(plain, place, key) for place in places):
        return "ambiguous"
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
    if key.is_person and _names_described_person(plain, key):
        return "right"
    if any(_has_other_bound(plain, place, key) for place in places):
        return "ambiguous"
    for (start, end), denied in zip(places, is_denied, strict=True):
        if not denied and _stands_alone(plain, start, end, asked):
            return "ambiguous" if _has_alternative((plain[:start], plain[end:])) else "right"
    return "wrong"


_COMPARATIVES = frozenset(
    pair
    for pair in (
        *OPPOSITES,
        *map(
            frozenset,
            (
                ("taller", "shorter"),
                ("older", "younger"),
                ("bigger", "smaller"),
                ("won", "lost"),
                ("heavier", "lighter"),
                ("win", "lost"),
            ),
        ),
    )
    if any(word.endswith("er") for word in pair) or "lost" in pair
)


_CONCESSION = re.compile(
    r"\A[^.;]*?\b(?:(?:most|many|some) (?:people|sources|of us|would)|people|commonly|often|popular\w*|at first|(?:i|we) (?:first |initially )?thought|leaning|(?:you|one) (?:might|may|could|would)|supposed\w*|naively?|tempting|obvious\w*)\b"
    r"[^.;]*?[,;]\s*(?:but|however|though|yet|actually|in fact)\b[,\s]*",
    re.IGNORECASE,
)


def _drop_concession(text: str) -> str:
    """Return the text after "Most people say X, but"."""
    return _CONCESSION.sub("", text, count=1)


def _says_opposite(text: str, question: str) -> bool:
    """Return whether a claim says who is shorter when the question asks who is taller."""
    said, asked = (set(re.findall(r"[a-z]+", one.casefold())) for one in (text, question))
    return any(len(pair & asked) == 1 and len(pair & said) == 1 and not pair & asked & said for pair in _COMPARATIVES)


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
    if key.is_person and _are_same_person(said, wanted):
        return True
    if len("".join(wanted)) > 1 and "".join(said) == "".join(wanted):
        return True
    said = [word for word in said if word in wanted or word not in _PERIOD_PARTS] or said
    if [word for word in said if word not in _GENERIC] == [word for word in wanted if word not in _GENERIC] and set(
        said
    ) - _GENERIC:
        return True
    return are_alike(said, wanted) and not is_code(form)


_PERIOD_PARTS = frozenset(("early", "late", "mid", "beginning", "end", "middle", "part", "first", "second", "half"))
_TITLES = frozenset(
    [
        "dr",
        "sir",
        "lord",
        "lady",
        "dame",
        "prof",
        "professor",
        "king",
        "queen",
        "saint",
        "st",
        "president",
        "emperor",
        "empress",
        "prince",
        "princess",
        "pope",
        "mr",
        "mrs",
        "ms",
        "miss",
        "captain",
        "general",
        "admiral",
        "colonel",
        "senator",
        "minister",
        "chancellor",
        "justice",
        "judge",
        "count",
        "duke",
        "baron",
        "jr",
        "sr",
    ]
)
_PARTICLES = frozenset(
    ["von", "van", "de", "da", "di", "der", "den", "del", "della", "la", "le", "du", "des", "dos", "of", "the"]
)
# Surnames that several people have whom the same question may mean: alone they leave it open.
_SHARED_SURNAMES = frozenset(
    [
        "bush",
        "roosevelt",
        "adams",
        "johnson",
        "harrison",
        "bach",
        "strauss",
        "dumas",
        "huxley",
        "curie",
        "bernoulli",
        "bronte",
        "wright",
        "grimm",
        "brown",
        "smith",
        "jones",
    ]
)
_SHARED_FIRST_NAMES = frozenset(("bush", "adams", "strauss", "dumas"))


def _split_person(words: Sequence[str]) -> list[str]:
    """Return the names of a person without titles and particles."""
    return [word for word in words if word not in _TITLES and word not in _PARTICLES]


def _are_same_person(said: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether two names may be of one person: names may be missing or shortened, but none may differ."""
    if len(said) > MAX_NAME_WORDS or (set(said) - _PARTICLES) & _FUNCTION:
        return False
    one, other = _split_person(said), _split_person(wanted)
    if not one or not other:
        return False
    if one[: len(other)] == other:
        return True
    if len(one) == 1 and one[0] == other[0] and one[0] in _MONONYMS:
        return True
    if len(one) > 1 and other[-len(one) :] == one:
        return True
    if one[-1] != other[-1] or len(one[-1]) < MIN_SURNAME:
        return False
    if len(one) == 1 or len(other) == 1:
        return True
    if not _is_same_given(one[0], other[0]):
        return False
    middles = one[1:-1], other[1:-1]
    return not all(middles) or (len(middles[0]) == len(middles[1]) and all(map(_is_same_given, *middles)))


MIN_SURNAME = 3
MAX_NAME_WORDS = 6


_MONONYMS = frozenset(
    ("michelangelo", "leonardo", "raphael", "galileo", "dante", "rembrandt", "napoleon", "donatello", "titian")
)


def _is_same_given(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) == 1 and a[0] == b[0])


_LIKE_PROFESSION = re.compile(
    r"\w+(?:ist|er|or|ian|eer|eur|ant|ess|man|poet|monk|king|queen|prince|friend|genius|saint)", re.IGNORECASE
)


def _is_name_like(text: str) -> bool:
    """Return whether the words of a text are names, titles or professions, so that it may name a person."""
    words = re.findall(r"[\w.'-]+", strip_marks(text))
    return all(
        word[:1].isupper()
        or not word[:1].isalpha()
        or word in _PARTICLES
        or word.casefold().strip(".") in _TITLES
        or word in ("a", "an", "and", "or")
        or _LIKE_PROFESSION.fullmatch(word)
        for word in words
    ) or not any(word[:1].isupper() for word in words)


def _is_shared_name(name: str, form: str, key: TextKey) -> bool:
    """Return whether a name is that of the key, shortened to what several people are called."""
    one, other = _split_person(name.split()), _split_person(form.split())
    if not key.is_person or not one or len(one) >= len(other) or one[-1] != other[-1]:
        return False
    if len(one) == 1:
        return one[0] in _SHARED_SURNAMES
    return len(one) == 2 and one[-1] in _SHARED_FIRST_NAMES and _is_same_given(one[0], other[0])


_NAME_RUN = r"(?:[A-Z][\w.'+#-]*(?:\s+(?:(?:von|van|de|da|di|der|of|the)\s+)?[A-Z][\w.'-]*){0,3}|[\w.'+#-]+)"
_PAIR = re.compile(
    rf"(?P<both>\b(?i:both|either)\s+)?(?:the\s+)?(?P<a>{_NAME_RUN})(?:\s+(?P<link>or|and|&|oder|und|ou|et|o|y)\s+|\s?(?P<slash>/)\s?)"
    rf"(?:(?:possibly|maybe|perhaps|even|by|in|the|a|an)\s+)*(?P<b>{_NAME_RUN})"
)


def _leaves_pair_open(plain: str, key: TextKey) -> bool:
    """Return whether a claim gives two names of which one is that of the key: "X or Y", "X/Y", "both X and Y"."""
    if any(is_code(form) or {"and", "or"} & set(form.split()) for form in key.forms):
        return False
    for found in _PAIR.finditer(plain):
        first, second = compact(found["a"]), compact(found["b"])
        fits = [any(_is_same_name(name, form, key) for form in key.forms) for name in (first, second)]
        if fits[0] == fits[1] or _DENIES.search(plain[: found.start()]) or second in _FUNCTION:
            continue
        is_short = not plain[: found.start()].strip(" \"'(*") and not plain[found.end() :].strip(" .\"')*!")
        if found["link"] in ("and", "&", "und", "et", "y"):
            is_named_together = found["both"] or (is_short and found["b"][:1].isupper())
            follows = re.match(
                r"\s+(?:have|both|are each|were each|independently|share|did|jointly)\b", plain[found.end() :]
            )
            if is_named_together or (follows and found["b"][:1].isupper()):
                return True
        elif found["slash"]:
            if len(plain.split()) <= MAX_PAIR_WORDS:
                return True
        elif found["b"][:1].isupper() == found["a"][:1].isupper():
            return True
    return False


MAX_PAIR_WORDS = 6


def _is_second(plain: str, start: int) -> bool:
    """Return whether another name stands before the place, with a semicolon or an "although" between."""
    before = plain[:start]
    found = re.match(
        r"\W*(?i:(?:it's|it is|it was|that was|the answer is)\s+)?(?:[A-Z][\w.'-]*\s*){1,4}(?:;|,\s+(?:although|though|while|whereas)\b)",
        before,
    )
    return found is not None and name_key(re.sub(r"\W", "", found[0])) not in _FUNCTION


def _has_other_bound(plain: str, place: tuple[int, int], key: TextKey) -> bool:
    """Return whether a bound for another case follows that of the key: "O(n) on average, O(n^2) at worst"."""
    if not re.match(r"[oθω]\(", key.forms[0]):
        return False
    return (
        re.match(
            r"[^.;\n]*?\b(?:average|best|worst|amortized|amortised|time|space)\b[^.;\n]*?(?:\band|,|\bbut)[^.;\n]*?[OΘΩ]\(",
            plain[place[1] :],
        )
        is not None
    )


def _names_described_person(plain: str, key: TextKey) -> bool:
    """Return whether a claim begins with a description and the surname: "The Swedish chemist Scheele did"."""
    for form in key.forms:
        surname = form.split()[-1]
        if len(surname) < MIN_SURNAME or surname in _SHARED_SURNAMES:
            continue
        found = re.match(
            rf"\W*(?:(?:it|that|this|he|she) (?:was|is) |by )?the ((?:[\w-]+ ){{1,4}}){re.escape(surname)}\b(?:[^\w\s]|\s+(?:did|was|is|who|in)\b|\Z)",
            plain,
            re.IGNORECASE,
        )
        if (
            found
            and not {word.casefold() for word in found[1].split()} & _FUNCTION
            and not re.search(r"\b(?:or|not|and)\b", plain)
        ):
            return True
    return False


_FOREIGN_ARTICLES = frozenset(("der", "die", "das", "le", "la", "les", "el", "los", "il", "lo", "l"))


def _stands_alone(plain: str, start: int, end: int, asked: set[str]) -> bool:
    """Return whether the words beside a name do not belong to it, as in "dark green" and "Papua New Guinea"."""
    before = re.search(r"([\w+#'-]+)[\s\"'(]*\Z", plain[:start])
    after = re.match(r"[\s\"')]*([\w+#'-]+)", plain[end:])
    for found in (before, after):
        if found is None:
            continue
        between = found[0].replace(found[1], "", 1)
        if found is before and plain[start : start + 1].isupper() and _DESCRIBED.search(plain[:start]):
            continue  # "was cosmonaut Valentina Tereshkova"
        if re.search(r"[(,;:.]", between):
            continue
        word = found[1].casefold()
        is_asked = name_key(word) in asked or any(len(one) > 3 and word.startswith(one) for one in asked)
        if word in _PERIOD_PARTS and plain[start : start + 1].isdigit():
            continue  # "the early 14th century"
        if word not in _FUNCTION and not is_asked and word not in _GENERIC:
            return False
        if found is before and word in ("the", "a", "an", "his", "her", "its", "their"):
            verb = re.search(r"([\w+#'-]+)\W+\w+\W*\Z", plain[:start])
            lead = name_key(verb[1].casefold()) if verb and not re.search(r"[.,:;(]", verb[0][len(verb[1]) :]) else ""
            word = lead or word
            if (
                lead
                and lead not in _FUNCTION
                and not lead.endswith("ly")
                and lead not in asked
                and not any(len(one) > 3 and lead.startswith(one[:-1]) for one in asked)
            ):
                return False  # "the cook framed the butler"
        if found is before and word in ("of", "to", "from"):
            noun = re.search(rf"([\w+#'-]+)\W+{word}\b\W*(?:\w+\W*)?\Z", plain[:start], re.IGNORECASE)
            lead = name_key(noun[1].casefold()) if noun else ""
            if (
                lead
                and lead not in _GENERIC
                and lead not in _KINDS
                and not any(lead.startswith(one[: max(3, len(one) - 1)]) for one in asked)
            ):
                return False  # "the bank of a river"
    if re.match(r"'s\s+\w", plain[end:]) or _SUBORDINATE.search(plain[:start]):
        return False
    return not re.match(
        r"[^.;]*?(?:,|;|\s[-–—])\s*(?:but|however|yet|so|hence|therefore|thus)\b(?! (?:not|also)\b)|\s+(?:would|wouldn't|might|could|can't|cannot)\b",
        plain[end:],
    )


_DESCRIBED = re.compile(
    r"\b(?:is|was|by)\s+(?:(?:the|a|an)\s+)?(?:(?!\w+(?:ing|ed)\b|(?:not|never|about|like|from|with|than|of|to)\b)[A-Za-z-]+\s+){1,3}\Z"
)
# A clause that only mentions a name: "before printing X", "a tributary of X".
_SUBORDINATE = re.compile(
    r"\b(?:because|before|without|unless|if|although|though|whereas|than|unlike|instead of|rather than|despite|suspects?|accus\w+|confus\w+|mistak\w+)\b[^.,;:]*\Z"
    r"|,\s+(?:(?:which|who) (?:is|was|are|were) )?(?:a|an|the|one|another)\s[^,]*\b(?:of|to|from|for|near|after)\s+(?:the )?\Z"
    r"|\b(?:north|south|east|west|outside|away|rival|competitor|successor|predecessor|tributary|student|pupil|friend|brother|sister|son|daughter|father|mother|wife|husband|"
    r"colleague|neighbou?r|suburb|member|enemy|opposite|version|imitation|variant|alternative) (?:of|from|to) (?:the )?\Z",
    re.IGNORECASE,
)


_KINDS = frozenset(
    (
        "kind",
        "opening",
        "beginning",
        "start",
        "line",
        "lines",
        "quote",
        "type",
        "form",
        "sort",
        "name",
        "capital",
        "title",
        "town",
        "village",
        "region",
        "county",
        "refers",
        "points",
        "belongs",
        "goes",
        "answer",
        "because",
        "likely",
        "has",
    )
)


def names_someone(text: str, question: str) -> bool:
    """Return whether a sentence has a capitalised name that the question has not."""
    words = re.findall(r"[\w'.-]*\w", strip_marks(text))
    asked = set(re.findall(r"\w+", question))
    if len(words) <= MAX_NAME_WORDS // 2:
        return True
    first = len(words) > 1 and (words[1][:1].isupper() or words[1] in ("is", "was", "did", "were", "wrote"))
    named = [
        word
        for n, word in enumerate(words)
        if word[:1].isupper() and word not in asked and word.casefold() not in _FUNCTION and (n or first)
    ]
    return any(len(word) > 1 and not word.startswith(("I'", "I’")) for word in named)


def name_of(text: str) -> str:
    """Return what a claim names in one form, for votes."""
    plain = REMARK.sub("", strip_marks(text)).strip()
    found = re.match(r"[^,;\n]{0,80}?\b(?:is|are|was|were)\b[\s:]*(?=\S)", plain)
    rest = plain[found.end() :] if found and len(plain) > 40 else plain
    short = REASON.sub("", rest)
    return compact(short) or compact(rest)
