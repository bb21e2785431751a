"""Prompt files: load, check and render them. A file has TOML front matter and a Jinja2 body.

Front matter: `role` (one sentence about the seat), `ask` (one sentence about the task), `words` (approximate answer length),
`material` (expressions for the material of small members), `tokens` (maximum answer tokens). `role` and `ask` are templates.
The body is the full prompt; a small member gets the compact template instead, filled from the front matter.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from council.errors import PromptError
from council.types import Json, Message, Packet, PacketFile, Question, Round, Seat, Statement

SHIPPED = Path(__file__).parent / "data" / "prompts"
FRONT = "+++\n"
KNOWN_FRONT: dict[str, tuple[type, str]] = {
    "role": (str, "a text"),
    "ask": (str, "a text"),
    "words": (int, "a whole number"),
    "tokens": (int, "a whole number"),
    "material": (list, "a list of expressions"),
}
CONTEXT_ENDS = "\n  }"  # in the packet's JSON, where strings contain no raw line ends
SMALL_TEMPERATURE = 0.2
SMALL_WORDS = 80
SMALL_QUOTE = 90  # words per quoted statement for a small member
SMALL_MATERIAL = 1200  # words of all quoted statements together
TOKENS_PER_WORD = 2.0  # generous: limits rambling small members without cutting normal answers

_jinja = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    autoescape=False,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Parsed and compiled prompt file."""

    path: Path
    body: jinja2.Template
    role: jinja2.Template
    ask: jinja2.Template
    material: tuple[Any, ...]
    words: int | None
    tokens: int | None
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rendered:
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    words: int | None = None
    shared: int = 0  # leading characters of the first user message that are the same for every seat


