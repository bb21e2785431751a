"""Limits of MCP callers: folders, files, endpoints and money."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from council.doors.limits import BudgetCaps, Owner, default_root, parse_roots, resolve_folder
from council.doors.mcp.server import make_server
from council.doors.mcp.tools_impl import CouncilTools
from council.errors import UsageError
from council.runs.service import Convener
from tests.doors.mcp.clients import QUESTION, SCRIPTED, call_refused, call_tool, roots_callback
from tests.trusted_project import trust_project, write_user_file

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
SEATS = (
    '[{name = "cfo", lens = "cash", stance = "Who pays?"}, {name = "coo", lens = "people", stance = "Who does it?"}]'
)
PRICED = """
[providers.sim]
base_url = "http://127.0.0.1:9/v1"
[models]
default = "sim:m1"
[prices."sim:*"]
input = 1.0
output = 2.0
"""


@pytest.fixture(autouse=True)
def scripted() -> None:
    put("council.toml", SCRIPTED)


def put(name: str | Path, text: str) -> None:
    """Write a file and its parent folders."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    trust_project(Path(name).parent)


def link(name: str, to: Path) -> None:
    Path(name).symlink_to(to)


@asynccontextmanager
async def connect_in_process(
    mode: str = "auto", roots: Iterable[Path] | None = None, **owner: Any
) -> AsyncIterator[Client]:
    """Connect the SDK client to the server in this process; these tests start no run."""
    tools = CouncilTools(Owner(Path.cwd(), dict(os.environ), **owner))
    try:
        async with Client(make_server(tools), mode=mode, list_roots_callback=roots_callback(roots)) as client:
            yield client
    finally:
        await tools.close()


