"""Origins of a synthesis: its figures, dates and names that occur in no statement and no source.

A figure counts as known if it is in the material, is one of it rounded or in another unit, or follows from figures of
one statement or of its own sentence by simple arithmetic: a false alarm costs a call and doubts an honest figure. Small
counts, list numbers, ordinals, citations and code are not checked. Names are words with a capital that do not start a
sentence, because any word has a capital there; short abbreviations, nationalities and the calendar are not checked.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product
from typing import NamedTuple

from council.language import detect_language
from council.text_cleanup import to_latin

MAX_SMALL_COUNT = 12  # a count up to this without a unit is not checked
MAX_POOL = 40  # figures of one statement that are combined
MAX_MATERIAL_CHARS = 2_000_000
ROUNDED = 0.1  # largest share by which a rounded figure may differ
EXACT = 1e-6
PERIODS = (3.0, 4.0, 7.0, 8.0, 12.0, 24.0, 30.0, 52.0, 60.0, 365.0, 1000.0)  # a rate or a size in another unit
ROUNDED_RESULT = 0.02
NOUN_CAPITALS = ("de",)  # languages that write every noun with a capital
MIN_STEM_CHARS = 4
MAX_PLAIN_ABBREVIATION = 4  # letters; a longer one names something
MAX_TOLD = 300  # figures of all statements
MAX_TERMS = 5  # figures of a sentence that are added up
MAX_GAP_CHARS = 8  # read before a name to see whether it starts a sentence


class Foreign(NamedTuple):
    """A figure, date or name in a text that the material does not have."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Material:
    """What a synthesis may use: statements and sources, whose figures are combined, and other texts such as files."""

    statements: Sequence[str]
    others: Sequence[str] = ()

    @cached_property
    def text(self) -> str:
        return "\n".join([*self.statements, *self.others])[:MAX_MATERIAL_CHARS]

    @cached_property
    def figures(self) -> frozenset[float]:
        return frozenset(value for figure in find_figures(self.text, words=True) for value in figure.values)

    @cached_property
    def derived(self) -> dict[bool, frozenset[float]]:
        """The results of simple arithmetic with the figures of one statement: percentages (True), and other figures."""
        found: dict[bool, set[float]] = {True: set(), False: set()}
        for text in self.statements:
            for value, is_percent in _derive(text):
                found[is_percent].add(value)
        return {is_percent: frozenset(values) for is_percent, values in found.items()}

    @cached_property
    def told(self) -> tuple[float, ...]:
        """The first figures of the statements, which may be combined with those of a sentence."""
        return tuple(_list_values("\n".join(self.statements)[:MAX_MATERIAL_CHARS], MAX_TOLD))

    @cached_property
    def shares(self) -> frozenset[float]:
        """Percentages that two figures of one sentence have to each other."""
        sentences = (sentence for text in self.statements for sentence in _SENTENCE.split(text))
        return frozenset(share for sentence in sentences for share in _compare(_list_values(sentence)))

    @cached_property
    def words(self) -> frozenset[str]:
        found = set(WORD.findall(self.text))
        found |= {re.split("['’]", word)[0] for word in found if "'" in word or "’" in word}
        return frozenset(map(to_latin, found))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word[:size] for word in self.words for size in range(MIN_STEM_CHARS, len(word) + 1))

    @cached_property
    def initials(self) -> frozenset[str]:
        """The initials of names in the material: "rki" for "Robert Koch Institute"."""
        runs = (re.findall(r"[^\W\d_]+", run[0]) for run in CAPITAL_RUN.finditer(self.text))
        return frozenset(to_latin("".join(word[0] for word in run)) for run in runs if len(run) > 1)

    @cached_property
    def months(self) -> frozenset[str]:
        named = {found[0][:3].casefold() for found in MONTH.finditer(self.text)}
        numbered = {MONTHS[int(found[1]) - 1] for found in re.finditer(r"\b(?:19|20)\d\d-(0[1-9]|1[0-2])\b", self.text)}
        return frozenset(named | numbered)


