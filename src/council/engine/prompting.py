"""Prompt files: load, check and render them. A file has TOML front matter and a Jinja2 body.

Front matter: `role` (one sentence about the seat), `ask` (one sentence about the task), `words` (approximate answer length),
`material` (expressions for the material of small members), `tokens` (maximum answer tokens). `role` and `ask` are templates.
The protocol may pass other `words` and `tokens` to one request.
The body is the full prompt; a small member gets the compact template instead, filled from the front matter.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from council.errors import PromptError
from council.text_cleanup import LOOSE_JOINERS, TRUNCATION_MARKER, truncate_packet, without_notes
from council.types import Cuts, Json, Message, Packet, PacketFile, Question, Round, Seat, Statement, estimate_tokens

PARTS_FOLDER = Path(__file__).parent / "prompts"  # parts of every request
NO_PACKET = Packet()
PROTOCOLS_FOLDER = Path(__file__).parents[1] / "protocols"  # shipped protocols, each with a folder `prompts`
FRONT_MATTER_FENCE = "+++\n"
FRONT_MATTER_KEYS: dict[str, tuple[type, str]] = {
    "role": (str, "a text"),
    "ask": (str, "a text"),
    "words": (int, "a whole number"),
    "tokens": (int, "a whole number"),
    "material": (list, "a list of expressions"),
}
CONTEXT_END = "\n  }"  # in the packet's JSON, where strings contain no raw line ends
SMALL_TEMPERATURE = 0.2
SMALL_WORDS = 80
SMALL_QUOTE_WORDS = 90  # words per quoted statement for a small member
SMALL_MATERIAL_WORDS = 1200  # words of all quoted statements together
KEPT_CHARS = "\n\t\u200c\u200d"
HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cn")
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
    required_variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    words: int | None = None
    shared: int = 0  # leading characters of the first user message that are the same for every seat


class Prompts:
    """Prompts of one run: the folders and the name of its protocol, and the key of its fence marks."""

    def __init__(self, hmac_key: str, folders: Sequence[Path] = (), protocol: str = "") -> None:
        self.hmac_key = hmac_key.encode()
        self.folders = tuple(folders)
        self.protocol = protocol
        self._functions = {"quote": self.quote, "request_notes": request_notes}

    def find(self, name: str, seat: Seat) -> Prompt:
        """Return `phase.<seat>.md` if it exists, else `phase.md`. The name is "phase", or "protocol/phase" for any shipped protocol."""
        for file in (f"{name}.{seat.name}.md", f"{name}.md"):
            for path in self._places(file):
                if path.is_file():
                    return load_prompt(path)
        places = " or ".join(f'"{folder}"' for folder in self.folders) or "the package"
        raise PromptError(f'there is no prompt "{name}.md" in {places}: add it, or correct the name in the protocol')

    def _places(self, file: str) -> Iterator[Path]:
        protocol, _, phase = file.rpartition("/")
        for folder in self.folders:
            yield folder / file
            if protocol == self.protocol:
                yield folder / phase
        if protocol:
            yield PROTOCOLS_FOLDER / protocol / "prompts" / phase

    def render(
        self, name: str, seat: Seat, variables: Mapping[str, Any], conversation: Iterable[Message] = ()
    ) -> RenderedPrompt:
        """Render the exact messages for a seat; `before` is the conversation to continue."""
        prompt = self.find(name, seat)
        if missing := sorted(
            prompt.required_variables - variables.keys() - {"seat", "role", "ask", "packet"} - _jinja.globals.keys()
        ):
            raise PromptError(
                f'the prompt "{prompt.path.name}" needs "{missing[0]}", which the protocol does not pass: '
                f'pass {missing[0]}=… to the call that uses "{name}", or correct the name in the file'
            )
        try:
            return self._render(prompt, seat, {**variables, "seat": seat, **self._functions}, tuple(conversation))
        except jinja2.UndefinedError as error:
            raise PromptError(f'the prompt "{prompt.path.name}" cannot be rendered: {error.message}') from error

    def _render(
        self, prompt: Prompt, seat: Seat, variables: dict[str, Any], conversation: tuple[Message, ...]
    ) -> RenderedPrompt:
        variables = {"packet": NO_PACKET, **variables}
        variables["role"] = prompt.role.render(variables)
        variables["words"] = variables.get("words") or prompt.words
        variables["ask"] = prompt.ask.render(variables)
        if seat.small:
            return self._render_compact(prompt, variables, conversation)
        user = prompt.body.render(variables)
        if not conversation:
            user = _load_part("full.md").render(variables, body=user, dossier=self._render_packet(seat, variables))
        messages = (*(conversation or [_system_message()]), {"role": "user", "content": user.strip()})
        tokens = variables.get("tokens") or prompt.tokens
        return RenderedPrompt(messages, None, tokens, variables["words"], self._shared_length(messages))

    def _shared_length(self, messages: tuple[Message, ...]) -> int:
        """Return the length up to the end of the packet's context; the parts that differ between seats follow it."""
        first = next(message["content"] for message in messages if message["role"] == "user")
        start = first.find(f"<<<Packet {self.fence_mark('packet')}\n")
        end = first.find(CONTEXT_END, start) if start >= 0 else -1
        return end + len(CONTEXT_END) if end >= 0 else 0

    def _render_packet(self, seat: Seat, variables: dict[str, Any]) -> str:
        """Render the packet in its fence. Parts that differ between seats come last, so that vendors can cache the rest."""
        packet: Packet = variables["packet"]
        if packet.empty:
            return ""
        told = build_dossier(packet, variables["question"], seat, variables.get("output_schema"))
        mark = self.fence_mark("packet")
        return f"<<<Packet {mark}\n{json.dumps(told, ensure_ascii=False, indent=1)}\n{mark}>>>"

    def _render_compact(
        self, prompt: Prompt, variables: dict[str, Any], conversation: tuple[Message, ...]
    ) -> RenderedPrompt:
        words = min(variables["words"] or SMALL_WORDS, SMALL_WORDS)
        pieces = [piece for expression in prompt.material for piece in _collect_texts(expression(**variables))]
        room = min(SMALL_QUOTE_WORDS, SMALL_MATERIAL_WORDS // max(1, len(pieces)))
        material = [(label, _truncate_words(text, room)) for label, text in pieces]
        variables = {
            **variables,
            "packet": NO_PACKET if conversation else variables["packet"],
        }  # the previous turn has it
        user = _load_part("compact.md").render(variables, words=words, material=material)
        system = {"role": "system", "content": variables["role"]}
        messages = (*(conversation or [system]), {"role": "user", "content": user.strip()})
        return RenderedPrompt(messages, SMALL_TEMPERATURE, int(words * TOKENS_PER_WORD), words)

    def render_repair(self, said: str, words: str) -> tuple[Message, Message]:
        """Return the messages that ask for the same reply in the required format."""
        user = _load_part("repair.md").render(problem=words).strip()
        return {"role": "assistant", "content": said}, {"role": "user", "content": user}

    def append_cut_note(self, messages: tuple[Message, ...], cuts: Cuts) -> tuple[Message, ...]:
        """Append a note about the cuts to the last message."""
        last = messages[-1]
        told = _load_part("cut.md").render(cuts=self.quote(cuts.descriptions, "Cut")).strip()
        return (*messages[:-1], {**last, "content": f"{last['content']}\n\n{told}"})

    def quote(self, what: Statement[Any] | str | Sequence[str], label: str | None = None) -> str:
        """Quote another seat's text inside a fence whose mark cannot be forged from outside the run."""
        if isinstance(what, Statement):
            said = what.text if what.reply is None else what.said
            name, text, mark = label or what.seat.label, said, self.fence_mark(what.key)
        else:
            text = what if isinstance(what, str) else "\n".join(f"- {line}" for line in what)
            name, mark = label or "", self.fence_mark(f"{label}: {text}")
        return f"<<<{name} {mark}\n{clean_quotation(text.strip())}\n{mark}>>>"

    def fence_mark(self, what: str) -> str:
        return hmac.new(self.hmac_key, what.encode(), hashlib.sha256).hexdigest()[:12]


def request_notes(names: Iterable[str]) -> str:
    """Return the request for a block of notes after the answer; empty if there is nothing to compare."""
    listed = list(names)
    return "\n\n" + _load_part("notes.md").render(names=listed).strip() if len(listed) > 1 else ""


@lru_cache(maxsize=256)
def load_prompt(path: Path) -> Prompt:
    text = path.read_text(encoding="utf-8")
    try:
        front, body = _split_front_matter(text)
        _check_front_matter(front, path.name)
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
            front.get("words"), front.get("tokens"), frozenset(needs - {"quote", "request_notes", "words"}),
        )  # fmt: skip
    except (jinja2.TemplateSyntaxError, ValueError, RecursionError) as error:
        raise PromptError(f'the prompt "{path.name}" cannot be read: {error}') from error


