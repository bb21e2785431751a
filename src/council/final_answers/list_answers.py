"""Lists in claims, in any common form, and their fit to a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from council.final_answers.claim_words import BOLD_SPAN, REMARK, are_alike, compact
from council.final_answers.finder import split_items
from council.final_answers.markup import strip_marks, to_plain
from council.final_answers.number_answers import fits_number
from council.final_answers.quantities import read_number

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


def split_list(text: str, *, is_key: bool = False, has_numbers: bool = False) -> list[str]:
    """Return the items of a list that is written in any common form; with `has_numbers`, those after their names."""
    if has_numbers and (measures := _split_measures(text)):
        return measures
    items = _split_inline(text) or split_items(text) or _split_table(text)
    if items:
        return [_clean_item(item) for item in items]
    bold = [span for span in BOLD_SPAN.findall(text) if re.search(r"[,;&\n]|\band\b|\bor\b", span)]
    plain = strip_marks(bold[0] if len(bold) == 1 else text).strip()
    plain = plain if is_key else _cut_working(plain)
    plain = plain if is_key else re.split(r"(?:,\s+|\A|;\s+)(?:so|thus|therefore|hence)\b,?", plain)[-1]
    plain = re.sub(r"±\s*([\w./√]+)", r"\1, -\1", plain)
    plain = re.sub(r"\A```\w*|```\Z", "", plain).strip(" .!`*")
    if inner := re.search(r"[\[{(]([^\[\]{}()]*[,;][^\[\]{}()]*)[\]})]", plain):
        plain = inner[1]
    elif not is_key:
        plain = _cut_opening(plain)
    plain = _STEPS.sub(",", REMARK.sub("", plain))
    if ";" in plain:
        rows = re.split(r"\s*;\s*(?:and\b)?|\n", plain)
    elif re.search(r"→|->|⇒", plain):
        rows = re.split(r"\s*(?:→|->|⇒)\s*", plain)
    elif "\n" in plain:
        rows = plain.split("\n")
    elif re.search(r"\s[>|<≤≥]\s", plain):
        rows = re.split(r"\s+[>|<≤≥]\s+", plain)
    elif "," not in plain and re.search(r"[A-Za-z] \+ [A-Za-z]", plain):
        rows = re.split(r"\s+\+\s+", plain)
    elif "," in plain:
        rows = [
            part
            for row in re.split(r",\s*(?:(?:and|und|et|then|or|&)\b\s*)?", plain)
            for part in _split_last(row, plain)
        ]
    else:
        rows = re.split(r"\s+(?:and|und|et|&|or|then|[-–—])\s+|\s*&\s*", plain)
        if len(rows) == 1 and not read_number(plain):
            rows = re.split(r"\s*/\s*", plain)
        if len(rows) == 1 and re.fullmatch(r"[^\W\d]+(?:[-–][^\W\d]+){2,}", plain):
            rows = re.split("[-–]", plain)
        if len(rows) == 1 and re.fullmatch(r"[-\d.\s]+", plain):
            rows = plain.split()
    return [item for item in map(_clean_item, rows) if item]


_INLINE_NUMBER = re.compile(
    r"(?:(?<=\s)|(?<=[,;:])|\A)[(\[]?(?:(?P<number>\d{1,2})[.)\]]|(?P<letter>[a-h])\))(?=\s*[^\W\d]|\s+\S)"
)


def _split_inline(text: str) -> list[str]:
    """Return the items of "1) one 2) two", which begin with 1 and follow each other in one line."""
    plain = strip_marks(text)
    if "\n" in plain.strip():
        return []
    marks: list[re.Match[str]] = []
    for found in _INLINE_NUMBER.finditer(plain):
        number = int(found["number"]) if found["number"] else ord(found["letter"]) - ord("a") + 1
        if number == len(marks) + 1:
            marks.append(found)
    if len(marks) < 2 or len({bool(found["number"]) for found in marks}) > 1:
        return []
    ends = [found.start() for found in marks[1:]] + [len(plain)]
    rows = [plain[found.end() : end].strip(" ,;.\n") for found, end in zip(marks, ends, strict=True)]
    rows = [re.sub(r"[,;]?\s+(?:and|und|et)\Z", "", row) for row in rows]
    return rows if all(rows) else []


_WORKING = re.compile(
    r"\b(?:we|you|one|i)\s+(?:(?:then|now|thus|therefore|finally|also) )?(?:obtain|get|have|find|arrive at|end up with|see)\b:?\s*"
    r"|\b(?:this|that|which|it|these)\s+(?:(?:then|thus|therefore) )?(?:yields?|gives?|leaves?|produces?|results? in)\b(?: us)?:?\s*"
    r"|(?<=\w):\s+",
    re.IGNORECASE,
)


def _cut_working(text: str) -> str:
    """Return the list at the end of a sentence that says how it was found: "…, we obtain 1, 1, 2, 3, and 5"."""
    if "\n" in text:
        return text
    for found in reversed(list(_WORKING.finditer(text))):
        is_colon = found[0].strip() == ":"
        rest = text[found.end() :]
        is_list = re.search(r",|;|\band\b|&", rest) and (not is_colon or text.count(": ") == 1)
        if is_list and all(len(part.split()) <= MAX_ITEM_WORDS for part in re.split(r"[,;]|\band\b", rest)):
            return rest
    return text


_UNIT_TAIL = r"(?:\s?(?:[a-zµ°%]{1,3}\b|[a-z]+(?:met(?:er|re)s?|inches|feet|foot|grams?)\b))?"
_MEASURE = r"-?\d[\d.,]*\d|-?\d"
_MEASURES = re.compile(
    rf"(?:{_MEASURE}){_UNIT_TAIL}(?:\s*(?:[×✕*]|\bx\b|(?<=\d)x(?=\d)|\bby\b)\s*(?:{_MEASURE}){_UNIT_TAIL})+",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    rf"(?P<label>[A-Za-z][A-Za-z ()]{{0,30}}?)\s*(?:[:=]|\bis\b|\bof\b)?\s*(?P<value>{_MEASURE}){_UNIT_TAIL}\W*",
    re.IGNORECASE,
)


def _split_measures(text: str) -> list[str]:
    """Return the numbers of "40 × 30 × 25 cm" and of "length 40, width 30, height 25"."""
    plain = strip_marks(text).strip()
    found = list(_MEASURES.finditer(plain))
    if len(found) == 1 and "=" not in plain[found[0].end() :]:
        return re.findall(_MEASURE, found[0][0])
    rows = [
        re.sub(r"\A[-*•\s]+", "", row)
        for row in re.split(r"\n|;|,(?!\d)\s*(?:and\b)?|\band\b", plain)
        if row.strip(" .")
    ]
    labelled = [_LABELLED.fullmatch(row.strip()) for row in rows]
    if len(rows) < 2 or not all(labelled):
        return []
    return [row["value"] for row in labelled if row]


def drop_shared_noun(items: list[str]) -> list[str]:
    """Return items without a word that all of them have: "Aventine Hill, Caelian Hill", "Lake Erie, Lake Huron"."""
    words = [item.split() for item in items]
    if len(items) < 2 or any(len(row) < 2 for row in words):
        return items
    if len({row[-1] for row in words}) == 1:
        return [" ".join(row[:-1]) for row in words]
    if len({row[0] for row in words}) == 1 and words[0][0].casefold() in _KIND_WORDS:
        return [" ".join(row[1:]) for row in words]
    return items


_KIND_WORDS = frozenset(["lake", "mount", "mt", "river", "planet", "gas", "element", "vitamin", "type", "sea", "cape"])


def names_alternative(items: Sequence[str], wanted: Sequence[str], *, is_set: bool) -> bool:
    """Return whether a list would be the wanted one if one of "trypsin/amylase" was meant."""
    choices = [[item] if read_number(item) else [item, *re.split(r"\s*/\s*|\s+or\s+", item)] for item in items]
    if all(len(row) <= 2 for row in choices) or any(re.search(r"\s+or\s+|/", one) for one in wanted):
        return False
    picked = [next((one for one in row if any(fits_item(one, goal) for goal in wanted)), row[0]) for row in choices]
    return picked != list(items) and fits_items(picked, wanted, fits_item, is_set=is_set)


def is_broken_off(text: str, items: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a list ends inside an item of the key: "1. Aventine 2. Caelian 3. Capi"."""
    if (
        not items
        or not len(wanted) > 1
        or len(items) > len(wanted)
        or not re.search(r"\w\Z", strip_marks(text).rstrip())
    ):
        return False
    last = items[-1].casefold()
    is_start = any(one.casefold().startswith(last) and len(one) > len(last) for one in wanted)
    return is_start and all(any(fits_item(item, one) for one in wanted) for item in items[:-1])


