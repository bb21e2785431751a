"""The final answer of a run as it is shown, in a whole text or in a stream.

Removed are the chair's notes, thinking, openings such as "Certainly! Here is the final answer:", wrappers around the
whole text, and a closing offer. Lines that begin like those of Council's tail are quoted. Statements stay as they are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files

from council.json_text import find_json, load_json
from council.notes_filter import RULE, LineFilter, NotesFilter, closes_fence, find_answer, without_notes
from council.text_cleanup import MAX_FENCE_LINE_CHARS, is_tail_line, may_become_tail_line, next_fence

MAX_START_CHARS = 250  # of a first line that may be an opening, and of a closing offer
MAX_WRAPPERS = 6  # nested ones that are removed

_PHRASES = tomllib.loads(files("council").joinpath("data/answer_phrases.toml").read_text(encoding="utf-8"))


def _join(patterns: Sequence[str], **parts: str) -> str:
    """Return one pattern for several, with their placeholders filled in."""
    text = "|".join(patterns).replace("'", "['’]")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return f"(?:{text})"


# Openings

_OPENINGS = _PHRASES["opening"]
_MARKS = r"[\s*_#¡!>\[]*"
_OPENING = re.compile(
    rf"{_MARKS}(?P<courtesy>{_join(_OPENINGS['courtesies'])}(?![a-zà-ÿ])[\s!,.。，！—–-]*)?"
    rf"(?:{_join(_OPENINGS['sentences'])}\b[^.!?\n]{{0,100}}[.!]\s+)?"
    rf"(?:{_join(_OPENINGS['clauses'])}\b[^.:!?\n]{{0,120}}, )?"
    rf"{_join(_OPENINGS['announcements'], reply=_join(_OPENINGS['reply']))}[^.:：!。\n]{{0,120}}?"
    r"[*_ ]{0,3}(?P<end>[:：]|[.!。](?=[*_\s]|$)|$)[*_]{0,3}\s*",
    re.IGNORECASE,
)
_PRAISE = re.compile(r"(?:great|good|excellent) question[!.]\s*", re.IGNORECASE)
_TITLE = re.compile(
    rf"[ \t]{{0,3}}(?:#{{1,6}}[ \t]+)?[*_\[]{{0,3}}(?:the |my )?{_join(_OPENINGS['titles'])}"
    r"[ \t]*[:：]?[*_\]]{0,3}[:：]?\s*",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"[ \t]*(?:={3,}|-{3,})\s*")
_OPENING_STARTS = [phrase for name in ("courtesies", "sentences", "clauses", "starts") for phrase in _OPENINGS[name]]


def _skip_opening(line: str) -> int:
    """Return how many characters of a first line are an opening or a title; 0 if none."""
    if _TITLE.fullmatch(line):
        return len(line)
    if praise := _PRAISE.match(line):
        return praise.end()
    found = _OPENING.match(line)
    if not found:
        return 0
    rest = line[found.end() :]
    if rest and found["end"] not in (":", "："):  # "Here is the answer. Take Postgres."
        return found.end() if found["courtesy"] else 0
    return 0 if not found["end"] and not found["courtesy"] else found.end()


def _may_become_opening(start: str) -> bool:
    words = re.sub(rf"^{_MARKS}", "", start).casefold().replace("’", "'")
    return len(start) <= MAX_START_CHARS and any(
        phrase.startswith(words) or (words.startswith(phrase) and not re.match(r"[a-z]", words[len(phrase) :]))
        for phrase in _OPENING_STARTS
    )


# Closing offers

_OFFERS = _PHRASES["offer"]
_OFFER = re.compile(
    _join(_OFFERS["sentences"], first_person=_OFFERS["first_person"].replace("'", "['’]")), re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_LETTER_START = re.compile(
    r"\W*(?:subject|betreff|objet|asunto)\s*:"
    r"|\W*(?:dear|hi|hello|sehr geehrte|liebe[rs]?|bonjour|cher|estimad|querid)\b",
    re.IGNORECASE,
)


def _is_offer(line: str) -> bool:
    """Return whether a line only offers more help to the reader."""
    bare = line.strip(" \t*_")
    if not bare or len(line) > MAX_START_CHARS:
        return False
    return all(_OFFER.match(sentence.strip(" \t*_")) for sentence in _SENTENCE_END.split(bare))


def _may_become_offer(start: str) -> bool:
    words = start.strip(" \t*_").casefold().replace("’", "'")
    return len(start) <= MAX_START_CHARS and any(
        one.startswith(words) or words.startswith(one) for one in _OFFERS["starts"]
    )


# Wrappers around the whole text

_THINKING_TAGS = "think|thinking|reasoning|scratchpad|analysis|reflection"
_THINKING = re.compile(rf"\s*<({_THINKING_TAGS})>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
# Some servers drop the opening tag. Text with code may only speak of the tag.
_UNOPENED_THINKING = re.compile(r"\A(?:(?!<think|`).)*?</think(?:ing)?>[ \t]*\n\s*", re.DOTALL | re.IGNORECASE)
_ANSWER_TAGS = r"(?:final[-_ ]?)?(?:answer|response|output|result)|final|synthesis"
_ANSWER_TAG = re.compile(rf"\s*<({_ANSWER_TAGS})>(?P<inner>.*?)(?:</\1>(?P<rest>.*)|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_LINE = re.compile(r"\s*</?(?:final[-_ ]?)?answer>\s*", re.IGNORECASE)
_MARKDOWN_FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*(?:markdown|md)[ \t]*\n", re.IGNORECASE)
_JSON_FENCE = re.compile(r"(?is)\s*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\n(?P<inner>.*?)\n?[ \t]*\1\s*")
_WRAPPED = re.compile(
    rf"\s*(?:\{{|(?:```|~~~)`*[ \t]*(?:markdown|md|json)?[ \t]*\n|<(?:{_ANSWER_TAGS}|{_THINKING_TAGS})>)",
    re.IGNORECASE,
)
_WRAPPED_START = re.compile(r"\s*(?:(?:`{1,8}|~{1,8})[ \t]*[a-z]{0,9}[ \t]*|<[a-z_ -]{0,16})?", re.IGNORECASE)


def _unwrap(text: str) -> str:
    """Return the text without thinking, openings and wrappers; the text itself if nothing else is left."""
    for _ in range(MAX_WRAPPERS):
        inner = _unwrap_once(text)
        if inner == text or not inner.strip():
            return text
        text = inner
    return text


def _unwrap_once(text: str) -> str:
    if thinking := _THINKING.match(text):
        return text[thinking.end() :]
    line = text.lstrip().split("\n")[0]
    if skipped := _skip_opening(line):
        return text.lstrip()[skipped:].lstrip()
    if (tag := _ANSWER_TAG.fullmatch(text)) and _is_closing(tag["rest"] or ""):
        return tag["inner"].strip("\n")
    if (inner := _strip_markdown_fence(text)) is not None:
        return inner
    return _find_json_answer(text) or text


def _is_closing(text: str) -> bool:
    return all(_is_offer(line) for line in text.split("\n") if line.strip(" \t*_-"))


def _strip_markdown_fence(text: str) -> str | None:
    """Return the content of a fence ```markdown around the whole text, or None; code inside it has its own fences."""
    opening = _MARKDOWN_FENCE.match(text)
    if not opening:
        return None
    lines = text[opening.end() :].split("\n")
    inner = ""  # open fence inside
    for n, line in enumerate(lines):
        if not inner and closes_fence(line, opening[1]):
            return "\n".join(lines[:n]) if _is_closing("\n".join(lines[n + 1 :])) else None
        inner = next_fence(line, inner)
    return text[opening.end() :]


def _find_json_answer(text: str) -> str:
    """Return the answer in an object that holds little else, or an empty string."""
    fenced = _JSON_FENCE.fullmatch(text)
    bare = (fenced["inner"] if fenced else text).strip()
    if not bare.startswith("{") or not bare.endswith("}"):
        return ""
    values = find_json(bare)[0]
    if len(values) != 1 or not isinstance(values[0], dict):
        return ""
    answer = find_answer(values[0])
    return answer.strip() if len(values[0]) == 1 or len(answer) > len(bare) / 2 else ""


# Line breaks that were written as \n

_LITERAL_BREAK = re.compile(r"(?<=[.!?;)*`|\]\"])\\n|\\n(?=\\n|[-*#>|`]|\d+[.)])")
_OBJECT_START = re.compile(r"\s*[\[{]")  # whose strings have escapes
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_ESCAPE = re.compile(rf"{_INLINE_CODE.pattern}|\\r\\n|\\n|\\\"")
_UNESCAPED = {"\\n": "\n", "\\r\\n": "\n", '\\"': '"'}


