"""Detection and masking of secrets. Prefers false positives to a leaked key."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MAX_KEY_BLOCK_CHARS = 20_000  # longest key block without an END line
WORD_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"  # start of a word, also after an escaped line end as in JSON


class Secret(NamedTuple):
    """Kind and position of a secret in a text; never the secret itself."""

    kind: str
    start: int
    end: int


class KeyRule(NamedTuple):
    """A key format; `hints` are substrings tested first, because most texts contain none."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _make_rule(kind: str, shape: str, *hints: str) -> KeyRule:
    return KeyRule(kind, hints, re.compile(rf"{WORD_START}{shape}(?![A-Za-z0-9])"))


KEY_RULES = (
    _make_rule("AWS access key", r"A(?:KIA|SIA|GPA|IDA|ROA|NPA|BIA|CCA)[A-Z0-9]{16}", "AKIA", "ASIA", "AGPA", "AIDA", "AROA", "ANPA", "ABIA", "ACCA"),
    _make_rule("GitHub token", r"gh[opusr]_[A-Za-z0-9]{30,}", "gho_", "ghp_", "ghu_", "ghs_", "ghr_"),
    _make_rule("GitHub token", r"github_pat_\w{40,}", "github_pat_"),
    _make_rule("GitLab token", r"gl(?:pat|rt|dt|ptt|cbt|ft|soat|imt|agent)-[\w-]{18,}", "glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glimt-", "glagent-"),
    _make_rule("Slack token", r"xox[abceoprs]-[A-Za-z0-9-]{20,}", "xox"),
    _make_rule("Slack token", r"xapp-\d-[A-Za-z0-9-]{20,}", "xapp-"),
    _make_rule("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{30,}", "hooks.slack.com/"),
    _make_rule("Stripe key", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}", "k_live_", "k_test_", "k_prod_"),
    _make_rule("webhook secret", r"whsec_[A-Za-z0-9+/]{24,}={0,2}", "whsec_"),
    _make_rule("Google API key", r"AIza[\w-]{33,}", "AIza"),
    _make_rule("Google OAuth secret", r"GOCSPX-[\w-]{20,}", "GOCSPX-"),
    _make_rule("Google access token", r"ya29\.[\w-]{30,}", "ya29."),
    _make_rule("Anthropic key", r"sk-ant-[\w-]{20,}", "sk-ant-"),
    _make_rule("OpenAI key", r"sk-(?!ant-)(?:[a-z]{2,10}-)*(?:v1-)?[\w-]{20,}", "sk-"),
    _make_rule("model provider key", r"(?:r8_[A-Za-z0-9]{37}|(?:gsk_|xai-|pplx-|tvly-(?:dev-|prod-)?|csk-|nvapi-)[\w-]{20,})", "gsk_", "xai-", "r8_", "pplx-", "tvly-", "csk-", "nvapi-"),
    _make_rule("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}", "hf_", "api_org_"),
    _make_rule("npm token", r"npm_[A-Za-z0-9]{30,}", "npm_"),
    _make_rule("PyPI token", r"pypi-[\w-]{50,}", "pypi-"),
    _make_rule("RubyGems key", r"rubygems_[0-9a-f]{40,}", "rubygems_"),
    _make_rule("Docker token", r"dckr_(?:pat|oat)_[\w-]{20,}", "dckr_"),
    _make_rule("SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{30,}", "SG."),
    _make_rule("Mailgun key", r"key-[0-9a-f]{32}", "key-"),
    _make_rule("Twilio key", r"SK[0-9a-f]{32}", "SK"),
    _make_rule("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{40,}", "_v1_"),
    _make_rule("Shopify token", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}", "shp"),
    _make_rule("Databricks token", r"dapi[0-9a-f]{32}(?:-\d)?", "dapi"),
    _make_rule("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?[A-Za-z0-9]{36,}", "dp."),
    _make_rule("Vault token", r"hv[sbr]\.[\w-]{24,}", "hvs.", "hvb.", "hvr."),
    _make_rule("Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}", ".atlasv1."),
    _make_rule("Grafana token", r"gl(?:sa|c)_[\w+/=]{30,}", "glsa_", "glc_"),
    _make_rule("Sentry token", r"sntry[su]_[\w+/=-]{30,}", "sntrys_", "sntryu_"),
    _make_rule("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}", "lin_"),
    _make_rule("Notion token", r"ntn_[A-Za-z0-9]{30,}", "ntn_"),
    _make_rule("Atlassian token", r"AT(?:ATT|CTT|BB)3?[\w-]{20,}={0,2}[A-F0-9]{0,8}", "ATATT", "ATCTT", "ATBB"),
    _make_rule("database token", r"(?:pscale_(?:tkn|pw|oauth)_[\w.-]{30,}|sbp_[0-9a-f]{40})", "pscale_", "sbp_"),
    _make_rule("hosting token", r"(?:nfp_|vercel_|figd_|fo1_|rnd_|CFPAT-|PMAK-|NRAK-|EZ[AT]K)[\w-]{24,}", "nfp_", "vercel_", "figd_", "fo1_", "rnd_", "CFPAT-", "PMAK-", "NRAK-", "EZAK", "EZTK"),
    _make_rule("Azure storage key", r"AccountKey=[A-Za-z0-9+/]{60,}={0,2}", "AccountKey="),
    _make_rule("Telegram token", r"\d{8,10}:AA[\w-]{32,34}", ":AA"),
    _make_rule("Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{40,}", "/api/webhooks/"),
    _make_rule("Discord token", r"[MNO][A-Za-z\d]{22,27}\.[\w-]{6}\.[\w-]{27,}", "."),
    _make_rule("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}", "AGE-SECRET-KEY-"),
    _make_rule("JSON web token", r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}", "eyJ"),
)  # fmt: skip

