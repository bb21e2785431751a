"""Definitions in source files: which functions and classes enclose a line, their names, signatures and imports.

Files are parsed with tree-sitter, which belongs to the extra `review` and is imported when it is needed. Without the
extra, without a grammar or if a grammar fails, `parse_source` returns None and callers use lines around the place
instead. The tree is only entered where a line is asked for, because visiting every node costs more than parsing.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

MAX_PARSED_BYTES = 1024 * 1024
MAX_LINE_BYTES = 10_000  # a longer line is generated code, which takes long to parse and says nothing
MAX_PARSE_SECONDS = 1.5  # CPU time of all parses of one packet
MAX_DEPTH = 150  # of the nodes that are entered
MAX_COMMENT_LINES = 15  # of a comment above a definition that are shown with it
MAX_IMPORT_LINES = 40
MAX_NAMES = 200  # definitions of one file that are listed
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
# Lines that begin a definition, for files without a grammar.
DEFINITION_LINE = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|unsafe|inline|open|"
    r"override|suspend|data|sealed|virtual)\s+)*"
    r"(?:def|class|function|func|fun|fn|interface|struct|enum|trait|type|record|module|object|protocol|impl|sub|"
    r"create(?:\s+or\s+replace)?\s+(?:table|view|function|procedure|trigger))\s+(?:\([^)]*\)\s*)?(?:if\s+not\s+exists\s+)?"
    r"(?:self\.)?[`\"\[]?(?P<name>[A-Za-z_$][\w$]*)",
    re.IGNORECASE | re.ASCII,
)
CONSTANT_LINE = re.compile(r"(?a)^[^=:()]{0,60}?\b(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{4,})\b\s*(?::[^=]+)?=(?!=)")
# A variable at the top of a file.
VARIABLE_LINE = re.compile(
    r"(?:export\s+)?(?:pub(?:\([^)]*\))?\s+)?(?:const|static|let|var|val)\s+(?:mut\s+)?(?P<name>[A-Za-z_]\w{3,})",
    re.ASCII,
)
LineRange = tuple[int, int]  # first and last line, from 1


class Grammar(NamedTuple):
    """A grammar wheel: its module, the function that returns the language, and the kinds of nodes that are used."""

    module: str
    function: str
    definitions: frozenset[str]
    imports: frozenset[str]
    wrappers: frozenset[str]  # nodes around a definition that belong to it
    scopes: frozenset[str]  # nodes around imports


def split_words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def _grammar(
    module: str,
    definitions: str,
    imports: str = "",
    *,
    wrappers: str = "",
    scopes: str = "",
    function: str = "language",
) -> Grammar:
    """Return a grammar whose kinds of nodes are separated by blanks."""
    kinds = map(split_words, (definitions, imports, wrappers, scopes))
    return Grammar(f"tree_sitter_{module}", function, *kinds)


def _script_grammar(module: str, function: str) -> Grammar:
    return _grammar(
        module,
        "function_declaration generator_function_declaration class_declaration abstract_class_declaration method_definition "
        "interface_declaration type_alias_declaration enum_declaration internal_module module variable_declarator "
        "public_field_definition field_definition pair assignment_expression abstract_method_signature call_expression",
        "import_statement",
        wrappers="export_statement lexical_declaration variable_declaration expression_statement ambient_declaration",
        function=function,
    )


_C_DEFINITIONS = "function_definition struct_specifier union_specifier enum_specifier type_definition preproc_def preproc_function_def"
GRAMMARS = {
    "python": _grammar(
        "python",
        "function_definition class_definition",
        "import_statement import_from_statement future_import_statement",
        wrappers="decorated_definition",
        scopes="if_statement try_statement block",
    ),
    "javascript": _script_grammar("javascript", "language"),
    "typescript": _script_grammar("typescript", "language_typescript"),
    "tsx": _script_grammar("typescript", "language_tsx"),
    "go": _grammar(
        "go", "function_declaration method_declaration type_spec", "import_declaration", wrappers="type_declaration"
    ),
    "rust": _grammar(
        "rust",
        "function_item struct_item enum_item trait_item impl_item mod_item macro_definition type_item union_item function_signature_item",
        "use_declaration extern_crate_declaration",
    ),
    "java": _grammar(
        "java",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration method_declaration constructor_declaration",
        "import_declaration",
    ),
    "c": _grammar("c", _C_DEFINITIONS, "preproc_include", scopes="preproc_ifdef preproc_if"),
    "cpp": _grammar(
        "cpp",
        f"{_C_DEFINITIONS} class_specifier namespace_definition concept_definition",
        "preproc_include using_declaration",
        wrappers="template_declaration",
        scopes="preproc_ifdef preproc_if",
    ),
    "csharp": _grammar(
        "c_sharp",
        "class_declaration interface_declaration struct_declaration record_declaration enum_declaration method_declaration constructor_declaration "
        "property_declaration namespace_declaration delegate_declaration local_function_statement operator_declaration indexer_declaration",
        "using_directive",
        scopes="namespace_declaration declaration_list",
    ),
    "ruby": _grammar("ruby", "method singleton_method class module call"),
    "php": _grammar(
        "php",
        "function_definition method_declaration class_declaration interface_declaration trait_declaration enum_declaration",
        "namespace_use_declaration",
        scopes="namespace_definition compound_statement",
        function="language_php",
    ),
}
SUFFIXES = {
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp"), "cpp"),
    "cs": "csharp",
    **dict.fromkeys(("rb", "rake", "gemspec"), "ruby"),
    "php": "php",
}
CLASS_KINDS = re.compile(r"class|interface|struct|trait|impl|enum|record|module|namespace|union|type_spec|mod_item")
VALUE_HOLDERS = split_words("variable_declarator pair public_field_definition field_definition assignment_expression")
VALUE_KINDS = re.compile(r"function|arrow|class")  # values that make a variable or a field of an object a definition
ANNOTATION_KINDS = re.compile(r"comment|^(?:attribute_item|attribute_list|decorator)$")
SCRIPT_CALLS = re.compile(
    r"(?:describe|context|it|test|suite|specify|feature|scenario|let!?|shared_examples|RSpec\.describe)\b"
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, a class or another named part of a file. Lines count from 1."""

    name: str  # empty for a block without a name, such as a test case
    first: int  # with its comment and decorators
    last: int
    head: int  # last line of the signature
    is_class: bool
    start: int  # the line where the signature starts, below its comment

    @property
    def lines(self) -> int:
        return self.last - self.first + 1