def find_foreign(text: str, material: Material) -> list[Foreign]:
    """Return the figures, dates and names of a text that its material does not have, in order."""
    plain = _mask(text)
    figures = list(find_figures(plain))
    nearby = _find_nearby(plain, figures, material)
    unknown = [
        (figure.start, figure.end)
        for figure in figures
        if not _is_known(figure, material, nearby) and not _is_computed(figure, plain, material)
    ]
    for date in _DATE.finditer(plain):  # an unknown year is a figure
        is_known = date[1][:3].casefold() in material.months
        if not is_known and not any(start < date.end() and date.start() < end for start, end in unknown):
            unknown.append(date.span())
    found = [Foreign(" ".join(text[start:end].split()), start, end) for start, end in unknown]
    return sorted([*found, *_find_names(text, plain, material)], key=lambda one: one.start)


def mark_foreign(text: str, found: Iterable[Foreign], mark: str) -> str:
    """Return the text with a mark after the first occurrence of each item."""
    first = {one.text: one for one in sorted(found, key=lambda one: -one.start)}
    for one in sorted(first.values(), key=lambda one: -one.end):
        text = f"{text[: one.end]} ({mark}){text[one.end :]}"
    return text


# Parts of a text that are not checked, replaced by blanks of the same length

_UNCHECKED = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*\n.*?(?:^[ \t]*(?:```|~~~)[^\n]*|\Z)"  # code
    r"|`[^`\n]*`|https?://\S+|\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]"  # code, addresses, citations
    r"|^[ \t]*#{1,6}[^\n]*|^[ \t]*(?:[-*+]|\(?\d{1,3}[.)])[ \t]+",  # headings, marks of a list
    re.DOTALL | re.MULTILINE,
)


def _mask(text: str) -> str:
    return _UNCHECKED.sub(
        lambda found: re.sub(r"[^\n]", " ", found[0][:-1]) + ("." if found[0].endswith("]") else " "), text
    )


# Figures

_SCALES = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "mille": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6,
           "millions": 1e6, "millionen": 1e6, "millones": 1e6, "bn": 1e9, "b": 1e9, "billion": 1e9, "trillion": 1e12}  # fmt: skip
_COUNT_WORDS = {
    word: float(n)
    for n, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty",
        )
    )
} | {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0, "ninety": 90.0,
     "hundred": 100.0, "thousand": 1000.0, "dozen": 12.0, "twice": 2.0, "double": 2.0, "once": 1.0}  # fmt: skip
_PART_WORDS = {
    "half": 0.5,
    "third": 1 / 3,
    "quarter": 0.25,
    "quarters": 0.75,
    "fifth": 0.2,
    "tenth": 0.1,
    "thirds": 2 / 3,
}
_NUMBER = re.compile(
    r"(?<![\w.,/:])(?<![A-Za-z]-)(?P<money>[$€£¥]|us\$)?\s?(?P<digits>\d{1,3}(?:[,' \u00a0\u202f]\d{3}(?!\d))+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}|\d+(?:[.,]\d+)?)"
    r"(?!\w*(?-i:[A-Z])|[/:]\d)(?:\s?(?P<scale>thousand|tsd|mille|millions?|millionen|millones|mio|mn|bn|billion|trillion|[kmb](?![a-z]))(?!\w))?"
    r"\s?-?(?P<unit>%|percent|prozent|por ciento|pour cent|°|[a-zµ]+)?(?!\d)",
    re.IGNORECASE,
)
_RANGE_END = re.compile(
    r"\s?(?:-|–|—|to|and)\s?[$€£]?\d[\d.,]*\s?(?P<scale>thousand|millions?|mio|mn|bn|billion|[kmb])(?!\w)",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"\b((?:19|20)\d\d)-\d\d(?:-\d\d)?\b")