PLACEHOLDER_WORDS = (
    r"example|sample|placeholder|change[-_]?me|your|my[-_]?(?:key|token|secret|pass)|dummy|fake|redacted|insert|replace"
    r"|x{4,}|\*{3,}|\.{3}|0{8,}|<|>|\$\{|\$\(|\{\{|%\(|%s|#\{|\bnone\b|\bnull\b|\bundefined\b"
)
PLACEHOLDER_WORD = re.compile(PLACEHOLDER_WORDS, re.IGNORECASE)
PLACEHOLDER = re.compile(f"{PLACEHOLDER_WORDS}|1234567|abcdefg", re.IGNORECASE)
KEY_BLOCK_START = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:")
KEY_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-{0,5}")
BASE64 = re.compile(r"[A-Za-z0-9+/]{32,}")
URL_PASSWORD = re.compile(
    r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s:/@\"'<>]{0,100}):([^\s@/:\"'<>]{5,200})@(?=[\w\[$-])"
)
AUTH_HEADER = re.compile(
    r"(?i)\bauthorization\b[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:bearer|basic|token)\s+([\w+/=.~-]{16,})"
)
REGISTRY_AUTH = re.compile(r"\\?\"auth\\?\"\s{0,8}:\s{0,8}\\?\"([A-Za-z0-9+/]{8,2000}={0,2})\\?\"")
# These options take a password only for some programs, so the program must precede the option.
PASSWORD_OPTION = re.compile(
    r"(?<=\s)(?:(?P<user>-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"'$<]{1,100}:|(?P<attached>-p|--password=)[\"']?|(?P<apart>-p) [\"']?)"
    r"(?P<password>[^\s\"'`]{4,200})"
)
OPTION_PROGRAMS = {
    "user": re.compile(rf"{WORD_START}curl\b"), "attached": re.compile(rf"{WORD_START}(?:(?:mysql|mariadb)[\w-]*|sshpass)\s"),
    "apart": re.compile(rf"{WORD_START}sshpass\s"),
}  # fmt: skip
PORT = re.compile(r"[\d.:]+(?:/\w+)?")
MAX_COMMAND_CHARS = 300  # most characters between a program and its option
SECRET_ASSIGNMENT = re.compile(
    r"(?i)(?P<name>(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|auth[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|credential)[\w.-]{0,40})[\"'\]]{0,2}"
    r"\s{0,8}(?::=|=>|[:=])\s{0,8}(?:(?P<mark>[\"'`])(?P<quoted>[^\s\"'`]{8,500})(?P=mark)|(?P<bare>[^\s\"'`,;(){}\[\]<>#]{12,500})(?=[\s,;}#]|$))"
)
HARMLESS_NAME = re.compile(
    r"(?i)hash|sha\d|digest|checksum|fingerprint|public|url|path|file|_name|\.name|_id$|type|count|limit|max|min|ttl|expir|length|regex|pattern"
)
DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # an unquoted identifier in a program
SELF_DESCRIBING_PASSWORD = re.compile(
    r"[A-Za-z_-]*(?:secret|passw(?:or)?d)[A-Za-z_-]*"
)  # a word like "your_secret", not a value
COMMON_PASSWORDS = {
    "password", "passwd", "pass", "secret", "token", "user", "username", "root", "admin", "guest", "test", "postgres",
    "mysql", "mongo", "redis", "rabbitmq", "minio", "dev", "local", "pwd", "key", "apikey", "api_key",
}  # fmt: skip


