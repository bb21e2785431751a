"""The house, held over the import graph: who may know whom. Imports inside functions count like those above them."""

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
LONGEST = 500  # lines

GROUND = {"types", "errors", "settings", "foreign", "proxies", "money"}
LEAVES = GROUND | {"events", "record"}
# A room, and the rooms it may know besides itself. The order is the ladder's.
MAY_KNOW: dict[str, set[str]] = {
    "types": set(),
    "errors": set(),
    "money": {"types"},
    "foreign": {"types"},
    "proxies": set(),
    "settings": {"errors", "types"},
    "replies": GROUND,
    "events": GROUND,
    "record": GROUND | {"events"},
    "rules": LEAVES | {"replies"},
    "ledger": LEAVES,
    "minutes": LEAVES,
    "prompting": LEAVES,
    "filing": LEAVES,
    "intent": GROUND | {"rules"},
    "council": LEAVES | {"replies", "rules", "ledger", "minutes", "prompting"},
    "protocols": LEAVES | {"replies", "rules", "council"},
    "members": LEAVES,
    "calling": LEAVES | {"members"},
    "store": LEAVES,
    "search": LEAVES | {"rules"},
    "packet": LEAVES | {"filing", "rules"},
    "render": {"events", "minutes", "types", "money"},
    "audit": LEAVES | {"minutes"},
    "panel": GROUND | {"rules", "protocols", "search"},
    "estimate": LEAVES | {"calling", "members"},
    "planning": LEAVES | {
        "estimate", "replies", "rules", "ledger", "prompting", "council", "protocols", "intent", "members", "packet", "panel",
    },
    "convene": LEAVES | {
        "replies", "rules", "ledger", "minutes", "prompting", "filing", "intent", "council", "protocols", "members",
        "calling", "store", "render", "audit", "planning", "packet", "panel", "search",
    },
    "doctor": GROUND | {"rules", "convene", "members"},
    "doors": LEAVES | {"rules", "minutes", "intent", "planning", "convene", "doctor", "render", "protocols"},
}  # fmt: skip
ONE_ROOM = {
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
    """Every module by its dotted name; the package itself is left out: it only lists names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if name != "council"}


def imports(name: str) -> set[str]:
    """The modules of ours that a module imports, wherever in its text."""
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    return {found for node in ast.walk(tree) for found in imported(node) if found in modules()} - {name}


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are written out in full"
        yield str(node.module)
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(name: str) -> str:
    first = name.split(".")[1]
    return ONE_ROOM.get(first, first)


@pytest.mark.behaviour("house-ladder")
@pytest.mark.parametrize("name", modules())
def test_a_module_knows_only_the_rooms_below_its_own(name: str) -> None:
    assert room(name) in MAY_KNOW, f"{name} stands in no room of the house: give it a line in MAY_KNOW"
    strangers = {found for found in imports(name) if room(found) not in MAY_KNOW[room(name)] | {room(name)}}
    assert not strangers


@pytest.mark.behaviour("house-ladder")
def test_the_table_itself_is_a_ladder() -> None:
    order = list(TopologicalSorter(MAY_KNOW).static_order())  # raises on a circle
    assert set(order) == set(MAY_KNOW)


@pytest.mark.behaviour("house-ladder")
def test_no_module_imports_itself_by_way_of_others() -> None:
    above = {name: {found for found in imports(name) if not found.startswith(f"{name}.")} for name in modules()}
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    graph = {
        name: {found for found in known if not (found in packages and name.startswith(f"{found}."))}
        for name, known in above.items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.behaviour("house-ladder")
def test_calling_knows_the_seam_of_a_member_and_no_member() -> None:
    known = {
        found for name in modules() if room(name) == "calling" for found in imports(name) if room(found) == "members"
    }
    assert known <= {"council.members", "council.members.base"}


@pytest.mark.behaviour("house-ladder")
def test_planning_knows_a_stand_in_and_no_member_that_costs() -> None:
    known = {found for found in imports("council.planning") if room(found) == "members"}
    assert known <= {"council.members", "council.members.base", "council.members.scripted"}


def test_members_of_one_kind_do_not_know_those_of_another() -> None:
    def kind(name: str) -> str:
        return name.removeprefix("council.members.").split(".")[0].split("_")[0]

    shared = {"base", "wires", "weights", "council"}  # the local member speaks over a wire of its own
    for name in modules():
        if room(name) == "members" and kind(name) not in {"registry", "council"}:
            strange = {kind(found) for found in imports(name) if room(found) == "members"} - shared - {kind(name)}
            assert not strange, name


@pytest.mark.parametrize("name", modules())
def test_a_module_can_be_read_in_one_sitting(name: str) -> None:
    assert len(modules()[name].read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("name", [name for name, path in modules().items() if path.name != "__init__.py"])
def test_a_module_says_in_a_sentence_what_it_is(name: str) -> None:
    assert ast.get_docstring(ast.parse(modules()[name].read_text(encoding="utf-8")))


@pytest.mark.behaviour("issue-2-lazy-import")
def test_the_commands_first_words_need_neither_pydantic_nor_aiohttp_nor_rich() -> None:
    code = "import sys; import council.doors.cli; print([m for m in ('pydantic', 'aiohttp', 'jinja2', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
