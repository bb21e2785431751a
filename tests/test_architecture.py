"""Import rules between the packages. Imports inside functions count too."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import council

PACKAGE = Path(council.__file__).parent

BASE = {
    "types",
    "errors",
    "version",
    "extensions",
    "events",
    "money",
    "answer_text",
    "final_answers",
    "text_cleanup",
    "threads",
    "unified_diff",
    "packet_size",
    "similarity",
    "json_text",
    "json_schema",
    "notes_filter",
    "answer_filter",
    "language",
    "wording",
    "counters",
}
# Each package or top-level module, and the others that it may import.
MAY_IMPORT: dict[str, set[str]] = {
    "types": set(),
    "version": set(),
    "errors": set(),
    "similarity": set(),
    "answer_text": set(),
    "final_answers": {"answer_text", "language"},
    "language": set(),
    "text_cleanup": {"types"},
    "threads": set(),
    "counters": set(),
    "unified_diff": set(),
    "packet_size": {"types", "unified_diff"},
    "wording": {"types", "text_cleanup", "language"},
    "json_text": {"types"},
    "json_schema": {"types", "text_cleanup"},
    "notes_filter": {"types", "text_cleanup", "json_text"},
    "answer_filter": {"text_cleanup", "json_text", "notes_filter"},
    "money": {"types"},
    "events": {"types"},
    "extensions": {"errors"},
    "settings": BASE,
    "store": BASE | {"settings"},
    "packet": BASE | {"settings"},
    "search": BASE | {"settings"},
    "members": BASE | {"settings"},
    "engine": BASE | {"settings", "store"},
    "calling": BASE | {"settings", "store", "members"},
    "protocols": BASE | {"settings", "engine", "search"},
    "flags": BASE | {"protocols"},
    "render": BASE | {"engine", "protocols"},
    "planning": BASE | {"settings", "store", "packet", "members", "calling", "engine", "protocols", "flags"},
    "runs": BASE | {
        "settings", "store", "packet", "search", "members", "calling", "engine", "protocols", "flags", "render", "planning",
    },
    "evals": BASE | {"settings", "packet", "engine", "protocols", "render", "runs"},
    "doors": BASE | {
        "settings", "store", "packet", "members", "engine", "protocols", "flags", "render", "planning", "runs", "evals",
    },
    "__main__": {"doors"},
    "testing": {"doors", "settings"},
}  # fmt: skip
# The only modules of `store` and `members` that packages besides `runs` may import.
INTERFACES = {
    "store": {"council.store.interface", "council.store.run_store"},
    "members": {"council.members.base", "council.members.guard", "council.members.scripted"},
}
# Parts of `protocols` that every protocol uses; all other folders in it are protocols.
SHARED_BY_PROTOCOLS = ("common", "options", "seats")
# Commands of the CLI that start another door.
MAY_START_DOORS = {"council.doors.cli.service_commands", "council.doors.cli.management"}


@cache
def modules() -> dict[str, Path]:
    """Return every module by its dotted name, except the top-level package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if name != "council"}


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


@cache
def imports(name: str) -> set[str]:
    """Return the modules of the project that a module imports, at any level."""
    return {found for node in statements(parsed(name)) for found in imported(node) if found in modules()} - {name}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements at any level. Expressions, which are most of a tree, contain none."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, field, ()):
            yield one
            yield from statements(one)


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "use absolute imports"
        yield str(node.module)
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def find_imports(is_forbidden: Callable[[str, str], bool]) -> dict[str, set[str]]:
    """Return the modules with forbidden imports, and these."""
    found = {name: {one for one in imports(name) if is_forbidden(name, one)} for name in modules()}
    return {name: forbidden for name, forbidden in found.items() if forbidden}


def package(name: str) -> str:
    return name.split(".")[1]


@pytest.mark.behaviour("house-ladder")
def test_a_module_imports_only_allowed_packages() -> None:
    assert {package(name) for name in modules()} <= set(MAY_IMPORT), "a package is unknown: add it to MAY_IMPORT"
    allowed = {owner: {owner, *others} for owner, others in MAY_IMPORT.items()}
    assert find_imports(lambda name, found: package(found) not in allowed[package(name)]) == {}


@pytest.mark.behaviour("house-ladder")
def test_the_import_rules_have_no_cycle() -> None:
    order = list(TopologicalSorter(MAY_IMPORT).static_order())  # raises on a cycle
    assert set(order) == set(MAY_IMPORT)