def find_secrets(text: str) -> list[Secret]:
    """Return all secrets in a text, in order and without overlaps."""
    secrets = [
        *_find_known_keys(text),
        *_find_key_blocks(text),
        *_find_url_passwords(text),
        *_find_auth_headers(text),
        *_find_logins(text),
        *_find_assignments(text),
    ]
    return _merge_overlapping(sorted(secrets, key=lambda secret: (secret.start, -secret.end)))


def redact_text(text: str) -> str:
    """Return the text with every secret masked, for logs, errors and reports."""
    return mask_secrets(text, find_secrets(text))


def redact_value(value: Any) -> Any:
    """Mask secrets in every string of a JSON value."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {name: redact_value(item) for name, item in value.items()}
    return [redact_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def mask_secrets(text: str, secrets: Sequence[Secret], *, margin: int = 0) -> str:
    """Return the text with the given secrets masked. Line breaks stay; in a diff so does the first column (`margin`)."""
    parts, at = [], 0
    for secret in secrets:
        for start, end in _split_by_line(text, secret, margin):
            parts += [text[at:start], f"[redacted:{secret.kind}]"]
            at = end
    return "".join([*parts, text[at:]])


def line_number(text: str, secret: Secret) -> int:
    return text.count("\n", 0, secret.start) + 1


def _split_by_line(text: str, secret: Secret, margin: int) -> Iterator[tuple[int, int]]:
    start = secret.start
    while (end := text.find("\n", start, secret.end)) >= 0:
        if end > start:
            yield start, end
        start = min(end + 1 + margin, secret.end)
    if secret.end > start:
        yield start, secret.end


def _merge_overlapping(secrets: Sequence[Secret]) -> list[Secret]:
    merged: list[Secret] = []
    for secret in secrets:
        if merged and secret.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, secret.end))
        else:
            merged.append(secret)
    return merged


def _find_known_keys(text: str) -> Iterator[Secret]:
    for rule in KEY_RULES:
        if any(hint in text for hint in rule.hints):
            for match in rule.pattern.finditer(text):
                if not _is_sample_key(match.group()):
                    yield Secret(rule.kind, *match.span())


def _is_sample_key(key: str) -> bool:
    """Return whether a key with a known prefix is only a sample: words, one repeated letter, or a placeholder word."""
    wordy = not re.search(r"\d|[A-Za-z]{20}", key)
    return wordy or len(set(key[-20:])) <= 2 or bool(PLACEHOLDER_WORD.search(key))


def _is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder such as `sk-your-key-here`, `AKIA…EXAMPLE` or `ghp_xxxx`."""
    return bool(PLACEHOLDER.search(value)) or _entropy(value[-24:]) < 2.5 or not re.search(r"\d", value)


def _find_key_blocks(text: str) -> Iterator[Secret]:
    starts = list(KEY_BLOCK_START.finditer(text))
    nexts = [*(start.start() for start in starts[1:]), len(text)]
    for start, following in zip(starts, nexts, strict=False):
        reach = min(following, start.end() + MAX_KEY_BLOCK_CHARS)
        end = KEY_BLOCK_END.search(text, start.end(), reach)
        stop = end.end() if end else _find_key_end(text, start.end(), reach)
        if BASE64.search(text, start.end(), stop):
            yield Secret("private key", start.start(), stop)


