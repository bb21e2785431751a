"""An answer on a terminal: wrapped Markdown with tables and code, and plain lines with a hanging indent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    ListItem,
    Markdown,
    MarkdownElement,
    Paragraph,
    TableDataElement,
    TableElement,
)
from rich.padding import Padding
from rich.segment import Segment, SegmentLines
from rich.syntax import Syntax
from rich.text import Text

from council.render.markdown import TextPart
from council.render.screen import Line, strip_end
from council.render.text_layout import MIN_WIDTH, fit_columns, text_width, to_ascii, wrap, wrap_lines

MAX_TEXT_WIDTH = 100  # columns; longer lines are hard to read. Tables and code use the whole width
MAX_LINE_WIDTH = 120  # of lines with columns, such as findings
MAX_MARKDOWN_CHARS = 50_000  # of a part; a longer one would take seconds, so it is shown as plain lines
COLUMN_GAP = 2
CODE_INDENT = 4
CODE_THEME = "ansi_dark"  # uses the colours of the terminal
LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
FOLD_TAGS = re.compile(r"</?(?:details|summary)>", re.IGNORECASE)  # of the report file
FIRST_WORD = re.compile(r"\S+")
WORD_STYLES = {
    "!": "bold yellow",
    "critical": "bold red",
    "significant": "bold yellow",
    "minor": "bold",
    "PASS": "bold green",
    "WARN": "bold yellow",
    "FAIL": "bold red",
    "DISAGREE": "bold magenta",
    "INCOMPLETE": "bold yellow",
    "Trust:": "bold",
}


LINE_STYLES = {"·": "dim", "──": "bold"}  # of a whole line, by its first sign


def render_parts(parts: Sequence[TextPart], *, width: int, ascii: bool = False, color: bool = True) -> str:
    """Render the parts of an answer for a terminal of this width, with a blank line between them."""
    console = Console(
        file=StringIO(), width=width, force_terminal=True, no_color=not color, highlight=False, legacy_windows=False
    )
    lines: list[Line] = []
    for part in parts:
        lines += [*([[]] if lines else []), *draw_part(part, console, width, ascii)]
    with console.capture() as captured:
        console.print(SegmentLines(lines, new_lines=True), end="")
    return captured.get()


def draw_part(part: TextPart, console: Console, width: int, ascii: bool) -> list[Line]:
    """Return the lines of one part of an answer."""
    is_markdown = part.is_markdown and len(part.text) <= MAX_MARKDOWN_CHARS
    renderable = AnswerMarkdown(part.text, ascii) if is_markdown else _style_lines(part.text, width, ascii)
    options = console.options.update(width=width, height=None)
    lines = _strip_blank_lines([strip_end(line) for line in console.render_lines(renderable, options, pad=False)])
    return [[Segment(to_ascii(one.text), one.style) for one in line] for line in lines] if ascii else lines


def _strip_blank_lines(lines: list[Line]) -> list[Line]:
    filled = [n for n, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _style_lines(text: str, width: int, ascii: bool) -> Text:
    """Return plain lines, wrapped, with the first word of each in its colour. Lines with a sign have one style."""
    shown = Text(no_wrap=True)
    for line in text.strip("\n").split("\n"):
        plain = to_ascii(line) if ascii else line
        is_code = line.startswith(" " * CODE_INDENT)
        wrapped = Text("\n".join(_wrap_code(plain, width) if is_code else _wrap_prose(plain, width)) + "\n")
        word = FIRST_WORD.match(line.lstrip(" "))
        if word and not is_code and (style := LINE_STYLES.get(word[0])):
            wrapped.stylize(style)
        elif word and not line.startswith(" ") and (style := WORD_STYLES.get(word[0])):
            wrapped.stylize(style, 0, len(word[0]))
        shown.append_text(wrapped)
    return shown


def _wrap_prose(line: str, width: int) -> list[str]:
    """Wrap a line. Text that is indented below a first line is prose; a line with columns may be wider."""
    return wrap_lines(line, min(width, MAX_TEXT_WIDTH if line.startswith(" ") else MAX_LINE_WIDTH))


def _wrap_code(line: str, width: int) -> list[str]:
    """Wrap a line of code under its own indent."""
    indent = len(line) - len(line.lstrip(" "))
    return wrap(line, width, indent + CODE_INDENT)


# Markdown


def _convert_token(token: Token) -> Token:
    """Replace images and links that repeat their address with text, soft breaks and `<br>` with line breaks."""
    if token.type == "inline" and token.children:
        token.children = list(_convert_inline(token.children))
    return token


def _convert_inline(tokens: Sequence[Token]) -> Iterator[Token]:
    plain_links = _find_plain_links(tokens)
    for place, token in enumerate(tokens):
        if place in plain_links:
            continue
        if token.type == "image":
            name, address = token.content, str(token.attrs.get("src", ""))
            yield Token("text", "", 0, content=f"{name} ({address})" if name else address)
        elif token.type == "softbreak":
            yield Token("hardbreak", "br", 0)
        elif token.type == "text" and "<" in token.content:
            yield from _split_at_breaks(FOLD_TAGS.sub("", token.content))
        else:
            yield token


def _find_plain_links(tokens: Sequence[Token]) -> set[int]:
    """Return the places of the tags around links whose text is their address."""
    found: set[int] = set()
    for place, token in enumerate(tokens[:-2]):
        if token.type == "link_open" and tokens[place + 2].type == "link_close":
            address = str(token.attrs.get("href", ""))
            if tokens[place + 1].content in (address, address.removeprefix("mailto:")):
                found |= {place, place + 2}
    return found


def _split_at_breaks(text: str) -> Iterator[Token]:
    for n, piece in enumerate(LINE_BREAK_TAG.split(text)):
        if n:
            yield Token("hardbreak", "br", 0)
        yield Token("text", "", 0, content=piece)


class AnswerParagraph(Paragraph):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "default"
        yield Constrain(self.text, MAX_TEXT_WIDTH)


class AnswerListItem(ListItem):
    """An item of a list, with a dot after its number."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        for n, line in enumerate(lines):
            yield Segment(" " * width if n else f"{number}. ".rjust(width))
            yield from line
            yield Segment.line()


class AnswerRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, MAX_TEXT_WIDTH), "dim")
        yield Text()


class AnswerHeading(Heading):
    """A heading at the left margin."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.stylize("bold underline" if self.tag in ("h1", "h2") else "bold")
        yield Constrain(text, MAX_TEXT_WIDTH)


class AnswerCode(CodeBlock):
    """A code block, indented, without a frame or a background, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip().expandtabs(4)
        shown = Syntax(code, self.lexer_name, theme=self.theme, background_color="default").highlight(code)
        for line in shown.split("\n")[: code.count("\n") + 1]:
            indent = len(line.plain) - len(line.plain.lstrip())
            width = max(MIN_WIDTH, options.max_width - CODE_INDENT - indent)
            yield Padding(line[indent:].wrap(console, width, justify="default"), (0, 0, 0, CODE_INDENT + indent))


class AnswerTable(TableElement):
    """A table whose columns fit the terminal without splitting words; else one block of lines per row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = [cell.content for cell in _read_cells(self.header.row.cells)] if self.header and self.header.row else []
        rows = [[cell.content for cell in _read_cells(row.cells)] for row in (self.body.rows if self.body else [])]
        columns = list(zip(*[head, *rows], strict=True))
        widths = fit_columns(
            [max(map(_natural_width, column)) for column in columns],
            [max(map(_longest_word, column)) for column in columns],
            options.max_width - COLUMN_GAP * (len(columns) - 1),
        )
        if widths is None:
            yield from _list_records(head, rows)
        else:
            yield from _draw_table(console, head, rows, widths)


def _read_cells(cells: Iterable[object]) -> list[TableDataElement]:
    return [cell for cell in cells if isinstance(cell, TableDataElement)]


def _natural_width(cell: Text) -> int:
    return max(map(text_width, cell.plain.split("\n")), default=0)


def _longest_word(cell: Text) -> int:
    return max(map(text_width, cell.plain.split()), default=0)


def _draw_table(console: Console, head: list[Text], rows: list[list[Text]], widths: list[int]) -> Iterator[Text]:
    if any(cell.plain.strip() for cell in head):
        titles = [cell.copy() for cell in head]
        for title in titles:
            title.stylize("bold")
        yield from _draw_row(console, titles, widths)
        yield Text((" " * COLUMN_GAP).join("─" * width for width in widths), "dim", no_wrap=True)
    drawn = [_draw_row(console, row, widths) for row in rows]
    has_tall_rows = any(len(lines) > 1 for lines in drawn)
    for n, lines in enumerate(drawn):
        if n and has_tall_rows:
            yield Text()
        yield from lines


def _draw_row(console: Console, cells: list[Text], widths: list[int]) -> list[Text]:
    """Return the lines of one row, each cell wrapped at the words."""
    columns = [cell.wrap(console, max(1, width), justify="default") for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for n in range(max(map(len, columns), default=0)):
        line = Text(no_wrap=True)
        for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
            part = column[n].copy() if n < len(column) else Text()
            part.rstrip()
            missing = width - part.cell_len
            before = {"right": missing, "center": missing // 2}.get(cells[place].justify or "", 0)
            line.append(" " * (COLUMN_GAP if place else 0)).append(" " * before)
            line.append_text(part).append(" " * (missing - before))
        lines.append(line)
    return lines


def _list_records(head: list[Text], rows: list[list[Text]]) -> Iterator[Text | Constrain]:
    """Return the rows of a table that is too wide as lines `title: value`."""
    for n, row in enumerate(rows):
        if n:
            yield Text()
        for title, cell in zip(head, row, strict=True):
            name = Text(f"{title.plain}: " if title.plain else "", "bold")
            yield Constrain(Text.assemble(name, cell), MAX_TEXT_WIDTH)


class AnswerMarkdown(Markdown):
    """Markdown of a model: no HTML, no hidden link targets, every line break kept."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "paragraph_open": AnswerParagraph,
        "heading_open": AnswerHeading,
        "fence": AnswerCode,
        "code_block": AnswerCode,
        "list_item_open": AnswerListItem,
        "hr": AnswerRule,
        "table_open": AnswerTable,
    }

    def __init__(self, markup: str, ascii: bool = False) -> None:
        super().__init__("", hyperlinks=False, code_theme=CODE_THEME)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.markup, self.parsed = markup, [_convert_token(token) for token in parser.parse(markup)]
        if ascii:
            for token in self._flatten_tokens(self.parsed):  # after parsing: a dash would become a list
                token.content = to_ascii(token.content)