_USUAL = frozenset((0.0, 1.0, 24.0, 52.0, 60.0, 100.0, 365.0))  # of the calendar, and the whole
_WHOLE_BEFORE = re.compile(r"\b(?:in|per|of|out of|je|sur|por|su)\s*\Z")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|ère|e|º|ª)\Z", re.IGNORECASE)
_PERCENT = ("%", "percent", "prozent", "por ciento", "pour cent")
_MEASURES = frozenset(
    re.findall(
        r"\w+",
        "ns ms s sec second seconds min minute minutes h hour hours day days week weeks month months year years kb mb gb tb "
        "bit kbit mbit gbit byte bytes km m cm mm kg g mg t usd eur gbp dollar dollars euro euros pound pounds tps rps qps x "
        "times fold stunden tage wochen monate jahre heures jours semaines mois ans horas días semanas meses años",
    )
)


class Figure(NamedTuple):
    """A figure: its value, whether it is a percentage, the place value of its last digit, and where it is."""

    value: float
    is_percent: bool
    unit: str
    step: float
    start: int
    end: int

    @property
    def values(self) -> tuple[float, ...]:
        return (self.value, self.value / 100) if self.is_percent else (self.value,)

    @property
    def is_checked(self) -> bool:
        """Whether it is worth a check: not a small count, which every text has."""
        is_whole = float(self.value).is_integer()
        return bool(self.unit in _MEASURES or self.is_percent or not is_whole or self.value > MAX_SMALL_COUNT)


def find_figures(text: str, *, words: bool = False) -> Iterator[Figure]:
    """Yield the figures of a text; with `words` also number words, which are known if another text writes digits."""
    text = _ISO_DATE.sub(lambda found: found[1] + " " * (len(found[0]) - 4), text)
    for found in _NUMBER.finditer(text):
        unit = (found["unit"] or "").casefold()
        if _ORDINAL.fullmatch(unit) and "." not in found["digits"]:
            continue
        digits = found["digits"]
        if _WHOLE_BEFORE.search(text, max(0, found.start() - MAX_GAP_CHARS), found.start()) and re.fullmatch(
            r"10[0,. ]*0", digits
        ):
            continue  # "2 in 10,000"
        later = None if found["scale"] else _RANGE_END.match(text, found.end("digits"))  # "18-20k"
        scale = _SCALES.get((found["scale"] or (later["scale"] if later else "")).casefold(), 1.0)
        value = _to_float(digits)
        last = "unit" if unit in _MEASURES or unit in _PERCENT else "scale" if found["scale"] else "digits"
        span = found.start("money" if found["money"] else "digits"), found.end(last)
        is_percent = unit in _PERCENT
        yield Figure(value * scale, is_percent, "usd" if found["money"] else unit, _step(digits, value) * scale, *span)
        # "1.200" of a continental writer
        if words and not found["scale"] and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", digits):
            yield Figure(value * 1000, is_percent, unit, 1.0, *span)
    if words:
        yield from _find_number_words(text)


def _find_number_words(text: str) -> Iterator[Figure]:
    lowered = text.casefold()
    for found in re.finditer(r"[a-z]+", lowered):
        for table in (_COUNT_WORDS, _PART_WORDS):
            if found[0] in table:
                yield Figure(table[found[0]], False, "", 1.0, *found.span())
                if table is _PART_WORDS:
                    yield Figure(100 * table[found[0]], True, "", 1.0, *found.span())


def _to_float(digits: str) -> float:
    plain = re.sub(r"(?<=\d)[ ,'\u00a0\u202f](?=\d{3}(?!\d))", "", digits)
    if plain.count(".") > 1:
        plain = plain.replace(".", "")
    return float(plain.replace(",", "."))


