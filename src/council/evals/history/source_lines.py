"""Source lines: which files of a repository are source code, and which of their lines are code."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from council.packet.context import CODE_SUFFIXES, GENERATED_MARK, GENERATED_PATH, TEST_PATH
from council.packet.files import is_lock_file

MAX_SOURCE_BYTES = 1_000_000  # of a file that is read
OTHER_SUFFIXES = frozenset("hh hxx cxx mm bash zsh fish ps1 r jl pl pm nim zig v sv vhd f f90 groovy gradle cu cl elm hs erb ejs astro pyx pxd cmake tcl lisp el fs fsx vb pas d s asm tmpl hbs twig".split())  # fmt: skip # noqa: SIM905
NO_CODE = re.compile(
    r"(?:^|/)(?:docs?|documentation|doc-src|examples?|samples?|demos?|benchmarks?|bench|locales?|i18n|translations?|l10n|"
    r"changelogs?|\.github|\.circleci|website|site|sandbox|fixtures?|testfixtures|mocks?|__mocks__|deps|external|extern|"
    r"typings?|e2e|fuzz|playground|regression-test|jsfmt|tests_\w+|tests?_\w+)/|"
    r"(?:^|/)migrations/\d[^/]*$|(?:^|/)(?:version|_version|__version__|__about__|setup|conf|noxfile|tasks|gulpfile|Gruntfile|rollup\.config|"
    r"webpack\.config|build\.gradle|settings\.gradle|karma\.conf|babel\.config|jest\.config|vite\.config|eslint\.config|\.eslintrc)(?:\.\w+){1,2}$|_test\.\w+$|"
    r"\.gradle(?:\.kts)?$|(?:^|/)tests?\.\w+$|\.d\.ts$|\.stories\.\w+$",
    re.IGNORECASE,
)
HASH_SUFFIXES = frozenset("py pyi pyx pxd rb sh bash zsh fish ex exs pl pm r jl nim ps1 cmake tcl".split())  # noqa: SIM905
DASH_SUFFIXES = frozenset("lua sql hs elm".split())  # noqa: SIM905
PYTHON_SUFFIXES = frozenset(("py", "pyi", "pyx", "pxd"))
LINE_COMMENT = {"hash": re.compile(r"#(?!!\[|include|define|if|el|endif|undef|pragma)"), "dash": re.compile(r"--"), "slash": re.compile(r"//|\*/?\s|\*/?$|/\*.*\*/$")}  # fmt: skip
IMPORT = re.compile(
    r"(?:from\s+[\w.]+\s+)?import\b(?!\s*\(.)|(?:export\s+)?(?:\*|\{[^}]*\})\s*from\s+['\"]|use\s+[\w:\\]+(?:::|\\)|using\s+[\w.]+;|"
    r"#\s*include\b|require(?:_relative)?\s+['\"]|(?:const|let|var)\s+[\w{},\s:$]+=\s*require\([^()]*\)[;,]?$|package\s+[\w.]+;?$|"
    r"['\"]use strict['\"];?$|extern crate\b|mod\s+\w+;$"
)
ONLY_SIGNS = re.compile(r"[\W_]*")
BARE_WORD = re.compile(r"(?:if|elif|unless|while|for|with|assert|and|or|not|else|try|finally|do|begin|end|then|fi|done|esac|pass|return|break|default)?[\s:{}();\[\],]*")  # fmt: skip
STRING = re.compile(
    r"#|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''|(?P<open>\"\"\"|''')|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
)
OPENING = re.compile(r"[rRbBuUfF]{0,2}(\"\"\"|''')")


def is_source(path: str) -> bool:
    """Return whether a path names source code: no tests, docs, generated or vendored files."""
    suffix = PurePosixPath(path).suffix.removeprefix(".").lower()
    if suffix not in CODE_SUFFIXES and suffix not in OTHER_SUFFIXES:
        return False
    return not (TEST_PATH.search(path) or GENERATED_PATH.search(path) or NO_CODE.search(path) or is_lock_file(path))


def is_generated(text: str) -> bool:
    return bool(GENERATED_MARK.search(text[:1000]))


def find_code_lines(path: str, text: str) -> frozenset[int]:
    """Return the numbers of the lines with code.

    Blank lines, comments, docstrings, imports and lines of signs alone are none.
    """
    suffix = PurePosixPath(path).suffix.removeprefix(".").lower()
    style = "hash" if suffix in HASH_SUFFIXES else "dash" if suffix in DASH_SUFFIXES else "slash"
    found, until, importing, quote = set[int](), "", "", ""
    for number, row in enumerate(text.split("\n"), 1):
        line = row.strip()
        if quote:  # in a string that is no docstring
            if not ONLY_SIGNS.fullmatch(line):
                found.add(number)
            quote = _find_open_string(line, quote)
            continue
        if until:  # in a comment or a docstring
            _, end, rest = line.partition(until)
            if end:
                until = ""
                if not ONLY_SIGNS.fullmatch(rest) and style == "slash":
                    found.add(number)
            continue
        if importing:
            importing = "" if importing in line else importing
            continue
        until = _find_open_comment(line, suffix, style)
        if until or ONLY_SIGNS.fullmatch(line) or BARE_WORD.fullmatch(line):
            continue
        if suffix in PYTHON_SUFFIXES and not OPENING.match(line):
            quote = _find_open_string(line)
        if _is_docstring(line, suffix) or LINE_COMMENT[style].match(line):
            continue
        if IMPORT.match(line):
            opened = next((sign for sign in "({" if sign in line), "")
            closing = {"(": ")", "{": "}"}.get(opened, "")
            importing = closing if closing and closing not in line else ""
            continue
        found.add(number)
    return frozenset(found)


def _is_docstring(line: str, suffix: str) -> bool:
    return suffix in PYTHON_SUFFIXES and bool(OPENING.match(line))


def _find_open_string(line: str, quote: str = "") -> str:
    """Return the quotes of a Python string that is open at the end of a line, or ""."""
    at = 0
    if quote:
        at = line.find(quote) + len(quote)
        if at < len(quote):
            return quote
    for part in STRING.finditer(line, at):
        if part[0] == "#":
            return ""
        if part["open"]:
            return part["open"]
    return ""


def _find_open_comment(line: str, suffix: str, style: str) -> str:
    """Return the end of a comment or docstring that a line opens and does not close, or ""."""
    if suffix in PYTHON_SUFFIXES:
        opening = OPENING.match(line)
        if opening and opening[1] not in line[opening.end() :]:
            return opening[1]
        return ""
    if suffix == "rb" and line.startswith("=begin"):
        return "=end"
    if style == "slash" and line.startswith("/*") and "*/" not in line:
        return "*/"
    if suffix in ("vue", "svelte", "astro", "hbs", "erb", "ejs") and line.startswith("<!--") and "-->" not in line:
        return "-->"
    return ""
