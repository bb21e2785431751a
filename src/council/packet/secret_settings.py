"""Secrets that are assigned to a name: settings, variables, elements, arguments and directives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from council.packet.secret_names import FOREIGN_NAME, NAME_STEMS, PASSWORD_END, PHRASE_NAME, NameKind, classify_name
from council.packet.secret_rules import NEW_LINE, UUID_SHAPE
from council.packet.secret_scan import Scan, Secret
from council.packet.secret_values import (
    COMMON_PASSWORDS,
    IDENTIFIER,
    PUBLIC_VALUE,
    REFERENCE,
    SYMBOL,
    is_attribute,
    is_chosen_password,
    is_dense,
    is_expression,
    is_filler,
    is_generated,
    is_literal_password,
    is_mixed_word,
    is_phrase,
    is_published,
    is_random,
    is_slug,
    is_strong,
    is_word_password,
    plain_text,
)

KIND = "assigned secret"
MAX_NAME_CHARS = 60
MIN_NAME_CHARS = 4  # a shorter name, such as `pw`, must be a word of its own
SHORT_NAME_BEFORE = "\n \t\"'{(,_-+$"
MAX_LINE_CHARS = 300  # of a line before a name
MAX_JUDGED_CHARS = 200  # of a value; more would not change the judgement
SETTING_STEMS = (*NAME_STEMS, b"??")  # two letters outside of ASCII may be a name
NAME_START = re.compile(r"[\w.-]+\Z")
NAME_END = re.compile(rf"[\w.-]{{0,{MAX_NAME_CHARS}}}+")
# A function that makes a secret of a literal
_WRAPPER = r"(?:\[\]byte|new \w{1,30}|&?\w{0,20}Secret\w{0,20}|SecureString|String(?:::from)?|Buffer\.from|Some|bytes|str|Password|@?NSString|TEXT|_T|char\[\])"
_LITERAL = (
    rf"(?:{_WRAPPER}[({{][ \t]{{0,4}}){{0,2}}(?:[bBrRuU@](?=[\"']))?"
    r"(?P<mark>\"{3}|'{3}|[\"'`])(?P<literal>(?:\\.|(?!(?P=mark))[^\\\n]){4,300})(?P=mark)"
)

# `process.env.NAME || "value"`
_FALLBACK = r"(?:[\w.$]{2,60}(?:[(\[][^()\[\]\n]{0,60}[)\]])?[ \t]{1,4}(?:\|\||\?\?|\?:|or)[ \t]{1,4})?"

# All patterns are matched at the end of the name.
# `name = "value"`, `"name": "value"`, `name => 'value'`, `let name: Type = "value"` and `name == "value"`
ASSIGNED = re.compile(
    r"(?:(?:\\{0,2}[\"'\]]){1,2}|[ \t]{0,4}:[ \t]{0,4}[^\s=:\"'`,;(){}][^=:\"'`,;(){}\n]{0,40}?(?=[ \t]*=)|[ \t]{1,4}[A-Za-z]{1,20}(?=[ \t]*=)|)"
    rf"[ \t]{{0,20}}(?::=|=>|\?=|={{1,3}}|:)[ \t]{{0,20}}(?:[(|>][-+]?[ \t]{{0,4}})?(?:{NEW_LINE})?{_FALLBACK}"
    + _LITERAL
)
# Two arguments, two attributes, an element, two fields, the default of a variable
PAIRED = re.compile(
    r"(?:[\"']?|(?:[\"'])?(?:[ \t]{1,4}[\w:]{1,30}=[\"'][^\"'\n<>]{0,60}[\"']){1,3})[ \t]{0,4}>(?:<!\[CDATA\[)?(?P<element>[^<>\n]{4,300}?)(?:\]\]>)?</"
    r"|>\s{0,80}<[Vv]alue>(?P<inner>[^<>\n]{4,300}?)</"
    r"|</key>\s{0,80}<string>(?P<entry>[^<>\n]{4,300}?)</string>"
    r"|[\"']\s{1,20}[Vv]alue[ \t]{0,4}=[ \t]{0,4}\"(?P<attribute>[^\"\n<]{4,300})\""
    r"|[\"']\s{1,20}[Vv]alue[ \t]{0,4}=[ \t]{0,4}'(?P<attribute2>[^'\n<]{4,300})'"
    rf"|[\"']?,?[ \t]{{0,4}}(?:{NEW_LINE})?[\"']?[vV]alue[\"']?:[ \t]{{0,4}}(?:\"(?P<field>(?:\\.|[^\"\\\n]){{4,300}})\"|'(?P<field2>[^'\n]{{4,300}})'|(?P<field3>[^\s\"'{{}}#]{{4,300}}))"
    r"|[\"'][ \t]{0,4}\{[^{}]{0,200}?default[ \t]{0,8}=[ \t]{0,4}\"(?P<default>[^\"\n]{4,300})\""
)
ARGUMENT = re.compile(r"[\"'][ \t]{0,20},[ \t]{0,20}" + _LITERAL)
# A word and a quoted value: Gradle, `#define`, directives of servers
SPACED = re.compile(r"[ \t]{1,20}" + _LITERAL)
SPACED_START = re.compile(r"[+\- ]?[ \t]*(?:#define[ \t]+|set[ \t]+|\$\w+[ \t]+)?")
# The rest of a line of .env, INI, properties, YAML or a shell
SETTING_LINE = re.compile(
    r"(?:[\"'](?=:))?(?::[ \t]{1,8}|[ \t]{0,20}=[ \t]{0,8})(?P<line>\S{5,200})[ \t]*(?:[ \t]#[^\n]*)?\r?(?=\n|\Z)"
)
# The line below `name: |`
BLOCK_LINE = re.compile(r":[ \t]{1,8}[|>][-+]?[ \t]*\r?\n[+\- ]?[ \t]{1,60}(?P<line>\S{5,200})[ \t]*\r?(?=\n|\Z)")
# A variable before a command, or a property on its command line
VARIABLE_VALUE = re.compile(r"=(?P<variable>[^\s\"'`;&|<>(){}$\\]{6,200})(?=[ \t])")
LINE_START = re.compile(r"[+\- #;]?[ \t]*(?:- |export |set |ENV |ARG |-e |\w+\.)?[ \t]*[\"']?")
# A value inside a line
INLINE = re.compile(
    rf"(?:\\{{0,2}}[\"'\]]){{0,2}}[ \t]{{0,8}}(?::=|=>|\?=|[:=])[ \t]{{0,8}}(?:[(|>][-+]?[ \t]{{0,4}})?(?:{NEW_LINE})?"
    r"(?P<bare>[^\s\"'`,;(){}\[\]<>#\\]{6,500}+)(?=[\s,;}#\\<\"'`]|$)"
)
WORD = re.compile(rf"(?:[ \t]|[ \t]{NEW_LINE}){{1,4}}[\"']?(?P<word>[^\s\"'`\\]{{4,200}})")
COMMAND_BEFORE = re.compile(r"(?:^|\n)[+\- ]?[ \t]{0,20}(?i:env|arg|setx|setenv)[ \t]{1,4}..\Z|(?:^|\s)--\Z")
DIRECTIVE = re.compile(r"[ \t]{1,20}(?P<directive>[^\s\"'`]{6,200}?)\r?(?=\n|\Z)")
DIRECTIVE_NAME = re.compile(r"(?i)(?:insecure-password|bindpw|rootpw|\w*BindPassword|requirepass|masterauth)$")
SHELL_DEFAULT = re.compile(r"\$\{\w+:?-(?P<value>[^}\s]{4,200})\}")
WORD_AND_DIGITS = re.compile(r"[A-Za-z]{3,}(?:[._-][A-Za-z]+)*\d{1,4}")
LOWER_WORD_AND_DIGITS = re.compile(r"[a-z]{4,}\d{1,4}")
QUALIFIED_NAME = re.compile(r"[a-z][a-z0-9]*:[a-z][\w.-]*")  # a model with its vendor
VARIABLE = re.compile(r"[A-Z_]{3,60}=")
LICENSE_KEY = re.compile(r"(?=[A-Z-]*\d)[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}")
ATTRIBUTE = re.compile(r"[ \t]+[\w:]+=")
AFTER_STRING = re.compile(r"[\s,+)%;.&|\]}:*<>/\\-]")  # what follows the end of a string
APOSTROPHE = re.compile(r"\w'\w")
# Tokens that make a repeated request safe, and tokens of a page
REQUEST_TOKEN = re.compile(r"(?i)(?:client|request|lock|clientrequest)[_-]?token$")


class Name(NamedTuple):
    """A name in a text that may have a secret value."""

    text: str
    start: int
    end: int
    kind: NameKind

    @property
    def name(self) -> str:
        return self.text[self.start : self.end]

    @property
    def before(self) -> str:
        """The line before the name, at most its last characters."""
        first = max(0, self.start - MAX_LINE_CHARS)
        return self.text[max(self.text.rfind("\n", first, self.start) + 1, first) : self.start]


Span = tuple[int, int]


def find_settings(scan: Scan) -> Iterator[Secret]:
    """Find secrets that are assigned to names such as `api_key`."""
    for name in _find_names(scan):
        literal = _match_literal(name)
        found = _judge_literal(name, literal) if literal else _find_unquoted(name)
        if found:
            yield Secret(KIND, *found)


def _find_names(scan: Scan) -> Iterator[Name]:
    """Yield every name that says that its value is secret, once."""
    text, seen = scan.text, set[int]()
    places = list(scan.find_all(NAME_STEMS))
    if b"??" in scan.raw:  # two letters outside of ASCII
        places += (match.start() for match in FOREIGN_NAME.finditer(text))
    for at in places:
        before = NAME_START.search(text, max(0, at - 40), at)
        start = before.start() if before else at
        if start in seen:
            continue
        seen.add(start)
        after = NAME_END.match(text, at)
        end = after.end() if after else at
        is_word = end - start >= MIN_NAME_CHARS or start == 0 or text[start - 1] in SHORT_NAME_BEFORE
        kind = classify_name(text[start:end])
        if kind and is_word:
            yield Name(text, start, end, kind)


# Quoted values


def _match_literal(name: Name) -> Span | None:
    """Return the position of the quoted value or the element that belongs to a name."""
    text = name.text
    previous = text[name.start - 1 : name.start]
    is_tag = previous == "<" and ATTRIBUTE.match(text, name.end)
    assigned = None if is_tag else ASSIGNED.match(text, name.end)
    if assigned:
        return None if _is_part_of_string(name, assigned) else assigned.span("literal")
    paired = PAIRED.match(text, name.end)
    if paired and paired.lastgroup:
        return paired.span(paired.lastgroup)
    argument = ARGUMENT.match(text, name.end) if previous in ("'", '"') else None
    if argument:
        value = argument["literal"]
        return None if is_slug(value) or VARIABLE.match(value) else argument.span("literal")
    spaced = SPACED.match(text, name.end)
    is_setting = previous == ":" or (len(name.before) < 60 and SPACED_START.fullmatch(name.before))
    return spaced.span("literal") if spaced and is_setting and spaced["mark"] != "`" else None


def _is_part_of_string(name: Name, assigned: re.Match[str]) -> bool:
    """Return whether what follows a name is no value: `"password=" + value`, an interpolation, a name of a type."""
    text, mark = name.text, assigned.start("mark")
    is_interpolated = text[mark - 1 : mark] in ("f", "F") and not text[mark - 2 : mark - 1].isalnum()
    if is_interpolated or text[max(0, name.start - 2) : name.start] in ("::", "${"):  # "AWS::IAM::AccessKey"
        return True
    if text[name.end : name.end + 1] in ("'", '"', "\\", "]"):
        return False  # the name is quoted
    if not AFTER_STRING.match(assigned["literal"]):
        return False
    quotes = name.before.count(assigned["mark"])
    if assigned["mark"] == "'":
        quotes -= len(APOSTROPHE.findall(name.before))
    return quotes % 2 == 1


def _judge_literal(name: Name, span: Span) -> Span | None:
    start, end = span
    value = name.text[start:end]
    default = SHELL_DEFAULT.fullmatch(value)
    if default:
        start, end = start + default.start("value"), start + default.end("value")
    return (start, end) if is_literal_secret(name.name, name.kind, name.text[start:end].strip()) else None


def is_literal_secret(name: str, kind: NameKind, value: str) -> bool:
    """Return whether a quoted value is a secret: not a placeholder, a reference, a label, a name or a pattern."""
    value = value[:MAX_JUDGED_CHARS]
    if kind == "key":
        is_symbolic = len(value) >= 16 and len(SYMBOL.findall(value)) >= 3 and is_generated(value)
        return is_symbolic or is_strong(value) or bool(LICENSE_KEY.fullmatch(value))
    if not plain_text(value).isascii():
        return kind == "password" and is_mixed_word(value)
    if kind == "secret":
        is_request = REQUEST_TOKEN.search(name) and UUID_SHAPE.match(value)
        is_name = QUALIFIED_NAME.fullmatch(value) or (is_slug(value) and not is_random(value))
        return not is_request and not is_name and is_literal_password(value, minimum=8)
    if PHRASE_NAME.search(name) and is_phrase(value):
        return True
    if PASSWORD_END.search(name) and is_word_password(value, allow_blanks="phrase" in name.lower()):
        return True
    return is_literal_password(value, minimum=6)


# Unquoted values


def _find_unquoted(name: Name) -> Span | None:
    """Return the position of an unquoted secret: the rest of a line, a variable of a shell, or a word inside a line."""
    text, end = name.text, name.end
    is_line = len(name.before) < 60 and LINE_START.fullmatch(name.before)
    line = (SETTING_LINE.match(text, end) or BLOCK_LINE.match(text, end)) if is_line else None
    if line:
        return line.span("line") if _is_line_secret(name, line["line"]) else None
    is_variable = name.name.isupper() or name.name.startswith("-")
    variable = VARIABLE_VALUE.match(text, end) if is_variable else None
    if variable and _is_line_secret(name, variable["variable"]):
        return variable.span("variable")
    inline = INLINE.match(text, end)
    if not inline:
        return _find_word(name, is_line=bool(is_line))
    first, last = inline.span("bare")
    if text[name.start - 1 : name.start] in ("?", "&") and "&" in inline["bare"]:
        last = first + inline["bare"].index("&")  # the next parameter of an address
    return (first, last) if _is_bare_secret(name.kind, text[first:last]) else None


def _find_word(name: Name, *, is_line: bool) -> Span | None:
    """Return the position of a secret after a blank: `ENV NAME value`, `--name value`, `requirepass value`."""
    text = name.text
    word = WORD.match(text, name.end)
    if word and _is_bare_secret(name.kind, word["word"]):
        is_command = COMMAND_BEFORE.search(text[max(0, name.start - 30) : name.start + 2])
        if is_command or (name.kind == "secret" and is_dense(word["word"])):
            return word.span("word")
    directive = DIRECTIVE.match(text, name.end) if name.kind == "password" else None
    if not directive:
        return None
    value = directive["directive"]
    is_secret = is_line and _is_bare_secret(name.kind, value)
    if is_secret or (DIRECTIVE_NAME.search(name.name) and is_literal_secret(name.name, name.kind, value)):
        return directive.span("directive")
    return None


def _is_line_secret(name: Name, value: str) -> bool:
    """Return whether the rest of a settings line is a secret and not an expression of a program."""
    if name.kind == "password":
        is_property = name.name.startswith("-")
        words = WORD_AND_DIGITS if is_property or _has_tight_sign(name) else LOWER_WORD_AND_DIGITS
        if words.fullmatch(value):  # `hunter2`, but not `string2;`
            return is_literal_secret(name.name, name.kind, value)
    value = value.rstrip(",;")
    if not value or (is_expression(value) and not is_generated(value)):
        return False
    return is_literal_secret(name.name, name.kind, value)


def _has_tight_sign(name: Name) -> bool:
    """Return whether a name is followed by `: ` or by `=` without blanks, which programs seldom have at the start of
    a line.
    """
    sign = name.text[name.end : name.end + 2]
    return sign == ": " or (sign[:1] == "=" and not sign[1:].isspace())


def _is_bare_secret(kind: NameKind, value: str) -> bool:
    """Return whether an unquoted value inside a line is a secret."""
    value = value[:MAX_JUDGED_CHARS]
    if REFERENCE.match(value) or is_filler(value) or is_published(value) or PUBLIC_VALUE.search(value):
        return False
    if not value.isascii() or value.lower() in COMMON_PASSWORDS or IDENTIFIER.fullmatch(value) or is_attribute(value):
        return False
    if kind == "key":
        return is_strong(value)
    return is_random(value, digits=2) or (kind == "password" and is_chosen_password(value))