def _find_key_end(text: str, start: int, reach: int) -> int:
    """Return where a key block without an END line stops."""
    stop = start
    for match in BASE64.finditer(text, start, reach):
        if match.start() - stop > 200:
            break
        stop = match.end()
    last_line = re.match(r"\n.?[A-Za-z0-9+/]+={0,2}$", text[stop : stop + 200], re.MULTILINE)
    return stop + (last_line.end() if last_line else 0)


def _find_url_passwords(text: str) -> Iterator[Secret]:
    if "://" not in text:
        return
    for match in URL_PASSWORD.finditer(text):
        user, password = match.groups()
        if password != user and _is_real_password(password):
            yield Secret("URL password", *match.span(2))


def _is_real_password(password: str) -> bool:
    """Return whether a password is real: not a common placeholder and not a variable."""
    usual = (
        password.lower() in COMMON_PASSWORDS
        or SELF_DESCRIBING_PASSWORD.fullmatch(password)
        or PLACEHOLDER.search(password)
    )
    return not usual and not password.startswith(("$", "{", "%", ":"))


def _find_logins(text: str) -> Iterator[Secret]:
    """Find registry logins and passwords on command lines."""
    for match in REGISTRY_AUTH.finditer(text):
        if _is_login(match[1]):
            yield Secret("registry login", *match.span(1))
    if not any(program in text for program in ("curl", "mysql", "mariadb", "sshpass")):
        return
    for match in PASSWORD_OPTION.finditer(text):
        program = next(pattern for kind, pattern in OPTION_PROGRAMS.items() if match[kind])
        before = re.split(r"(?<!\\)\n", text[max(0, match.start() - MAX_COMMAND_CHARS) : match.start()])[-1]
        if program.search(before) and _is_real_password(match["password"]) and not PORT.fullmatch(match["password"]):
            yield Secret("password on a command line", *match.span("password"))


def _is_login(value: str) -> bool:
    """Return whether a base64 value decodes to `user:password`."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:
        return False
    return bool(user and colon and user.isprintable() and len(password) >= 4 and _is_real_password(password))


def _find_auth_headers(text: str) -> Iterator[Secret]:
    for match in AUTH_HEADER.finditer(text):
        if not _is_placeholder(match[1]) and _is_random(match[1]):
            yield Secret("authorization header", *match.span(1))


def _find_assignments(text: str) -> Iterator[Secret]:
    """Find secrets assigned to names such as `api_key`. A harmless value may itself be a name: `secret: api_key = "…"`."""
    at = 0
    while match := SECRET_ASSIGNMENT.search(text, at):
        which = "quoted" if match["quoted"] else "bare"
        if _is_assigned_secret(text, match, which):
            yield Secret("assigned secret", *match.span(which))
            at = match.end()
        else:
            at = match.start(which)


def _is_assigned_secret(text: str, match: re.Match[str], which: str) -> bool:
    name, value = _whole_name(text, match), match[which]
    if HARMLESS_NAME.search(name) or PLACEHOLDER.search(value) or value.lower() in COMMON_PASSWORDS:
        return False
    if which == "bare" and DOTTED_NAME.fullmatch(value):
        return False
    return _is_password(name, value, which) or _is_random(value, digits=1 if which == "quoted" else 2)


def _whole_name(text: str, match: re.Match[str]) -> str:
    before = re.search(r"[\w.-]*$", text[max(0, match.start() - 40) : match.start()])
    return f"{before[0] if before else ''}{match['name']}".lower()


def _is_password(name: str, value: str, which: str) -> bool:
    """Return whether a value looks like a chosen password: three kinds of characters, and not the word "password"."""
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]"))
    names_password = re.search("passw|pwd|passphrase", name) and which == "quoted"
    return (
        bool(names_password)
        and kinds >= 3
        and len(value) >= 10
        and not re.search(r"(?i)passw|secret|^[~./]|[(){}\[\]]", value)
    )


def _is_random(value: str, digits: int = 1) -> bool:
    """Return whether a value looks random: long, letters mixed with digits, high entropy."""
    runs = [run for run in re.findall(r"[A-Za-z0-9+/=~]{8,}", value) if re.search(r"[A-Za-z]", run)]
    longest = max(runs, key=len, default="")
    mixed = len(re.findall(r"\d", longest)) >= digits
    return len(value) >= 16 and mixed and _entropy(value) >= 3.0 and not re.search(r"[(){}\[\]\\]|::|//", value)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) if text else 0.0
