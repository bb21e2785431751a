"""Judgements of single values: what is a password or a key, and what only looks like one."""

from __future__ import annotations

import base64

import pytest

from council.packet.secret_filter import find_secrets
from council.packet.secret_names import NameKind
from council.packet.secret_settings import is_literal_secret
from council.packet.secret_values import (
    decode_base64,
    entropy,
    is_call_password,
    is_expression,
    is_generated,
    is_literal_password,
    is_phrase,
    is_random,
    is_sample_key,
    is_slug,
    is_word_password,
    plain_text,
)
from tests.packet.fake_secrets import some

PASSWORD = "Kd9#" + "mQ2xW"
RANDOM = some("abcdefghijklmnopqrstuvwxyz0123456789", 24, "value")


@pytest.mark.parametrize(
    ("value", "is_password"),
    [
        ("Tr0ub4dor&3x", True),
        ("abc12", False),  # too short
        ("      x", False),
        ("password", False),
        ("my_secret", False),
        ("required|string|min:8", False),
        ("2024-05-01 12:30:00", False),
        ("vault:kv/db#1", False),
        ("${DB_PASS_1}", False),
        ("[A-Z0-9]{8,12}", False),
        ("config.get('pw1')", False),
        ("abcd efgh ijkl mnop", True),  # an app password
        ("user-password-1", False),
        ("Settings.db.Login", False),
        ("AES256_CIPHER_MODE", False),
        ("deploy/key2.pem", False),
        ("db2.example-host.net", False),
        ("correct horse 9 battery", True),
        ("At least 8 characters", False),
        ("getPassphrase(user)", False),
        (RANDOM, True),
        ("onlyletters", False),
        ("prod-2024.key", False),
        ("db-2024.internal:5432", False),
        ("sunny!Day?moon", True),
        ("row=>row.Identifier", False),
        ("the Tr0ub4dor&3xZq here", True),
    ],
)
def test_a_literal_is_a_password_by_its_characters(value: str, is_password: bool) -> None:
    assert is_literal_password(value) is is_password


@pytest.mark.parametrize(
    ("value", "allow_blanks", "is_password"),
    [
        ("tangerine-Anvil-3", False, True),
        ("tangerine-Anvil", False, False),
        ("tangerine-Anvil-#", False, False),
        ("your-secret-value", False, False),
        ("admin-panel-3", False, False),
        ("anvil copper lantern moss", True, True),
        ("anvil copper lantern moss", False, False),
        ("anvil copper lantern", True, False),
        ("enter the new one", True, False),
    ],
)
def test_words_are_a_password_if_they_are_no_sentence(value: str, allow_blanks: bool, is_password: bool) -> None:
    assert is_word_password(value, allow_blanks=allow_blanks) is is_password


@pytest.mark.parametrize(
    ("value", "name", "kind", "is_secret"),
    [
        ("primaryKeyOfTable", "api_key", "key", False),
        ("AB12C-DE34F-GH56J-KL78M-NP90Q", "license_key", "key", True),
        ("пароль", "password", "password", False),
        ("пароль7!", "password", "password", True),
        ("3f2b8c1e-9d4a-4f6b-8a7c-5e1d2f3a4b5c", "client_request_token", "secret", False),
        ("openai:gpt-5", "token", "secret", False),
        ("next-page-cursor", "token", "secret", False),
        (RANDOM, "token", "secret", True),
        ("anvil copper lantern moss", "passphrase", "password", True),
        ("anvil copper lantern moss", "password", "password", False),
        ("tangerine-Anvil-3", "db_password", "password", True),
    ],
)
def test_the_name_of_a_setting_says_how_its_value_is_judged(
    value: str, name: str, kind: NameKind, is_secret: bool
) -> None:
    assert is_literal_secret(name, kind, value) is is_secret


def test_samples_of_keys_are_known_by_their_form() -> None:
    assert is_sample_key("A" + "KIAIOSFODNN7" + "EXAMPLE")
    assert is_sample_key("sk-" + "ab" * 12) and is_sample_key("sk-" + "abcd-" * 5)
    assert is_sample_key("sk-" + "x" * 30) and is_sample_key("ghp_your_token_goes_here")
    assert not is_sample_key("ghp_" + RANDOM)


