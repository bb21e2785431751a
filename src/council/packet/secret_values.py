"""Judgement of values: whether a text is a password or a key, or a placeholder, a reference, a name or a program."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise

from council.packet.secret_rules import NEW_LINE, UUID_SHAPE

# Placeholders

PLACEHOLDER_WORDS = (
    r"example|sample|placeholder|change[-_ ]?(?:me|it|this)|your|my[-_]?(?:key|token|secret|pass)|dummy|fake|redacted|insert|replace|todo|fixme"
    r"|x{4,}|\*{3,}|\.{3}|…|0{8,}|<|>|\$\{|\$\(|\{\{|%\(|%s|#\{|\bnone\b|\bnull\b|\bundefined\b"
)
PLACEHOLDER_WORD = re.compile(PLACEHOLDER_WORDS, re.IGNORECASE)
PLACEHOLDER = re.compile(f"{PLACEHOLDER_WORDS}|1234567|abcdefg", re.IGNORECASE)
# A placeholder in a quoted value, in which symbols mean nothing.
QUOTED_PLACEHOLDER = re.compile(
    r"(?i)example|sample|placeholder|change[-_ ]?(?:me|it|this)|\byour|my[-_]?(?:key|token|secret|pass)|dummy|fake|redacted|insert|replace"
    r"|todo|fixme|x{4,}|\*{3,}|\.{3}$|…|0{8,}|0?1234567(?:89?0?)?|abcdefg"
)
COMMON_PASSWORDS = frozenset(
    """
    password passwd pass secret token user username root admin guest test postgres mysql mongo redis rabbitmq minio dev local pwd key apikey
    api_key string str true false value name text required optional default prompt stdin foo bar xxx
    """.split()  # noqa: SIM905
)
# A word like "your_secret", not a value.
SELF_DESCRIBING_PASSWORD = re.compile(r"(?i)[a-z_-]*(?:secret|passw(?:or)?d)[a-z_-]*")
# Words of passwords in tests and documentation.
TEST_PASSWORD = re.compile(
    r"(?i)pass|p[a@][s$]{2}|s[e3]cr[e3]t|test|demo|foo|bar|admin|user|login|qwerty|token|valid|wrong|\bnew|\bold"
)
# SHA-256 of keys that vendors and standards publish for documentation and emulators, first 16 characters.
PUBLISHED_KEYS = frozenset(
    {
        "2cafc0970149a84f",
        "f2d6ca16515033e5",
        "0011cc25eb432071",
        "aa6547439583c3a2",
        "78314b11be2e5815",
        "cf4d418ed3de92d7",
        "73f71af093fdf154",
    }
)
PUBLISHED_CLAIMS = "eyJzdWIiOiIxMjM0NTY3ODkwI"  # payload of the JSON web token in most tutorials
DOCUMENTED_KEY = re.compile(r"EXAMPLE(?:KEY|TOKEN)?=*$|(?i:example[\d=]*$)|^sk_test_4eC39HqLyjW")
# A public token of Mapbox, the address of a contract, a sealed secret of Kubernetes
PUBLIC_VALUE = re.compile(r"^pk\.eyJ|^0x[0-9a-fA-F]{40}$|^Ag[A-Za-z0-9+/]{150}")

# References: values that say where the secret is

REFERENCE = re.compile(
    r"(?i)[$%@&*!~]?[{(\[$%]|\$[a-z_]|%[a-z_]+%|(?:arn|op|vault|ssm|sm|awssm|gcpsm|azurekv|keyring|keychain|secretref|ref|env|file|data|https?|projects|urn|spiffe)[:/]"
    r"|[~.]{0,2}/(?![A-Za-z0-9+/]{39,}={0,2}$)|[a-z]:\\|enc\[|\$ansible|process\.env|os\.|secrets\.|sha(?:1|256|384|512)[-:]|ssh-|age1|gAAAAA|A[KS]IA|cn=|@[\w.-]+@$"
)
POINTER = re.compile(
    r"(?i)(?:arn|op|vault|ssm|sm|awssm|gcpsm|azurekv|keyring|keychain|secretref|ref|env|file|data|https?|projects|urn|spiffe|classpath)[:/]"
    r"|enc[\[(]|\$ansible|v?\d+\.\d+|process\.env|os\.|secrets\.|sha(?:1|256|384|512)[-:]|ssh-|age1|gAAAAA|cn=|A[KS]IA|[~.]{0,2}/\w|[a-z]:\\"
)
TEMPLATE = re.compile(
    r"\$\{[\w.:/ -]+\}|\$\([^)]+\)|\{\{.*\}\}|#\{[^}]+\}|%\(\w+\)s|<%|%[A-Z_]{3,}%|^\$\w+$|^\$?\{[\w.\[\]]+\}$|^\[[\w .-]+\]$|^<[^<>]+>$|^%[sdv]$|^@@?[\w.-]+@?@?$"
    r"|\{(?:[A-Za-z_]\w*)?\}|\w::\w|#[0-9A-Fa-f]{6}$|^&\w+$|^\*[\w-]+$|^%\w+%$|^@\w+\.\w+\("
)

# Names, paths and programs

DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+[!?]?")  # an unquoted identifier in a program
IDENTIFIER = re.compile(r"[A-Za-z_]+\d{0,2}")
NAME_PATH = re.compile(r"[A-Za-z_$]+\d{0,2}(?>[._:/>-]+[A-Za-z_]*\d{0,2})+[!?]?")
NAME_WITH_NUMBER = re.compile(r"[A-Za-z]+(?:[._-][A-Za-z]+)*[._-]?\d{1,4}")
CONSTANT = re.compile(r"[A-Z]+\d{0,5}(?:_[A-Z]{2,})+\d{0,2}")
FILE_NAME = re.compile(
    r"(?i)[\w./*-]+\.(?:key|pem|crt|txt|json|ya?ml|toml|env|py|js|ts|jks|p12|pfx|gpg|asc|pub|enc|age|conf|ini|html?|php|md)"
)
HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+(?::\d+)?(?:/\S*)?|[\w.-]+@[\w-]+(?:\.[a-z]+)+|\w+:\d+")
CALL = re.compile(
    r"[A-Za-z_][\w.:]*[!?]?[(\[].*[)\]][;,]?|(?:new|await|lambda|function|return|async|not|if)\b.*|.*=>.*|.*\)\)"
)
TYPE = re.compile(r"[A-Z]?[A-Za-z_.]*(?:[\[<][\w ,.|<>\[\]]*[\]>])?\d?(?:[ \t]?[|&?][ \t]?[A-Za-z_.\[\]<>]+)*[?!]?")
TYPE_WITH_DIGITS = re.compile(r"[A-Z]\w+(?:Key|Token|Secret|Password|Type|Str|Field)s?")
REGEX = re.compile(r"\\[dws]|\[A-Z|\[a-z|\[0-9|\(\?[:=!<P]|\{\d+,\d*\}|^\^(?=.*[\[\\(.]).*\$$")
VALIDATION_RULES = re.compile(r"[a-z_]+(?::[\w,.]+)?(?:\|[a-z_]+(?::[\w,.]+)?)+")
EXPRESSION = re.compile(
    r"^[A-Za-z_]\w*\[[\w\"'-]+\](?:\.\w+)*$|[A-Za-z_]\w*\.[A-Za-z_]\w*\(|\(\)|&&|\|\||==|!=|->|\w\[-?\d+\]\.\w"
)
PROGRAM_TEXTS = (TEMPLATE, REGEX, EXPRESSION, DOCUMENTED_KEY)
PROGRAM_START = re.compile(r"[A-Za-z_]{3,}[\w.]*[(\[]")
NOT_GENERATED = re.compile(
    r"v?\d+\.\d[\w.+-]*|\$\{.*\}|\$\(.*\)|\{\{.*\}\}|<.*>|%.*%|[\d.:/T+Z-]+|[0-9A-Fa-f:.-]+|0x\w+"
)
PROSE_WORD = re.compile(
    r"(?i)\b(?:the|a|an|is|are|must|be|your|you|enter|for|to|of|and|or|with|new|please|at|least|characters?|passwords?|not|invalid|if|minimum"
    r"|token|secret|key|this|use|set|forgot|confirm|current|from|no|only|was|has|mindestens|zeichen|au moins|caractères|caracteres|mínimo|minimal|mindst|tekens|muss|doit|debe|deve)\b"
)
APP_PASSWORD = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}")
DELIMITER_AT_END = re.compile(r"[\"'}\]),;]$")
DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
SYMBOL = re.compile(r"[!@#$%^&*?+~()\[\]{}<>|=;,]")
KINDS = tuple(map(re.compile, ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]")))
MIN_CHANGES = 0.38  # of the kind of character: over 0.6 in random text, under 0.3 in identifiers
MIN_PASSWORD_CHANGES = 0.5  # in a generated password with symbols; programs and names have under 0.4


# Keys with a known format


def is_sample_key(key: str) -> bool:
    """Return whether a key with a known format is only a sample.

    A sample has no digits, one repeated letter, or little else than words. "Example" inside a random key does not make
    it one.
    """
    if is_published(key) or len(set(key[-20:])) <= 2 or not re.search(r"\d|[A-Za-z]{20}", key):
        return True
    body = re.sub(r"^[a-z]{2,3}[-_]", "", key, count=1)
    return is_slug(body) or (bool(PLACEHOLDER_WORD.search(body)) and not _has_random_rest(body))


def is_published(key: str) -> bool:
    value = key.partition("=")[2] if key.startswith("AccountKey=") else key
    digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
    return PUBLISHED_CLAIMS in key or digest[:16] in PUBLISHED_KEYS


def is_slug(body: str) -> bool:
    """Return whether the rest of a key is words, numbers and hyphens, like a CSS class or the path of an address."""
    parts = [part for part in re.split(r"[-_]+", body) if part]
    if UUID_SHAPE.search(body) or not parts:
        return False
    words = [part for part in parts if re.fullmatch(r"[a-z]{2,}\d?|[A-Z]?[a-z]{2,}|\d{1,4}", part)]
    if len(words) == len(parts) and not re.search(r"[A-Za-z]{20}", body):
        return True
    plain = sum(len(word) >= 3 and word.isalpha() for word in words)
    return plain >= 3 and len(words) * 2 >= len(parts) and len(max(parts, key=len)) < 48 and body.lower() == body


def _has_random_rest(value: str) -> bool:
    """Return whether a value is random apart from words such as "example"."""
    rest = PLACEHOLDER_WORD.sub("", value)
    mixed = [
        run for run in re.findall(r"[A-Za-z0-9+/]{14,}", rest) if re.search(r"\d", run) and re.search("[A-Za-z]", run)
    ]
    return not PLACEHOLDER.search(rest) and any(entropy(run) >= 3.0 for run in mixed)


# Passwords whose place is known: addresses, headers, cookies, command lines, Kubernetes secrets


def is_real_password(password: str) -> bool:
    """Return whether a password is real: not a common placeholder and not a variable."""
    usual = password.lower() in COMMON_PASSWORDS or SELF_DESCRIBING_PASSWORD.fullmatch(password)
    return not usual and not is_filler(password) and not password.startswith(("$", "{", "%", ":", "["))


def is_filler(value: str) -> bool:
    """Return whether a value is a placeholder: it contains a word such as "example" and nothing random."""
    is_aws_sample = len(value) in (40, 41) and value.endswith("EXAMPLEKEY")
    return is_aws_sample or (bool(PLACEHOLDER.search(value)) and not _has_random_rest(value))


def is_login(value: str) -> bool:
    """Return whether a base64 value decodes to `user:password`."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:
        return False
    return bool(user and colon and user.isprintable() and len(password) >= 4 and is_real_password(password))


