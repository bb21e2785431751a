"""The time of the secret filter: it reads every file, every answer and every event, so no text may hold it up."""

from __future__ import annotations

import string
from itertools import count

import pytest

from council.packet import secret_blocks, secret_calls, secret_context, secret_filter, secret_names
from council.packet.secret_filter import find_secrets
from tests.growth import measure_growth

PADDING = "padding " * 9  # short texts are not searched for everything
TABLES = (secret_blocks, secret_calls, secret_context, secret_filter, secret_names)
MAX_GROWTH = 8.0  # for four times the text: 4 is linear, 16 is quadratic
numbers = count()


def search(text: str) -> None:
    """Search a text that was not searched before, because results are kept."""
    find_secrets(f"{next(numbers)}\n{text}")


def list_hints() -> list[str]:
    """Return the words that the rules look for before they search a text."""
    values = [value for table in TABLES for name, value in vars(table).items() if name.isupper()]
    rows = [row for value in values if isinstance(value, (tuple, list)) for row in value]
    hints = {row for row in rows if isinstance(row, bytes)}
    hints |= {hint for row in rows if not isinstance(row, bytes) for hint in getattr(row, "hints", ())}
    return sorted(hint.decode() for hint in hints)


VALUES = ("ab{}9f (x)", "start{} end", "sk-{}9f3a", "{}x1", "{}/../9f3a1")
PLACES = ('api_key = "{}"', "PASSWORD='{}'", "token: {}", "f(password={})", 'auth("{}")')


@pytest.mark.behaviour("40-secret-time")
@pytest.mark.parametrize(("place", "value"), list(zip(PLACES, VALUES, strict=True)), ids=VALUES)
def test_a_value_of_equal_characters_is_read_at_once(place: str, value: str) -> None:
    """A rule that tries all ways to divide such a value takes 256 times as long for eight characters more."""

    def read(length: int) -> None:
        for character in {*string.printable, "é", "→"}:
            search(PADDING + "\n" + place.format(value.format(character * length)) + "\n")

    assert measure_growth(read, 8, times=2) < MAX_GROWTH
    assert measure_growth(read, 48, times=4) < 2 * MAX_GROWTH


def spaced_arguments(call: str, count: int) -> str:
    return f"{call}({(' ' * 40 + 'a' + ' ' * 4 + ',') * count}x\n{PADDING}"


@pytest.mark.behaviour("40-secret-time")
@pytest.mark.parametrize("call", ["UsernamePasswordCredentialsImpl", "connect", "mysqli_connect", "login", "hash_hmac"])
def test_arguments_with_much_space_between_them_are_read_at_once(call: str) -> None:
    def read(arguments: int) -> None:
        for _ in range(20):
            search(spaced_arguments(call, arguments))

    assert measure_growth(read, 1, times=4) < 2 * MAX_GROWTH


FILLERS = ("", "(" + " " * 40 + "a" + " " * 4 + ",", ': "', "\n", "-----", "\n| ", ":a\nlist:aaaaaaaaaa\n")
UNITS = (
    "openssl_decrypt(" + " " * 40 + "a" + " " * 4 + ",", "mysql_pconnect(a ,", "| password |\n", "mysql-", "eyJhdXRocyI6-----",
    "chpasswd:aaaaaaaaaaaaaaaaaaaa\nlist:aaaaaaaaaa\n", "snmp", "htpasswd\n| ", "recovery codes\n", 'password: "', "curl -u a:", "://a:a",
)  # fmt: skip


def grows_with_its_square(unit: str) -> bool:
    def read(size: int) -> None:
        search((unit * (size // len(unit) + 1))[:size])

    # Short times are measured badly, so what seems to grow fast is measured again with more text.
    return all(measure_growth(read, size, times=4) > MAX_GROWTH for size in (8_000, 16_000, 16_000))


@pytest.mark.behaviour("40-secret-time")
@pytest.mark.parametrize("unit", UNITS)
def test_the_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    assert not grows_with_its_square(unit)


@pytest.mark.sweep
@pytest.mark.behaviour("40-secret-time")
@pytest.mark.parametrize("filler", FILLERS, ids=repr)
def test_the_time_grows_with_the_text_for_every_hint(filler: str) -> None:
    assert [hint + filler for hint in list_hints() if grows_with_its_square(hint + filler)] == []


@pytest.mark.parametrize(
    "code",
    [
        'smtp.login("user", "{}")', 'driver.find("password").type("{}")', "auth=('user', '{}')", 'connect("h", "u", "d", "{}")',
        'add_argument("--password", default="{}")', 'password = "{}"', "PASSWORD='{}'", "htpasswd -b file user '{}'",
    ],
)  # fmt: skip
def test_a_blank_value_is_no_secret(code: str) -> None:
    for blank in (" " * 8, "\t" * 8, "\u00a0" * 8, "\u2003" * 12, " \t" * 6):
        assert find_secrets(f"{code.format(blank)}  # {PADDING}\n") == []
