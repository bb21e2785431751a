"""Quantities in a text: numbers, expressions and chains of them such as `6 × 7 = 42`, with their units."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from council.final_answers.markup import MARKS
from council.final_answers.numbers import place_value, read_digits, replace_number_words
from council.final_answers.units import CURRENCIES, MULTIPLIERS, UNITS, is_unit, look_up, rate

MAX_DIGITS = 60
MAX_POWER = 400
MAX_POWER_OF_LARGE = 20  # of a base above a million
MAX_DEPTH = 12  # of brackets and signs inside each other
MAX_FACTORIAL = 100
MAX_NUMBERS = 200
Value = Fraction | float


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a unit, and its place. `step` is the place value of its last digit, 0 for an exact expression."""

    value: Value
    unit: str = ""
    factor: float = 1.0
    step: Value = Fraction(0)
    other: Value | None = None  # the value if its point separates thousands, as in "1.200"
    high: Value | None = None  # the end of a range
    start: int = 0
    end: int = 0
    is_about: bool = False
    word: str = ""  # the unit as it is written

    @property
    def is_share(self) -> bool:
        return self.unit == "share"


@dataclass(frozen=True, slots=True)
class Chain:
    """The sides of an equation, or a number alone. `name` is the variable on the left: "x = 5"."""

    sides: tuple[Number, ...]
    name: str = ""
    has_left: bool = False  # whether something that has no value stands on the left

    @property
    def start(self) -> int:
        return self.sides[0].start

    @property
    def end(self) -> int:
        return self.sides[-1].end


_DIGITS = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?(?!\d)|\d{1,3}(?:\.\d{3})+,\d+(?!\d)|\d{1,3}(?:\.\d{3}){2,}(?!\d)"
    r"|\d{1,3}(?:[ '\u202f]\d{3})+(?:[.,]\d+)?(?![\d/])|\d+\.\d+|(?<![,\d])\d+,\d+(?![\d,])|\d+|\.\d+"
)
_TOKEN = re.compile(
    rf"(?P<space>[\s{MARKS}]+)|(?P<mixed>\d+[ -]\d+/\d+(?![\d/]))|(?P<digits>(?:{_DIGITS})(?:[eE][-+]?\d{{1,3}}(?![\w]))?)|(?P<currency>(?:US|A|C|NZ|HK|S)?\$|[€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|Rs\.?)(?= ?\d))"
    r"|(?P<power>\^|\*\*)|(?P<op>[-+*/×÷·−]|±)|(?P<about>≈|~|≃|≅)|(?P<equals>==?|:=|≡)|(?P<open>\()|(?P<close>\))|(?P<root>√|sqrt|root\((?P<degree>\d+),)|(?P<pi>π|\bpi\b)"
    r"|(?P<percent>%|°|‰|¢)|(?P<factorial>!(?!=))|(?P<dash>[–—])|(?P<word>[^\W\d_](?:[\w']*\w)?)|(?P<mark>.)",
    re.DOTALL,
)
_SCALE = {**MULTIPLIERS, "mil": 1e6, "tn": 1e12, "quadrillion": 1e15, "mrd": 1e9, "milliarden": 1e9, "milliarde": 1e9, "millionen": 1e6, "tausend": 1e3, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7, "hundreds": 1e2, "mille": 1e3}  # fmt: skip
_ABOUT = re.compile(
    r"\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|nearly|almost|some|etwa|rund|environ)[\s(:$€£\ue000-\ue003]*\Z|[~≈][\s$€£\ue000-\ue003]*\Z",
    re.I,
)

_ABOUT_LEAD = re.compile(r"\A(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|nearly|almost|[~≈])\s*", re.I)


_SHORT_UNITS = {"m": ("length", 1.0), "g": ("mass", 1e-3)}  # letters that may mean something else without a number
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    spaced: bool = False  # whether space stands before it


def find_chains(text: str) -> list[Chain]:
    """Return the numbers and equations of a text in their order."""
    text = replace_number_words(text)
    reader = _Reader(text)
    chains: list[Chain] = []
    while reader.at < len(reader.tokens) and len(chains) < MAX_NUMBERS:
        chain = reader.read_chain()
        if chain:
            chains.append(chain)
    return chains


_CLOCK = re.compile(
    r"(?<![\w:.])(\d{1,3}):([0-5]\d):([0-5]\d)(?![\w:])|(?<![\w:.])(\d{1,2})\s?h\s?([0-5]?\d)\s?m(?:in)?\.?\s?([0-5]?\d)\s?s(?:ec)?\b",
    re.IGNORECASE,
)


