"""Cleanup of text: invisible characters, terminal sequences, CI commands, secrets, and lines like ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from council.types import map_strings, repair_surrogates

# Zero-width and direction marks, soft hyphens, tags, variation selectors except the emoji one, controls except tab and
# line ends. A single joiner between two letters or symbols outside ASCII stays: Persian words and joined emoji need it.
INVISIBLE_CHARS = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]"
)
LOOSE_JOINERS = re.compile(
    "(?<![^\\s\x00-\x7f\u200c\u200d])[\u200c\u200d]+|[\u200c\u200d]+(?![^\\s\x00-\x7f\u200c\u200d])|[\u200c\u200d]{2,}"
)
CSI_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
CONTROL_RUNS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Keys as vendors quote them in errors, also with the middle already masked.
KEY_SHAPED = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|csk|hf|xai|r8|fw|pplx|tvly|nvapi|glpat|gh[opsu]|github_pat)[-_]|AIza|AKIA|ya29\.|eyJ)[\w*.…-]{8,}"
)
URL_LOGIN = re.compile(r"(?<=://)[^\s/@]+@")  # user and password in a URL
MIN_SECRET_CHARS = 4  # characters; a shorter value is a placeholder, and masking it would damage ordinary words


# Single lines


def strip_invisible(text: str) -> tuple[str, int]:
    """Return the text without invisible characters, and how many were removed."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text, 0
    visible, removed = INVISIBLE_CHARS.subn("", repair_surrogates(text))
    kept = LOOSE_JOINERS.sub("", visible)
    return kept, removed + len(visible) - len(kept)


LINE_ENDS = re.compile("\\r\\n|[\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]")
UNUSUAL_CHARS = re.compile(r"[^\x20-\x7e\n\t]")
HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cn", "Cs")
KEPT_CHARS = "\n\t\u200c\u200d"


class HiddenTable(dict[int, str | None]):
    """Maps hidden characters to None, for `str.translate`. Each is looked up once in a process."""

    def __missing__(self, code: int) -> str | None:
        import unicodedata

        char = chr(code)
        is_hidden = char not in KEPT_CHARS and unicodedata.category(char) in HIDDEN_CATEGORIES
        self[code] = None if is_hidden else char
        return self[code]


_HIDDEN_CHARS = HiddenTable()


def strip_hidden(text: str) -> tuple[str, int]:
    """Return the text without characters that a model reads but a person cannot see, and how many were removed.

    These are format, tag, control and unassigned characters. A single joiner between two letters or symbols outside
    ASCII stays: Persian words and joined emoji need it.
    """
    text = LINE_ENDS.sub("\n", text)
    if not UNUSUAL_CHARS.search(text):
        return text, 0
    visible = INVISIBLE_CHARS.sub("", text)
    kept = LOOSE_JOINERS.sub("", visible.translate(_HIDDEN_CHARS))
    return kept, len(text) - len(kept)


def strip_to_line(text: str) -> str:
    """Return the text on one line, without terminal sequences and invisible characters; words are not split."""
    return " ".join(strip_invisible(CSI_SEQUENCE.sub("", text))[0].split())


def truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_words(text: str, limit: int) -> str:
    """Return a text, cut after a word if it is too long."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1].rpartition(' ')[0].rstrip(',;:')} …"


# Letters without a decomposition into a Latin letter, and German umlauts. Soft and hard signs are dropped.
_SPELLINGS = """ä=ae ö=oe ü=ue ß=ss æ=ae œ=oe ø=o ł=l đ=d ð=d þ=th ħ=h ı=i ŋ=ng ŧ=t ə=e
а=a б=b в=v г=g д=d е=e ё=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch ъ= ы=y ь= э=e
ю=yu я=ya і=i ї=yi є=ye ґ=g ў=u ј=j љ=lj њ=nj ћ=c ђ=dj џ=dz ѓ=g ќ=k ѕ=dz
α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o"""
LATIN_LETTERS = str.maketrans(dict(pair.split("=") for pair in _SPELLINGS.split()))
# Kana and Hangul: the name ends with the sound.
NAMED_SYLLABLES = re.compile("[\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]")


def to_latin(text: str) -> str:
    """Return the text in lower-case ASCII: umlauts, accents, Cyrillic, Greek, kana and Hangul spelled in Latin letters.

    Characters without a simple Latin form are dropped.
    """
    import unicodedata

    text = unicodedata.normalize("NFKC", text).lower().translate(LATIN_LETTERS)
    text = NAMED_SYLLABLES.sub(lambda found: unicodedata.name(found[0]).rpartition(" ")[2].lower(), text)
    plain = unicodedata.normalize("NFKD", text).translate(LATIN_LETTERS)  # accented Greek letters are now plain
    return plain.encode("ascii", "ignore").decode().lower()


@lru_cache(2048)
def squash(text: str) -> str:
    """Return the letters and digits alone, in lower case: "keyInsight" and "Key insight" are the same."""
    return "".join(char for char in text.casefold() if char.isalnum())


def slugify(name: str) -> str:
    """Return the name in lower case with hyphens: "Error paths" becomes "error-paths"."""
    return re.sub(r"\W+", "-", name.lower()).strip("-")


def mask_values(text: str, secrets: Iterable[str]) -> str:
    """Return the text with these secret values masked."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "***")
    return text


