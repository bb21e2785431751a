"""Places of Python code that can be changed, each to something that a test should notice."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mutant_tests import block_names

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"),
    ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
TEXT_TESTS = {
    "startswith",
    "endswith",
    "removeprefix",
    "removesuffix",
    "partition",
    "rpartition",
    "split",
    "rsplit",
    "count",
    "find",
}
LOGGERS = {"debug", "info", "warning", "error", "exception", "critical"}
SKIPPED = re.compile(r"^src/council/(data/|version\.py)")


@dataclass(frozen=True)
class Mutant:
    """One changed place. Offsets are bytes of the file."""

    path: str
    line: int
    function: str
    block: str  # the name of its block, empty outside of functions
    operator: str
    start: int
    end: int
    old: str
    new: str
    code: str  # the line without its indentation
    number: int = 0  # among the same changes of the same line in the same function

    @property
    def key(self) -> str:
        """The key of this change as long as its line and its function keep their text and name."""
        parts = (self.path, self.function, self.code, self.operator, self.old, self.new, str(self.number))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def apply(self, text: bytes) -> bytes:
        return text[: self.start] + self.new.encode() + text[self.end :]


def find_mutants(path: str, text: bytes) -> list[Mutant]:
    """Return every change of a module."""
    if SKIPPED.match(path):
        return []
    finder = _Finder(path, text)
    finder.visit(finder.module)
    return finder.mutants


def count_code_lines(text: bytes) -> int:
    """Count lines that are neither empty nor comments."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(b"#") for line in lines)


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, text: bytes) -> None:
        self.path = path
        self.text = text
        self.module = ast.parse(text)
        self.blocks = block_names(self.module, path)
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.function = ""
        self.mutants: list[Mutant] = []
        self.counts: dict[str, int] = {}

    # Positions

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, node: ast.expr | ast.stmt | ast.arg, operator: str, span: tuple[int, int], new: str) -> None:
        start, end = span
        line = self.text.count(b"\n", 0, start) + 1
        code = self.lines[line - 1].decode().strip()
        old = self.text[start:end].decode()
        same = "\0".join((self.function, code, operator, old, new))
        number = self.counts[same] = self.counts.get(same, -1) + 1
        block = self.blocks.get(node, "")
        self.mutants.append(Mutant(self.path, line, self.function, block, operator, start, end, old, new, code, number))

    def _replace(self, node: ast.expr | ast.stmt, operator: str, new: str) -> None:
        self._add(node, operator, self._span(node), new)

    def _between(self, node: ast.expr, left: ast.expr, right: ast.expr, symbol: str, new: str, operator: str) -> None:
        """Replace a symbol between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = re.compile(rb"\s+".join(re.escape(word.encode()) for word in symbol.split()))
        found = [match for match in pattern.finditer(self.text, start, end) if not self._is_comment(match.start())]
        if len(found) == 1:
            self._add(node, operator, found[0].span(), new)

    def _is_comment(self, place: int) -> bool:
        start = self.text.rfind(b"\n", 0, place) + 1
        return b" #" in self.text[start:place]

    def _source(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.text[start:end].decode()

    # Definitions

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any(ast.unparse(decorator).rpartition(".")[2] == "overload" for decorator in node.decorator_list):
            return
        outer, self.function = self.function, f"{self.function}.{node.name}".lstrip(".")
        for default in (*node.args.defaults, *(default for default in node.args.kw_defaults if default)):
            self._change_value(default, "default")
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._visit_statements(node.body)
        self.function = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self.function = self.function, f"{self.function}.{node.name}".lstrip(".")
        self._visit_statements(node.body)
        self.function = outer

    def _visit_statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._assigned(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__all__" not in names:
            self._assigned(node.value)

    def _assigned(self, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float)):
            self._change_value(value, "constant")
        else:
            self.visit(value)

    # Statements

    def visit_If(self, node: ast.If) -> None:
        condition = ast.unparse(node.test)
        if "TYPE_CHECKING" in condition or "__name__" in condition:
            return
        self._change_condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._change_condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._replace(node.test, "condition", "False")
            self.visit(node.test)
        self._visit_statements(node.body + node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._replace(condition, "condition", "True")
        self.generic_visit(node)

    def _change_condition(self, test: ast.expr) -> None:
        self._replace(test, "condition", "True")
        self._replace(test, "condition", "False")

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is not None:
            if not (isinstance(value, ast.Constant) and not value.value):
                self._replace(value, "return", "None")
            self._assigned(value)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(call, ast.Call):
            if not isinstance(call, ast.Constant):  # not a docstring
                self.generic_visit(node)
            return
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] in LOGGERS and "log" in name.lower():
            return
        self._replace(node, "statement", "pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "loop", "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "loop", "break")

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "statement", "pass")  # texts of errors are not changed

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone."""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if pair := ARITHMETIC.get(type(node.op)):
            start, end = self._span(node.target)[1], self._span(node.value)[0]
            place = self.text.find(f"{pair[0]}=".encode(), start, end)
            if place >= 0:
                self._add(node, "arithmetic", (place, place + len(pair[0])), pair[1])
        self._assigned(node.value)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            symbol, new = COMPARISONS[type(operator)]
            self._between(node, left, right, symbol, new, "comparison")
            left = right
        for operand in (node.left, *node.comparators):
            self._change_operand(operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        symbol, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(node, left, right, symbol, new, "boolean")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, "not", f"({self._source(node.operand)})")
            self.visit(node.operand)
        elif isinstance(node.operand, ast.Constant):
            self._change_value(node, "constant")
        else:
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str)) for side in (node.left, node.right))  # fmt: skip
        if not is_text and (pair := ARITHMETIC.get(type(node.op))):
            self._between(node, node.left, node.right, pair[0], pair[1], "arithmetic")
        for side in (node.left, node.right):
            self._change_operand(side, texts=False)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else []
        for bound in bounds:
            if bound is not None:
                self._replace(bound, "slice", "")
                self._change_operand(bound, texts=False)
        if not bounds:
            self._change_operand(node.slice, texts=False)

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_exception = ast.unparse(node.func).endswith(("Error", "Warning", "Exception"))
        if is_exception:
            return
        for argument in node.args:
            self._change_operand(argument, texts=method in TEXT_TESTS)
        for keyword in node.keywords:
            self._change_operand(keyword.value, texts=False)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._change_operand(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone: the positions of their parts are not exact."""

    def visit_Constant(self, node: ast.Constant) -> None:
        """Leave constants alone where they decide nothing."""

    def _change_operand(self, node: ast.expr, *, texts: bool = True) -> None:
        operands = node.elts if isinstance(node, (ast.Tuple, ast.Set, ast.List)) else [node]
        for operand in operands:
            value = operand.operand if isinstance(operand, ast.UnaryOp) else operand
            if not isinstance(value, ast.Constant) or isinstance(getattr(operand, "op", None), ast.Not):
                self.visit(operand)
            elif texts or not isinstance(value.value, str):
                self._change_value(operand, "constant")

    def _change_value(self, node: ast.expr, operator: str) -> None:
        """Replace a constant by another one of its type. Visit what is no constant."""
        value = node.operand if isinstance(node, ast.UnaryOp) else node
        if not isinstance(value, ast.Constant):
            self.visit(node)
        elif isinstance(value.value, bool):
            self._replace(node, operator, str(not value.value))
        elif isinstance(value.value, (int, float)):
            self._replace(node, operator, f"({self._source(node)} + 1)")
            self._replace(node, operator, f"({self._source(node)} - 1)")
        elif isinstance(value.value, str) and "\n" not in self._source(node):
            self._replace(node, operator, repr(f"{value.value}XX"))


def parse_mutants(mutants: list[Mutant], text: bytes) -> Iterator[Mutant]:
    """Yield the mutants that are valid Python."""
    for mutant in mutants:
        try:
            ast.parse(mutant.apply(text))
        except SyntaxError:
            continue
        yield mutant
