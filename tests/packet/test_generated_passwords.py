"""Passwords of password managers in configuration files."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest

from council.packet.secret_filter import find_secrets

ALPHABETS = {
    "1password": string.ascii_letters + string.digits + "!@#$%^&*()-_=+[]{}|;:,.<>?/~",
    "bitwarden": string.ascii_letters + string.digits + "!@#$%^&*",
    "keepass": string.ascii_letters + string.digits + string.punctuation,
    "pwgen": string.ascii_letters + string.digits + "".join(set(string.punctuation) - set("\"'`\\")),
}
FORMATS: dict[str, Callable[[str], str]] = {
    "yaml": lambda value: f"db:\n  user: app\n  password: {json.dumps(value)}\n  port: 5432\n",
    "toml": lambda value: f"[db]\nuser = \"app\"\npassword = {json.dumps(value)}\n",
    "json": lambda value: json.dumps({"user": "app", "password": value, "port": 5432}, indent=2),
    "hcl": lambda value: f"resource \"aws_db_instance\" \"db\" {{\n  password = {json.dumps(value)}\n}}\n",
    "xml": lambda value: f"<server>\n  <username>app</username>\n  <password>{escape(value)}</password>\n</server>\n",
    "env": lambda value: f"DB_USER=app\nDB_PASSWORD={value}\nDB_PORT=5432\n",
    "properties": lambda value: f"spring.datasource.username=app\nspring.datasource.password={value}\n",
    "ini": lambda value: f"[database]\nuser = app\npassword = {value}\n",
}  # fmt: skip
COUNT = 600


def make_passwords() -> list[tuple[str, str]]:
    generator = random.Random(20261118)
    passwords = []
    names = list(ALPHABETS)
    for number in range(COUNT):
        name = names[number % len(names)]
        length = generator.choice((12, 14, 16, 20, 24, 32))
        passwords.append((name, "".join(generator.choice(ALPHABETS[name]) for _ in range(length))))
    return passwords


@pytest.mark.behaviour("packet-generated-passwords")
@pytest.mark.parametrize("name", FORMATS)
def test_generated_passwords_are_stopped_in_configuration_files(name: str) -> None:
    missed = [value for _, value in make_passwords() if not find_secrets(FORMATS[name](value))]
    assert len(missed) <= COUNT // 100, missed