class ParseClock:
    """CPU time that the parses of one packet may take together."""

    def __init__(self, seconds: float = MAX_PARSE_SECONDS) -> None:
        self.remaining = seconds


class Source:
    """A parsed file."""

    def __init__(self, grammar: Grammar, tree: Tree, text: str, raw: bytes) -> None:
        self.grammar = grammar
        self.lines = text.split("\n")
        self._root = tree.root_node
        self._raw = raw
        self._offsets = [0, *(found.end() for found in re.finditer(rb"\n", raw))]  # of the lines

    def find_enclosing(self, line: int) -> list[Definition]:
        """Return the definitions around a line, the outermost first."""
        if not 1 <= line <= len(self._offsets):
            return []
        return [self._describe(node, outer) for node, outer in self._descend(line)]

    def list_definitions(self) -> list[Definition]:
        """Return the definitions of the file in order: those at its top and those inside its classes."""
        return list(islice(self._iter_nested(self._root, 3), MAX_NAMES))

    def list_members(self, owner: Definition) -> list[Definition]:
        """Return the definitions directly inside a class."""
        inside = [inner for inner in self.list_definitions() if owner.head < inner.start and inner.last <= owner.last]

        def is_nested(inner: Definition) -> bool:
            return any(other.start < inner.start and inner.last <= other.last for other in inside)

        return [inner for inner in inside if not is_nested(inner)]

    def _iter_nested(self, node: Node, depth: int) -> Iterator[Definition]:
        for inner, outer in self._iter_definitions(node):
            definition = self._describe(inner, outer)
            yield definition
            if definition.is_class and depth:
                yield from self._iter_nested(inner, depth - 1)

    def list_imports(self) -> list[LineRange]:
        """Return the lines of each import statement."""
        if not self.grammar.imports:
            return [(n, n) for n, line in enumerate(self.lines[:MAX_IMPORT_LINES], 1) if line.startswith("require")]
        return [self._lines_of(node) for node in self._iter_imports(self._root, 3)]

    def _iter_imports(self, node: Node, depth: int) -> Iterator[Node]:
        for child in node.children:
            if child.type in self.grammar.imports:
                yield child
            elif child.type in self.grammar.scopes and depth:
                yield from self._iter_imports(child, depth - 1)

    def _iter_definitions(self, node: Node, depth: int = 4) -> Iterator[tuple[Node, Node]]:
        for child in node.named_children:
            inner = self._unwrap(child) if child.type in self.grammar.wrappers else None
            if inner:
                yield inner, child
            elif self._is_definition(child):
                yield child, child
            elif depth and child.type not in self.grammar.imports:
                yield from self._iter_definitions(child, depth - 1)

    def _descend(self, line: int) -> Iterator[tuple[Node, Node]]:
        """Yield each definition around a line with the outermost node that belongs to it."""
        start = self._offsets[line - 1]
        line_bytes = self._raw[start : start + MAX_LINE_BYTES]
        start += len(line_bytes) - len(line_bytes.lstrip(b" \t\f"))
        node = self._root
        outer: Node | None = None
        for _ in range(MAX_DEPTH):
            child = _child_at(node, start)
            if child is None:
                return
            node = child
            if self._is_definition(node):
                yield node, outer or node
                outer = None
                continue
            inner = self._unwrap(node) if node.type in self.grammar.wrappers else None
            if inner and not inner.start_byte <= start < inner.end_byte:
                yield inner, outer or node  # the line has only its start: a decorator, `export`
                return
            outer = (outer or node) if inner else None

    def _unwrap(self, node: Node, depth: int = 3) -> Node | None:
        """Return the definition inside a node that belongs to it, or None if there are none or several."""
        found: Node | None = None
        for child in node.named_children:
            inner = child if self._is_definition(child) else None
            if child.type in self.grammar.wrappers and depth:
                inner = self._unwrap(child, depth - 1)
            if inner and found:
                return None
            found = inner or found
        return found

    def _is_definition(self, node: Node) -> bool:
        kind = node.type
        if kind not in self.grammar.definitions:
            return False
        if kind in VALUE_HOLDERS:
            value = _find_value(node)
            return value is not None and bool(VALUE_KINDS.search(value.type))
        if kind in ("call_expression", "call"):  # a test case: it("…", () => …), describe "…" do
            return bool(SCRIPT_CALLS.match(self._text(node, 40)))
        if kind in ("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"):
            return node.child_by_field_name("body") is not None
        return True

    def _describe(self, node: Node, outer: Node) -> Definition:
        start, last = self._lines_of(outer)
        value = _find_value(node)
        is_class = bool(CLASS_KINDS.search(node.type)) or (value is not None and value.type == "class")
        return Definition(
            name=self._name(node),
            first=self._first_comment_line(outer),
            last=last,
            head=min(self._signature_end(node, value), last),
            is_class=is_class,
            start=start,
        )

    def _first_comment_line(self, outer: Node) -> int:
        """Return the first line of the comments and attributes directly above a node, else its own first line."""
        start = first = self._lines_of(outer)[0]
        for _ in range(MAX_COMMENT_LINES):
            above = outer.prev_named_sibling
            if above is None or not ANNOTATION_KINDS.search(above.type):
                break
            above_first, above_last = self._lines_of(above)
            if above_last < first - 1 or start - above_first > MAX_COMMENT_LINES:
                break
            outer, first = above, above_first
        return first

    def _signature_end(self, node: Node, value: Node | None) -> int:
        """Return the last line of a signature: that of its opening brace, or the line above a body without one."""
        first = self._lines_of(node)[0]
        body = node.child_by_field_name("body")
        if body is None and value is not None:
            body = value.child_by_field_name("body")
        if body is None:
            return first
        opening = self._lines_of(body)[0]
        has_brace = self._raw[body.start_byte : body.start_byte + 1] == b"{"
        return max(first, opening if has_brace else opening - 1)

    def _name(self, node: Node) -> str:
        if node.type in ("call_expression", "call"):
            return ""
        named = node.child_by_field_name("name") or node.child_by_field_name("key")
        named = named or node.child_by_field_name("left")
        if named is None and node.type == "impl_item":
            named = node.child_by_field_name("type")
        declarator = node.child_by_field_name("declarator") if named is None else None
        for _ in range(8):  # of C: pointers, arrays and parameters are around the name
            if declarator is None:
                break
            named, declarator = declarator, declarator.child_by_field_name("declarator")
        if named is None:
            return ""
        names = IDENTIFIER.findall(self._text(named, 200))
        # `exports.total` and `Cart::total` are named by their end, `Vec<T>` by its start.
        at = 0 if named.type in ("generic_type", "function_declarator") else -1
        return str(names[at]) if names else ""

    def _lines_of(self, node: Node) -> LineRange:
        """Return the first and the last line of a node.

        Version 0.26 of tree-sitter crashes when its points are read.
        """
        start, end = node.start_byte, max(node.start_byte, node.end_byte - 1)
        return bisect_right(self._offsets, start), bisect_right(self._offsets, end)

    def _text(self, node: Node, limit: int) -> str:
        return self._raw[node.start_byte : min(node.end_byte, node.start_byte + limit)].decode("utf-8", "replace")


