"""Plain text of replies: LaTeX and Markdown are read, and boxed and emphasised parts are marked."""

from __future__ import annotations

import re
import unicodedata

BOX, BOX_END, BOLD, BOLD_END = "\ue000", "\ue001", "\ue002", "\ue003"
MARKS = BOX + BOX_END + BOLD + BOLD_END
MAX_REPLY_CHARS = 12_000  # the end of a long reply, which has the answer
MAX_COMMANDS = 500
MAX_ARGUMENT_CHARS = 400

_SUPERSCRIPTS = re.compile(r"[⁺⁻]?[⁰¹²³⁴-⁹]+")
_SUBSCRIPTS = re.compile(r"[₀-₉]+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "−": "-", "⁄": "/"})
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
# A line of code after a sentence that ends with a colon: "Run:", and the command.
_COMMAND_BLOCK = re.compile(
    r"(?m:^)(?P<lead>[^\n]*:[*_]*[ \t]*\n+)[ \t]*(?P<fence>```|~~~)[^\n`]*\n[ \t]*(?P<prompt>(?:\$|%|>>>|>|PS>|C:\\>)[ \t]+)?(?P<code>[^\n`]{1,120}?)[ \t]*\n[ \t]*(?P=fence)[ \t]*(?=\n|\Z)"
)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_INLINE_MATH = re.compile(r"(?<![\\$\w])\$(?![\s$])([^$\n]{1,300}?)(?<![\s\\])\$(?![\d$])")
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*\*\*|\*\*|__)(?=\S)(.{1,400}?\S|\S)\1(?!\w)")
_ITALICS = re.compile(r"(?<![\w*\\])(\*|_)(?=[^\s*_])([^*_\n]{0,300}[^\s*_])\1(?![\w*])")
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]{1,200})\1(?!`)")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^()\s]{1,300}\)")
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?)+", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", re.MULTILINE)
_COMMAND = re.compile(
    r"\\(?:(?P<text>text|mathrm|mathit|mathsf|operatorname|mbox|texttt|textit|emph|underline|mathtt|textrm|textsf|boldsymbol|mathcal|mathbb|vec|overline)"
    r"|(?P<bold>textbf|mathbf)|(?P<box>boxed|fbox)|(?P<fraction>[dtc]?frac)|(?P<root>sqrt))\*?[ \t]*(?=[{\[\d])"
)
_SYMBOLS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\\\\(?=[^\n]|\Z)", " "),
        (r"\\(?:times|cdot|ast)(?![A-Za-z])", "×"),
        (r"\\div(?![A-Za-z])", "÷"),
        (r"\\(?:approx|simeq|sim)(?![A-Za-z])", "≈"),
        (r"\\(?:leq?|leqslant)(?![A-Za-z])", "≤"),
        (r"\\(?:geq?|geqslant)(?![A-Za-z])", "≥"),
        (r"\\neq?(?![A-Za-z])", "≠"),
        (r"\\equiv(?![A-Za-z])", "≡"),
        (r"\\[bp]?mod(?![A-Za-z])", " mod "),
        (r"\\pm(?![A-Za-z])", "±"),
        (r"\\pi(?![A-Za-z])", "π"),
        (r"\\Omega(?![A-Za-z])", "Ω"),
        (r"\\mu(?![A-Za-z])", "µ"),
        (r"\\(alpha|beta|gamma|delta|epsilon|theta|lambda|sigma|phi|omega)(?![A-Za-z])", r"\1"),
        (r"\\infty(?![A-Za-z])", "∞"),
        (r"\\(?:implies|Rightarrow|Longrightarrow|therefore)(?![A-Za-z])", " ⇒ "),
        (r"\\(?:to|rightarrow|longrightarrow)(?![A-Za-z])", " → "),
        (r"\\(log|ln|sin|cos|tan|exp|max|min|gcd|lcm)(?![A-Za-z])", r"\1"),
        (r"\^ ?\{?\\circ\}?|\\degree(?![A-Za-z])", "°"),
        (r"\\(?:left|right|displaystyle|[bB]ig[lr]?|checkmark|q?quad)(?![A-Za-z])", " "),
        (r"(?<=\d)\{,\}(?=\d)", ","),
        (r"(?<=\d)(?:\\[,!]|~)(?=\d{3})", ","),
        (r"\\[,;:!> ]|(?<=\w)~(?=\w)", " "),
        (r"\\([%$#&_{}])", r"\1"),
        (r"\\[()\[\]]", " "),
        (r"\\(?:begin|end)\{[^{}]*\}", " "),
    )
)


def to_plain(reply: str) -> str:
    """Return the end of a reply as plain text. Boxed and emphasised parts stand between marks."""
    text = _THINKING.sub("", reply)[-MAX_REPLY_CHARS:]
    text = _COMMAND_BLOCK.sub(_read_command, re.sub(f"[{MARKS}]", "", text))
    text = read_latex(_STRUCK.sub("", _FENCE.sub("", text)))
    text = _CODE.sub(lambda found: BOLD + found[2].strip() + BOLD_END, text)
    text = _RULE.sub("", _HEADING.sub("", _LINK.sub(r"\1", text)))
    text = _EMPHASIS.sub(lambda found: BOLD + found[2] + BOLD_END, text)
    return _ITALICS.sub(r"\2", text)


def _read_command(found: re.Match[str]) -> str:
    """Return the command of a block without its prompt, emphasised; an example stays as it is."""
    is_example = re.search(
        r"\b(?:example|e\.g|output|instance|not|never|wrong|avoid|instead of)\b|n't\b", found["lead"], re.IGNORECASE
    )
    is_command = found["prompt"] or re.search(r"\b(?:run|type|enter|execute|command)\b", found["lead"], re.IGNORECASE)
    return found[0] if is_example or not is_command else f"{found['lead']}{BOLD}{found['code']}{BOLD_END}"


def read_latex(text: str) -> str:
    """Return a text with plain words and signs for LaTeX, and with one form of quotes, fractions and raised numbers."""
    text = _spell_scripts(text).translate(_QUOTES)
    text = _read_commands(_INLINE_MATH.sub(r"\1", text.replace("$$", " ")))
    for pattern, symbol in _SYMBOLS:
        text = pattern.sub(symbol, text)
    text = re.sub(r"([\^_])\{([^{}]{1,40})\}", _read_script, text)
    return unicodedata.normalize("NFKC", text).replace("⁄", "/")


def strip_marks(text: str) -> str:
    """Return a text without the marks of boxed and emphasised parts."""
    return text.translate(dict.fromkeys(map(ord, MARKS)))


def _read_script(found: re.Match[str]) -> str:
    is_simple = re.fullmatch(r"[-+]?[\w.]+", found[2])
    return f"{found[1]}{found[2]}" if is_simple else f"{found[1]}({found[2]})"


def _spell_scripts(text: str) -> str:
    """Return a text with `^5` for a raised and `_5` for a lowered number, and space before a fraction sign."""
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)
    return _SUPERSCRIPTS.sub(r"^\g<0>", _SUBSCRIPTS.sub(r"_\g<0>", text))


def _read_commands(text: str) -> str:
    """Replace the LaTeX commands with arguments, the inner ones first."""
    for found in reversed(list(_COMMAND.finditer(text))[-MAX_COMMANDS:]):
        option, start = "", found.end()
        if text.startswith("[", start) and (close := text.find("]", start, start + 20)) > 0:
            option, start = text[start + 1 : close], close + 1
        first, end = _read_argument(text, start)
        if found["fraction"]:
            second, end = _read_argument(text, end)
            is_mixed = text[: found.start()].rstrip(" \\,")[-1:].isdigit()
            value = f"{' ' if is_mixed else ''}{_group(first)}/{_group(second)}"
        elif found["root"]:
            value = f"root({option},{first})" if option else f"√({first})"
        elif found["box"]:
            value = f"{BOX}{first}{BOX_END}"
        elif found["bold"]:
            value = f"{BOLD}{first}{BOLD_END}"
        else:
            value = (
                f" {first}" if re.search(r"\\[A-Za-z]+\Z", text[max(0, found.start() - 20) : found.start()]) else first
            )
        text = text[: found.start()] + value + text[end:]
    return text


def _group(text: str) -> str:
    return text.strip() if re.fullmatch(r"\s*-?[\w.,]+\s*", text) else f"({text.strip()})"


def _read_argument(text: str, start: int) -> tuple[str, int]:
    """Return the argument in braces at a place, or one character, and where it ends. An open one ends with its line."""
    start += len(text[start : start + 10]) - len(text[start : start + 10].lstrip(" \t"))
    if not text.startswith("{", start):
        return text[start : start + 1], start + 1
    depth = 0
    for at in range(start, min(len(text), start + MAX_ARGUMENT_CHARS)):
        if text[at] in "{}" and text[at - 1] != "\\":
            depth += 1 if text[at] == "{" else -1
            if not depth:
                return text[start + 1 : at], at + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text[start + 1 : end], end