def _step(digits: str, value: float) -> float:
    """Return the place value of the last digit that is not a trailing zero of a whole number."""
    decimals = re.search(r"[.,](\d{1,2}|\d{4,})\Z", digits)
    if decimals:
        return 10.0 ** -len(decimals[1])
    step = 1.0
    while value and value % (step * 10) == 0:
        step *= 10
    return step


def _is_known(figure: Figure, material: Material, nearby: Collection[float]) -> bool:
    if not figure.is_checked or figure.value in _USUAL:
        return True
    known = material.figures
    is_share = figure.is_percent or figure.value < 1  # 0.75 may be 75 % in the material
    values = figure.values if not is_share or figure.is_percent else (figure.value, figure.value * 100)
    if any(value in known for value in values) or any(_is_rounded(figure, value) for value in known):
        return True
    if figure.value <= MAX_SMALL_COUNT and not figure.is_percent:
        return False  # a small figure follows from others by chance
    exact = EXACT * figure.value
    allowed = figure.step / 2 if figure.is_percent else exact
    if any(abs(value - figure.value) <= allowed for value in nearby):
        return True
    if any(abs(value - figure.value) <= exact for value in material.derived[figure.is_percent]):
        return True
    yearly = (value * 12 for value in material.figures if not _is_year(value))  # "about 100,000 a year"
    return not figure.is_percent and any(_is_rounded(figure, value, ROUNDED_RESULT) for value in yearly)


def _is_year(value: float) -> bool:
    return 1900 <= value <= 2100 and float(value).is_integer()


def _is_rounded(figure: Figure, known: float, limit: float = ROUNDED) -> bool:
    """Return whether a figure is a known one rounded: 19k for 19,400, 20,000 for 18,000."""
    apart = abs(known - figure.value)
    return apart <= figure.step / 2 and apart <= limit * abs(known)


def _derive(text: str) -> Iterator[tuple[float, bool]]:
    """Yield what follows from the figures of a statement, and whether it is a percentage.

    It is less than what follows in one sentence: a whole statement has so many figures that chance would explain most.
    """
    figures = list(find_figures(text, words=True))[:MAX_POOL]
    shares = list(dict.fromkeys(one.value for one in figures if one.is_percent))
    values = list(dict.fromkeys(one.value for one in figures if not one.is_percent))
    for one in (value for value in values if not _is_year(value)):
        yield from ((one * period, False) for period in PERIODS)
        yield from ((one / period, False) for period in PERIODS)
        yield from ((one * part, False) for share in shares for part in (share / 100, 1 - share / 100, 1 + share / 100))
    for one, other in combinations(values, 2):
        yield from ((one + other, False), (abs(one - other), False), (one * other, False), ((one + other) / 2, False))
    for one, other in combinations(shares, 2):
        yield from ((one + other, True), (abs(one - other), True), ((one + other) / 2, True))
        yield from ((100 * abs(one - other) / whole, True) for whole in (one, other) if whole)
    yield from ((100 - one, True) for one in shares)
    yield sum(one.value for one in figures if not one.is_percent), False


def _find_nearby(plain: str, figures: Sequence[Figure], material: Material) -> frozenset[float]:
    """Return what follows from two known figures that the text itself has: their sum, ratio and percentages."""
    own = [*figures, *_find_number_words(plain)]
    known = (one for one in own if not one.is_checked or not material.figures.isdisjoint(one.values))
    values = list(dict.fromkeys(one.value for one in known))[:MAX_POOL]
    derived: set[float] = set()
    for one, other in combinations(values, 2):
        derived |= {one + other, abs(one - other), one * other}
        for part, whole in ((one, other), (other, one)):
            if whole:
                derived |= {part / whole, 100 * part / whole, 100 * (part - whole) / whole}
    return frozenset(derived)


CONVERSIONS = (1.609344, 2.204623, 3.28084, 2.54, 3.785412, 0.4535924, 28.34952, 4.184, 1.0936, 0.6213712)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[^a-z])|\n+")


