"""The final answer of a run as it is shown, in a whole text or in a stream.

Removed are the chair's notes, thinking, openings such as "Certainly! Here is the final answer:", wrappers around the whole
text and a closing offer. Lines that begin like those of Council's tail are quoted. Statements of seats stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

from council.json_text import find_json, load_json
from council.notes_filter import NotesFilter, find_answer, without_notes
from council.text_cleanup import MAX_FENCE_LINE_CHARS, is_tail_line, may_become_tail_line, next_fence

MAX_START_CHARS = 250  # of a first line that may be an opening, and of a closing offer
MAX_WRAPPERS = 6  # nested ones that are removed


def list_phrases(text: str) -> tuple[str, ...]:
    """Return the phrases of a text that separates them with bars and line ends."""
    return tuple(phrase for line in text.split("\n") for phrase in line.split("|") if phrase)


# Openings

_REPLY_NOUN = (
    r"(?:(?:final|full|complete|merged|combined|synthesi[sz]ed|consolidated|unified|integrated|revised|improved|requested|direct|best|"
    r"council['’]s|single|one|chair['’]s) )*(?:answer|response|reply|synthesis|(?:merged|combined|synthesi[sz]ed|consolidated|unified|integrated|final|revised) "
    r"(?:version|text|draft|document|output|result|recommendation))"
)
_ANNOUNCEMENTS = (
    rf"(?:here|below|this)(?: is|['’]s| are)(?: the| my| our| a| your| one)? {_REPLY_NOUN}",
    rf"(?:please find|you will find|(?:below|here),? you(?:['’]ll| will| can) find|i (?:present|provide|give|offer)|i['’]ve (?:written|prepared|put together)|i have (?:written|prepared))"
    rf"(?: below| here)?(?: the| my| our| a| your)? {_REPLY_NOUN}",
    r"(?:the |my )?(?:final |merged |combined |synthesi[sz]ed )?(?:answer|response|synthesis|version) (?:is as follows|follows|is below|below)",
    r"(?:hier|nachfolgend|im folgenden|anbei)(?: ist| kommt| folgt| findest du| finden sie)?(?: die| meine| eine| der| das| mein| ihre| deine)?"
    r"(?: \w+){0,2} (?:antwort|synthese|fassung|zusammenführung|gesamtantwort)",
    r"(?:voici|voilà|ci-dessous)(?: la| ma| le| mon| une| votre)?(?: \w+){0,2} (?:réponse|synthèse|version)",
    r"(?:aquí (?:tienes|tiene|está|va)|a continuación|esta es|te presento)(?:,? (?:presento|tienes|está))?(?: la| mi| una| tu| su)?(?: \w+){0,2} "
    r"(?:respuesta|síntesis|versión)",
    r"(?:ecco|di seguito)(?: la| una| il)?(?: \w+){0,2} (?:risposta|sintesi|versione)",
    r"(?:aqui está|aqui vai|segue)(?: a| uma| o)?(?: \w+){0,2} (?:resposta|síntese|versão)",
    r"(?:以下|下面|这)(?:就?是|为)[^\n:：。]{0,20}(?:答案|回答|综合)",
    r"(?:以下が|こちらが|以下は)[^\n:：。]{0,20}(?:回答|答え|統合)",
)
_INTERJECTIONS = """
certainly|sure thing|sure|of course|absolutely|gladly|great question|good question|understood|okay|ok|alright|got it|thank you|thanks
gerne|natürlich|selbstverständlich|klar|sicher|alles klar
bien sûr|certainement|volontiers|avec plaisir|d'accord|absolument
por supuesto|claro que sí|claro|desde luego|con gusto|ciertamente
certo|certamente|volentieri|com certeza
当然|好的|もちろんです|もちろん|はい|承知しました
"""
_CLAUSES = "based on|after|having|drawing on|combining|taking|considering|as requested|as the chair|from the"
_MARKS = r"[\s*_#¡!>\[]*"
_OPENING = re.compile(
    rf"{_MARKS}(?:(?P<courtesy>{'|'.join(list_phrases(_INTERJECTIONS))})(?![a-zà-ÿ])[\s!,.。，！—–-]*)?"
    rf"(?:(?:i have|i['’]ve|for the|for your)\b[^.!?\n]{{0,100}}[.!]\s+)?(?:(?:{_CLAUSES})\b[^.:!?\n]{{0,120}}, )?"
    rf"(?:{'|'.join(_ANNOUNCEMENTS)})(?P<more>[^.:：!。\n]{{0,120}}?)[*_ ]{{0,3}}(?P<end>[:：]|[.!。](?=[*_\s]|$)|$)[*_]{{0,3}}\s*",
    re.IGNORECASE,
)
_PRAISE = re.compile(r"(?:great|good|excellent) question[!.]\s*", re.IGNORECASE)
_TITLE = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+)?[*_\[]{0,3}(?:the |my )?(?:final answer|final response|final synthesis|synthesi[sz]ed answer|merged answer|"
    r"combined answer|council['’]s (?:final )?answer|(?:endgültige|finale|abschließende) antwort|réponse finale|respuesta final|"
    r"risposta finale|resposta final|最终答案|最終回答)[ \t]*[:：]?[*_\]]{0,3}[:：]?\s*",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"[ \t]*(?:={3,}|-{3,})\s*")
_FIRST_WORDS = "final|merged|combined|synthesized|synthesised|answer|response|synthesis|council's"
_FIRST_PHRASES = f"""{_INTERJECTIONS}|{_CLAUSES}
{_FIRST_WORDS}|the {_FIRST_WORDS.replace("|", "|the ")}|my {_FIRST_WORDS.replace("|", "|my ")}
here is|here are|here's|below is|below are|this is|please find|you will find|below you|below, you|here you|excellent question
i present|i provide|i give|i offer|i've|i have
hier |nachfolgend|im folgenden|anbei|endgültige|finale|abschließende
voici|voilà|ci-dessous|réponse|aquí|a continuación|esta es|te presento|respuesta
ecco|di seguito|risposta|aqui está|aqui vai|segue|resposta
以下|下面|这|最终|こちらが|最終
"""
_FIRST_STARTS = list_phrases(_FIRST_PHRASES)


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
        one.startswith(words) or (words.startswith(one) and not re.match(r"[a-z]", words[len(one.rstrip()) :]))
        for one in _FIRST_STARTS
    )


# Closing offers

_FIRST_PERSON = r"(?:i can|i could|i['’]d be|i am|i['’]m|let me know|just (?:ask|say|tell)|feel free|happy to|glad to|please (?:ask|reach|let))"
_OFFER = re.compile(
    r"(?:please )?let me know (?:if|whether|what|which|how|should)\b|(?:please )?feel free to\b|please don['’]t hesitate to\b|(?:i )?hope (?:this|that|it) helps|"
    rf"if you (?:['’]d|would|want|need|have|like|prefer|are)[^.!?\n]*\b{_FIRST_PERSON}\b|if you['’]d[^.!?\n]*\b{_FIRST_PERSON}\b|"
    r"would you like (?:me to|to)\b|do you want me to\b|want me to\b|shall i\b|should i (?:go|expand|add|write|prepare)\b|"
    r"(?:i['’]m|i am|i['’]d be|i would be) (?:happy|glad|available) to\b|happy to (?:help|elaborate|expand|clarify|dive|go)\b|is there anything else\b|any (?:other |further )?questions\?|"
    r"(?:thanks|thank you|good luck)\b[^.!?\n]{0,40}[.!]?$|"
    r"lass(?:en sie)? (?:es )?mich (?:gerne? )?wissen|sag(?:en sie)? (?:mir )?(?:einfach |gerne? )?bescheid|"
    r"wenn (?:du|sie) (?:möchtest|möchten|willst|wollen|wünschen|magst)[^.!?\n]*\b(?:kann|könnte|erstelle|helfe) ich\b|ich hoffe,? (?:das|dies)|"
    r"(?:bei|falls du|falls sie|für) (?:weitere[nr]? )?(?:fragen|rückfragen)\b|gerne (?:kann|helfe|erläutere) ich\b|möchte(?:st du|n sie),? dass ich\b|soll ich\b|"
    r"n['’]hésite[zs]? pas\b|dites-moi\b|dis-moi\b|fais-moi savoir|faites-moi savoir|si vous (?:le )?(?:souhaitez|voulez|désirez)[^.!?\n]*\bje (?:peux|reste)\b|"
    r"j['’]espère que (?:cela|ceci|ça)|souhaitez-vous que je|voulez-vous que je|"
    r"avís[ae]me\b|házmelo saber|hágamelo saber|déjame saber|dime si\b|dígame si\b|si (?:quieres|lo deseas|necesitas|desea|quiere)[^.!?\n]*\b(?:puedo|dime|avísame)\b|"
    r"espero que (?:esto |te |le )*(?:ayude|sirva)|no dude[s]? en\b|¿?(?:quieres|te gustaría|desea) que\b|"
    r"fammi sapere|mi faccia sapere|spero (?:che )?(?:questo |sia )|me avise\b|avise-me|espero ter ajudado|如果(?:您|你)(?:需要|有|想)|如有(?:任何|其他)?(?:疑问|问题)|"
    r"希望(?:这|以上)(?:对您|对你)?有(?:所)?帮助|ご(?:質問|不明)",
    re.IGNORECASE,
)
_OFFER_STARTS = list_phrases("""
let me know|please let me know|please feel free|please don't hesitate|feel free|i hope|hope|if you|would you like
do you want me|want me to|shall i|should i|i'm happy|i'm glad|i'm available|i am happy|i am glad|i am available
i'd be|i would be|happy to|is there anything|any questions|any other questions|any further questions|thanks
thank you|good luck|lass|sag|wenn du|wenn sie|ich hoffe|bei |falls |für |gerne|möchte|soll ich|n'hésite|dites-moi
dis-moi|fais-moi|faites-moi|si vous|j'espère|souhaitez-vous|voulez-vous|avís|házmelo|hágamelo|déjame|dime si|dígame
si quieres|si lo deseas|si necesitas|si desea|si quiere|espero|no dude|¿quieres|¿te gustaría|¿desea|quieres
te gustaría|desea|fammi|mi faccia|spero|me avise|avise-me|如果|如有|希望|ご
""")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_LETTER_START = re.compile(
    r"\W*(?:subject|betreff|objet|asunto)\s*:|\W*(?:dear|hi|hello|sehr geehrte|liebe[rs]?|bonjour|cher|estimad|querid)\b",
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
        one.startswith(words) or words.startswith(one) for one in _OFFER_STARTS
    )


# Wrappers around the whole text

_THINKING = re.compile(
    r"\s*<(think|thinking|reasoning|scratchpad|analysis|reflection)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE
)
_UNOPENED_THINKING = re.compile(
    r"\A(?:(?!<think).)*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE
)  # some servers drop the tag
_ANSWER_TAGS = r"(?:final[-_ ]?)?(?:answer|response|output|result)|final|synthesis"
_ANSWER_TAG = re.compile(rf"\s*<({_ANSWER_TAGS})>(?P<inner>.*?)(?:</\1>(?P<rest>.*)|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_LINE = re.compile(r"\s*</?(?:final[-_ ]?)?answer>\s*", re.IGNORECASE)
_MARKDOWN_FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*(?:markdown|md)[ \t]*\n", re.IGNORECASE)
_JSON_FENCE = re.compile(
    r"\s*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\n(?P<inner>.*?)\n?[ \t]*\1\s*", re.DOTALL | re.IGNORECASE
)
_WRAPPED = re.compile(
    rf"\s*(?:\{{|(?:```|~~~)`*[ \t]*(?:markdown|md|json)?[ \t]*\n|<(?:{_ANSWER_TAGS}|think|thinking|reasoning|scratchpad|analysis|reflection)>)",
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
    """Return the content of a fence ```markdown around the whole text, or None. Code inside it has fences of its own."""
    opening = _MARKDOWN_FENCE.match(text)
    if not opening:
        return None
    lines = text[opening.end() :].split("\n")
    inner = ""  # open fence inside
    for n, line in enumerate(lines):
        is_close = (
            not inner and line.strip() and set(line.strip()) == {opening[1][0]} and len(line.strip()) >= len(opening[1])
        )
        if is_close:
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
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_ESCAPE = re.compile(rf"{_INLINE_CODE.pattern}|\\r\\n|\\n|\\\"")
_UNESCAPED = {"\\n": "\n", "\\r\\n": "\n", '\\"': '"'}


def _has_literal_breaks(line: str) -> bool:
    return len(_LITERAL_BREAK.findall(_INLINE_CODE.sub("", line))) > 1


def restore_line_breaks(text: str) -> str:
    """Return a text that has `\\n` in place of its line breaks, or that is a string of JSON, with real ones; others as they are."""
    if text.startswith('"') and isinstance(string := _load_string(text), str):
        return string
    first, _, rest = text.partition("\n")
    if not _has_literal_breaks(first) or without_notes(rest).strip(" \n-*_"):
        return text
    restored = _ESCAPE.sub(lambda found: _UNESCAPED.get(found[0], found[0]), first)
    return f"{restored}\n{rest}" if rest else restored


def _load_string(text: str) -> Any:
    try:
        return load_json(text.strip())
    except ValueError:
        return None


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
            if is_first and line.lstrip().startswith(("{", "[")):
                self._is_over = True  # an object, whose strings have escapes
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

_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_HELD_START = re.compile(
    r"[ \t*_-]*|[ \t]{0,12}(?:`{0,2}|~{0,2}|(?:```|~~~)[^\n]*)|\s*</?[a-z_ -]{0,16}>?\s*", re.IGNORECASE
)


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


class AnswerBody:
    """Lines of the answer: quote those that begin like a line of the tail, and drop a closing offer."""

    def __init__(self) -> None:
        self._line = ""  # start of the current line that is not decided yet
        self._is_inside_line = False
        self._held: list[str] = []  # blank lines, rules and offers, which are dropped at the end of the text
        self._fence = ""  # open code fence
        self._first_line = ""
        self._is_letter: bool | None = None  # known after the first line
        self._shown: list[str] = []

    def feed(self, text: str) -> str:
        *lines, rest = text.split("\n")
        for line in lines:
            self._take(line, "\n", is_complete=True)
        if rest:
            self._take(rest, "", is_complete=False)
        return self._take_shown()

    def flush(self) -> str:
        if self._line:
            self._take("", "", is_complete=True)
        self._held.clear()
        return self._take_shown()

    def _take_shown(self) -> str:
        shown = "".join(self._shown)
        self._shown.clear()
        return shown

    def _take(self, part: str, end: str, *, is_complete: bool) -> None:
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
        if not is_code and is_short and (not line.strip() or _RULE.fullmatch(line.rstrip())):
            self._held.append(line + end)
        elif not is_code and is_short and _TAG_LINE.fullmatch(line):
            return
        elif not is_code and is_complete and self._begins_paragraph and not self._is_letter and _is_offer(line):
            self._held.append(line + end)
        else:
            self._show(f"> {line}" if not is_code and is_tail_line(line) else line, end)

    def _may_be_special(self, start: str) -> bool:
        if len(start) <= MAX_FENCE_LINE_CHARS and _HELD_START.fullmatch(start):
            return True
        if self._fence:
            return False
        return may_become_tail_line(start) or (
            self._begins_paragraph and not self._is_letter and _may_become_offer(start)
        )

    @property
    def _begins_paragraph(self) -> bool:
        return bool(self._held)

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