def _has_literal_breaks(line: str) -> bool:
    return len(_LITERAL_BREAK.findall(_INLINE_CODE.sub("", line))) > 1


def restore_line_breaks(text: str) -> str:
    """Return a text that has `\\n` in place of line breaks with real ones, and a string of JSON as its text."""
    if text.startswith('"'):
        with suppress(ValueError):
            return str(load_json(text.strip()))
    if _OBJECT_START.match(text):
        return text
    first, _, rest = text.partition("\n")
    if not _has_literal_breaks(first) or without_notes(rest).strip(" \n-*_"):
        return text
    restored = _ESCAPE.sub(lambda found: _UNESCAPED.get(found[0], found[0]), first)
    return f"{restored}\n{rest}" if rest else restored


class LineBreakFilter:
    """Restore the line breaks of a text in pieces. A first line with a backslash is held until it is known."""

    def __init__(self) -> None:
        self._is_over = False  # the text has real line breaks
        self._before: list[str] = []  # the first line up to its first backslash
        self._held: list[str] = []  # the text from there
        self._is_literal = False

    def feed(self, text: str) -> str:
        if self._is_over:
            return text
        shown = ""
        if not self._held:
            line, newline, _ = text.partition("\n")
            is_first = not any(self._before)
            if is_first and _OBJECT_START.match(line):
                self._is_over = True
                return text
            at = 0 if is_first and line.startswith('"') else line.find("\\")
            if at < 0:
                self._is_over = bool(newline)
                self._before.append(line)
                return text
            self._before.append(text[:at])
            shown, text = text[:at], text[at:]
        self._held.append(text)
        if "\n" in text and not self._is_literal:
            first = "".join([*self._before, *self._held]).partition("\n")[0]
            self._is_literal = _has_literal_breaks(first)
            self._is_over = not self._is_literal
        return shown + self._take_held() if self._is_over else shown

    def flush(self) -> str:
        before, held = "".join(self._before), self._take_held()
        return restore_line_breaks(before + held)[len(before) :] if held else ""

    def _take_held(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        return held


# The filter

_HELD_START = re.compile(r"(?i)[ \t*_-]*|[ \t]{0,12}(?:`{0,2}|~{0,2}|(?:```|~~~)[^\n]*)|\s*</?[a-z_ -]{0,16}>?\s*")


class AnswerFilter:
    """Clean the final answer while it arrives in pieces. The text that is shown does not depend on the pieces."""

    def __init__(self) -> None:
        self._line_breaks, self._notes, self._body = LineBreakFilter(), NotesFilter(), AnswerBody()
        self._start: str | None = ""  # start of the text that is not decided yet; None when the answer has begun
        self._is_wrapped = False  # the whole text is held, because a wrapper is around it
        self._has_opening = False  # an opening was removed

    def feed(self, text: str) -> str:
        """Return what can be shown."""
        return self._take(self._notes.feed(self._line_breaks.feed(text)))

    def flush(self) -> str:
        """Return the rest of the text after its last piece."""
        shown = self._take(self._notes.feed(self._line_breaks.flush()) + self._notes.flush())
        if self._start is not None:
            start, skipped = self._start, 0 if self._is_wrapped else self._count_opening()
            self._start = None
            shown += self._body.feed(_unwrap(start) if self._is_wrapped else start[skipped:] or start)
        return shown + self._body.flush()

    def _take(self, text: str) -> str:
        if self._start is None:
            return self._body.feed(text)
        self._start += text
        if self._is_wrapped:
            return ""
        self._start = self._start.lstrip()
        while self._is_line_known and (skipped := self._count_opening()):
            self._start, self._has_opening = self._start[skipped:].lstrip(), True
        if _WRAPPED.match(self._start):
            self._is_wrapped = True
        elif self._is_line_known or not self._may_be_opening():
            start, self._start = self._start, None
            return self._body.feed(start)
        return ""

    @property
    def _is_line_known(self) -> bool:
        return "\n" in str(self._start) or len(str(self._start)) > MAX_START_CHARS

    def _count_opening(self) -> int:
        """Return how many characters at the start are an opening, or the rule below one."""
        line = str(self._start).partition("\n")[0][:MAX_START_CHARS]
        return len(line) if self._has_opening and _UNDERLINE.fullmatch(line) else _skip_opening(line)

    def _may_be_opening(self) -> bool:
        start = str(self._start)
        is_rule = self._has_opening and re.fullmatch(r"[ \t=-]*", start)
        return bool(not start or is_rule or _WRAPPED_START.fullmatch(start) or _may_become_opening(start))


class AnswerBody(LineFilter):
    """Lines of the answer: quote those that begin like a line of the tail, and drop a closing offer."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[str] = []  # blank lines, rules and offers, which are dropped at the end of the text
        self._fence = ""  # open code fence
        self._first_line = ""
        self._is_letter: bool | None = None  # known after the first line

    def flush(self) -> str:
        """Return the rest of the text after its last piece."""
        if self._line:
            self._take_line("", "", is_complete=True)
        self._held.clear()
        return self._take_shown()

    def _take_part(self, part: str, end: str) -> None:
        self._take_line(part, end, is_complete=bool(end))

    def _take_line(self, part: str, end: str, *, is_complete: bool) -> None:
        line, self._line = self._line + part, ""
        if self._is_inside_line:
            self._show(line, end)
            return
        if not is_complete and self._may_be_special(line):
            self._line = line
            return
        was_code = bool(self._fence)
        if is_complete:
            self._fence = next_fence(line, self._fence)
        is_code, is_short = was_code or bool(self._fence), is_complete and len(line) <= MAX_FENCE_LINE_CHARS
        if not is_code and is_short and (not line.strip() or RULE.fullmatch(line.rstrip())):
            self._held.append(line + end)
        elif not is_code and is_short and _TAG_LINE.fullmatch(line):
            return
        elif not is_code and is_complete and self._held and not self._is_letter and _is_offer(line):
            self._held.append(line + end)
        else:
            self._show(f"> {line}" if not is_code and is_tail_line(line) else line, end)

    def _may_be_special(self, start: str) -> bool:
        if len(start) <= MAX_FENCE_LINE_CHARS and _HELD_START.fullmatch(start):
            return True
        may_be_offer = bool(self._held) and not self._is_letter and _may_become_offer(start)
        return not self._fence and (may_be_offer or may_become_tail_line(start))

    def _show(self, text: str, end: str) -> None:
        if self._is_letter is None:
            self._first_line += text
            self._is_letter = _LETTER_START.match(self._first_line) is not None if end else None
        self._shown += self._held
        self._held.clear()
        self._shown.append(text + end)
        self._is_inside_line = not end


def clean_answer(text: str) -> str:
    """Return the final answer as it is shown; without its notes alone if nothing else would be left."""
    stream = AnswerFilter()
    shown = (stream.feed(_UNOPENED_THINKING.sub("", text)) + stream.flush()).strip()
    return shown or without_notes(text).strip()
