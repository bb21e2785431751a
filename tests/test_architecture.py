"""Import rules between the packages. Imports inside functions count too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import council

PACKAGE = Path(council.__file__).parent
MAX_LINES = 500  # lines

BASE = {"types", "errors", "settings", "foreign", "proxies", "money"}
LEAVES = BASE | {"events", "record"}
# Each package, and the packages it may import besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "types": set(),
    "errors": set(),
    "money": {"types"},
    "foreign": {"types"},
    "proxies": set(),
    "settings": {"errors", "types"},
    "replies": BASE,
    "events": BASE,
    "record": BASE | {"events"},
    "rules": LEAVES | {"replies"},
    "ledger": LEAVES,
    "minutes": LEAVES,
    "prompting": LEAVES,
    "filing": LEAVES,
    "intent": BASE | {"rules"},
    "council": LEAVES | {"replies", "rules", "ledger", "minutes", "prompting"},
    "protocols": LEAVES | {"replies", "rules", "council"},
    "members": LEAVES,
    "calling": LEAVES | {"members"},
    "store": LEAVES,
    "search": LEAVES | {"rules"},
    "packet": LEAVES | {"filing", "rules"},
    "render": {"events", "minutes", "types", "money"},
    "audit": LEAVES | {"minutes"},
    "panel": BASE | {"rules", "protocols", "search"},
    "estimate": LEAVES | {"calling", "members"},
    "planning": LEAVES | {
        "estimate", "replies", "rules", "ledger", "prompting", "council", "protocols", "intent", "members", "packet", "panel",
    },
    "convene": LEAVES | {
        "replies", "rules", "ledger", "minutes", "prompting", "filing", "intent", "council", "protocols", "members",
        "calling", "store", "render", "audit", "planning", "packet", "panel", "search",
    },
    "doctor": BASE | {"rules", "convene", "members"},
    "doors": LEAVES | {"rules", "minutes", "intent", "planning", "convene", "doctor", "render", "protocols"},
}  # fmt: skip
SAME_PACKAGE = {
    "waiting": "council",
    "endings": "convene",
    "settings_files": "settings",
    "settings_keys": "settings",
    "settings_keyring": "settings",
    "catalogue": "settings",
    "__main__": "doors",
}


@cache
def modules() -> dict[str, Path]:
    """Return every module by its dotted name, except the top-level package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if name != "council"}


def imports(name: str) -> set[str]:
    """Return the modules of the project that a module imports, at any level."""
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    return {found for node in ast.walk(tree) for found in imported(node) if found in modules()} - {name}


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "use absolute imports"
        yield str(node.module)
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package(name: str) -> str:
    first = name.split(".")[1]
    return SAME_PACKAGE.get(first, first)


@pytest.mark.behaviour("house-ladder")
@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_allowed_packages(name: str) -> None:
    assert package(name) in MAY_IMPORT, f"{name} is in an unknown package: add it to MAY_IMPORT"
    forbidden = {found for found in imports(name) if package(found) not in MAY_IMPORT[package(name)] | {package(name)}}
    assert not forbidden


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
def test_calling_imports_only_the_member_interface() -> None:
    known = {
        found
        for name in modules()
        if package(name) == "calling"
        for found in imports(name)
        if package(found) == "members"
    }
    assert known <= {"council.members", "council.members.base"}


@pytest.mark.behaviour("house-ladder")
def test_planning_imports_no_member_but_the_scripted_one() -> None:
    known = {found for found in imports("council.planning") if package(found) == "members"}
    assert known <= {"council.members", "council.members.base", "council.members.scripted"}


def test_member_kinds_do_not_import_each_other() -> None:
    def kind(name: str) -> str:
        return name.removeprefix("council.members.").split(".")[0].split("_")[0]

    shared = {"base", "wires", "weights", "council"}  # the local member uses a wire
    for name in modules():
        if package(name) == "members" and kind(name) not in {"registry", "council"}:
            unexpected = {kind(found) for found in imports(name) if package(found) == "members"} - shared - {kind(name)}
            assert not unexpected, name


@pytest.mark.parametrize("name", modules())
def test_a_module_is_not_too_long(name: str) -> None:
    assert len(modules()[name].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", [name for name, path in modules().items() if path.name != "__init__.py"])
def test_a_module_has_a_docstring(name: str) -> None:
    assert ast.get_docstring(ast.parse(modules()[name].read_text(encoding="utf-8")))


@pytest.mark.behaviour("issue-2-lazy-import")
def test_the_command_line_starts_without_heavy_imports() -> None:
    code = "import sys; import council.doors.cli; print([m for m in ('pydantic', 'aiohttp', 'jinja2', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
