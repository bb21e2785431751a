"""Prompt files: load, check and render them. A file has TOML front matter and a Jinja2 body.

Front matter: `role` (one sentence about the seat), `ask` (one sentence about the task), `words` (approximate answer
length), `material` (expressions for the material of small members), `tokens` (maximum answer tokens). `role` and `ask`
are templates. The protocol may pass other `words` and `tokens` to one request. The body is the full prompt; a small
member gets the compact template instead, filled from the front matter.
"""

from __future__ import annotations

import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import jinja2.meta
import jinja2.nodes

from council.engine.layout import PlainEnvironment, format_count, split_front_matter
from council.engine.packet_blocks import number_file, render_packet
from council.errors import PromptError
from council.notes_filter import without_notes
from council.text_cleanup import LINE_ENDS, strip_hidden
from council.types import (
    DIFF_SCOPE,
    CouncilPacket,
    Cuts,
    Dossier,
    DossierContext,
    Json,
    Message,
    Packet,
    Question,
    Round,
    Seat,
    Statement,
    repair_surrogates,
)

PARTS_FOLDER = Path(__file__).parent / "prompts"  # parts of every request
NO_PACKET = Packet()
QUESTION_HEADING = "# Question\n\n"  # start of `full.md`
PROTOCOLS_FOLDER = Path(__file__).parents[1] / "protocols"  # shipped protocols, each with a folder `prompts`
SMALL_TEMPERATURE = 0.2
SMALL_WORDS = 80
SMALL_QUOTE_WORDS = 90  # words per quoted statement for a small member
SMALL_MATERIAL_WORDS = 1200  # words of all quoted statements together
TOKENS_PER_WORD = 2.0  # generous: limits rambling small members without cutting normal answers

# Variables with few values, each with the function that makes a key of them.
CACHE_KEYS: dict[str, Callable[[Any], object]] = {
    "seat": attrgetter(*Seat.__dataclass_fields__),
    **dict.fromkeys(("role", "ask", "words", "focus", "merged"), repr),
}
MAX_CACHED_TEXTS = 64  # of one template
Render = Callable[[Mapping[str, Any]], str]  # a compiled template: variables → text


_jinja = PlainEnvironment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
LENGTH_VARIABLES = frozenset({"words", "limit", "length"})  # a prompt with one of them states the length of an answer
SCALED_VARIABLES = ("words", "least")
MIN_SCALED_WORDS = 150
GIVEN_VARIABLES = frozenset({"seat", "role", "ask", "packet", *_jinja.globals})  # the protocol need not pass them


@dataclass(frozen=True, slots=True)
class Prompt:
    """Parsed and compiled prompt file."""

    path: Path
    body: Render
    role: Render
    ask: Render
    material: tuple[Any, ...]
    words: int | None
    tokens: int | None
    required_variables: frozenset[str]
    states_length: bool = False  # whether it tells the seat how long the answer may be


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    words: int | None = None
    shared: int = 0  # leading characters of the first user message that are the same for every seat
    cleaned: Mapping[str, str] = field(default_factory=dict)  # removals from the quoted texts, by source


