"""Names of settings: which say that their value is a password, a secret or a key."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

NameKind = Literal["password", "secret", "key", ""]

# Every name of a secret has one of these, in lower case. "??" is how a scan shows letters outside of ASCII.
NAME_STEMS = (
    b"pass", b"pwd", b"pw", b"secret", b"token", b"key", b"credential", b"psk", b"_auth", b"_pat", b"-pat", b"kennwort", b"senha",
    b"contrase", b"wachtwoord", b"parola", b"salasana", b"adgangskode", b"senord", b"haslo", b"authtok", b"masterauth", b"pepper", b"salt",
)  # fmt: skip
# Names of passwords in other alphabets, which are not in the bytes of a scan.
FOREIGN_NAME = re.compile("hasło|пароль|密码|密碼|パスワード|비밀번호|mật khẩu", re.IGNORECASE)
PASSWORD_NAME = re.compile(
    r"(?i:passw(?:or)?d|passphrase|passwort|passcode|(?:^|[_.-])pass(?:$|[_.-])|pwd$|passe$|(?:bind|root)pw$|(?:^|[_.-])pw$|psk$|pre[-_]?shared[-_]?key|authtok$|requirepass|masterauth"
    r"|(?:db|sql|root|admin|ftp|smtp|mail|ssh|key|store)pass$"
    r"|kennwort|senha|contrase|wachtwoord|parola|salasana|adgangskode|l(?:o|ö|oe)senord|haslo)|[a-z]Pwd|[a-z]Pass$"
)
SECRET_NAME = re.compile(
    r"(?i)secret|token|credential|(?:api|access|private|auth|signing|encryption|account|master|admin|app|application|client|service"
    r"|server|storage|subscription|session|shared|webhook|license|deploy|write|root|hmac|jwt|pre_?shared)[_-]?key(?:s?$|[_.-]|[A-Z])"
    r"|(?:^|[_-])(?:pat|sas)$|_auth$|connection_?string|secret_?key|pepper$"
)
KEY_NAME = re.compile(r"(?i)key$|(?:^|[_.-])salt$")
# The name ends with a word for a password: its value may be words.
PASSWORD_END = re.compile(
    r"(?i)(?:passw(?:or)?d|passwort|pass|pwd|pw|psk|passphrase|kennwort|senha|contraseña|shared[-_]?key|authtok)\d?$"
)
# The value may be a phrase, with blanks.
PHRASE_NAME = re.compile(r"(?i)phrase$|psk$|shared[-_]?key$")
# A setting with one of these words is not secret; with one of the others only if it is the last word.
HARMLESS_WORDS = frozenset(
    """
    hash hashed sha md digest checksum fingerprint integrity public publishable pub pubkey sitekey page next continuation cursor sync resume
    sequence csrf xsrf cancel cancellation placeholder site max min ttl tokenizer tokenize tokenized tokenization primary foreign partition
    sort cache row object idempotency dedup routing lookup map dict translation i18n label error message tooltip expiration
    """.split()  # noqa: SIM905
)
HARMLESS_LAST_WORDS = frozenset(
    """
    id ids name names url uri urls path paths file filename dir folder type types count limit length len size regex pattern prompt title
    description hint version ref refs arn class prefix suffix header headers param params field fields column env var variable algo algorithm
    policy policies format index position offset usage budget endpoint issuer scope scopes status state mode enabled required expiry expires
    expire at in alias store provider manager generator validator handler factory service spec config settings options rules rule list table
    schema model encoder hasher hashing change changed reset updated history strength visible hidden toggle button input form screen view
    dialog step event missing invalid expired revoked
    """.split()  # noqa: SIM905
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=4096)
def classify_name(name: str) -> NameKind:
    """Return what a name says of its value, or "" if the value is not secret."""
    if has_harmless_name(name):
        return ""
    if PASSWORD_NAME.search(name) or (not name.isascii() and FOREIGN_NAME.search(name)):
        return "password"
    if SECRET_NAME.search(name):
        return "secret"
    return "key" if KEY_NAME.search(name) else ""


def has_harmless_name(name: str) -> bool:
    """Return whether the name of a setting says that it is not secret: `next_page_token`, `secretName`."""
    words = [word.lower() for word in WORD.findall(name)]
    last = words[-1:] if not words or not words[-1].isdigit() else words[-2:-1]
    return not HARMLESS_WORDS.isdisjoint(words) or not HARMLESS_LAST_WORDS.isdisjoint(last)
