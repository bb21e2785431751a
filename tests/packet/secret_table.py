"""The table of secrets and look-alikes in tests/data/secret_shapes.toml, expanded at run time. benchmarks/secrets.py
uses it too.
"""

from __future__ import annotations

import base64
import random
import re
import string
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).parents[1] / "data" / "secret_shapes.toml"
ALPHABETS = {
    "w": string.ascii_letters + string.digits,
    "A": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "o": string.ascii_lowercase + "234567",
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
    "n": "023456789acdefghjklmnpqrstuvwxyz",  # bech32
    "W": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",  # base58
}
WORDS = "abandon basket candle dolphin engine forest garden harvest island jungle kitchen lantern".split()  # noqa: SIM905
PIECE = re.compile(
    r"\{(?:(?P<alphabet>[A-Za-z])(?P<length>\d+)|(?P<name>uuid|b64|words12|sealed|stripe_sample|)|(?P<call>b64|wrap):(?P<inner>[^{}]*))\}"
)


class Row(NamedTuple):
    """A text, the parts that must be masked, and the path of the file if its name alone decides."""

    group: str
    name: str
    text: str
    secrets: tuple[str, ...] = ()
    path: str = ""


def load_secrets() -> list[Row]:
    return [row for group, rows in _load().items() if group != "look_alikes" for row in _expand_rows(group, rows)]


def load_look_alikes() -> list[Row]:
    return [row for group, rows in _load()["look_alikes"].items() for row in _expand_rows(group, rows)]


def _load() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def _expand_rows(group: str, rows: list[list[str]]) -> Iterator[Row]:
    for name, text in rows:
        if text.startswith("file:"):
            yield Row(group, name, "", path=text.removeprefix("file:"))
        else:
            whole = _expand(text, random.Random(name))
            secrets = tuple(re.findall(r"«([^»]*)»", whole))
            yield Row(group, name, re.sub("[«»]", "", whole), secrets)


def _expand(text: str, dice: random.Random) -> str:
    """Replace the innermost pieces until none is left. Braces of other syntax stay."""
    while (expanded := PIECE.sub(lambda piece: _make(piece, dice), text)) != text:
        text = expanded
    return text


def _make(piece: re.Match[str], dice: random.Random) -> str:
    if piece["alphabet"]:
        return _make_random(ALPHABETS[piece["alphabet"]], int(piece["length"]), dice)
    if piece["call"] == "b64":
        return base64.b64encode(piece["inner"].encode()).decode()
    if piece["call"] == "wrap":
        return "\n".join(re.findall(".{1,64}", piece["inner"]))
    if piece["name"] == "uuid":
        return str(uuid.UUID(int=dice.getrandbits(128), version=4))
    if piece["name"] == "sealed":
        return "AgB" + _make_random(ALPHABETS["w"], 300, dice)
    if piece["name"] == "stripe_sample":
        return "_".join(["sk", "test", "4eC39HqLyjWDarjtT1zdp7dc"])
    if piece["name"] == "words12":
        return " ".join(WORDS)
    return "\n".join(_make_random(ALPHABETS["b"], 64, dice) for _ in range(4)) if piece["name"] == "b64" else ""


def _make_random(letters: str, length: int, dice: random.Random) -> str:
    made = [dice.choice(letters) for _ in range(length)]
    if "7" in letters:  # every random text of this length has a digit with high probability
        made[dice.randrange(length)] = "7"
    return "".join(made)