def test_a_slug_has_words_and_no_random_part() -> None:
    assert is_slug("btn-primary-2") and is_slug("-Primary-2") and is_slug("-a-long_css_class-")
    assert not is_slug("") and not is_slug("btn-x9Zk2-" + RANDOM)
    assert not is_slug("abcdefghijklmnopqrstuvwxyz")


def test_generated_passwords_change_their_kind_of_character() -> None:
    assert is_generated("x7#Kq2!Vb9") and is_generated("HlYMnDejSJ")
    assert (
        not is_generated("a1b2c3d4e5f6")
        and not is_generated("x7#Kq2!Vb")
        and not is_generated("x7 #Kq2 !Vb9")
        and not is_generated("HttpServerName")
    )


def test_random_text_is_long_and_mixes_letters_with_digits() -> None:
    assert is_random(RANDOM) and not is_random(RANDOM[:15])
    assert not is_random("a1" * 12) and not is_random(f"{RANDOM[:12]}({RANDOM[12:]})")
    assert not is_random("12345678901234567890-abcdefgh")


def test_a_password_in_a_call_may_be_one_word() -> None:
    assert (
        is_call_password("sunny-Day")
        and is_call_password("correct horse 9 battery")
        and is_call_password("Tr0ub4dor&3x")
    )
    assert not is_call_password("DB_PASS") and not is_call_password("sunny day") and not is_call_password("test-User")


def test_a_phrase_has_three_words_or_one_with_a_mark() -> None:
    assert is_phrase("anvil copper lantern") and is_phrase("anvil9copper9lantern")
    assert not is_phrase("anvil copper") and not is_phrase("enter your words") and not is_phrase("key.pem")


@pytest.mark.parametrize("value", ["[x", "x'", "settings.api_key", "open(", "x => x.id", "dict[str, int]", "a.b(c"])
def test_an_expression_is_no_unquoted_value(value: str) -> None:
    assert is_expression(value) and not is_expression(RANDOM)


def test_escapes_and_accents_are_no_part_of_a_value() -> None:
    assert plain_text(r"a\"b\u0041") == 'a"bA' and plain_text("Pässwörd") == "Password"


def test_the_start_of_a_long_base64_text_is_enough() -> None:
    text = "user:" + "p" * 300
    encoded = base64.b64encode(text.encode()).decode().rstrip("=")
    assert decode_base64(encoded[:121]) == text[:90]
    assert decode_base64(encoded[:14]) == text[:10]
    assert decode_base64("!") == "" and entropy("") == 0.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('print("password=" + value + ")")', []),  # the quote ends the text before
        ('x = f"token={value}-0a9b8c7d6e5f4a3b"', []),
        (f'{{"password": "+{PASSWORD}"}}', [f"+{PASSWORD}"]),
        (f'password = "${{DB_PASSWORD:-{PASSWORD}}}"', [PASSWORD]),
        (f"GET /x?token={RANDOM}&page=2", [RANDOM]),
        (f"ENV API_TOKEN {RANDOM}", [RANDOM]),
        (f"requirepass {PASSWORD}", [PASSWORD]),
        ("pass" + "word: hunter2", ["hunter2"]),
        ("    password = string2;", []),
        (f'<password algorithm="{PASSWORD}">', []),
        (f'Type::AuthToken = "{RANDOM}"', []),
        (f'put("api_token", "{RANDOM}")', [RANDOM]),
        (f'put("password", "DB_PASSWORD={PASSWORD}")', []),
        ('login("next_password", "new-password-field")', []),
        ("ConvertTo-Secure" + 'String "summer-Rain" -AsPlainText -Force', ["summer-Rain"]),
        (f"smtp.host.net:587 me@host.net:{PASSWORD}", [PASSWORD]),
        ("smtp.host.net:587 me@host.net:letters see 1", []),
    ],
)
def test_a_value_is_found_by_what_is_around_its_name(text: str, found: list[str]) -> None:
    assert [text[secret.start : secret.end] for secret in find_secrets(text)] == found
