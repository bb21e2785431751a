"""Secrets that are recognised by their context: logins, headers, cookies and Kubernetes secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from council.packet.secret_names import has_harmless_name
from council.packet.secret_rules import UUID_SHAPE, WORD_START
from council.packet.secret_scan import Scan, Secret
from council.packet.secret_values import (
    DOTTED_NAME,
    REFERENCE,
    decode_base64,
    entropy,
    is_chosen_password,
    is_dense,
    is_filler,
    is_login,
    is_published,
    is_random,
    is_real_password,
    is_strong,
)

# Passwords in addresses, headers, cookies and on command lines

URL_LOGIN = re.compile(
    r"://(?:(?P<user>[^\s:/@\"'<>]{0,100}):(?P<password>[^\s/,\"'<>()\[\]]{4,200})@(?=[\w\[$-])|(?P<token>[A-Za-z0-9_-]{20,200})@(?P<host>[\w.-]+))"
)
AUTH_HEADER = re.compile(
    r"(?i)(?:authorization\\?[\"']?\s{0,3}[:=,]\s{0,3}\\?[\"']?(?P<scheme>(?:(?P<basic>basic)|[a-z][\w-]{1,20})\s{1,20})?|(?P<bearer>bearer)\s{1,20})"
    r"(?:token=)?\\?[\"']?(?P<value>[\w+/=.~-]{8,4000})"
)
COOKIES = re.compile(
    r"(?i)cookie2?\\?[\"']?\s{0,3}[:=,]\s{0,40}\\?[\"']?(?:value\\?[\"']\s{0,3}:\s{0,3}\\?[\"'])?(?P<pairs>[\w.%-]{1,60}=[^\n\"']{16,4000})"
)
COOKIE = re.compile(r"(?P<name>[\w.%-]{1,60})=(?P<value>[^;\s,\\]{16,1000})")
COOKIE_FILE = re.compile(
    r"\t(?i:true|false)\t/\S{0,100}\t(?i:true|false)\t\d{1,12}\t(?P<name>[\w.%-]{1,60})\t(?P<value>\S{16,1000})"
)
REGISTRY_AUTH = re.compile(
    r"(?:auth|(?P<password>:_password))\\?[\"']?\s{0,8}[:=]\s{0,8}\\?[\"']?(?P<value>[A-Za-z0-9+/]{8,2000}={0,2})(?![\w+/-])"
)
# A host has a dot, or the password more than small letters: otherwise it is a sentence.
NETRC = re.compile(
    r"(?i)(?:machine(?:[ \t]|\r?\n[+-]?){1,20}(?P<host>[\w.-]{1,100})|default)(?:[ \t]|\r?\n[+-]?){1,20}"
    r"(?:(?:login|account)(?:[ \t]|\r?\n[+-]?){1,20}\S{1,100}(?:[ \t]|\r?\n[+-]?){1,20}){1,2}"
    r"password(?:[ \t]|\r?\n[+-]?){1,20}(?P<password>[^\s\"'\\]{3,200})"
)
DSN_PASSWORD = re.compile(
    r"(?i)(?:password|passwd|pwd)[ \t]?=[ \t]?(?:'(?P<quoted>[^'\n]{3,100})'(?=[\s;\"]|$)|(?P<bare>(?:[^\s;&\"'<>{}()$`\\,]|&amp;){3,100}+)(?=[\s;&\"'<\\]|$))"
)
DSN = re.compile(
    r"(?i)(?:\b(?:host|hostaddr|server|data source|addr|address|dbname|database|initial catalog|uid|user id|user|username|driver|sslmode|user_name)=|jdbc:)[^\s,=]"
)
# These options take a password only for some programs, so the program must precede the option.
PASSWORD_OPTION = re.compile(
    r"(?<=\s)(?:(?P<user>-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user)[ =]{0,3}[\"']?[^\s:%\"'$<]{0,100}[\"']?[:%][\"']?|(?P<attached>-p|--password=)[\"']?|(?P<apart>-[pPaw]) [\"']?)"
    r"(?P<password>[^\s\"'`\\]{4,200})"
)
USER_TOKEN = re.compile(
    r"(?<=\s)(?:-u|--user)[ =]{0,3}[\"']?(?P<password>[^\s:\"'$<{]{10,200}):[\"']?(?=\s|$)"
)  # a token instead of a user
# Which of the options above takes a password
LOGIN_PROGRAM = re.compile(
    rf"{WORD_START}(?:(?P<user>curl|wget|smbclient)|(?P<attached>(?:mysql|mariadb)[\w-]{{0,40}}+|(?P<apart>sshpass|mongo(?:sh|dump|restore)?|redis-cli|sqlcmd|ldap(?:search|add|modify)|security [a-z-]{{4,20}})))\s"
    r"|(?P<login>(?:(?<=cker|dman|opeo|stry|oras|dctl|ldah)|(?<=\baz)) login)\s"
)
LOGIN_PROGRAMS = (
    b"curl",
    b"wget",
    b"smbc",
    b"mysql",
    b"mariadb",
    b"sshpass",
    b" login",
    b"mongo",
    b"redis-",
    b"sqlcmd",
    b"ldap",
    b"security ",
)
COMMAND_END = re.compile(r"(?<!\\)\n")
PORT = re.compile(r"[\d.:]+(?:/\w+)?")
MAX_COMMAND_CHARS = 300  # most characters between a program and its option


def find_url_logins(scan: Scan) -> Iterator[Secret]:
    for match in scan.match_all(URL_LOGIN, b"://"):
        if match["token"]:
            if "sentry" not in match["host"] and is_strong(match["token"]):
                yield Secret("URL token", *match.span("token"))
        elif match["password"] != match["user"] and is_real_password(match["password"]):
            yield Secret("URL password", *match.span("password"))


HEADER_HINTS = (b"authorization", b"bearer", b"cookie", b"\ttrue\t/", b"\tfalse\t/")


def find_auth_headers(scan: Scan) -> Iterator[Secret]:
    for match in scan.match_all(AUTH_HEADER, b"authorization", b"bearer"):
        value = match["value"]
        is_value = not is_filler(value) and not is_published(value) and entropy(value[-24:]) >= 2.5 and is_random(value)
        if not match["scheme"] and not match["bearer"]:
            is_value = is_value and (is_dense(value) or bool(UUID_SHAPE.fullmatch(value)))
        if is_value or (match["basic"] and is_login(value) and not is_published(value)):
            yield Secret("authorization header", *match.span("value"))
    for match in scan.match_all(COOKIES, b"cookie"):
        for cookie in COOKIE.finditer(scan.text, *match.span("pairs")):
            if _is_session(cookie):
                yield Secret("cookie", *cookie.span("value"))
    for match in scan.match_all(COOKIE_FILE, b"\ttrue\t/", b"\tfalse\t/"):
        if _is_session(match):
            yield Secret("cookie", *match.span("value"))


def _is_session(cookie: re.Match[str]) -> bool:
    return not has_harmless_name(cookie["name"]) and not is_filler(cookie["value"]) and is_random(cookie["value"], 2)


LOGIN_HINTS = (b"auth", b":_password", b"machine", b"default", b"password", b"passwd", b"pwd", *LOGIN_PROGRAMS)


def find_logins(scan: Scan) -> Iterator[Secret]:
    """Find logins of registries, databases and machines, and passwords on command lines."""
    if scan.has(b'auth"', b'auth\\"', b"_auth", b":_password"):
        for match in scan.match_all(REGISTRY_AUTH, b"auth", b":_password"):
            if is_login(match["value"]) or (match["password"] and is_real_password(decode_base64(match["value"]))):
                yield Secret("registry login", *match.span("value"))
    for match in scan.match_all(NETRC, b"machine", b"default"):
        is_prose = re.fullmatch("[a-z]+", match["password"]) and "." not in (match["host"] or "")
        if is_real_password(match["password"]) and not is_prose:
            yield Secret("password", *match.span("password"))
    for match in scan.match_all(DSN_PASSWORD, b"password", b"passwd", b"pwd"):
        which = "quoted" if match["quoted"] else "bare"
        is_attribute = DOTTED_NAME.fullmatch(match[which]) and not re.search(r"\d", match[which])
        if (
            is_real_password(match[which])
            and not is_attribute
            and DSN.search(scan.line_around(match.start(), match.end()))
        ):
            yield Secret("database password", *match.span(which))
    yield from _find_password_options(scan)


def _find_password_options(scan: Scan) -> Iterator[Secret]:
    programs = sorted(scan.match_all(LOGIN_PROGRAM, *LOGIN_PROGRAMS), key=re.Match.start)
    for program, following in zip_longest(programs, programs[1:]):
        reach = min(following.start() if following else len(scan.text), program.end() + MAX_COMMAND_CHARS)
        stop = COMMAND_END.search(scan.text, program.end(), reach)
        reach = stop.start() if stop else reach
        for match in PASSWORD_OPTION.finditer(scan.text, program.end() - 1, reach):
            password = match["password"]
            usual = PORT.fullmatch(password) or password[0] == "-" or not is_real_password(password)
            if not usual and _takes_password(program, match):
                yield Secret("password on a command line", *match.span("password"))
        if program["user"]:
            for match in USER_TOKEN.finditer(scan.text, program.end() - 1, reach):
                if is_chosen_password(match["password"]):
                    yield Secret("password on a command line", *match.span("password"))


def _takes_password(program: re.Match[str], option: re.Match[str]) -> bool:
    if program["login"]:
        return bool(option["apart"])
    return any(program[kind] and option[kind] for kind in ("user", "attached", "apart"))


# Kubernetes secrets: every value below `data` and `stringData`

KUBERNETES_SECRET = re.compile(r"kind\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?Secret(?![\w-])")
DOCUMENT_REACH = 50_000  # characters on both sides in which the rest of a YAML document is searched
SECRET_DATA = re.compile(r"(?m)^[+\- ]?(?P<indent>[ \t]*)(?:data|stringData):[ \t]*\r?$")
SECRET_DATA_JSON = re.compile(r"\"(?:data|stringData)\"\s{0,8}:\s{0,8}\{([^{}]{1,20000})\}")
DATA_LINE = re.compile(
    r"[+\- ]?(?P<indent>[ \t]*)(?>[\"']?(?P<name>[\w.-]{1,100})[\"']?:(?:[ \t]+[\"']?|(?=\r?\n)))?+(?P<value>[^\s\"']+)"
)
DATA_PAIR = re.compile(r"\"([\w.-]{1,100})\"\s{0,8}:\s{0,8}\"([^\"\s]{4,})\"")
PUBLIC_DATA = re.compile(
    r"(?i)user(?:name)?|.*\.crt|.*\.pub|ca|host(?:name)?|port|namespace|url|endpoint|region|bucket|database|db(?:name)?"
)


KUBERNETES_HINTS = (b"kind",)


def find_kubernetes_secrets(scan: Scan) -> Iterator[Secret]:
    text, stop = scan.text, 0
    for kind in scan.match_all(KUBERNETES_SECRET, b"kind"):
        if kind.start() < stop:
            continue  # in the same document
        start = max(
            text.rfind("\n---", max(0, kind.start() - DOCUMENT_REACH), kind.start()), kind.start() - DOCUMENT_REACH, 0
        )
        stop = text.find("\n---", kind.end(), kind.end() + DOCUMENT_REACH)
        stop = min(kind.end() + DOCUMENT_REACH, len(text)) if stop < 0 else stop
        end = 0
        for block in SECRET_DATA.finditer(text, start, stop):
            if block.start() < end:
                continue  # inside a block that was read
            values, end = _read_data_lines(text, block, stop)
            for name, first, last in values:
                if _is_secret_data(name, text[first:last]):
                    yield Secret("Kubernetes secret", first, last)
        for block in SECRET_DATA_JSON.finditer(text, start, stop):
            for pair in DATA_PAIR.finditer(text, *block.span(1)):
                if _is_secret_data(pair[1], pair[2]):
                    yield Secret("Kubernetes secret", *pair.span(2))


def _read_data_lines(text: str, block: re.Match[str], stop: int) -> tuple[list[tuple[str, int, int]], int]:
    """Return the name and the position of each value below `data:`, which may have several lines, and the end."""
    values: list[tuple[str, int, int]] = []
    name, at = "", text.find("\n", block.end()) + 1
    while 0 < at < stop:
        line, start = DATA_LINE.match(text, at), at
        at = text.find("\n", at) + 1
        if not line or line["value"].startswith("#"):
            continue
        if len(line["indent"]) <= len(block["indent"]):
            return values, start
        name = line["name"] or name
        if line["value"].rstrip("|>+-"):
            values.append((name, *line.span("value")))
    return values, stop


def _is_secret_data(name: str, value: str) -> bool:
    decoded = decode_base64(value) if re.fullmatch(r"[A-Za-z0-9+/]{4,}={0,2}", value) else ""
    plain = decoded if decoded and decoded.isascii() and decoded.replace("\n", "").isprintable() else value
    harmless = PUBLIC_DATA.fullmatch(name) or "BEGIN CERT" in plain or REFERENCE.match(value) or REFERENCE.match(plain)
    return not harmless and len(plain) >= 4 and is_real_password(plain)