def redact_line(message: str, secrets: Iterable[str] = ()) -> str:
    """Return one line of at most 200 characters, without control characters and secrets."""
    flat = " ".join(CONTROL_RUNS.sub(" ", clean(message)).split())
    line = strip_invisible(flat)[0]
    return truncate(URL_LOGIN.sub("***@", KEY_SHAPED.sub("***", mask_values(line, secrets))), 200)


# Text for a terminal

# A payload also stops at the next introducer: unclosed sequences would otherwise take quadratic time.
_CONTROL_STRING = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\|\x9c)"
)
# Only the first word: the rest may be text.
_UNCLOSED_OSC = re.compile(r"(?:\x1b\]|\x9d)\d{1,4};[^\s\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*")
# Rest of a title or link sequence whose escape character was already removed; does not match code like `a[i]0;`.
_OSC_REMNANT = re.compile(r"(?<![\w\])'\"`])\](?:0|1|2|4|7|8|9|10|11|52|133|777|1337);\S*")
_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?")
_ESCAPE = re.compile(r"\x1b[ -/]*[0-~]?")
_LINE_BREAK = re.compile(r"\r\n?|[\u2028\u2029]")
_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # valid in JSON, not in UTF-8


# What the patterns above can match; most texts have none of it.
_UNCLEAN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\](?:0|1|2|4|7|8|9|10|11|52|133|777|1337);"
)


def _is_plain(text: str) -> bool:
    """Return whether there is certainly nothing to clean. This takes less time than a search."""
    return "]" not in text and text.replace("\n", "").replace("\t", "").isprintable()


def clean(text: str) -> str:
    """Remove terminal sequences and control characters, except newline and tab."""
    if _is_plain(text) or not _UNCLEAN.search(text):
        return text
    for pattern in (_CONTROL_STRING, _UNCLOSED_OSC, _CSI, _ESCAPE):
        text = pattern.sub("", text)
    text = _CONTROL_CHARS.sub("", _LINE_BREAK.sub("\n", text))
    return _SURROGATE.sub("\ufffd", _OSC_REMNANT.sub("", text))


# The same in JSON text, which has escape sequences instead of the first controls.
_UNCLEAN_JSON = re.compile(rf"\\u|\\[bfr]|{_UNCLEAN.pattern}")


def may_be_unclean(encoded: str) -> bool:
    """Return whether a string in this JSON text, made with `ensure_ascii=False`, may need `clean`."""
    return bool(_UNCLEAN_JSON.search(encoded))


def single_line(text: str, limit: int = 200) -> str:
    """Clean the text, join its lines and shorten it to `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?][\"'”’)\]`]*(?=\s+[^a-z\s]|\s*$)|[。！？]|\n")


def shorten_sentences(text: str, limit: int) -> str:
    """Shorten a text to about `limit` characters after a sentence, or after a word if the first sentence is longer."""
    if len(text) <= limit:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, limit + 1) if found.end() <= limit]
    kept = text[: ends[-1]] if ends else text[:limit].rpartition(" ")[0] or text[: limit - 1]
    return f"{kept.rstrip()} …"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text in one line."""
    line = " ".join(clean(text).split())
    found = _SENTENCE_END.search(line)
    return line[: found.end()] if found else line


def clean_json(value: Any) -> Any:
    """Clean every string in a JSON value."""
    return map_strings(value, clean)


# Commands of CI systems, which run them wherever they read them in a log

# GitHub reads `::name::` at the start of a line, after blanks. Other commands count anywhere in a line: ##[error],
# ##vso[…], ##teamcity[…], and the sections of GitLab and Travis.
_CI_COMMAND = re.compile(
    r"(?:^|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])[\s\ufeff\u200b\u2060]*:(?=:)"
    r"|##(?=[\w.-]*\[)|section_(?:start|end)(?=:)|travis_(?:fold|time)(?=:)"
)
_CI_HINTS = ("::", "##", "section_", "travis_")
Syntax = Literal["text", "json", "xml"]