def spell_duration(text: str) -> str:
    """Return a text with "2 hours 8 minutes 14 seconds" for "2:08:14"."""
    text = re.sub(r"(?<=hours), (?=\d)|(?<=hour), (?=\d)|(?<=minutes),? (?=and \d)", " ", text)
    text = re.sub(
        r"(?<![\w.])(\d{1,3})\s?h(?:rs?)?\s?([0-5]?\d)\s?m(?:in)?\b(?!\.?\s?\d)", r"\1 hours \2 minutes", text
    )
    return _CLOCK.sub(
        lambda found: "{} hours {} minutes {} seconds".format(*map(int, [one for one in found.groups() if one])), text
    )


def read_number(text: str) -> Number | None:
    """Return the number of a text that has one number or expression with its unit, and nothing else."""
    plain = _ABOUT_LEAD.sub("", replace_number_words(text.strip(f" .!?*_`\"'\n{MARKS}")))
    reader = _Reader(plain)
    chain = reader.read_chain()
    if chain is None or len(chain.sides) != 1 or chain.has_left or chain.name:
        return None
    rest = reader.tokens[reader.at :]
    tail = " ".join(token.text for token in rest)
    if any(token.kind not in ("word",) for token in rest) or len(rest) > 3:
        return None
    found = chain.sides[0]
    return replace(found, word=found.word or tail)