class Prompts:
    """Prompts of one run: the folders and the name of its protocol, and the key of its fence marks."""

    def __init__(
        self, hmac_key: str, folders: Sequence[Path] = (), protocol: str = "", *, word_share: float = 1.0
    ) -> None:
        self.hmac_key = hmac_key.encode()
        self.word_share = word_share  # of the words that prompts ask for; less than 1 to fit a cap
        self.folders, self.protocol = tuple(folders), protocol
        self.quoted_keys: dict[str, str] = {}  # the key of the statement that is quoted under a fence mark
        self.marks: set[str] = set()  # all marks so far; an answer that repeats one has copied from its prompt

    def find(self, name: str, seat: Seat) -> Prompt:
        """Return `phase.<seat>.md`, else `phase.md`; for another shipped protocol the name is "protocol/phase"."""
        return _find_prompt(self.folders, self.protocol, name, seat.name)

    def render(
        self, name: str, seat: Seat, variables: Mapping[str, Any], conversation: Iterable[Message] = (), key: str = ""
    ) -> RenderedPrompt:
        """Render the messages for a seat. The fence marks are derived from `key`, the key of the step."""
        prompt = self.find(name, seat)
        if missing := prompt.required_variables - variables.keys() - GIVEN_VARIABLES:
            first = min(missing)
            raise PromptError(
                f'the prompt "{prompt.path.name}" needs "{first}", which the protocol does not pass: '
                f'pass {first}=… to the call that uses "{name}", or correct the name in the file'
            )
        functions = {"quote": Quoter(self, key or f"{name}/{seat.name}"), "request_notes": request_notes}
        try:
            return self._render(prompt, seat, {**variables, "seat": seat, **functions}, tuple(conversation))
        except jinja2.UndefinedError as error:
            raise PromptError(f'the prompt "{prompt.path.name}" cannot be rendered: {error.message}') from error

    def _render(
        self, prompt: Prompt, seat: Seat, variables: dict[str, Any], conversation: tuple[Message, ...]
    ) -> RenderedPrompt:
        variables = {"packet": NO_PACKET, **variables}
        variables["role"] = prompt.role(variables)
        variables["words"] = variables.get("words") or prompt.words
        if self.word_share < 1 and prompt.states_length:
            for name in SCALED_VARIABLES:
                if words := variables.get(name):  # fewer words, in steps of ten; a short answer stays as it is
                    variables[name] = max(min(words, MIN_SCALED_WORDS), 10 * round(words * self.word_share / 10))
        variables["ask"] = prompt.ask(variables)
        if seat.small:
            return self._render_compact(prompt, variables, conversation)
        user = prompt.body(variables)
        if "seen" in variables:  # what the seat has read before its answer
            user = f"{variables['seen']}\n\n{user}"
        if not conversation:
            user = self._fill_request(variables, user)
        messages = (*(conversation or [_system_message()]), {"role": "user", "content": user.strip()})
        tokens = variables.get("tokens") or prompt.tokens
        shared, cleaned = self._shared_length(messages, f"{variables['question']}"), variables["quote"].cleaned
        return RenderedPrompt(messages, None, tokens, variables["words"], shared, cleaned)

    def _shared_length(self, messages: tuple[Message, ...], question: str) -> int:
        """Return the length up to the end of the packet or else of the question: what follows differs between seats."""
        first = next(message["content"] for message in messages if message["role"] == "user")
        mark = self.fence_mark("packet")
        start = first.find(f"<<<Packet {mark}\n") if "<<<Packet " in first else -1
        end = first.find(f"\n{mark}>>>", start) if start >= 0 else -1
        if end >= 0:
            return end + len(f"\n{mark}>>>")
        opening = f"{QUESTION_HEADING}{question}"
        return len(opening) if first.startswith(opening) else 0

    def _fill_request(self, variables: dict[str, Any], body: str) -> str:
        """Return the first message of a conversation: `full.md` with the question, the packet and the body."""
        question, packet = variables["question"], variables["packet"]
        dossier, marks = "", 0
        if not packet.empty:
            text, marks = render_material(packet, question.task)
            if marks:
                variables["quote"].cleaned["the packet"] = Quotation(text, 0, marks).describe_changes(0)
            dossier = _fence("Packet", self.fence_mark("packet"), text)
            if schema := variables.get("output_schema") if question.task != "ask" else None:
                body = f"{body}\n\nThe fields of your reply:\n\n{json.dumps(schema, indent=1)}"
        return load_part("full.md").render(
            question=question,
            dossier=dossier,
            body=body,
            has_packet=not packet.empty,
            is_review=question.task == "validate",
            has_diff=bool(packet.diff),
            has_rules=any(file.part == "rules" for file in packet.files),
            has_marks=bool(marks),
        )

    def fence_packet(self, packet: Packet, task: str, *, small: bool = False) -> str:
        """Return a packet in its fence, as it is part of the first message."""
        text = clean_quotation(render_packet(packet, task)).text if small else render_material(packet, task)[0]
        return _fence("Packet", self.fence_mark("packet"), text)

    def _render_compact(
        self, prompt: Prompt, variables: dict[str, Any], conversation: tuple[Message, ...]
    ) -> RenderedPrompt:
        words = min(variables["words"] or SMALL_WORDS, SMALL_WORDS)
        quote: Quoter = variables["quote"]
        pieces = [piece for expression in prompt.material for piece in _collect_texts(expression(**variables))]
        room = min(SMALL_QUOTE_WORDS, SMALL_MATERIAL_WORDS // max(1, len(pieces)))
        material = [(_clean_name(label), _truncate_words(quote.clean(text, label), room)) for label, text in pieces]
        packet = NO_PACKET if conversation else variables["packet"]  # the previous turn has it
        text = "" if packet.empty else quote.clean(render_packet(packet, variables["question"].task), "the packet")
        dossier = _fence("Packet", self.fence_mark("packet"), text) if text else ""
        user = load_part("compact.md").render(variables, dossier=dossier, words=words, material=material)
        first = conversation or (_system_message("compact_system.md"),)
        messages = (*first, {"role": "user", "content": user.strip()})
        return RenderedPrompt(messages, SMALL_TEMPERATURE, int(words * TOKENS_PER_WORD), words, cleaned=quote.cleaned)

    def render_repair(self, said: str, words: str) -> tuple[Message, Message]:
        """Return the messages that ask for the same reply in the required format."""
        user = load_part("repair.md").render(problem=words).strip()
        return {"role": "assistant", "content": said}, {"role": "user", "content": user}

    def append_cut_note(self, messages: tuple[Message, ...], cuts: Cuts, key: str) -> tuple[Message, ...]:
        """Append a note about the cuts to the last message of the step with this key."""
        last = messages[-1]
        told = load_part("cut.md").render(cuts=Quoter(self, f"{key} cut")(cuts.descriptions, "Cut")).strip()
        return (*messages[:-1], {**last, "content": f"{last['content']}\n\n{told}"})

    def fence_mark(self, what: str) -> str:
        mark = hmac.new(self.hmac_key, what.encode(), "sha256").hexdigest()[:12]
        self.marks.add(mark)
        return mark


@dataclass(slots=True)
class Quoter:
    """The function `quote` of one request. Each of its blocks has a mark that occurs in no other request.

    A seat can repeat the marks that it has read, but it never reads the mark that its own words will be quoted under.
    """

    prompts: Prompts
    key: str  # of the step: its phases and its seat
    blocks: int = 0
    cleaned: dict[str, str] = field(default_factory=dict)

    def __call__(self, what: Statement[Any] | str | Sequence[str], label: str | None = None) -> str:
        self.blocks += 1
        mark = self.prompts.fence_mark(f"block {self.blocks} of {self.key}")
        if isinstance(what, Statement):
            self.prompts.quoted_keys[mark] = what.key
            name, text, source = label or what.seat.label, what.text if what.reply is None else what.said, what.key
        else:
            text = what if isinstance(what, str) else "\n".join(f"- {_indent_rest(line)}" for line in what)
            name = source = label or ""
        return _fence(name, mark, self.clean(text.strip(), source))

    def clean(self, text: str, source: str) -> str:
        """Return foreign text as it is quoted, and remember the removals."""
        quotation = clean_quotation(text)
        copied = len([mark for mark in self.prompts.marks if mark in quotation.text])
        if quotation.hidden or quotation.marks or copied:
            self.cleaned[source] = quotation.describe_changes(copied)
        return quotation.text


@lru_cache(maxsize=8)  # all seats and phases get the same text
def render_material(packet: Packet, task: str) -> tuple[str, int]:
    """Return the packet as plain text, with imitated marks changed and nothing else, and how many were found."""
    text = repair_surrogates(render_packet(packet, task))
    changed, marks = neutralize_marks(text)
    return (changed, marks) if marks else (text, 0)


def _fence(name: str, mark: str, text: str) -> str:
    return f"<<<{_clean_name(name)} {mark}\n{text}\n{mark}>>>"


def _clean_name(name: str) -> str:
    return name if name.isalnum() else " ".join(re.sub("[<>]", "", clean_quotation(name).text).split())


def _indent_rest(item: str) -> str:
    """Indent the lines of a list item after its first one, so that none of them looks like another item."""
    return LINE_ENDS.sub("\n  ", item.strip())


def request_notes(names: Iterable[str], read_others: bool = False) -> str:
    """Return the request for a block of notes after the answer; empty if there is nothing to compare.

    `read_others`: the authors read each other before they wrote what the chair reads, so they may have changed their
    minds.
    """
    listed = tuple(names)
    if len(listed) < 2:
        return ""
    return "\n\n" + load_part("notes.md").render(names=listed, read_others=read_others).strip()


@lru_cache(maxsize=256)
def _find_prompt(folders: tuple[Path, ...], protocol: str, name: str, seat: str) -> Prompt:
    for file in (f"{name}.{seat}.md", f"{name}.md"):
        for path in _list_places(file, folders, protocol):
            if path.is_file():
                return load_prompt(path)
    places = " or ".join(f'"{folder}"' for folder in folders) or "the package"
    raise PromptError(f'there is no prompt "{name}.md" in {places}: add it, or correct the name in the protocol')


def _list_places(file: str, folders: Iterable[Path], own_protocol: str) -> Iterator[Path]:
    protocol, _, phase = file.rpartition("/")
    for folder in folders:
        yield folder / file
        if protocol == own_protocol:
            yield folder / phase
    if protocol:
        yield PROTOCOLS_FOLDER / protocol / "prompts" / phase


@lru_cache(maxsize=256)
def load_prompt(path: Path) -> Prompt:
    text = path.read_text(encoding="utf-8")
    try:
        front, body = split_front_matter(text, path.name)
        texts = (body, front.get("role", ""), front.get("ask", ""))
        sources = [*texts, *(f"{{{{ {m} }}}}" for m in front.get("material", []))]
        needs = frozenset().union(*map(_find_required_variables, sources))
        return Prompt(
            path,
            _compile(body),
            _compile(front.get("role", "")),
            _compile(front.get("ask", "")),
            tuple(_jinja.compile_expression(m, undefined_to_none=False) for m in front.get("material", [])),
            front.get("words"),
            front.get("tokens"),
            frozenset(needs - {"quote", "request_notes", "words"}),
            bool(needs & LENGTH_VARIABLES),
        )
    except (jinja2.TemplateSyntaxError, ValueError, RecursionError) as error:
        raise PromptError(f'the prompt "{path.name}" cannot be read: {error}') from error


def _find_required_variables(source: str) -> set[str]:
    """Return the variables of a template without those that it tests with `is defined`."""
    tree = _jinja.parse(source)
    tested = {
        test.node.name
        for test in tree.find_all(jinja2.nodes.Test)
        if test.name == "defined" and isinstance(test.node, jinja2.nodes.Name)
    }
    return jinja2.meta.find_undeclared_variables(tree) - tested


def _compile(source: str) -> Render:
    """Compile a template. One that reads only variables with few values is rendered once for their values."""
    template, needs = _jinja.from_string(source), jinja2.meta.find_undeclared_variables(_jinja.parse(source))
    if not needs <= CACHE_KEYS.keys():
        return template.render
    names, texts = sorted(needs), dict[tuple[Any, ...], str]()

    def render(variables: Mapping[str, Any]) -> str:
        try:
            key = tuple([CACHE_KEYS[name](variables.get(name)) for name in names])
        except AttributeError:  # a seat of another kind
            return template.render(variables)
        if key not in texts:
            if len(texts) >= MAX_CACHED_TEXTS:
                texts.clear()
            texts[key] = template.render(variables)
        return texts[key]

    return render


def build_dossier(packet: Packet, question: Question, seat: Seat, output_schema: Json | None = None) -> Dossier:
    """Return the packet for a seat, with numbered lines for citations and its keys in the documented order.

    What is empty is left out. The perspective and the schema are only part of judging tasks.
    """
    told: CouncilPacket = {
        "version": "1.0",
        "mode": question.task,
        "target": packet.target,
        "context": _build_context(packet, question.task),
    }
    if question.task != "ask":
        if seat.perspective:
            told["perspective"] = seat.perspective
        if seat.focus:
            told["perspective_description"] = seat.focus
        if output_schema is not None:
            told["output_schema"] = output_schema
    return {"council_packet": told}


def _build_context(packet: Packet, task: str) -> DossierContext:
    context: DossierContext = {
        "files": [{"path": file.path, "content": "\n".join(number_file(file))} for file in packet.files],
        "diff": packet.diff,
        "spec": {"source": packet.spec_source or "none", "content": packet.spec},
        "prior_decisions": list(packet.prior_decisions),
    }
    if packet.environment:
        context["environment"] = packet.environment
    if packet.commits:
        context["commits"] = list(packet.commits)
    if packet.attachments:
        context["attachments"] = [{"path": one.path, "media_type": one.media_type} for one in packet.attachments]
    if packet.diff and task == "validate":
        context["scope"] = DIFF_SCOPE
    return context


def _collect_texts(value: Any) -> list[tuple[str, str]]:
    """Return the value of a material expression as labelled texts. A mapping other than a Round provides its labels."""
    if isinstance(value, Statement):
        return [(value.seat.label, value.said)]
    if isinstance(value, Round):
        return [piece for statement in value.values() for piece in _collect_texts(statement)]
    if isinstance(value, Mapping):
        return [(label, text) for label, item in value.items() for _, text in _collect_texts(item)]
    if isinstance(value, str):
        return [("", value)] if value else []
    return [piece for item in value for piece in _collect_texts(item)]


def _truncate_words(text: str, max_words: int) -> str:
    """Return the first words on one line, without the quotation marks that enclose it in a small prompt."""
    words = QUOTATION_MARKS.sub("'", text).split()
    return " ".join(words) if len(words) <= max_words else " ".join(words[:max_words]) + " …"


@lru_cache(maxsize=16)
def load_part(name: str) -> jinja2.Template:
    return _jinja.from_string((PARTS_FOLDER / name).read_text(encoding="utf-8"))


@cache
def _system_message(part: str = "system.md") -> Message:
    return {"role": "system", "content": load_part(part).render().strip()}


# Foreign text: text that another seat, a person, a file or a web page has written

QUOTATION_MARKS = re.compile('["\u201c-\u201f\uff02\u275d\u275e\u301d-\u301f]')
OVERLAYS = re.compile("(?<=[<>\u00ab\u00bb\u2039\u203a\uff1c\uff1e])[\u0300-\u036f\u20d0-\u20ff]+")

# Characters that look like those of a mark. A double angle is folded to one guillemet, a triple one to one character.
LOOKALIKES = {
    **dict.fromkeys("\u02c2\u1438\u2039\u2329\u276e\u2770\u27e8\u29fc\u3008\ufe64\uff1c", "<"),
    **dict.fromkeys("\u02c3\u1433\u203a\u232a\u276f\u2771\u27e9\u29fd\u3009\ufe65\uff1e", ">"),
    **dict.fromkeys("\u226a\u27ea", "\u00ab"),
    **dict.fromkeys("\u226b\u27eb", "\u00bb"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"),
    **dict(
        zip(
            "\u0430\u0441\u0501\u0435\u043e\u0456\u0455\u0440\u0443\u0442\u043c\u043f\u03bf\u03c5\u03b1\u03b5\u03b9\u0578\u057d\u0585\u217c\u04cf",
            "acdeoispytmnouaeinuoll",
            strict=True,
        )
    ),
}
_OPEN = "(?:<<<|\u00ab[<\u00ab]|<\u00ab|\u22d8)"
_CLOSE = "(?:>>>|\u00bb[>\u00bb]|>\u00bb|\u22d9)"
_START = r"^(?: *\d+(?: [+ -] )?\| )?"  # the line numbers of a packet
MARKS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"{_START}[^\w\n<\u00ab\u22d8]*(?P<mark>{_OPEN}<{{0,3}})(?!<)[ \t]?(?=\w)",  # <<<Name; git writes seven
        rf"(?P<mark>{_OPEN})(?=[^\n]{{0,120}}?[ \t][0-9a-f]{{12}}(?!\w))",  # <<<Name 0123456789ab
        rf"{_START}[^\w\n]*\w[\w.:/-]{{0,79}}[ \t]{{0,4}}(?P<mark>{_CLOSE}>{{0,3}})[ \t`*_\"'.,;:!|]*$",  # mark>>>
        rf"[0-9a-f]{{12}}[ \t]{{0,4}}(?P<mark>{_CLOSE})",  # 0123456789ab>>>
        r"(?P<mark><\|[^<>|\n]{1,60}\|>)",  # tokens of chat templates
        r"(?P<mark></?(?:system|sys|inst|instructions?|start_of_turn|end_of_turn)\b[^<>\n]{0,60}>)",
        r"(?P<mark>\[/?(?:system|sys|inst)\b[^\[\]\n]{0,20}\])",
        rf"{_START}[^\w\n]*(?:json[ \t]+)?council(?P<mark>[-_])notes(?!\w)",  # the chair's notes
    )
)
HINTS = (
    "<<<", ">>>", "\u00ab", "\u00bb", "\u22d8", "\u22d9", "<|", "<sys", "</sys", "<inst", "</inst", "<start_of_turn", "<end_of_turn",
    "[sys", "[/sys", "[inst", "[/inst", "council-notes", "council_notes",
)  # fmt: skip
REPLACEMENTS = dict(zip("<\u00ab\u22d8[>\u00bb\u22d9]-_", "(((())))  ", strict=True))