def neutralize_commands(text: str, syntax: Syntax = "text") -> str:
    """Return the text with no line that a CI system runs: `::error::` becomes `: :error::`.

    In JSON and XML one character is written as an escape, which changes nothing in the content.
    """
    if not any(hint in text for hint in _CI_HINTS):
        return text
    forms = {"text": "{0} ", "json": "\\u{1:04x}", "xml": "&#{1};"}
    return _CI_COMMAND.sub(lambda found: found[0][:-1] + forms[syntax].format(found[0][-1], ord(found[0][-1])), text)


# Lines of a model that look like ours

# The words with which the lines of Council's own tail begin, in every language, and what models write for them.
_TAIL_WORDS = """
trust level|trust line|trust|outcome|they agree|they differ|they disagree
vertrauensniveau|vertrauensstufe|vertrauen|ergebnis|sie sind sich einig|sie stimmen überein|sie unterscheiden sich
sie sind sich nicht einig|sie sind sich uneinig|uneinig|einig
niveau de confiance|confiance|résultat|ils sont d'accord|ils s'accordent|ils diffèrent|ils divergent
ils ne sont pas d'accord|désaccord|accord
nivel de confianza|confianza|resultado|están de acuerdo|coinciden|difieren|discrepan|no están de acuerdo
livello di fiducia|fiducia|affidabilità|esito|risultato|sono d'accordo|concordano|differiscono|non sono d'accordo
divergono
nível de confiança|confiança|eles concordam|concordam|eles divergem|divergem|discordam
信任度|信任级别|信任|可信度|结果|他们一致|他们同意|他们不同意|一致|分歧|共识
信頼度|信頼|結果|合意|一致点|相違点|相違|意見の相違
"""
_TAIL_PHRASES = tuple(_TAIL_WORDS.strip().replace("\n", "|").split("|"))
_MARKS_BEFORE = re.compile(r"[\s#*_+\-•–—|`~\[(\d.)]*")
_TAIL_LINE = re.compile(
    rf"{_MARKS_BEFORE.pattern}(?:{'|'.join(_TAIL_PHRASES)})[\s*_`\])]*"
    r"(?:[:：=]|[|–—-]+\s*\W*(?:high|medium|low|contested)\b)",
    re.IGNORECASE,
)
_MAX_TAIL_START_CHARS = 60  # of a line that may begin like one of the tail
MAX_FENCE_LINE_CHARS = 200  # of a line that opens or closes a code fence
_CODE_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})(.*)")


def quote_tail_lines(text: str) -> str:
    """Quote a model's lines that begin like lines of Council, except in code: `> Trust: HIGH`, `> ! beta is absent`."""
    fence, lines = "", []
    for line in text.split("\n"):
        was_code, fence = bool(fence), next_fence(line, fence)
        lines.append(f"> {line}" if not was_code and not fence and is_tail_line(line) else line)
    return "\n".join(lines)


def is_tail_line(line: str) -> bool:
    """Return whether a line that is not quoted begins like one of the tail or about a missing part."""
    return line.startswith("! ") or _TAIL_LINE.match(_plain_start(line)) is not None


def may_become_tail_line(start: str) -> bool:
    """Return whether the start of a line may become one that begins like a line of the tail."""
    if start in ("!", "! "):
        return True
    words = _MARKS_BEFORE.sub("", _plain_start(start), count=1).casefold()
    is_possible = any(one.startswith(words) or words.startswith(one) for one in _TAIL_PHRASES)
    return is_possible and len(start) <= _MAX_TAIL_START_CHARS


def _plain_start(line: str) -> str:
    """Return the start of a line without invisible characters, with plain letters and apostrophes."""
    start = line[:_MAX_TAIL_START_CHARS]
    if start.isascii():
        return start
    import unicodedata

    return unicodedata.normalize("NFKC", strip_invisible(start)[0]).replace("’", "'")


def next_fence(line: str, fence: str) -> str:
    """Return the code fence that is open after a line; empty if there is none. `fence` is the one before it."""
    found = _CODE_FENCE.match(line) if len(line) <= MAX_FENCE_LINE_CHARS else None
    if not fence:
        return found[1] if found and "`" not in found[2] else ""
    return "" if found and found[1].startswith(fence) and not found[2].strip() else fence


# A confidence section that the chair wrote itself