@lru_cache(maxsize=4)
def _find_sentences(plain: str) -> tuple[list[int], list[int]]:
    breaks = [found.span() for found in _SENTENCE.finditer(plain)]
    return [0, *(end for _, end in breaks)], [*(start for start, _ in breaks), len(plain)]


def _is_computed(figure: Figure, plain: str, material: Material) -> bool:
    """Return whether a figure follows, as exactly as it is written, from the material and its own sentence."""
    starts, ends = _find_sentences(plain)
    start = starts[bisect_right(starts, figure.start) - 1]
    end = ends[bisect_left(ends, figure.end)]
    own = _list_values(f"{plain[start : figure.start]}   {plain[figure.end : end]}")
    if figure.is_percent:
        return _fits(figure, [*material.shares, *_compare(own)])
    is_small_count = figure.value <= MAX_SMALL_COUNT and float(figure.value).is_integer()
    known = () if is_small_count else material.told  # a small count follows from a whole text by chance
    return _fits(figure, _convert([*known, *own])) or _fits(figure, _combine(own, known))


def _fits(figure: Figure, values: Iterable[float]) -> bool:
    """Return whether one of the values, rounded as the figure is, is the figure."""
    allowed = min(figure.step / 2, ROUNDED_RESULT * figure.value) if figure.step > 1 else figure.step / 2
    return any(abs(value - figure.value) <= allowed * 1.0001 for value in values)


def _list_values(text: str, most: int = MAX_POOL) -> list[float]:
    """Return the figures of a text that are no years, and what its number words say."""
    found = dict.fromkeys(one.value for one in find_figures(text, words=True))
    return [value for value in found if not _is_year(value)][:most]


def _compare(values: Sequence[float]) -> Iterator[float]:
    """Yield the percentages that two values have to each other."""
    for part, whole in permutations(values, 2):
        if whole:
            yield from (100 * part / whole, 100 * abs(part - whole) / whole)


def _convert(values: Iterable[float]) -> Iterator[float]:
    """Yield the values in other units: of time, of weight, of length, of temperature, of scale."""
    for value in values:
        yield from (value * 9 / 5 + 32, (value - 32) * 5 / 9)
        for factor in (*PERIODS, *CONVERSIONS):
            yield from (value * factor, value / factor)


def _combine(own: Sequence[float], known: Sequence[float]) -> Iterator[float]:
    """Yield what follows from the figures of a sentence: their sums, and each one with a figure of the material."""
    for start, count in product(range(len(own)), range(2, MAX_TERMS + 1)):
        yield sum(own[start : start + count])
    for one in own:
        for other in (*own, *known):
            yield from (one - other, other - one, one * other, one * other / 60, one * other / 100, one * other / 1000)
            if other:
                yield one / other
            if one:
                yield other / one


# Dates

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAME = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)"
)
MONTH = re.compile(rf"\b{_MONTH_NAME}\b\.?")
_DATE = re.compile(
    rf"(?:\b\d{{1,2}}(?:st|nd|rd|th)?\s+)?\b({_MONTH_NAME})\b\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?,?\s+(?:19|20)\d\d\b"
)


# Names