def _check_front_matter(front: dict[str, Any], name: str) -> None:
    for key, value in front.items():
        if key not in FRONT_MATTER_KEYS:
            raise PromptError(f'the prompt "{name}" has the unknown front matter key "{key}"')
        kind, what = FRONT_MATTER_KEYS[key]
        if not isinstance(value, kind):
            raise PromptError(
                f'the prompt "{name}" has {key} = {value!r} in its front matter, but "{key}" must be {what}'
            )


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    if not text.startswith(FRONT_MATTER_FENCE):
        return {}, text
    front, _, body = text[len(FRONT_MATTER_FENCE) :].partition(f"\n{FRONT_MATTER_FENCE}")
    return tomllib.loads(front), body


def build_dossier(packet: Packet, question: Question, seat: Seat, output_schema: Json | None = None) -> Json:
    """Return the packet for a seat with numbered lines for citations; the perspective is added only for judging tasks."""
    numbered = replace(packet, files=tuple(PacketFile(file.path, _number_lines(file.content)) for file in packet.files))
    judging = question.task != "ask"
    lens = (seat.perspective or None, seat.focus or None) if judging else (None, None)
    return numbered.as_dossier(question.task, *lens, output_schema if judging else None)


def _number_lines(content: str) -> str:
    return "\n".join(f"{n}| {line}" for n, line in enumerate(content.splitlines(), 1))


