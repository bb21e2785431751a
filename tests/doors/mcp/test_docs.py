"""Documentation of the MCP server: client snippets and the registry entry."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from typing import Any

import pytest

from council.doors.cli.management import mcp_command
from council.doors.mcp.tools import TOOLS
from council.version import __version__
from tests.paths import ROOT

Json = dict[str, Any]
PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<kind>json|toml|bash)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CLIENTS = ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini CLI")
FLAGS = {name for parameter in mcp_command().params for name in parameter.opts}
SERVER: Json = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


def snippets(kind: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(PAGE) if found["kind"] == kind]


def section(client: str) -> str:
    found = re.search(rf"^### {re.escape(client)}\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, client
    return found[1]


def entries(tables: Json) -> list[Json]:
    """Return the servers of a client's settings, under any of the usual keys."""
    return [entry for key in ("mcpServers", "servers", "mcp_servers") for entry in tables.get(key, {}).values()]


@pytest.mark.behaviour("006-mcp-snippets")
@pytest.mark.parametrize("client", CLIENTS)
def test_each_common_client_has_a_snippet_that_starts_the_command(client: str) -> None:
    [found] = [part for part in FENCE.finditer(section(client)) if part["kind"] in ("json", "toml")]
    read = json.loads if found["kind"] == "json" else tomllib.loads
    [entry] = entries(read(found["body"]))
    assert (entry["command"], entry["args"][0]) == ("council", "mcp")
    assert {word.partition("=")[0] for word in entry["args"] if word.startswith("--")} <= FLAGS


@pytest.mark.behaviour("006-mcp-snippets")
def test_every_snippet_parses() -> None:
    for body in snippets("json"):
        json.loads(body)
    for body in snippets("toml"):
        tomllib.loads(body)
    for line in (line for body in snippets("bash") for line in body.splitlines()):
        words = shlex.split(line)
        mine = words[words.index("mcp") + 1 :] if words[:2] == ["council", "mcp"] else []
        assert {word.partition("=")[0] for word in mine if word.startswith("--")} <= FLAGS


def test_the_page_names_every_tool_and_flag() -> None:
    assert [name for name in (*TOOLS, *FLAGS) if f"`{name}" not in PAGE] == []


@pytest.mark.behaviour("006-mcp-snippets")
def test_the_registry_entry_follows_its_schema() -> None:
    """Check the rules of its schema that apply here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.fullmatch(
        r"https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json", SERVER["$schema"]
    )
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert 1 <= len(SERVER["description"]) <= 100
    assert 1 <= len(SERVER["title"]) <= 100
    assert SERVER["version"] == __version__
    [package] = SERVER["packages"]
    assert {"registryType", "identifier", "transport"} <= set(package)
    assert (package["identifier"], package["version"]) == (project["name"], __version__)
    assert package["transport"] == {"type": "stdio"}
    assert "registryBaseUrl" not in package
    assert [word["value"] for word in package["packageArguments"]] == ["mcp"]
    assert {word["type"] for word in package["packageArguments"]} == {"positional"}
    for variable in package["environmentVariables"]:
        assert variable["isSecret"]
        assert not variable.get("isRequired")
        assert "value" not in variable
