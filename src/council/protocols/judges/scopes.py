"""Enclosing definitions of lines, read from indentation and keywords: right, or unknown.

A line of the packet lies in the nearest definition above it that is less indented. A gap in the lines, odd indentation
and code outside any definition give no answer, because a wrong one would join two defects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

TAB_WIDTH = 8  # only compared, so any width does
MAX_LINE_CHARS = 500  # of a line that a person wrote; longer ones are generated


class Line(NamedTuple):
    """A line of a file with its number."""

    number: int
    text: str
    old: int = 0  # the number of a removed line in the old file, as the packet shows it


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, type or statement. `line` is the first line of its header; 0 if only a hunk header names it."""

    path: str
    name: str
    line: int = 0
    within: tuple[int, ...] = ()  # header lines of the functions around it; types do not count

    def is_same(self, other: Definition) -> bool:
        """Return whether both are one definition, or one is a function around the other.

        One that only a hunk header names is compared by its name.
        """
        if self.path != other.path:
            return False
        if self.line and other.line:
            return self.line == other.line or self.line in other.within or other.line in self.within
        return bool(self.name) and self.name == other.name


# Headers of definitions by language

_NAME = r"(?P<name>[A-Za-z_$][\w$]*)"
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|async|override|virtual|sealed|synchronized|native|"
    r"default|extern|inline|constexpr|explicit|friend|readonly|partial|unsafe|export|declare)\s+)*"
)
_TYPE_WORDS = r"class|interface|enum|record|struct|trait|union"
_CONTROL = re.compile(
    r"(?:if|else|elif|for|foreach|while|switch|match|return|case|catch|try|do|with|new|throw|raise|await|yield|delete|using|"
    r"lock|fixed|when|except|finally|and|or|not|in|is|sizeof|typeof|go|defer|select|super|this|assert|echo|print|synchronized(?=\s*\())\b"
)
_PYTHON = (re.compile(rf"(?:async\s+)?def\s+{_NAME}"), re.compile(rf"class\s+{_NAME}"))
_SCRIPT = (
    re.compile(rf"(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*{_NAME}"),
    re.compile(rf"(?:export\s+)?(?:default\s+)?{_MODIFIERS}(?:{_TYPE_WORDS})\s+{_NAME}"),
    re.compile(
        rf"(?:export\s+)?(?:const|let|var)\s+{_NAME}[^=]*=\s*(?:async\s*)?(?:function\b|\([^;]*\)[^;]*=>|[\w$]+\s*=>)"
    ),
    re.compile(
        rf"{_MODIFIERS}(?:readonly\s+)?{_NAME}\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^;]*\)[^;]*=>\s*\{{)"
    ),
    re.compile(rf"{_MODIFIERS}(?:get\s+|set\s+|\*\s*|#)*{_NAME}\s*(?:<[^()]*>)?(?P<call>\()"),
)
_GO = (re.compile(rf"func\s*(?:\([^)]*\)\s*)?{_NAME}"), re.compile(rf"type\s+{_NAME}\s"))
_RUST = (
    re.compile(
        rf"(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|const|unsafe|extern(?:\s+\"[^\"]*\")?)\s+)*fn\s+{_NAME}"
    ),
    re.compile(rf"(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|type)\s+{_NAME}"),
    re.compile(rf"macro_rules!\s*{_NAME}"),
)
_TYPED = (  # Java, C, C++, C#
    re.compile(rf"(?:template\s*<.*>\s*)?{_MODIFIERS}(?:{_TYPE_WORDS})\s+{_NAME}\b(?![^{{]*;)"),
    re.compile(
        rf"(?:template\s*<.*>\s*)?{_MODIFIERS}(?:<[^>]*>\s*)?(?:[\w:.<>,\[\]?*&]+\s+)*?[*&]*(?:\w+(?:<[^>]*>)?::)*~?{_NAME}\s*"
        r"(?:<[^>]*>)?(?P<call>\()"
    ),
)
_RUBY = (
    re.compile(r"def\s+(?:self\.)?(?P<name>[A-Za-z_]\w*[?!=]?)"),
    re.compile(rf"(?:class|module)\s+(?:\w+::)*{_NAME}"),
)
_PHP = (
    re.compile(rf"{_MODIFIERS}function\s+&?{_NAME}"),
    re.compile(rf"{_MODIFIERS}(?:{_TYPE_WORDS})\s+{_NAME}"),
)
HEADERS: Mapping[str, Sequence[re.Pattern[str]]] = {
    **dict.fromkeys(("py", "pyi"), _PYTHON),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), _SCRIPT),
    **dict.fromkeys(("java", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "cs"), _TYPED),
    "go": _GO,
    "rs": _RUST,
    "rb": _RUBY,
    "php": _PHP,
}
_TYPE_HEADER = re.compile(
    rf"(?:(?:export|default|pub(?:\([^)]*\))?|template\s*<.*>)\s+)*{_MODIFIERS}(?:{_TYPE_WORDS}|module|type)\b"
)
SQL_SUFFIXES = ("sql", "ddl", "pgsql", "psql", "plsql")