def parse_source(path: str, text: str, clock: ParseClock | None = None) -> Source | None:
    """Return a parsed file, or None without a grammar, for generated code and when the time is used up."""
    language = SUFFIXES.get(PurePosixPath(path).suffix.lower().removeprefix("."))
    if language is None or (clock and clock.remaining <= 0):
        return None
    parser = _load_parser(language)
    raw = text.encode("utf-8", "replace")
    if parser is None or len(raw) > MAX_PARSED_BYTES or has_long_line(raw):
        return None
    started = time.thread_time()
    try:
        tree = parser.parse(raw)
        return Source(GRAMMARS[language], tree, text, raw)
    except Exception:  # a grammar of another version may fail in any way; the packet then has lines instead
        return None
    finally:
        if clock:
            clock.remaining -= time.thread_time() - started


def has_long_line(raw: bytes) -> bool:
    """Return whether a line is longer than people write."""
    return len(raw) > MAX_LINE_BYTES and max(map(len, raw.split(b"\n"))) > MAX_LINE_BYTES


def has_grammars() -> bool:
    """Return whether the extra `review` is installed."""
    return _load_parser("python") is not None


@cache
def _load_parser(language: str) -> Parser | None:
    grammar = GRAMMARS[language]
    try:
        binding: Any = import_module("tree_sitter")
        make_language: Callable[[], Any] = getattr(import_module(grammar.module), grammar.function)
        return binding.Parser(binding.Language(make_language()))  # type: ignore[no-any-return]
    except Exception:  # not installed, or built for another version
        return None