def outside(tmp_path: Path) -> Path:
    """Make a folder next to the server's folder, with files that must not be read."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "roster.toml").write_text(f"seats = {SEATS}\n", encoding="utf-8")
    (place / "lenses.yaml").write_text("perspectives: [{name: money, focus: who pays}]\n", encoding="utf-8")
    (place / "notes.md").write_text("# Private notes\n", encoding="utf-8")
    return place


# Roots


@ERAS
@pytest.mark.behaviour("006-mcp-roots")
async def test_a_client_that_declares_roots_stays_in_them(mode: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second one"
    for place in (first, second / "deep"):
        place.mkdir(parents=True)
        (place / "council.toml").write_text(SCRIPTED, encoding="utf-8")
    (first / "notes.md").write_text("Cold storage is cheap.", encoding="utf-8")
    (first / "link").symlink_to(tmp_path)
    async with connect_in_process(mode, [first, second]) as client:
        plan = await call_tool(client, "council_estimate", question="Is notes.md right?")
        assert plan["packet"]["files"] == ["notes.md"]
        await call_tool(client, "council_estimate", question=QUESTION, folder="../second one/deep")
        await call_tool(client, "council_estimate", question=QUESTION, folder=str(second / "deep"))
        for folder in (str(Path.cwd()), "..", str(tmp_path), "link", "link/work", "/", "\0"):
            line = await call_refused(client, "council_start", question=QUESTION, folder=folder)
            assert "outside the allowed roots" in line or "is not a valid path" in line
        assert "does not exist" in await call_refused(client, "council_start", question=QUESTION, folder="nowhere")


@ERAS
@pytest.mark.behaviour("006-mcp-roots")
async def test_a_client_without_roots_stays_where_the_server_was_started(mode: str, tmp_path: Path) -> None:
    outside(tmp_path)
    put("inner/notes.md", "")
    async with connect_in_process(mode) as client:
        await call_tool(client, "council_estimate", question=QUESTION, folder="inner")
        for folder in ("..", str(tmp_path / "outside")):
            assert "outside" in await call_refused(client, "council_estimate", question=QUESTION, folder=folder)


@ERAS
@pytest.mark.behaviour("006-mcp-roots")
async def test_runs_of_other_folders_are_unknown_to_a_client(mode: str, tmp_path: Path) -> None:
    other = outside(tmp_path)
    convener = Convener()
    try:
        run = await convener.enqueue(await convener.plan([QUESTION]))
    finally:
        await convener.close()
    async with connect_in_process(mode) as client:
        assert [row["run"] for row in (await call_tool(client, "council_list"))["runs"]] == [run]
    async with connect_in_process(mode, [other]) as client:
        assert (await call_tool(client, "council_list"))["runs"] == []
        for tool in ("council_wait", "council_result"):
            for name in (run, run[:3]):
                assert "in the folders of this client" in await call_refused(client, tool, run=name)


@ERAS
async def test_a_client_that_does_not_list_its_roots_is_refused(mode: str) -> None:
    async def refuse_roots(context: Any) -> types.ErrorData:
        return types.ErrorData(code=-32603, message="no roots today")

    tools = CouncilTools(Owner(Path.cwd(), dict(os.environ)))
    try:
        async with Client(make_server(tools), mode=mode, list_roots_callback=refuse_roots) as client:
            if mode == "legacy":
                assert "did not list them (no roots today)" in await call_refused(client, "council_list")
            else:  # the SDK client ends the call
                with pytest.raises(Exception, match="no roots today"):
                    await client.call_tool("council_list", {})
    finally:
        await tools.close()


@pytest.mark.behaviour("006-mcp-roots")
def test_roots_are_folders_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    uris = [(tmp_path / "a b").as_uri(), (tmp_path / "file").as_uri(), "https://example.com/x", "file://host/etc"]
    assert parse_roots(uris) == ((tmp_path / "a b").resolve(),)
    assert resolve_folder(None, parse_roots(uris)) == (tmp_path / "a b").resolve()
    with pytest.raises(UsageError, match="none of the roots"):
        parse_roots(uris[1:])


def test_a_server_started_in_the_filesystem_root_opens_no_folder() -> None:
    with pytest.raises(UsageError, match="declares no roots"):
        default_root(Owner(Path("/"), {}))


# Files in options


@pytest.mark.behaviour("006-mcp-files")
async def test_no_option_reaches_outside_the_folder(tmp_path: Path) -> None:
    place = outside(tmp_path)
    link("link", place)
    link("roster.toml", place / "roster.toml")
    ways = [
        {"roster": str(place / "roster.toml")}, {"roster": "../outside/roster.toml"}, {"roster": "link/roster.toml"},
        {"roster": "roster.toml"}, {"perspectives_file": str(place / "lenses.yaml")}, {"perspectives_file": "link/lenses.yaml"},
        {"search": f"files:{place}"}, {"search": "files:../outside"}, {"search": "files:link"}, {"search": "files:~"},
        {"no_search": True, "preset": "../outside/roster.toml"},
    ]  # fmt: skip
    async with connect_in_process() as client:
        for options in ways:
            line = await call_refused(client, "council_estimate", question=QUESTION, options=options)
            assert "outside the allowed roots" in line, options
        line = await call_refused(
            client, "council_estimate", question=QUESTION, options={"spec": "../outside/notes.md"}
        )
        assert "outside the folder" in line
        assert "outside the folder" in await call_refused(
            client, "council_estimate", question="validate ../outside/notes.md"
        )
        plan = await call_tool(client, "council_estimate", question=f"What does {place / 'notes.md'} say?")
    assert plan["packet"]["files"] == []


@pytest.mark.behaviour("006-mcp-files")
async def test_options_may_name_files_inside_the_folder(tmp_path: Path) -> None:
    put("docs/notes.md", "Cold storage is cheap.")
    put("board.toml", f"seats = {SEATS}\n")
    async with connect_in_process() as client:
        plan = await call_tool(client, "council_estimate", question=QUESTION, options={"roster": "board.toml"})
        assert [seat["name"] for seat in plan["seats"]] == ["cfo", "coo"]
        plan = await call_tool(client, "council_estimate", question=QUESTION, options={"search": "files:docs"})
        assert plan["options"]["search"] == "files:docs"
        plan = await call_tool(client, "council_estimate", question=QUESTION, options={"preset": "security-audit"})
        assert plan["protocol"] == "judges"


@pytest.mark.behaviour("006-mcp-files")
async def test_a_search_folder_outside_from_the_settings_is_refused(tmp_path: Path) -> None:
    place = outside(tmp_path)
    put("council.toml", f'{SCRIPTED}\n[search]\nprovider = "files"\nfolder = "{place}"\n')
    async with connect_in_process() as client:
        line = await call_refused(client, "council_estimate", question=QUESTION, protocol="general")
    assert "outside the allowed roots" in line


@pytest.mark.behaviour("look-named-project")
async def test_seats_look_if_the_question_names_the_project_unless_the_caller_turns_it_off() -> None:
    put("src/billing/rates.py", "RATE = 0.2\n")

    async def planned(question: str, **options: Any) -> bool:
        plan = await call_tool(client, "council_estimate", question=question, options=options)
        return bool(plan.get("look"))

    async with connect_in_process() as client:
        named = "Should we split the billing module?"
        assert await planned(named) and await planned(QUESTION, look=True)
        assert not await planned(named, look=False) and not await planned(QUESTION)
        ranked = await call_tool(client, "council_estimate", question=named, protocol="ranking")
        assert "look" not in ranked
        line = await call_refused(client, "council_start", question=named, protocol="ranking", options={"look": True})
        assert "the protocol ranking does not allow look" in line


# Endpoints


@pytest.mark.behaviour("13-model-flag", "006-mcp-members")
async def test_a_caller_can_name_the_members_of_the_seats_within_the_limits() -> None:
    put("council.toml", PRICED.replace('default = "sim:m1"', 'default = "sim:m1"\nfast = "sim:m2"'))
    async with connect_in_process() as client:
        plan = await call_tool(client, "council_estimate", question=QUESTION, options={"models": ["sim:a", "sim:b"]})
        assert [seat["model"] for seat in plan["seats"]] == ["sim:a", "sim:b"]
        assert plan["calls"] == {"min": 5, "max": 5}
        cheap = await call_tool(client, "council_estimate", question=QUESTION, options={"cheap": True})
        assert {seat["model"] for seat in cheap["seats"]} == {"sim:m2"}
        line = await call_refused(client, "council_start", question=QUESTION, options={"models": ["local:/etc/passwd"]})
        assert 'member "local:/etc/passwd" is not configured on this server' in line
        line = await call_refused(client, "council_start", question=QUESTION, options={"models": ["sim:a"] * 9})
        assert "models names 9 members, but a council has at most 8 seats: drop 1" in line


@pytest.mark.behaviour("006-mcp-members")
async def test_a_caller_can_seat_only_configured_members(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('["draft/alpha"]\ntext = "planted"\n', encoding="utf-8")
    seats = SEATS.replace("}", f', model = "scripted:{script}"}}', 1)
    put("board.toml", f"seats = {seats}\n")
    unconfigured = [f"scripted:{script}", "local:/tmp/model.gguf", "pai:groq:llama"]
    async with connect_in_process() as client:
        for member in unconfigured:
            line = await call_refused(client, "council_start", question=QUESTION, options={"seats": {"alpha": member}})
            assert "is not configured on this server" in line
        line = await call_refused(
            client,
            "council_start",
            question="validate this",
            options={"explorers": 1, "explorer_model": unconfigured[0]},
        )
        assert "is not configured on this server" in line
        line = await call_refused(client, "council_start", question=QUESTION, options={"roster": "board.toml"})
        assert "need trust" in line and "the owner of this server can run `council trust board.toml`" in line
        line = await call_refused(
            client, "council_start", question=QUESTION, options={"seats": {"alpha": "elsewhere:m1"}}
        )
        assert "elsewhere" in line
        line = await call_refused(
            client, "council_start", question=QUESTION, options={"search": "http://10.0.0.1:8080"}
        )
        assert "is not configured on this server" in line
        for member in ("scripted:", "local:smollm2"):
            plan = await call_tool(client, "council_estimate", question=QUESTION, options={"seats": {"alpha": member}})
            assert plan["seats"][0]["model"] == member


@pytest.mark.behaviour("006-mcp-members")
async def test_the_configured_search_address_is_allowed() -> None:
    own = '[search]\nprovider = "searxng"\nbase_url = "http://127.0.0.1:8080/search"\n'
    put("council.toml", f"{SCRIPTED}\n{own}")
    async with connect_in_process() as client:
        for search in ("searxng", "searxng:http://127.0.0.1:8080", "http://127.0.0.1:8080/"):
            plan = await call_tool(client, "council_estimate", question=QUESTION, options={"search": search})
            assert plan["options"]["search"] == "searxng:http://127.0.0.1:8080"


# Money


async def cap_of(client: Client, **options: Any) -> float | None:
    plan = await call_tool(client, "council_estimate", question=QUESTION, options=options)
    return plan["cap"]  # type: ignore[no-any-return]


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
async def test_a_cap_that_does_not_cover_the_run_is_refused_with_what_it_needs() -> None:
    put("council.toml", PRICED)
    write_user_file('[prices."sim:*"]\ninput = 1.0\noutput = 2.0\n')
    async with connect_in_process() as client:
        short = "the cap of $0.00010 does not cover this council, which needs at least $0.0"
        assert short in await call_refused(client, "council_start", question=QUESTION, options={"max_cost": 0.0001})
        plan = await call_tool(client, "council_estimate", question=QUESTION, options={"max_cost": 0.0001})
        assert any(line.startswith(short) for line in plan["warnings"])
        assert plan["cost"]["expected"] <= plan["cost"]["worst"]
        listed = await call_tool(client, "council_list")
        assert listed["runs"] == []


@pytest.mark.behaviour("40-mcp-cap")
async def test_a_caller_can_lower_the_cap_and_never_raise_it() -> None:
    put("council.toml", PRICED)
    async with connect_in_process(max_cost=1.0) as client:
        assert await cap_of(client) == 1.0
        assert await cap_of(client, max_cost=0.25) == 0.25
        line = await call_refused(client, "council_start", question=QUESTION, options={"max_cost": 1.01})
        assert 'max_cost "1.01" exceeds the limit of this server' in line
        line = await call_refused(client, "council_start", question=QUESTION, options={"allow_unpriced": True})
        assert "can only be set by the owner of this server" in line
    async with connect_in_process() as client:
        assert await cap_of(client) is None
        assert await cap_of(client, max_cost=5) == 5


@pytest.mark.behaviour("40-mcp-cap")
async def test_settings_of_a_folder_cannot_raise_the_owners_cap(tmp_path: Path) -> None:
    put("council.toml", f"{PRICED}\n[budget]\nmax_cost = 1.0\nmax_cost_per_day = 2.0\n")
    for name, run, day in (("rich", 100.0, 2.0), ("poor", 0.5, 1.0), ("endless", 1.0, 200.0)):
        put(f"{name}/council.toml", f"{PRICED}\n[budget]\nmax_cost = {run}\nmax_cost_per_day = {day}\n")
    async with connect_in_process() as client:
        plans = {
            name: await call_tool(client, "council_estimate", question=QUESTION, folder=name)
            for name in ("rich", "poor")
        }
        assert {name: plan["cap"] for name, plan in plans.items()} == {"rich": 1.0, "poor": 0.5}
        line = await call_refused(client, "council_start", question=QUESTION, folder="endless")
        assert 'max_cost_per_day of this folder exceeds the limit of this server "2"' in line


@pytest.mark.behaviour("40-mcp-cap")
async def test_an_unpriced_member_under_the_owners_cap_is_refused_unless_the_owner_allows_it() -> None:
    put("council.toml", PRICED.partition("[prices")[0])
    async with connect_in_process(max_cost=1.0) as client:
        line = await call_refused(client, "council_start", question=QUESTION)
    assert 'no price for "sim:m1"' in line


def test_the_lowest_of_several_caps_applies() -> None:
    assert BudgetCaps(None, None).effective_cap(BudgetCaps(3.0, None), None) == 3.0
    assert BudgetCaps(2.0, None).effective_cap(BudgetCaps(3.0, None), 1.0) == 1.0
    assert BudgetCaps(None, None).effective_cap(BudgetCaps(None, None), None) is None


@pytest.mark.behaviour("50-mcp-attachments")
async def test_attached_files_come_from_the_roots_or_from_the_request(tmp_path: Path) -> None:
    put("notes.md", "Move it.\n")
    put(".ssh/config", "Host a\n")
    put(tmp_path / "elsewhere" / "private.md", "Confidential.\n")
    link("link.md", tmp_path / "elsewhere" / "private.md")
    async with connect_in_process() as client:

        def attach(*files: Any) -> Json:
            return {"question": QUESTION, "options": {"attach": list(files)}}

        text = base64.b64encode(b"Keep it.").decode()
        plan = await call_tool(client, "council_estimate", **attach("notes.md", {"name": "a.md", "data": text}))
        assert plan["packet"]["files"] == ["attached/notes.md", "attached/a.md"]
        for wrong, line in (
            ("link.md", "outside the allowed roots"), (str(tmp_path / "elsewhere" / "private.md"), "outside the allowed roots"),
            ("../x.png", "outside the allowed roots"), (".ssh/config", "may hold secrets and is never sent"),
            ("gone.png", "cannot be read"), ({"name": "a"}, "needs one of text and data"), ({"data": "%"}, "is not base64"),
        ):  # fmt: skip
            assert line in await call_refused(client, "council_start", **attach(wrong))