MAX_ITEM_WORDS = 5


def is_prose(text: str, items: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a sentence is no list: it names no item of the key, and its parts are too long for items."""
    if split_items(text) or any(fits_item(item, one) for item in items for one in wanted):
        return False
    if all(re.search(r"\d", one) for one in wanted) and re.search(r"\d", text):
        return False
    return len(text.split()) > MAX_ITEM_WORDS and (
        len(items) < 2 or any(len(item.split()) > MAX_ITEM_WORDS for item in items)
    )


def drop_shares(items: list[str], wanted: Sequence[str]) -> list[str]:
    """Return items without percentages and years beside them, if the wanted ones are names without digits."""
    if any(re.search(r"\d", one) for one in wanted):
        return items
    names = [item for item in items if not re.fullmatch(r"\W*\d[\d.,\s–-]*(?:%|percent)?\W*", item)]
    return names if len(names) > 1 else items


_UNSURE = re.compile(
    r"\b(?:not|n't|no|nor|neither|except|excluding|without|only|but|unlike|while|whereas|or|either|if|before|after|than|from|instead|over|beat\w*|los[et]s?|against|defeat\w*|fail\w*|reject\w*|exclud\w*|wrong|false|replac\w*|versus|vs|left|quit|resign\w*|dropped|died|miss\w*|lack\w*|declin\w*|refus\w*|last|smallest|lowest|least)\b|n't\b",
    re.IGNORECASE,
)


_ALL_BUT = re.compile(
    r"\b(?:all|every\w*|any\w*|everything)\b[^,.;]{0,40}\b(?:but|except|excluding|other than|apart from)\b(?! (?:also|not)\b)",
    re.IGNORECASE,
)


def excludes(text: str) -> bool:
    """Return whether a claim names what does not belong to the list: "all but a and e"."""
    return _ALL_BUT.search(strip_marks(text)) is not None


def names_all(text: str, wanted: Sequence[str], question: str, *, is_set: bool) -> bool:
    """Return whether one sentence names all items, which are proper names, and no other name or number."""
    plain = strip_marks(text).strip()
    body = re.sub(r"\bnot only\b|\bbut (?=also|[A-Z][^.]* (?:as well|too)\W*\Z)", "", plain, flags=re.IGNORECASE)
    if len(wanted) < 2 or not all(re.fullmatch(r"[A-Z][\w' -]+", one) for one in wanted) or "\n" in plain:
        return False
    if _UNSURE.search(body) or re.search(r"[.!?]\s+[A-Z]", plain):
        return False
    places = []
    for one in wanted:
        found = re.findall(rf"(?<![\w-]){re.escape(one)}(?![\w-])", body)
        if len(found) != 1:
            return False
        places.append(body.index(one))
    if not is_set and places != sorted(places):
        return False
    rest = body
    for one in wanted:
        rest = rest.replace(one, " ")
    others = [
        word
        for word in re.findall(r"[A-Z][\w'-]*|\d[\d.,]*", rest)
        if not re.match(rf"\W*{re.escape(word)}", rest) or word[0].isdigit()
    ]
    asked = question.casefold()
    return not [word for word in others if word.casefold() not in asked]


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
        r"[^,;\n]*?(?:\b(?:is|are|include|includes|were|was|would be|gives|(?:we |you )?gets?|yields|contains|has)\b|:|=(?!=))\s*(?=\S)",
        text,
        re.IGNORECASE,
    )
    if not found:
        return text
    rest = text[found.end() :]
    is_behind = re.search(r",|;|\band\b|&", found[0]) and not re.search(r",|;|\band\b|&", rest)
    if is_behind and ":" not in found[0]:
        return re.split(r"\s+(?:is|are|were|was|would be)\s", found[0])[0]  # "Ann and Bo are the winners"
    if re.fullmatch(r"\s*[^\W\d_]\w*\s*=\s*", found[0]):
        return text  # "x = 3 or x = 2" is read item by item
    return _cut_opening(rest) if ":" in rest[:60] and "," not in rest[: rest.find(":")] else rest


def _clean_item(item: str) -> str:
    item = strip_marks(item)
    item = re.sub(r"(?<=\w)\s*\([^()]*\)", "", REMARK.sub("", item))
    item = re.sub(r"\A\s*(?:step|stage|item|number|no\.?) \d{1,2}\s*[:.)–-]\s*", "", item, flags=re.IGNORECASE)
    item = re.sub(r"\A\s*(?:[-*•]|\(?\d{1,2}[.)](?!\d)|\d{1,2}(?:st|nd|rd|th)\b:?)\s+", "", item)
    item = re.split(r"\s[-–—]\s|:\s", item)[0]
    item = re.sub(
        r"(?<=[^\W\d])\s*(?:\b(?:at|with)\b)?\s*(?:about |around |roughly )?[~≈]?\s*\d[\d.,]*\s?(?:%|percent)(?: (?:of|by)\b.*)?\Z",
        "",
        item,
    )
    item = re.sub(
        r"\A\s*(?:(?:[^\W\d_]|alpha|beta|lambda|mu|omega|theta)(?:_?(?:\d|[a-z]\b))?\s*=\s*|(?:and|then|also|the|or|only|just|both|exactly)\s+)",
        "",
        item,
    )
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
    if goal and (said == goal or are_alike(said.split(), goal.split())):
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


_RANKING = frozenset(["mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "lady", "came", "come", "finished", "followed", "by", "then", "ended", "up", "was", "is", "in", "ahead", "first", "last", "next", "place", "1st", "2nd", "3rd", "after", "that", "finally", "only"])  # fmt: skip