class FoldTable(dict[int, str]):
    """Maps every character to one lower-case character that looks the same."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKC", LOOKALIKES.get(char, char)).lower()
        digit = unicodedata.digit(char, None)
        folded = str(digit) if digit is not None else LOOKALIKES.get(plain, plain)
        self[code] = folded if len(folded) == 1 and folded not in "\n\r" else char
        return self[code]


_FOLDED_CHARS = FoldTable()


class Quotation(NamedTuple):
    """Foreign text as it is quoted, and how many hidden characters and imitated marks it had."""

    text: str
    hidden: int
    marks: int

    def describe_changes(self, copied: int) -> str:
        """Describe the removals; `copied` is how many marks of the run the text repeats."""
        counts = ((self.hidden, "invisible character"), (self.marks, "imitated mark"))
        removed = ", ".join(format_count(n, word) for n, word in counts if n)
        told = [f"{removed} removed from the quotation"] if removed else []
        return "; ".join([*told, *([f"repeats {format_count(copied, 'mark')} of its prompt"] if copied else [])])


@lru_cache(maxsize=64)  # several seats read the same answer
def clean_quotation(text: str) -> Quotation:
    """Return foreign text without hidden characters and notes, and with imitated marks neutralized."""
    text, hidden = strip_hidden(text)
    text, marks = neutralize_marks(without_notes(text))
    return Quotation(text, hidden, marks)


def neutralize_marks(text: str) -> tuple[str, int]:
    """Return the text with imitated marks changed, and how many were found: `0a1b…>>>` becomes `0a1b…)))`."""
    text, total = OVERLAYS.sub("", text), 0
    while found := find_marks(text):
        total += len(found)
        chars = list(text)
        for at, replacement in list_mark_chars(text, found).items():
            chars[at] = replacement
        text = "".join(chars)
    return text, total


def find_marks(text: str) -> set[tuple[int, int]]:
    """Return where a text imitates a mark: a fence, a token of a chat template, or the label of the notes."""
    folded = fold(text)
    for hint in HINTS:
        if hint in folded:
            break
    else:
        return set()
    return {found.span("mark") for pattern in MARKS for found in pattern.finditer(folded)}


def list_mark_chars(text: str, found: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Return the places of the characters that make the marks, each with its replacement."""
    folded = fold(text)
    places = sorted({at for start, end in found for at in range(start, end)})
    return {at: REPLACEMENTS[folded[at]] for at in places if folded[at] in REPLACEMENTS}


def fold(text: str) -> str:
    """Return the text with each character replaced by a plain one that looks like it."""
    return text.lower() if text.isascii() else text.translate(_FOLDED_CHARS)
