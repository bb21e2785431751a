"""Passwords in blocks of lines: tables with a column of passwords, here-documents, logins and recovery codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from council.packet.secret_names import has_harmless_name
from council.packet.secret_scan import Scan, Secret
from council.packet.secret_values import is_literal_password, is_real_password, is_word_password

MAX_HEADER_CHARS = 400
MAX_BLOCK_CHARS = 20_000
MAX_TABLE_HEADERS = 5  # lines of one table that are tried as its header
DELIMITER = re.compile(r"[,;\t|]")
COLUMN_STEMS = (b"passw", b"kennwort", b"contrase", b"senha", b"passe")
TABLE_HEADER = re.compile(
    r"(?im)^(?P<header>[+\- ]?[ \t]*\|[^\n]{0,200}(?:passw|kennwort|contrase|senha|passe)[^\n]{0,200})\n"
)
TABLE_ROWS = re.compile(r"(?:[^\n|]*\|[^\n]*(?:\n|\Z))*+")
PASSWORD_COLUMN = re.compile(
    r"(?i)[\"']?[\w -]{0,20}(?:passw(?:or)?d|passwort|kennwort|contraseña|senha|mot de passe)[\"']?"
)
PASSWORD_LIST = re.compile(r"chpasswd[^\n<]{0,40}<<-?[ \t]*[\\\"']?(?P<end>\w+)[\"']?[^\n]{0,40}\n")
CLOUD_LIST = re.compile(r"chpasswd:[^\n]{0,20}\n(?:[^\n]{0,60}\n){0,2}?[+\- \t]*list:[^\n]{0,10}\n")
LIST_LINE = re.compile(r"[+\- \t]*[\w.-]{1,60}:(?P<password>[^\s:]{4,200})[ \t]*\r?(?:\n|\Z)")
CODES_START = re.compile(
    r"(?i)(?:backup|recovery|rescue|scratch|emergency|one[- ]time|2fa)[ _-]?(?:2fa[ _-]?)?(?:codes?|keys?|tokens?)|wiederherstellungs-?codes?"
    r"|codes de (?:secours|récupération)|works once|works only once"
)
CODES_HINTS = (
    b"backup", b"recovery", b"rescue", b"scratch", b"emergency", b"one-time", b"one time", b"2fa", b"wiederherstellung", b"codes de",
    b"works once", b"works only once",
)  # fmt: skip
CODE = re.compile(
    r"(?<![\w./-])(?P<code>(?=[a-z-]*\d)(?=[\d-]*[a-zA-Z])[0-9a-zA-Z]{4,6}-[0-9a-zA-Z]{4,6}|\d{4}[ -]\d{4}(?:[ -]\d{4})?)(?![\w./-])"
)
CODES_REACH = 600  # characters after the words in which codes are searched
BLOCK_HINTS = (*COLUMN_STEMS, b"chpasswd", *CODES_HINTS)


def find_blocks(scan: Scan) -> Iterator[Secret]:
    """Find passwords by the block of lines in which they stand."""
    yield from _find_columns(scan)
    yield from _find_lists(scan)
    yield from _find_codes(scan)


def _find_columns(scan: Scan) -> Iterator[Secret]:
    """Find the values of a column whose header names passwords, in CSV and in tables of Markdown."""
    if not scan.has(*COLUMN_STEMS):
        return
    header, newline, _ = scan.text[:MAX_HEADER_CHARS].partition("\n")
    delimiter = DELIMITER.search(header)
    if newline and delimiter:
        start = len(header) + 1
        yield from _find_cells(scan.text, header, start, start + MAX_BLOCK_CHARS, delimiter[0])
    if "\n|" in scan.text:
        yield from _find_table_cells(scan.text)


def _find_table_cells(text: str) -> Iterator[Secret]:
    """Find the passwords of Markdown tables. Several lines of a table may name passwords: the first ones are tried."""
    table_end = headers = 0
    for row in TABLE_HEADER.finditer(text):
        if row.start() >= table_end:
            rows = TABLE_ROWS.match(text, row.end())
            table_end = rows.end() if rows else row.end()
            headers = 0
        headers += 1
        if headers <= MAX_TABLE_HEADERS:
            yield from _find_cells(text, row["header"], row.end(), min(table_end, row.end() + MAX_BLOCK_CHARS), "|")


def _find_cells(text: str, header: str, start: int, end: int, mark: str) -> Iterator[Secret]:
    """Find the passwords of the rows between two positions that have as many cells as the header."""
    names = [name.strip() for name in header.rstrip("\r").split(mark)]
    columns = [at for at, name in enumerate(names) if PASSWORD_COLUMN.fullmatch(name) and not has_harmless_name(name)]
    for line in text[start:end].split("\n") if columns else ():
        cells = line.rstrip("\r").split(mark)
        for column in columns if len(cells) == len(names) else ():
            value = cells[column].strip().strip("\"'`")
            if value and (is_literal_password(value, 4) or is_word_password(value, allow_blanks=False)):
                first = start + sum(len(cell) + 1 for cell in cells[:column]) + cells[column].index(value)
                yield Secret("password", first, first + len(value))
        start += len(line) + 1


def _find_lists(scan: Scan) -> Iterator[Secret]:
    """Find the passwords of the lines `user:password` of here-documents and of cloud-init, each line once."""
    starts = [
        *((start.end(), "") for start in scan.match_all(CLOUD_LIST, b"chpasswd")),
        *((start.end(), start["end"]) for start in scan.match_all(PASSWORD_LIST, b"chpasswd")),
    ]
    read_to = 0
    for start, end in sorted(starts):
        if start < read_to:
            continue
        read_to = start
        while (line := LIST_LINE.match(scan.text, read_to)) and line[0].strip() != end:
            if is_real_password(line["password"]):
                yield Secret("password", *line.span("password"))
            read_to = line.end()


def _find_codes(scan: Scan) -> Iterator[Secret]:
    """Find recovery codes after the words that announce them."""
    stop = 0
    for start in sorted(scan.match_all(CODES_START, *CODES_HINTS), key=re.Match.start):
        first = max(start.end(), stop)
        stop = max(stop, start.end() + CODES_REACH)
        for code in CODE.finditer(scan.text, first, stop):
            yield Secret("recovery code", *code.span("code"))