WORD = re.compile(r"[^\W_](?:[\w'’+#]*[\w+#])?")
CAPITAL_RUN = re.compile(r"[A-Z][\w'’-]*(?:\s+(?:of|the|for|and|de|der|von)?\s*[A-Z][\w'’-]*)+")
_NAME = re.compile(r"(?<![\w'’&./@-])[^\W\d_a-z](?:[\w'’+#&-]*[\w+#])?(?:\.\w+)*")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:;…。！？]|\n|[(\[{\"“”„«»‘|*_—–>/]|(?<=\s)-)[\s*_\"“„«(\[]*\Z")
_UNIT_NAME = re.compile(r"[KMGTP](?:i?Bs?|bit|bps|B/s|Hz|W|Wh|J)|[IVXLC]+")  # units, and Roman numerals
_CALENDAR_AND_PEOPLES = frozenset(
    re.findall(
        r"\w+",
        "mondays tuesdays wednesdays thursdays fridays saturdays sundays christmas easter european american british english "
        "scottish welsh irish german french italian spanish portuguese dutch belgian swiss austrian danish swedish norwegian "
        "finnish icelandic polish czech slovak hungarian romanian bulgarian greek turkish russian ukrainian chinese japanese "
        "korean indian pakistani thai vietnamese indonesian australian canadian mexican brazilian argentinian chilean "
        "african asian arabic arab israeli egyptian moroccan kenyan nigerian latin europe asia africa america australia "
        "germany france italy spain portugal netherlands belgium switzerland austria denmark sweden norway finland iceland "
        "poland ireland britain england scotland greece turkey russia ukraine china japan korea india canada mexico brazil "
        "europa alemania francia italia españa unido reino allemagne espagne italie deutschland frankreich italien spanien",
    )
)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "i ok a api apis cpu cpus gpu ram ssd sql http https json pdf html css url urls id ids ai it eu us usa uk un ui ux qa kpi "
        "kpis roi ceo cto cfo sla slas faq gb mb kb tb tps rps qps usd eur gbp chf q1 q2 q3 q4 h1 h2 vs pm am no yes "
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september "
        "october november december english internet web experts d1 d2 d3",
    )
)


def _find_names(text: str, plain: str, material: Material) -> list[Foreign]:
    only_marked = detect_language(text) in NOUN_CAPITALS
    spelled_out = [run.span() for run in CAPITAL_RUN.finditer(plain) if _is_spelled_out(run[0], material)]
    runs: list[Foreign] = []
    for found in _NAME.finditer(plain):
        is_spelled_out = any(start <= found.start() < end for start, end in spelled_out)
        if is_spelled_out or not found[0][0].isupper():  # a letter without case
            continue
        word = re.sub(r"['’]s?\Z", "", found[0])
        is_marked = any(sign.isupper() or sign.isdigit() for sign in word[1:])  # CockroachDB, AWS, C4
        is_start = bool(_SENTENCE_START.search(plain[max(0, found.start() - MAX_GAP_CHARS) : found.start()]))
        if ((is_start or only_marked) and not is_marked) or _is_known_name(word, material):
            continue
        is_next = bool(runs) and runs[-1].end + 1 == found.start()
        start, end = runs.pop().start if is_next else found.start(), found.start() + len(word)
        runs.append(Foreign(text[start:end], start, end))
    return runs


def _is_known_name(word: str, material: Material) -> bool:
    if word.casefold() in _COMMON | _CALENDAR_AND_PEOPLES or _UNIT_NAME.fullmatch(word):
        return True
    if len(word) <= MAX_PLAIN_ABBREVIATION and word.isalpha() and word.rstrip("s").isupper():
        return True
    parts = [to_latin(part) for part in re.split(r"[-&./]", word) if part]
    return all(_is_known_word(part, material) for part in parts) or to_latin(word) in material.initials


def _is_known_word(word: str, material: Material) -> bool:
    """Return whether a word is in the material, also inflected: "Postgres" beside "PostgreSQL"."""
    if not word or word in material.words or word.rstrip("s") in material.words or f"{word}s" in material.words:
        return True
    return len(word) > MIN_STEM_CHARS and word[: max(MIN_STEM_CHARS + 1, len(word) - 3)] in material.stems


def _is_spelled_out(name: str, material: Material) -> bool:
    """Return whether the material has the initials of a name: "AWS" for "Amazon Web Services"."""
    words = re.findall(r"[^\W\d_]+", name)
    capitals = [word for word in words if word[0].isupper()]
    forms = ("".join(word[0] for word in one) for one in (words, capitals, capitals[1:]) if len(one) > 1)
    return any(to_latin(form) in material.words for form in forms)