# Lines that say nothing about the block they stand in: closing brackets, continued headers, labels, comments.
_SKIPPED = re.compile(
    r"[)\]}]|\{\s*$|(?:where|throws|extends|implements|begin|end|then|do)\b|[:.?+|&=]|->|=>|#(?!\[)|//|/\*|\*|\w+\s*:\s*$|"
    r"(?:case\b.*|default)\s*:|(?:public|private|protected|internal)\s*:"
)
_CLOSER = re.compile(r"[)\]}\s;,]*|end")  # the end of a block may be that of any definition around it
_MARK = re.compile(r"@|#\[|\[[A-Z]\w*[(\]]")  # decorators, attributes and annotations stand above their definition


def find_suffix(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def find_definition(path: str, rows: Sequence[Line], number: int) -> Definition | None:
    """Return the definition that encloses a line of a file, or None if it is not known."""
    at = next((n for n, row in enumerate(rows) if row.number == number), -1)
    if at < 0 or len(rows[at].text) > MAX_LINE_CHARS or _CLOSER.fullmatch(rows[at].text.strip()):
        return None
    suffix = find_suffix(path)
    if suffix in SQL_SUFFIXES:
        return next((one for first, last, one in _iter_statements(path, rows) if first <= number <= last), None)
    headers = HEADERS.get(suffix)
    return _find_header(path, rows, at, headers) if headers else None


def _find_header(path: str, rows: Sequence[Line], at: int, headers: Sequence[re.Pattern[str]]) -> Definition | None:
    hidden = _find_string_lines(rows) if headers is _PYTHON else frozenset()
    at = _skip_marks(rows, at)
    text = rows[at].text
    if name := _read_header(rows, at, headers):
        return Definition(path, name, rows[at].number, _find_functions_around(rows, at, headers, hidden))
    is_end = text.lstrip()[:1] in (")", "]", "}", "{")  # of a header or of a body: indented like its header
    above = _find_header_above(rows, at, _measure_indent(text) + is_end, headers, hidden)
    if above is None:
        return None
    around = _find_functions_around(rows, above, headers, hidden)
    return Definition(path, _read_header(rows, above, headers), rows[above].number, around)


def _find_header_above(
    rows: Sequence[Line], at: int, inner: int, headers: Sequence[re.Pattern[str]], hidden: frozenset[int]
) -> int | None:
    """Return the position of the nearest header above that is less indented than `inner`, or None."""
    for n in range(at - 1, -1, -1):
        row = rows[n]
        if rows[n + 1].number - row.number > 1:
            return None  # what lies between may be the header
        stripped = row.text.strip()
        if not stripped or row.number in hidden:
            continue
        indent = _measure_indent(row.text)
        if indent >= inner:
            continue
        if _read_header(rows, n, headers):
            return n
        if _SKIPPED.match(stripped):
            continue
        if indent == 0:
            return None
        inner = indent
    return None


def _find_functions_around(
    rows: Sequence[Line], at: int, headers: Sequence[re.Pattern[str]], hidden: frozenset[int]
) -> tuple[int, ...]:
    """Return the header lines of the functions around the definition whose header is at a position."""
    found: list[int] = []
    above = _find_header_above(rows, at, _measure_indent(rows[at].text), headers, hidden)
    while above is not None and not _TYPE_HEADER.match(rows[above].text.strip()):
        found.append(rows[above].number)
        above = _find_header_above(rows, above, _measure_indent(rows[above].text), headers, hidden)
    return tuple(found)


def _skip_marks(rows: Sequence[Line], at: int) -> int:
    """Return the position of the header below a decorator; a decorator belongs to its definition."""
    for row, below in pairwise(rows[at:]):
        if below.number - row.number > 1 or not _MARK.match(row.text.strip()):
            break
        at += 1
    return at


def _read_header(rows: Sequence[Line], at: int, headers: Sequence[re.Pattern[str]]) -> str:
    """Return the name of the definition that a line starts, or an empty text."""
    stripped = rows[at].text.strip()
    if headers is _GO and _measure_indent(rows[at].text):
        return ""  # only a literal is indented
    found = _match_header(stripped, headers)
    if found is None:
        return ""
    if "call" in found.re.groupindex:
        is_continued = at > 0 and rows[at - 1].text.rstrip().endswith((",", "(", "="))
        if is_continued or not _opens_block(stripped[found.start("call") :], rows[at + 1 :]):
            return ""
    return found["name"]


def _match_header(text: str, headers: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    if len(text) > MAX_LINE_CHARS or _CONTROL.match(text):
        return None
    found = (header.match(text) for header in headers)
    return next((one for one in found if one and not _CONTROL.fullmatch(one["name"])), None)


MAX_HEADER_LINES = 30
_BETWEEN = re.compile(  # between the parameters and the body
    r"\s*(?:(?:throws|const|noexcept|override|final|where|try|volatile|mutable)\b[^;]*|(?::|->|&|\[\[)[^;]*)?\s*",
    re.DOTALL,
)


def _opens_block(rest: str, below: Sequence[Line]) -> bool:
    """Return whether a body follows the parameters, so that a name with brackets is no call.

    `rest` starts with the bracket.
    """
    text = "\n".join([rest, *(row.text for row in below[:MAX_HEADER_LINES])])
    depth = 0
    for n, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if depth == 0:
            body = re.search(r"\{|=>|;", text[n + 1 :])
            return bool(body and body[0] != ";" and _BETWEEN.fullmatch(text, n + 1, n + 1 + body.start()))
    return False


def _measure_indent(text: str) -> int:
    expanded = text.expandtabs(TAB_WIDTH)
    return len(expanded) - len(expanded.lstrip())


_TRIPLE = re.compile(r'"""|' + r"'''")


def _find_string_lines(rows: Sequence[Line]) -> frozenset[int]:
    """Return the lines inside triple-quoted strings, whose indentation means nothing."""
    inside, last = "", 0
    found = set()
    for row in rows:
        if row.number - last > 1:
            inside = ""
        last = row.number
        if inside:
            found.add(row.number)
        for mark in _TRIPLE.findall(row.text):
            inside = "" if inside == mark else inside or mark
    return frozenset(found)


# Statements of SQL

_STATEMENT = re.compile(
    r"(?:create|alter|drop|insert|update|delete|merge|select|with|grant|revoke|do|comment|set|call|truncate)\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(
    r"create\s+(?:or\s+replace\s+|or\s+alter\s+)?(?:(?:definer\s*=\s*\S+|temp|temporary|unlogged|materialized|recursive|unique|constraint|global|local)\s+)*"
    r"(?P<kind>function|procedure|trigger|view|table|index|package|type|event|policy|rule|sequence|schema|domain)\s+"
    r"(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)",
    re.IGNORECASE,
)
_ALTERED = re.compile(r"(?:alter|drop)\s+\w+\s+(?:if\s+exists\s+)?(?:only\s+)?(?P<name>[\w.\"`\[\]]+)", re.IGNORECASE)
_BODY_KINDS = ("function", "procedure", "trigger", "package", "event")
_EXECUTES = re.compile(r"\bexecute\s+(?:function|procedure)\b", re.IGNORECASE)  # a trigger without a body of its own
_DOLLAR = re.compile(r"\$\w*\$")
_SQL_COMMENT = re.compile(r"--.*|/\*.*?\*/")
_SQL_STRING = re.compile(r"'(?:[^']|'')*'")
_BATCH_END = re.compile(r"(?:go|/|//|\$\$|delimiter\b.*)\s*$", re.IGNORECASE)


def _iter_statements(path: str, rows: Sequence[Line]) -> Iterable[tuple[int, int, Definition]]:
    """Return the first and last line of each statement. One that is cut by a gap ends there."""
    start, previous = -1, 0
    dollar, is_body, has_dollars = "", False, False
    for n, row in enumerate(rows):
        if start >= 0 and row.number - previous > 1:
            yield _make_statement(path, rows, start, n - 1)
            start, dollar = -1, ""
        previous = row.number
        plain = _SQL_COMMENT.sub("", _SQL_STRING.sub("''", row.text)).strip()
        if not plain:
            continue
        starts_anew = _STATEMENT.match(plain) is not None and row.text[:1].strip() != ""
        if start >= 0 and is_body and not dollar and starts_anew and _OBJECT.match(plain):
            yield _make_statement(path, rows, start, n - 1)
            start = -1
        if start < 0:
            if not _STATEMENT.match(plain):
                continue
            start, dollar, is_body, has_dollars = n, "", False, False
        if n - start < 6:
            head = " ".join(one.text.strip() for one in rows[start : n + 1][:6])
            made = _OBJECT.match(head)
            is_body = made is not None and made["kind"].lower() in _BODY_KINDS and not _EXECUTES.search(head)
        for mark in _DOLLAR.findall(plain):
            dollar = "" if dollar == mark else dollar or mark
            has_dollars = True
        if dollar:
            continue
        ends_body = re.match(r"end\b[^;]*;", plain, re.IGNORECASE) is not None and row.text[:1].strip() != ""
        if _BATCH_END.match(plain) or (plain.endswith(";") and (not is_body or has_dollars or ends_body)):
            yield _make_statement(path, rows, start, n)
            start = -1
    if start >= 0:
        yield _make_statement(path, rows, start, len(rows) - 1)


def _make_statement(path: str, rows: Sequence[Line], start: int, end: int) -> tuple[int, int, Definition]:
    head = " ".join(row.text.strip() for row in rows[start : min(end, start + 2) + 1])
    found = _OBJECT.match(head) or _ALTERED.match(head)
    name = re.sub(r'["`\[\]]', "", found["name"]).rpartition(".")[2] if found else ""
    return rows[start].number, rows[end].number, Definition(path, name, rows[start].number)


# Hunks of a diff

_FUNCTION_WORDS = re.compile(r"(?:async\s+)?(?:def|func|fn|function)\b")


def read_hunk_header(path: str, header: str, rows: Sequence[Line], number: int) -> Definition | None:
    """Return the definition that the header of a hunk names if a line lies in it, or None.

    Git names the last line before the hunk that starts in the first column. It encloses a line if everything between is
    indented. A type is no answer: the line may lie in one of its methods.
    """
    headers = HEADERS.get(find_suffix(path))
    found = _match_header(header.strip(), headers) if headers and header[:1].strip() else None
    name = found["name"] if found else ""
    is_function = _FUNCTION_WORDS.search(header) is not None or (headers is _TYPED and "(" in header)
    if not name or not is_function or re.match(rf"(?:{_TYPE_WORDS})\b", header):
        return None
    above = [row for row in rows if row.number <= number]
    flush = [row for row in above if row.text.strip() and not _measure_indent(row.text)]
    return None if not above or flush else Definition(path, name)


# Names in a text

_TICKED_CODE = re.compile(r"`([^`\n]{1,200})`")
_CALL = re.compile(r"\b([A-Za-z_$][\w$]*)\(")
_COMPOUND = re.compile(
    r"\b(?:[A-Za-z$]*[a-z0-9]_\w+|_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z0-9]+_[A-Z0-9_]+)\b"
)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


def find_code_names(text: str) -> frozenset[str]:
    """Return the identifiers that a text names: between backticks, before a bracket, in snake_case or camelCase."""
    short = text[:4_000]
    ticked = (word for code in _TICKED_CODE.findall(short) for word in _WORD.findall(code))
    return frozenset((*ticked, *_CALL.findall(short), *_COMPOUND.findall(short)))