_CONFIDENCE = (
    r"(?:overall |final |my )?confidence(?P<noun> assessment| level| rating| statement| score| note)?|"
    r"level of confidence|(?:konfidenz|zuversicht)(?:bewertung|sgrad|sniveau)?|vertrauensniveau|"
    r"niveau de confiance|confiance|nivel de confianza|confianza"
)
_CONFIDENCE_LINE = re.compile(
    rf"[ \t]{{0,3}}(?P<marks>#{{1,6}}[ \t]+)?(?:\d+[.)][ \t]+)?(?P<bold>[*_]{{1,3}})?(?:{_CONFIDENCE})"
    r"(?P<end>[*_:： \t]*)(?P<rest>.*)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[ \t]{0,3}(?:(#{1,6})[ \t]+\S.*|[*_]{2}[^*_\n]{1,80}[*_]{2}:?[ \t]*)")
_BOLD_LEVEL = 7  # of a line in bold that serves as a heading
_LEVEL = re.compile(
    r"\W*(?:(?:overall|very|fairly|moderately|it is|this is|is|my|confidence|level|sehr|très|muy)\W+){0,4}"
    r"(?:high|medium|moderate|low|contested|strong|hoch|mittel|niedrig|gering|élevée?|moyenne?|faible|alta?|media|baja|"
    r"\d{1,3} ?%|\d(?:\.\d+)?/)",
    re.IGNORECASE,
)
_MAX_LEVEL_CHARS = 30  # of a line that only says a level


def strip_confidence_section(text: str) -> str:
    """Remove a section on confidence, or a last line on it, because Council computes the level. Code stays."""
    lines, kept = text.split("\n"), list[str]()
    fence, end = "", 0
    for n, line in enumerate(lines):
        was_code, fence = bool(fence), next_fence(line, fence)
        if n >= end and not was_code and not fence:
            end = _find_confidence_end(lines, n)
        if n >= end:
            kept.append(line)
    return text if len(kept) == len(lines) else _DANGLING_LINES.sub("", "\n".join(kept)).lstrip("\n")


_DANGLING_LINES = re.compile(r"(?:\n[ \t]*(?:-{3,}|\*{3,}|_{3,})?[ \t]*)+\Z")


def _find_confidence_end(lines: list[str], at: int) -> int:
    """Return the line after the section or line on confidence that begins at a line; 0 if none does."""
    found = _CONFIDENCE_LINE.fullmatch(lines[at])
    if not found or (found["rest"] and not found["end"].strip()):  # "Confidence intervals"
        return 0
    rest = found["rest"].strip(" *_:：")
    if found["marks"] or (found["bold"] and not rest):
        level = len(found["marks"].strip()) if found["marks"] else _BOLD_LEVEL
        end = next((n for n in range(at + 1, len(lines)) if _begins_section(lines[n], level)), len(lines))
        body = rest or "\n".join(lines[at + 1 : end])
        return end if found["noun"] or _LEVEL.match(body) else 0
    end = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
    is_last = not any(line.strip() for line in lines[end:])
    is_alone = end == at + 1 and len(rest) <= _MAX_LEVEL_CHARS
    return end if _LEVEL.match(rest) and (is_last or is_alone) else 0


def _begins_section(line: str, level: int) -> bool:
    found = _HEADING.fullmatch(line)
    return found is not None and (len(found[1]) if found[1] else _BOLD_LEVEL) <= level


# Labels

RESPONSE_LABELS = re.compile(
    r"\b[Rr]esponses ([A-Z]{1,2}\b(?:(?:, | and | or |, and |, or )[A-Z]{1,2}\b)+)|\b[Rr]esponses? ([A-Z]{1,2})\b"
)


def replace_labels(text: str, names: Mapping[str, str]) -> str:
    """Replace labels ("Response B", "Responses A and C") with names; unknown labels stay."""

    def replace_match(match: re.Match[str]) -> str:
        labels = match[1] or match[2]
        is_known = set(re.findall(r"[A-Z]{1,2}", labels)) <= names.keys()
        return re.sub(r"[A-Z]{1,2}", lambda label: names[label[0]], labels) if is_known else match[0]

    return RESPONSE_LABELS.sub(replace_match, text) if "esponse" in text else text


# Requests that are shown

BASE64 = re.compile(r'(?<=[",])[A-Za-z0-9+/]{2000,}={0,2}(?=")')  # the content of an attachment in a request


def abbreviate_base64(request: str) -> str:
    """Return a request as JSON without the contents of its attachments."""
    return BASE64.sub(lambda found: f"[{len(found[0]):,} characters of base64]", request)