def decode_base64(value: str) -> str:
    """Return the decoded text of the start of a base64 value, or "" if it is not base64."""
    plain = re.sub(rf"\\\\n|{NEW_LINE}|[\s\"]", "", value)
    padded = plain + "=" * (-len(plain.rstrip("=")) % 4) if len(plain) < 120 else plain[: len(plain) // 4 * 4]
    try:
        return base64.b64decode(padded).decode("latin-1")
    except ValueError:
        return ""


# Quoted values

UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def plain_text(value: str) -> str:
    """Return a literal without its escapes, and without the accents of letters."""
    value = UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
    value = re.sub(r"\\(.)", r"\1", value)
    if value.isascii():
        return value
    letters = unicodedata.normalize("NFKD", value)
    return "".join(char for char in letters if not unicodedata.combining(char))


def is_literal_password(value: str, minimum: int = 6) -> bool:
    """Return whether a literal is a password by its characters alone."""
    value = plain_text(value)
    if len(value.strip()) < minimum:
        return False
    if is_published(value) or VALIDATION_RULES.fullmatch(value) or DATE.fullmatch(value) or PUBLIC_VALUE.search(value):
        return False
    if is_generated(value) and (len(value) > 12 or not TEST_PASSWORD.search(value)):
        return True
    if POINTER.match(value) or any(pattern.search(value) for pattern in PROGRAM_TEXTS):
        return False
    if APP_PASSWORD.fullmatch(value):
        return True
    rest = TEST_PASSWORD.sub("", QUOTED_PLACEHOLDER.sub("", re.sub("(?i)passw(?:or)?d", "", value)))
    if rest != value and (len(rest) < 8 or count_kinds(rest) < 3 or is_slug(value)):
        return False
    has_digit = bool(re.search(r"\d", value))
    if (NAME_PATH.fullmatch(value) and not NAME_WITH_NUMBER.fullmatch(value)) or CONSTANT.fullmatch(value):
        return False
    if FILE_NAME.fullmatch(value) or HOST.fullmatch(value):
        return False
    if " " in value:
        return _is_passphrase(value)
    if CALL.fullmatch(value) and not has_digit:
        return False
    has_letter = bool(re.search(r"[A-Za-z]", value))
    has_symbol = bool(SYMBOL.search(value)) and not DELIMITER_AT_END.search(value)
    kinds = count_kinds(value)
    return has_letter and ((has_digit and kinds >= 2) or (has_symbol and kinds >= 3))


def is_generated(value: str) -> bool:
    """Return whether a value is a generated password beyond doubt: its kind of character changes all the time."""
    if len(value) < 10 or (" " in value and len(value) < 40):
        return False
    if count_kinds(value) < 3:
        return value.isalpha() and _has_irregular_case(value)
    if NOT_GENERATED.fullmatch(value) or PROGRAM_START.match(value) or REGEX.search(value):
        return False
    kinds = [(char.isdigit(), char.isupper(), char.islower()) for char in value]
    changes = sum(first != second for first, second in pairwise(kinds))
    return changes >= MIN_PASSWORD_CHANGES * len(value) and bool(re.search("[A-Za-z]", value))


def _has_irregular_case(letters: str) -> bool:
    """Return whether the case of letters changes without words: `HlYMnDejSJ`, but not `HttpServerName`."""
    runs = re.findall("[a-z]+", letters)
    return len(runs) >= 3 and sum(map(len, runs)) <= 2 * len(runs) and bool(re.search("[A-Z]", letters))


def is_word_password(value: str, *, allow_blanks: bool) -> bool:
    """Return whether a value is a password made of words: `tangerine-Anvil-3`."""
    words = re.split("[- ]" if allow_blanks else "-", value)
    if not all(re.fullmatch(r"[A-Za-z]{2,}\d{0,4}|\d{1,4}", word) for word in words):
        return False
    if QUOTED_PLACEHOLDER.search(value) or TEST_PASSWORD.search(value) or SELF_DESCRIBING_PASSWORD.fullmatch(value):
        return False
    if " " in value:
        return len(words) >= 4 and value.islower() and not PROSE_WORD.search(value)
    return len(words) >= 3


def is_mixed_word(value: str) -> bool:
    """Return whether a value in another alphabet is one word of letters, digits and symbols, which no label is."""
    has_letters = any(char.isalpha() and not char.isascii() for char in value)
    kinds = (r"[^\W\d_]{2}", r"\d", r"[^\w\s]|_")
    return has_letters and " " not in value and all(re.search(kind, value) for kind in kinds)


def is_phrase(value: str) -> bool:
    """Return whether the value of a passphrase is one: words that are no sentence of a form."""
    words = value.split()
    return (
        len(value) >= 8
        and value.lower() not in COMMON_PASSWORDS
        and not (PROSE_WORD.search(value) or QUOTED_PLACEHOLDER.search(value) or TEST_PASSWORD.search(value))
        and not (TEMPLATE.search(value) or POINTER.match(value) or FILE_NAME.fullmatch(value))
        and (len(words) >= 3 or (len(words) == 1 and bool(re.search(r"[\d._-]", value))))
        and not NAME_PATH.fullmatch(value.replace(".", " "))
    )


def is_call_password(value: str) -> bool:
    """Return whether a literal in the place of a password is one."""
    value = plain_text(value)
    if is_literal_password(value):
        return True
    is_name = CONSTANT.fullmatch(value) or FILE_NAME.fullmatch(value) or TEMPLATE.search(value)
    is_dummy = QUOTED_PLACEHOLDER.search(value) or TEST_PASSWORD.search(value) or value.lower() in COMMON_PASSWORDS
    return len(value) >= 6 and " " not in value and not is_name and not is_dummy and count_kinds(value) >= 2


def _is_passphrase(value: str) -> bool:
    words = value.split()
    longest = max(words, key=len)
    if count_kinds(longest) == 4 and len(longest) >= 12:
        return True
    is_label = PROSE_WORD.search(value) or len(value) > 60 or (len(words) > 4 and not value.islower())
    return (
        not is_label and len(words) <= 6 and bool(re.search(r"\d", value)) and count_kinds(value.replace(" ", "")) >= 2
    )


# Unquoted values


def is_expression(value: str) -> bool:
    """Return whether an unquoted value is an expression or a type of a program."""
    if value[0] in "\"'`[({" or value[-1] in "\"'`" or is_attribute(value) or value.endswith(("{", "(", "[", ":")):
        return True
    return any(kind.fullmatch(value) for kind in (CALL, TYPE, TYPE_WITH_DIGITS)) or bool(EXPRESSION.search(value))


def is_attribute(value: str) -> bool:
    """Return whether an unquoted value is an attribute: `settings.api_key`, but not `s.` and random letters."""
    return bool(DOTTED_NAME.fullmatch(value)) and not is_dense(value.split(".")[-1])


def is_chosen_password(value: str) -> bool:
    """Return whether an unquoted word looks like a password of a person: several kinds of characters, no test word."""
    return (
        count_kinds(value) >= 3
        and len(value) >= 8
        and bool(re.search(r"\d|[!@#$%^&*?+~]", value))
        and not TEST_PASSWORD.search(value)
        and not re.search(r"[(){}\[\]\\|=]|::|//|^[~./-]|^[\w-]+(?:\.[\w-]+)+(?::\d+)?$|:\d+$", value)
        and not (re.search("[-_]", value) and is_slug(value))
    )


# Random text


def is_random(value: str, digits: int = 1) -> bool:
    """Return whether a value looks random: long, letters mixed with digits, high entropy."""
    if len(value) < 16 or re.search(r"[(){}\[\]\\]|::|//", value) or entropy(value) < 3.0:
        return False
    runs = [run for run in re.findall(r"[A-Za-z0-9+/=~]{8,}", value) if re.search(r"[A-Za-z]", run)]
    longest = max(runs, key=len, default="")
    found = len(re.findall(r"\d", longest))
    return found >= digits or (found > 0 and len(longest) >= 16 and _changes(longest) >= MIN_CHANGES)


def is_dense(value: str) -> bool:
    """Return whether a value is random beyond doubt and no identifier."""
    return is_strong(value, digits=1) and _changes(value) >= MIN_CHANGES


def is_strong(value: str, digits: int = 3) -> bool:
    """Return whether a value is random beyond doubt, for names that only end in "key"."""
    is_one_word = re.fullmatch(r"[A-Za-z0-9+/_-]{19,500}[A-Za-z0-9]={0,2}", value)
    is_mixed = re.search(r"[a-z]", value) and (re.search(r"[A-Z]", value) or re.fullmatch(r"[0-9a-f]{32,}", value))
    return (
        bool(is_one_word and is_mixed)
        and len(re.findall(r"\d", value)) >= digits
        and entropy(value) >= 3.3
        and not is_slug(value)
    )


def _changes(run: str) -> float:
    """Return how often the kind of character changes, as a share of the length."""
    kinds = [(char.isdigit(), char.isupper()) for char in run]
    return sum(first != second for first, second in pairwise(kinds)) / len(run)


def count_kinds(value: str) -> int:
    return sum(bool(kind.search(value)) for kind in KINDS)


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