def _find_value(node: Node) -> Node | None:
    return node.child_by_field_name("value") or node.child_by_field_name("right")


def _child_at(node: Node, offset: int) -> Node | None:
    """Return the child that contains a byte. Children are searched by bisection, because a file may have thousands."""
    low, high = 0, node.child_count
    while low < high:
        middle = (low + high) // 2
        child = node.child(middle)
        if child is None:
            return None
        if child.end_byte <= offset:
            low = middle + 1
        elif child.start_byte > offset:
            high = middle
        else:
            return child
    return None


# Names in lines


def find_defined_names(lines: Iterable[str]) -> list[str]:
    """Return the names that lines define, for files without a grammar."""
    found = (match["name"] for line in lines if len(line) < MAX_LINE_BYTES and (match := DEFINITION_LINE.match(line)))
    return list(dict.fromkeys(found))


def find_constants(lines: Iterable[str]) -> list[str]:
    """Return the constants that lines set: names in capitals, and variables at the top of a file."""
    matches = (VARIABLE_LINE.match(line[:200]) or CONSTANT_LINE.match(line[:200]) for line in lines)
    return list(dict.fromkeys(match["name"] for match in matches if match))


def find_identifiers(lines: Iterable[str]) -> set[str]:
    return {name for line in lines for name in IDENTIFIER.findall(line[:MAX_LINE_BYTES])}


# Line ranges


def merge_ranges(ranges: Iterable[LineRange], gap: int = 0) -> tuple[LineRange, ...]:
    """Return the ranges in order, joined where they overlap or at most `gap` lines lie between them."""
    merged: list[LineRange] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1 + gap:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def clip_definition(definition: Definition, focus: Sequence[int], *, most: int, around: int) -> list[LineRange]:
    """Return the lines of a definition: all, or of a long one its head, the lines around the focus and its end."""
    if definition.lines <= most:
        return [(definition.first, definition.last)]
    first = definition.first if definition.head - definition.first <= around else definition.start
    head = (first, min(definition.last, max(definition.head, definition.start), first + around))
    places = [(max(definition.first, line - around), min(definition.last, line + around)) for line in focus]
    return [head, *places, (definition.last, definition.last)]