@pytest.mark.behaviour("house-ladder")
def test_modules_have_no_import_cycle() -> None:
    above = {name: {found for found in imports(name) if not found.startswith(f"{name}.")} for name in modules()}
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    graph = {
        name: {found for found in known if not (found in packages and name.startswith(f"{found}."))}
        for name, known in above.items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.behaviour("house-ladder")
@pytest.mark.parametrize("owner", INTERFACES)
def test_only_runs_imports_more_than_the_interface_of_store_and_members(owner: str) -> None:
    allowed = {f"council.{owner}", *INTERFACES[owner]}

    def is_inner(name: str, found: str) -> bool:
        return package(found) == owner and found not in allowed and package(name) not in {owner, "runs"}

    assert find_imports(is_inner) == {}


def protocol_of(name: str) -> str:
    """Return the protocol whose folder a module is in; empty for any other module."""
    parts = name.split(".")
    inside = parts[1] == "protocols" and len(parts) > 2 and parts[2] not in SHARED_BY_PROTOCOLS
    return parts[2] if inside else ""


@pytest.mark.behaviour("house-ladder")
def test_generic_code_imports_no_protocol() -> None:
    def is_forbidden(name: str, found: str) -> bool:  # evals measures the rules of protocols
        return bool(protocol_of(found)) and not protocol_of(name) and package(name) != "evals"

    assert find_imports(is_forbidden) == {}


def door_of(name: str) -> str:
    """Return the door whose package a module is in; empty for a module that all doors share."""
    parts = name.split(".")
    inside = parts[1] == "doors" and len(parts) > 2 and (PACKAGE / "doors" / parts[2]).is_dir()
    return parts[2] if inside else ""


@pytest.mark.behaviour("house-ladder")
def test_a_door_imports_no_other_door() -> None:
    def is_other_door(name: str, found: str) -> bool:
        return package(name) == "doors" and name not in MAY_START_DOORS and door_of(found) not in ("", door_of(name))

    assert find_imports(is_other_door) == {}


def test_member_kinds_do_not_import_each_other() -> None:
    def kind(name: str) -> str:
        return name.removeprefix("council.members.").split(".")[0].split("_")[0]

    shared = {"base", "wires", "weights", "council"}  # the local member uses a wire
    for name in modules():
        if package(name) == "members" and kind(name) not in {"registry", "council"}:
            unexpected = {kind(found) for found in imports(name) if package(found) == "members"} - shared - {kind(name)}
            assert not unexpected, name


CREATING = {"mkdir", "makedirs", "touch", "write_text", "write_bytes", "chmod", "fchmod", "umask", "symlink", "link"}
NOT_A_FILE = ("self._formatter.write_text", "here.symlink_to")
MAY_CREATE = {
    "council.settings.private_files": CREATING | {"open"},
    "council.runs.worker_client": {"umask"},  # a socket gets its permissions from the umask
    "council.runs.batch_output": {"fchmod"},  # the new output file gets the permissions of the old one
    "council.runs.report_files": {"link"},  # a second name of a private file
    "council.store.sqlite_repair": {"link"},
}  # fmt: skip


def created_by(node: ast.Call) -> str:
    """Return the name of a function that creates a folder or a file here or changes its permissions, or ""."""
    text = ast.unparse(node.func)
    name = text.rpartition(".")[2]
    arguments = [ast.unparse(one) for one in (*node.args, *(keyword.value for keyword in node.keywords))]
    if name == "open" and "devnull" not in ast.unparse(node):
        modes = [one.strip("'") for one in arguments if re.fullmatch(r"'[rwaxbt+]{1,3}'", one)]
        creates = any(set(mode) & set("wax") for mode in modes) or any("O_CREAT" in one for one in arguments)
        return name if creates else ""
    return (
        name
        if (name in CREATING and text not in NOT_A_FILE) or (text.startswith("shutil.copy") and name != "copyfileobj")
        else ""
    )


@pytest.mark.behaviour("40-private-files-one-module")
def test_only_one_module_creates_folders_and_files() -> None:
    found = {
        name: {created_by(node) for node in ast.walk(parsed(name)) if isinstance(node, ast.Call)} - {""}
        for name in modules()
    }
    assert {name: calls for name, calls in found.items() if calls - MAY_CREATE.get(name, set())} == {}


def test_a_module_has_a_docstring() -> None:
    named = [name for name, path in modules().items() if path.name != "__init__.py"]
    assert [name for name in named if not ast.get_docstring(parsed(name))] == []


@pytest.mark.behaviour("issue-2-lazy-import")
def test_the_command_line_starts_without_heavy_imports() -> None:
    code = "import sys; import council.doors.cli; print([m for m in ('pydantic', 'aiohttp', 'jinja2', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