class Prompts:
    """Prompts of one run: the folders to search, and the key of its fence marks."""

    def __init__(self, seed: str, folders: Sequence[Path] = ()) -> None:
        self.seed = seed.encode()
        self.folders = (*folders, SHIPPED)

    def find(self, name: str, seat: Seat) -> Prompt:
        """Return `phase.<seat>.md` if it exists, else `phase.md`."""
        for file in (f"{name}.{seat.name}.md", f"{name}.md"):
            for folder in self.folders:
                if (folder / file).is_file():
                    return load(folder / file)
        places = " or ".join(f'"{folder}"' for folder in self.folders[:-1]) or "the package"
        raise PromptError(f'there is no prompt "{name}.md" in {places}: add it, or correct the name in the protocol')

    def render(self, name: str, seat: Seat, given: Mapping[str, Any], before: Iterable[Message] = ()) -> Rendered:
        """Render the exact messages for a seat; `before` is the conversation to continue."""
        prompt = self.find(name, seat)
        if missing := sorted(prompt.needs - given.keys() - {"seat", "role", "packet"} - _jinja.globals.keys()):
            raise PromptError(
                f'the prompt "{prompt.path.name}" needs "{missing[0]}", which the protocol does not pass: '
                f'pass {missing[0]}=… to the call that uses "{name}", or correct the name in the file'
            )
        try:
            return self._render(prompt, seat, {**given, "seat": seat, "quote": self.quote}, tuple(before))
        except jinja2.UndefinedError as error:
            raise PromptError(f'the prompt "{prompt.path.name}" cannot be rendered: {error.message}') from error

    def _render(self, prompt: Prompt, seat: Seat, given: dict[str, Any], before: tuple[Message, ...]) -> Rendered:
        given = {"packet": Packet(), **given}
        given["role"] = prompt.role.render(given)
        given["words"] = given.get("words") or prompt.words
        if seat.small:
            return self._compact(prompt, given, before)
        user = prompt.body.render(given)
        if not before:
            user = _part("full.md").render(given, body=user, dossier=self._dossier(seat, given))
        messages = (*(before or [_system()]), {"role": "user", "content": user.strip()})
        return Rendered(messages, None, prompt.tokens, given["words"], self._shared(messages))

    def _shared(self, messages: tuple[Message, ...]) -> int:
        """Return the length up to the end of the packet's context; the parts that differ between seats follow it."""
        first = next(message["content"] for message in messages if message["role"] == "user")
        start = first.find(f"<<<Packet {self.mark('packet')}\n")
        end = first.find(CONTEXT_ENDS, start) if start >= 0 else -1
        return end + len(CONTEXT_ENDS) if end >= 0 else 0

    def _dossier(self, seat: Seat, given: dict[str, Any]) -> str:
        """Render the packet in its fence. Parts that differ between seats come last, so that vendors can cache the rest."""
        packet: Packet = given["packet"]
        if packet.empty:
            return ""
        told = dossier(packet, given["question"], seat, given.get("output_schema"))
        mark = self.mark("packet")
        return f"<<<Packet {mark}\n{json.dumps(told, ensure_ascii=False, indent=1)}\n{mark}>>>"

    def _compact(self, prompt: Prompt, given: dict[str, Any], before: tuple[Message, ...]) -> Rendered:
        words = min(given["words"] or SMALL_WORDS, SMALL_WORDS)
        pieces = [piece for expression in prompt.material for piece in _pieces(expression(**given))]
        room = min(SMALL_QUOTE, SMALL_MATERIAL // max(1, len(pieces)))
        material = [(label, _shorten(text, room)) for label, text in pieces]
        given = {**given, "packet": Packet() if before else given["packet"]}  # the previous turn has it
        user = _part("compact.md").render(given, ask=prompt.ask.render(given), words=words, material=material)
        system = {"role": "system", "content": given["role"]}
        messages = (*(before or [system]), {"role": "user", "content": user.strip()})
        return Rendered(messages, SMALL_TEMPERATURE, int(words * TOKENS_PER_WORD), words)

    def repair(self, said: str, words: str) -> tuple[Message, Message]:
        """Return the messages that ask for the same reply in the required format."""
        user = _part("repair.md").render(problem=words).strip()
        return {"role": "assistant", "content": said}, {"role": "user", "content": user}

    def shortened(self, messages: tuple[Message, ...], cuts: Sequence[str]) -> tuple[Message, ...]:
        """Append a note about the cuts to the last message."""
        last = messages[-1]
        told = _part("cut.md").render(cuts=self.quote(cuts, "Cut")).strip()
        return (*messages[:-1], {**last, "content": f"{last['content']}\n\n{told}"})

    def quote(self, what: Statement[Any] | str | Sequence[str], label: str | None = None) -> str:
        """Quote another seat's text inside a fence whose mark cannot be forged from outside the run."""
        if isinstance(what, Statement):
            name, text, mark = label or what.seat.label, what.said, self.mark(what.key)
        else:
            text = what if isinstance(what, str) else "\n".join(f"- {line}" for line in what)
            name, mark = label or "", self.mark(f"{label}: {text}")
        return f"<<<{name} {mark}\n{visible(text.strip())}\n{mark}>>>"

    def mark(self, what: str) -> str:
        return hmac.new(self.seed, what.encode(), hashlib.sha256).hexdigest()[:12]


@lru_cache(maxsize=256)
def load(path: Path) -> Prompt:
    text = path.read_text(encoding="utf-8")
    try:
        front, body = _split(text)
        _check(front, path.name)
        sources = [
            body,
            front.get("role", ""),
            front.get("ask", ""),
            *(f"{{{{ {m} }}}}" for m in front.get("material", [])),
        ]
        needs = frozenset().union(*(jinja2.meta.find_undeclared_variables(_jinja.parse(source)) for source in sources))
        return Prompt(
            path, _jinja.from_string(body), _jinja.from_string(front.get("role", "")), _jinja.from_string(front.get("ask", "")),
            tuple(_jinja.compile_expression(m, undefined_to_none=False) for m in front.get("material", [])),
            front.get("words"), front.get("tokens"), frozenset(needs - {"quote", "words"}),
        )  # fmt: skip
    except (jinja2.TemplateSyntaxError, tomllib.TOMLDecodeError) as error:
        raise PromptError(f'the prompt "{path.name}" cannot be read: {error}') from error


def _check(front: dict[str, Any], name: str) -> None:
    for key, value in front.items():
        if key not in KNOWN_FRONT:
            raise PromptError(f'the prompt "{name}" has the unknown front matter key "{key}"')
        kind, what = KNOWN_FRONT[key]
        if not isinstance(value, kind):
            raise PromptError(
                f'the prompt "{name}" has {key} = {value!r} in its front matter, but "{key}" must be {what}'
            )


def _split(text: str) -> tuple[dict[str, Any], str]:
    if not text.startswith(FRONT):
        return {}, text
    front, _, body = text[len(FRONT) :].partition(f"\n{FRONT}")
    return tomllib.loads(front), body


def dossier(packet: Packet, question: Question, seat: Seat, output_schema: Json | None = None) -> Json:
    """Return the packet for a seat with numbered lines for citations; the perspective is added only for judging tasks."""
    numbered = replace(packet, files=tuple(PacketFile(file.path, _numbered(file.content)) for file in packet.files))
    judging = question.task != "ask"
    lens = (seat.perspective or None, seat.focus or None) if judging else (None, None)
    return numbered.dossier(question.task, *lens, output_schema if judging else None)


def _numbered(content: str) -> str:
    return "\n".join(f"{n}| {line}" for n, line in enumerate(content.splitlines(), 1))


def _pieces(value: Any) -> list[tuple[str, str]]:
    """Return the value of a material expression as labelled texts. A mapping other than a Round provides its labels."""
    if isinstance(value, Statement):
        return [(value.seat.label, visible(value.said))]
    if isinstance(value, Round):
        return [piece for statement in value.values() for piece in _pieces(statement)]
    if isinstance(value, Mapping):
        return [(label, text) for label, item in value.items() for _, text in _pieces(item)]
    if isinstance(value, str):
        return [("", visible(value))] if value else []
    return [piece for item in value for piece in _pieces(item)]


def _shorten(text: str, most: int) -> str:
    words = text.split()
    return " ".join(words) if len(words) <= most else " ".join(words[:most]) + " …"


def visible(text: str) -> str:
    """Remove characters that a model reads but a person cannot see: format, tag and control characters."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn"))


@lru_cache(maxsize=16)
def _part(name: str) -> jinja2.Template:
    return _jinja.from_string((SHIPPED / "_parts" / name).read_text(encoding="utf-8"))


def _system() -> Message:
    return {"role": "system", "content": _part("system.md").render().strip()}