class _Reader:
    """A reader of numbers over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.at = 0
        spaced = False
        for found in _TOKEN.finditer(text):
            if found.lastgroup == "space":
                spaced = True
                continue
            kind = "root" if found["root"] else str(found.lastgroup)
            self.tokens.append(_Token(kind, found[0], found.start(), found.end(), spaced))
            spaced = False

    def peek(self, ahead: int = 0) -> _Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else _Token("end", "", len(self.text), len(self.text))

    def read_chain(self) -> Chain | None:
        """Read a number or an equation at the current token, else skip the token."""
        start = self.at
        name, has_left = self._read_left()
        first = self._read_number()
        if first is None:
            self.at = max(self.at, start + 1) if self.at == start or not name else self.at
            if self.at == start:
                self.at += 1
            return None
        sides = [first]
        while self.peek().kind in ("equals", "about"):
            mark = self.at
            is_about = self.peek().kind == "about"
            self.at += 1
            if self.peek().kind == "about":
                self.at += 1
                is_about = True
            side = self._read_number()
            if side is None:
                self.at = mark + 1
                break
            sides.append(replace(side, is_about=is_about or side.is_about))
        return Chain(tuple(sides), name, has_left) if sides else None

    def _read_left(self) -> tuple[str, bool]:
        """Skip a variable and the sign of equality: "x =", "P(A) ="."""
        if self.peek().kind == "word" and self.peek(1).kind in ("equals", "about"):
            name = self.peek().text
            self.at += 2
            return name, True
        if self.peek().kind in ("equals", "about"):
            has_left = self.at > 0
            self.at += 1
            return "", has_left
        return "", False

    def _read_number(self) -> Number | None:
        """Read an expression with its unit, or a range; None, at the same token, if there is none."""
        start = self.at
        token = self.peek()
        before = self.text[max(0, token.start - 20) : token.start]
        if token.kind not in ("digits", "mixed", "currency", "open", "root", "pi", "op"):
            return None
        if token.kind == "op" and token.text not in "-+−±":
            return None
        if (
            token.kind == "op"
            and self.at
            and self.tokens[self.at - 1].kind in ("digits", "word", "close")
            and (token.spaced == (self.peek(1).spaced))
        ):
            return None  # a hyphen or an operator between other things
        expression = _Expression(self)
        value = expression.read()
        if value is None or not expression.numbers:
            self.at = start
            return None
        end = self.tokens[self.at - 1].end
        digits = expression.numbers[-1] if len(expression.numbers) == 1 and not expression.has_operator else ""
        step: Value = place_value(digits) if digits else Fraction(0)
        if expression.exponent is not None and len(expression.numbers) == 1:
            step = place_value(expression.numbers[0]) * Fraction(10) ** expression.exponent
        other = _read_other(digits, value)
        scale = expression.scale
        number = Number(
            value,
            step=step * scale if step else step,
            other=None if other is None else other * Fraction(scale),
            start=token.start,
            end=end,
            is_about=_ABOUT.search(before) is not None,
        )
        if expression.currency:
            number = replace(number, unit=expression.currency, word=expression.currency)
        number = self._read_range(number, digits) or number
        return self._read_unit(number)

    def _read_range(self, first: Number, digits: str) -> Number | None:
        """Read the end of "4-5", "4 – 5", "4 to 5"."""
        mark = self.at
        token = self.peek()
        is_between = re.search(r"\bbetween\s*[$€£]?\s*\Z", self.text[max(0, first.start - 12) : first.start], re.I)
        is_word = token.kind == "word" and (token.text in ("to", "bis") or (token.text == "and" and is_between))
        is_range = is_word or token.kind == "dash" or (token.kind == "op" and token.text == "-")
        if not is_range or not digits:
            return None
        if token.kind == "word" and self.peek(1).kind not in ("digits", "mixed", "currency"):
            return None
        self.at += 1
        expression = _Expression(self)
        value = expression.read() if self.peek().kind in ("digits", "mixed", "currency") else None
        if value is None or expression.has_operator or not float(value) >= float(first.value):
            self.at = mark
            return None
        low = (
            first.value * Fraction(expression.scale)
            if expression.scale != 1 and first.value == read_digits(digits)
            else first.value
        )
        return replace(first, value=low, high=value, end=self.tokens[self.at - 1].end)

    def _read_unit(self, number: Number) -> Number:
        token = self.peek()
        word = token.text.casefold()
        if token.kind == "percent" and token.text == "%":
            self.at += 1
            return replace(number, unit="share", factor=0.01, end=token.end, word="%")
        if token.kind == "percent" and token.text == "¢":
            self.at += 1
            return replace(number, end=token.end, word="¢")
        if token.kind == "percent" and token.text == "°":
            self.at += 1
            scale = self.peek().text.casefold() if self.peek().kind == "word" else ""
            if scale in ("c", "f", "celsius", "fahrenheit", "k"):
                self.at += 1
            return replace(
                number,
                unit=f"°{scale[:1]}" if scale[:1] in ("c", "f", "k") else "°",
                end=self.tokens[self.at - 1].end,
                word="°",
            )
        if token.kind == "currency" and not number.unit and self.peek(1).kind not in ("digits", "mixed"):
            self.at += 1
            return replace(number, unit=CURRENCIES.get(word, word), end=token.end, word=word)
        if token.kind != "word":
            return number
        if word in ("percent", "prozent", "pct", "percentage") or (
            word == "per" and self.peek(1).text.casefold() == "cent"
        ):
            self.at += 2 if word == "per" else 1
            return replace(number, unit="share", factor=0.01, end=self.tokens[self.at - 1].end, word="%")
        if word in ("degrees", "degree", "deg"):
            scale = self.peek(1).text.casefold() if self.peek(1).kind == "word" else ""
            self.at += 1 + (scale in ("celsius", "fahrenheit", "c", "f"))
            return replace(
                number,
                unit=f"°{scale[:1]}" if scale in ("celsius", "fahrenheit", "c", "f") else "°",
                end=self.tokens[self.at - 1].end,
                word="°",
            )
        if word in _POWERS and self.peek(1).kind == "word" and is_unit(self.peek(1).text.casefold()):
            unit, factor = look_up(self.peek(1).text.casefold())
            self.at += 2
            power = _POWERS[word]
            end = self.tokens[self.at - 1].end
            return replace(number, unit=f"{unit.rstrip('~')}^{power}", factor=factor**power, end=end, word=word)
        if word in _SHORT_UNITS or is_unit(word):
            return self._read_known_unit(number, token, word)
        return replace(number, word=number.word or word)

    def _read_known_unit(self, number: Number, token: _Token, word: str) -> Number:
        unit, factor = _SHORT_UNITS[word] if word in _SHORT_UNITS else look_up(word)
        if word in ("x", "a") or (word == "l" and token.text != "l"):
            return number
        self.at += 1
        end = token.end
        if self.peek().kind == "power" and self.peek(1).text in ("2", "3"):
            power = int(self.peek(1).text)
            unit, factor = f"{unit.rstrip('~')}^{power}", factor**power
            self.at += 2
            end = self.tokens[self.at - 1].end
        if unit in CURRENCIES.values():
            return replace(number, unit=unit, factor=factor, end=end, word=word)
        by = self.peek().text.casefold()
        if (
            by in ("/", "per")
            and self.peek(1).kind == "word"
            and self.peek(1).text.casefold() in {**UNITS, "s": 0, "h": 0}
        ):
            unit, factor = rate(unit, factor, self.peek(1).text.casefold())
            self.at += 2
            end = self.tokens[self.at - 1].end
        if number.unit in CURRENCIES.values():
            unit, factor = number.unit, 1.0
        found = replace(number, unit=unit.rstrip("~"), factor=factor, end=end, word=word)
        return self._read_smaller_part(found)

    def _read_smaller_part(self, number: Number) -> Number:
        """Add "20 minutes" to "3 hours and 20 minutes"."""
        if number.unit not in ("time", "length") or number.high is not None:
            return number
        mark = self.at
        if self.peek().text.casefold() in ("and", ",") and self.peek(1).kind == "digits":
            self.at += 1
        if self.peek().kind == "digits":
            value = _Expression(self).read()
            word = self.peek().text.casefold() if self.peek().kind == "word" else ""
            unit, factor = look_up(word)
            if value is not None and unit.rstrip("~") == number.unit and factor < number.factor and word != "m":
                self.at += 1
                total = float(number.value) + float(value) * factor / number.factor
                return self._read_smaller_part(
                    replace(number, value=total, step=Fraction(0), end=self.tokens[self.at - 1].end)
                )
        self.at = mark
        return number


def _read_other(digits: str, value: Value) -> Value | None:
    """Return the second reading of "1.200" and "1,200"."""
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", digits):
        return value * 1000
    if re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits):
        return value / 1000
    return None


class _Expression:
    """The longest expression that begins at a token."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.numbers: list[str] = []
        self.has_operator = False
        self.exponent: int | None = None
        self.currency = ""
        self.scale = 1.0
        self.depth = 0

    def read(self) -> Value | None:
        try:
            return self._read_sum()
        except (OverflowError, ZeroDivisionError, ValueError):
            return None

    def _read_sum(self) -> Value | None:
        value = self._read_product()
        while value is not None:
            mark, token = self.reader.at, self.reader.peek()
            if token.kind == "op" and token.text in "+-−" and not self._is_range(token):
                self.reader.at += 1
                other = self._read_product()
                if other is not None:
                    self.has_operator = True
                    value = _add(value, other if token.text == "+" else -other)
                    continue
            self.reader.at = mark
            break
        return value

    def _is_range(self, token: _Token) -> bool:
        """Return whether a hyphen without spaces separates two plain numbers."""
        before, after = self.reader.peek(-1), self.reader.peek(1)
        if token.text == "+" or token.spaced or after.spaced:
            return token.text != "+" and token.spaced != after.spaced
        return before.kind == "digits" and after.kind in ("digits", "currency") and not self.has_operator

    def _read_product(self) -> Value | None:
        value = self._read_power()
        while value is not None:
            mark, token = self.reader.at, self.reader.peek()
            is_sign = token.kind == "op" and token.text in "*/×÷·"
            is_times = (
                token.kind == "word"
                and token.text in ("x", "times")
                and self.reader.peek(1).kind in ("digits", "open", "root", "pi")
            )
            is_joined = token.kind in ("root", "pi") or (token.kind == "open" and not token.spaced)
            if is_sign or is_times:
                self.reader.at += 1
            elif not is_joined:
                break
            count = len(self.numbers)
            other = self._read_power()
            if other is None:
                self.reader.at = mark
                del self.numbers[count:]
                break
            is_power_of_ten = is_sign and self.numbers[count:] == ["10"] and self.exponent is not None
            self.has_operator = self.has_operator or not is_power_of_ten
            if is_power_of_ten:
                del self.numbers[count:]
            else:
                self.exponent = None
            value = value / other if token.text in "/÷" and is_sign else _multiply(value, other)
        return value

    def _read_power(self) -> Value | None:
        value = self._read_atom()
        if value is not None and self.reader.peek().kind == "power":
            mark = self.reader.at
            self.reader.at += 1
            count = len(self.numbers)
            self.depth += 1
            exponent = self._read_power()
            self.depth -= 1
            if exponent is None:
                self.reader.at = mark
                return value
            is_ten = self.numbers[:count][-1:] == ["10"]
            del self.numbers[count:]
            self.exponent = int(exponent) if is_ten and exponent == int(exponent) else None
            self.has_operator = self.has_operator or not is_ten
            return _raise(value, exponent)
        if (
            value is not None
            and self.reader.peek().kind == "factorial"
            and not self.reader.peek().spaced
            and self.numbers
        ):
            after = self.reader.peek(1)
            if after.kind in ("equals", "op", "close") and value == int(value) and 0 <= value <= MAX_FACTORIAL:
                self.reader.at += 1
                self.has_operator = True
                return Fraction(math.factorial(int(value)))
        return value

    def _read_atom(self) -> Value | None:
        if self.depth > MAX_DEPTH:
            return None
        self.depth += 1
        value = self._read_one_atom()
        self.depth -= 1
        return value

    def _read_one_atom(self) -> Value | None:
        token = self.reader.peek()
        if token.kind == "op" and token.text in "-−+±":
            self.reader.at += 1
            value = self._read_power()
            return None if value is None else value if token.text in "+±" else -value
        if token.kind == "currency":
            self.reader.at += 1
            if self.reader.peek().kind == "op" and self.reader.peek().text == "-":
                self.reader.at += 1
                value = self._read_atom()
                value = None if value is None else -value
            else:
                value = self._read_atom() if self.reader.peek().kind in ("digits", "mixed") else None
            self.currency = CURRENCIES.get(
                token.text.casefold(), CURRENCIES.get(token.text[-1], token.text.casefold().rstrip("."))
            )
            return value
        if token.kind in ("digits", "mixed"):
            return self._read_digits(token)
        if token.kind == "pi":
            self.reader.at += 1
            self.numbers.append("π")
            self.has_operator = True
            return math.pi
        if token.kind == "open":
            return self._read_group()
        if token.kind == "root":
            self.reader.at += 1
            degree = re.search(r"\d+", token.text)
            value = self._read_sum() if degree else self._read_atom()
            if degree:
                if self.reader.peek().kind != "close":
                    return None
                self.reader.at += 1
            self.has_operator = True
            if value is None or value < 0:
                return None
            return _raise(value, Fraction(1, int(degree[0]) if degree else 2))
        return None

    def _read_group(self) -> Value | None:
        mark = self.reader.at
        self.reader.at += 1
        value = self._read_sum()
        if value is None or self.reader.peek().kind != "close":
            self.reader.at = mark
            return None
        self.reader.at += 1
        return value

    def _read_digits(self, token: _Token) -> Value | None:
        after = self.reader.peek(1)
        is_ordinal = after.kind == "word" and not after.spaced and after.text.casefold() in _ORDINAL_ENDINGS
        if len(token.text) > MAX_DIGITS or is_ordinal:
            return None
        self.reader.at += 1
        if token.kind == "mixed":
            whole, top, bottom = map(int, re.findall(r"\d+", token.text))
            self.numbers.append(token.text)
            return whole + Fraction(top, bottom)
        digits, _, power = token.text.casefold().partition("e")
        value: Value = read_digits(f"0{digits}" if digits.startswith(".") else digits)
        self.numbers.append(digits)
        if power:
            self.exponent = int(power)
            value = value * Fraction(10) ** int(power)
        scale = self.reader.peek()
        word = scale.text.casefold()
        if (
            scale.kind == "word"
            and word in _SCALE
            and not (
                word in ("k", "m", "b")
                and (
                    (scale.text in ("m", "b", "K") and scale.spaced)
                    or (word == "m" and scale.text == "m" and not self.currency)
                )
            )
        ):
            self.reader.at += 1
            self.scale = _SCALE[word]
            value = value * Fraction(_SCALE[word])
            if (more := self.reader.peek().text.casefold()) in (
                "thousand",
                "million",
                "billion",
            ) and self.reader.peek().kind == "word":
                self.reader.at += 1
                self.scale *= _SCALE[more]
                value = value * Fraction(_SCALE[more])
        return value


def _add(a: Value, b: Value) -> Value:
    return a + b if isinstance(a, Fraction) and isinstance(b, Fraction) else float(a) + float(b)


def _multiply(a: Value, b: Value) -> Value:
    return a * b if isinstance(a, Fraction) and isinstance(b, Fraction) else float(a) * float(b)


def _raise(base: Value, exponent: Value) -> Value:
    power, size = abs(float(exponent)), abs(float(base))
    if power > MAX_POWER or (size > 1e6 and power > MAX_POWER_OF_LARGE):
        raise OverflowError
    if isinstance(base, Fraction) and exponent == int(exponent):
        return base ** int(exponent)
    if base < 0:
        raise ValueError(base)  # its root is not real
    root: float = float(base) ** float(exponent)
    return (
        Fraction(round(root))
        if isinstance(base, Fraction) and base == int(base) and round(root) ** 2 == base and exponent == Fraction(1, 2)
        else root
    )
