"""Units: their kinds, factors and currencies, and the unit that a question asks for."""

from __future__ import annotations

import re

MULTIPLIERS = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9, "billions": 1e9, "trillion": 1e12, "trillions": 1e12, "hundred": 1e2, "dozen": 12}  # fmt: skip
CURRENCIES = {"$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd", "€": "eur", "eur": "eur", "euro": "eur", "£": "gbp", "gbp": "gbp", "pound": "gbp", "¥": "jpy", "jpy": "jpy", "yen": "jpy", "chf": "chf", "franc": "chf", "₹": "inr", "inr": "inr", "rupee": "inr"}  # fmt: skip
_TIME = {"ns": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ms": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0,
         "min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0,
         "week": 604800.0, "month": 2629800.0, "year": 31557600.0, "yr": 31557600.0}  # fmt: skip
UNITS: dict[str, tuple[str, float]] = {
    **{name: ("time", factor) for name, factor in _TIME.items()},
    **{name: ("data", 1000.0**n) for n, name in enumerate(("byte", "kb", "mb", "gb", "tb", "pb"))},
    **{name: ("data", 1024.0**n) for n, name in enumerate(("kib", "mib", "gib", "tib"), 1)},
    **{name: ("data", 1000.0**n / 8) for n, name in enumerate(("bit", "kbit", "mbit", "gbit", "tbit"))},
    **{f"{name}ps": ("data/time", 1000.0**n / 8) for n, name in enumerate(("bit", "kbit", "mbit", "gbit", "tbit"))},
    **{"mm": ("length", 1e-3), "cm": ("length", 1e-2), "meter": ("length", 1.0), "metre": ("length", 1.0), "km": ("length", 1e3),
       "kilometer": ("length", 1e3), "kilometre": ("length", 1e3), "centimeter": ("length", 1e-2), "centimetre": ("length", 1e-2),
       "millimeter": ("length", 1e-3), "millimetre": ("length", 1e-3), "mile": ("length", 1609.344), "mg": ("mass", 1e-6),
       "gram": ("mass", 1e-3), "kg": ("mass", 1.0), "kilogram": ("mass", 1.0), "tonne": ("mass", 1e3), "ton": ("mass", 1e3)},
    **{"foot": ("length", 0.3048), "feet": ("length", 0.3048), "ft": ("length", 0.3048), "inch": ("length", 0.0254),
       "inches": ("length", 0.0254), "yard": ("length", 0.9144)},
    **{"ml": ("volume", 1e-3), "cl": ("volume", 1e-2), "l": ("volume", 1.0), "liter": ("volume", 1.0), "litre": ("volume", 1.0)},
    **dict.fromkeys(("%", "percent", "pct", "prozent"), ("share", 0.01)),
    **dict.fromkeys(("x", "times", "time", "fold", "×"), ("x", 1.0)),
    **{name: (f"{what}/time", 1.0) for name, what in (("tps", "transaction"), ("rps", "request"), ("qps", "query"))},
    **{name: (code, 1.0) for name, code in CURRENCIES.items()},
}  # fmt: skip
_INEXACT_UNITS = re.compile(r"month|year|yr|[kmgtp]i?b")  # in other units of their kind
_MEASURED = ("time", "data", "length", "mass", "volume", "share")


def look_up(word: str) -> tuple[str, float]:
    """Return the kind of a unit and its factor. An unknown word is a unit of its own."""
    for name in (word, word.removesuffix("s")):
        if name in UNITS:
            kind, factor = UNITS[name]
            return (f"{kind}~" if _INEXACT_UNITS.fullmatch(name) else kind), factor
    return word.removesuffix("s"), 1.0


def is_unit(word: str) -> bool:
    """Return whether a word or a sign is a known unit or currency."""
    return word in UNITS or word.removesuffix("s") in UNITS


def rate(unit: str, factor: float, per: str) -> tuple[str, float]:
    """Return a unit per base unit, for example per second or per byte."""
    kind, size = look_up(per)
    return f"{'request' if unit == 'req' else unit.rstrip('~')}/{kind.rstrip('~')}", factor / size


def find_asked_unit(question: str) -> tuple[str, float]:
    """Return the unit that a question asks for, as in "How many weeks …?"."""
    found = re.search(r"\bhow many (\w+)|\bin ([a-zµ%]+)\W*\Z|\b(percent|percentage)\b", question.casefold())
    word = next((one for one in found.groups() if one), "") if found else ""
    unit, factor = look_up("percent" if word == "percentage" else word)
    return (unit, factor) if unit.rstrip("~") in _MEASURED else ("", 1.0)