def _collect_texts(value: Any) -> list[tuple[str, str]]:
    """Return the value of a material expression as labelled texts. A mapping other than a Round provides its labels."""
    if isinstance(value, Statement):
        return [(value.seat.label, clean_quotation(value.said))]
    if isinstance(value, Round):
        return [piece for statement in value.values() for piece in _collect_texts(statement)]
    if isinstance(value, Mapping):
        return [(label, text) for label, item in value.items() for _, text in _collect_texts(item)]
    if isinstance(value, str):
        return [("", clean_quotation(value))] if value else []
    return [piece for item in value for piece in _collect_texts(item)]


def _truncate_words(text: str, max_words: int) -> str:
    words = text.split()
    return " ".join(words) if len(words) <= max_words else " ".join(words[:max_words]) + " …"


def clean_quotation(text: str) -> str:
    """Remove notes, and characters that a model reads but a person cannot see: format, tag and control characters.

    A single joiner between two letters or symbols outside ASCII stays: Persian words and joined emoji need it.
    """
    if "```" in text or "~~~" in text:
        text = without_notes(text)
    kept = "".join(c for c in text if c in KEPT_CHARS or unicodedata.category(c) not in HIDDEN_CATEGORIES)
    return LOOSE_JOINERS.sub("", kept)


@lru_cache(maxsize=16)
def _load_part(name: str) -> jinja2.Template:
    return _jinja.from_string((PARTS_FOLDER / name).read_text(encoding="utf-8"))


def _system_message() -> Message:
    return {"role": "system", "content": _load_part("system.md").render().strip()}


FENCE = re.compile(r"<<<(?P<name>[^\n]*) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark)>>>", re.DOTALL)
MIN_QUOTATION_TOKENS = 100  # tokens that every quotation keeps
MIN_SHARE = 0.1  # of the material is always kept; less would be useless


@dataclass(slots=True)
class FenceTruncator:
    """Truncates each fence to the same share and records the cuts."""

    share: float
    cut_material: dict[str, None] = field(default_factory=dict)
    cut_statements: dict[str, None] = field(default_factory=dict)

    def truncate_fence(self, found: re.Match[str]) -> str:
        name, mark, text = found["name"], found["mark"], found["text"]
        packet = self.truncate_packet_json(text) if name == "Packet" else None
        return f"<<<{name} {mark}\n{self.truncate_quotation(name, text) if packet is None else packet}\n{mark}>>>"

    def truncate_packet_json(self, text: str) -> str | None:
        """Return the packet JSON with less material, or None if the text is not a packet."""
        try:
            data = json.loads(text)
            context = data["council_packet"]["context"]
            packet = _parse_packet(context)
        except (ValueError, KeyError, TypeError):
            return None
        smaller = truncate_packet(packet, int(packet.tokens * self.share))
        self.cut_material |= dict.fromkeys(item.path for item in smaller.skipped)
        context |= {"files": [{"path": file.path, "content": file.content} for file in smaller.files]}
        context |= {"diff": smaller.diff, "spec": {**context["spec"], "content": smaller.spec}}
        if "environment" in context:
            context["environment"] = smaller.environment
        return json.dumps(data, ensure_ascii=False, indent=1)

    def truncate_quotation(self, name: str, text: str) -> str:
        room = max(MIN_QUOTATION_TOKENS, int(estimate_tokens(text) * self.share))
        if estimate_tokens(text) <= room:
            return text
        self.cut_statements[name or "others"] = None
        start = text.encode()[: 3 * room].decode(errors="ignore")
        return f"{start.rsplit(None, 1)[0]}\n{TRUNCATION_MARKER}"


def truncate_messages(messages: Sequence[Message], share: float) -> tuple[tuple[Message, ...], Cuts] | None:
    """Return the messages at about this share of their length, and the cuts. Return None if nothing can be cut."""
    total = sum(estimate_tokens(message["content"]) for message in messages)
    quoted = sum(estimate_tokens(found["text"]) for message in messages for found in FENCE.finditer(message["content"]))
    truncator = FenceTruncator(max(MIN_SHARE, (share * total - (total - quoted)) / max(1, quoted)))
    cut = tuple({**message, "content": FENCE.sub(truncator.truncate_fence, message["content"])} for message in messages)
    cuts = Cuts(tuple(truncator.cut_material), tuple(truncator.cut_statements))
    return (cut, cuts) if cuts else None


def _parse_packet(context: Json) -> Packet:
    files = tuple(PacketFile(file["path"], file["content"]) for file in context["files"])
    source, spec = (context["spec"][part] for part in ("source", "content"))
    return Packet(
        files, context["diff"], "" if source == "none" else source, spec, tuple(context["prior_decisions"]),
        context.get("environment", ""),
    )  # fmt: skip
