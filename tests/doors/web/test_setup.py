"""Keys and search that the owner sets up from the page: tested without cost, stored privately, and shown nowhere."""

from __future__ import annotations

import asyncio
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.doors.web.setup_routes import is_loopback
from council.settings import load_settings
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, Json, environment
from tests.doors.web.test_users import Site
from tests.fake_provider import FakeProvider, Reply
from tests.search.fake_search import FakeSearch
from tests.settings.memory_keyring import Ring, use_ring
from tests.trusted_project import trust_project

KEY = "-".join(["sk", "ant", "typed", "0123456789abcdef"])
OPERATIONS = {"key": {"name": "anthropic", "key": KEY}, "search": {"name": "tavily", "key": KEY}}


@pytest.fixture
def ring() -> Iterator[Ring]:
    with use_ring() as ring:
        yield ring


@pytest.fixture
def open_site(tmp_path: Path, provider: FakeProvider) -> Iterator[Callable[..., Site]]:
    """Open a server without keys, whose vendors and searches are the fake ones in the user's own settings."""
    opened: list[Site] = []

    def open_(public_url: str = "", **env: str) -> Site:
        folder = write_project(tmp_path)
        (folder / "council.toml").unlink()
        own = tmp_path / "config" / "council" / "config.toml"
        own.parent.mkdir(parents=True)
        own.write_text(f'[providers.anthropic]\nbase_url = "{provider.base("anthropic")}"\n')
        opened.append(Site(folder, environment(tmp_path) | env, public_url=public_url))
        return opened[-1]

    yield open_
    for site in opened:
        site.close()


@pytest.fixture
def search_server() -> Iterator[str]:
    """Address of a fake search server, in a thread."""
    started, address = threading.Event(), list[str]()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with FakeSearch() as fake:
            address.append(fake.address)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait(60)
    yield address[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def read_own_settings(site: Site) -> Json:
    return tomllib.loads((Path(site.env["XDG_CONFIG_HOME"]) / "council" / "config.toml").read_text())


@pytest.mark.behaviour("50-web-setup")
def test_a_key_is_tested_stored_and_used_at_once(
    open_site: Callable[..., Site], provider: FakeProvider, ring: Ring
) -> None:
    site = open_site()
    (row,) = [row for row in site.get("/api/setup")["vendors"] if row["name"] == "anthropic"]
    assert row == {"name": "anthropic", "variable": "ANTHROPIC_API_KEY", "takes": "key", "found": ""}
    assert {seat["vendor"] for seat in site.get("/api/members")["seats"]} == {"local"}

    stored = site.post("/api/setup/key", {"name": "anthropic", "key": f" {KEY}\n"})
    assert stored == {"name": "anthropic", "variable": "ANTHROPIC_API_KEY", "tested": True, "detail": "3 models"}
    assert provider.log == [], "no completion"
    assert ring.held == {("council", "ANTHROPIC_API_KEY"): KEY}
    (row,) = [row for row in site.get("/api/setup")["vendors"] if row["name"] == "anthropic"]
    assert row["found"] == "keyring"
    assert {seat["vendor"] for seat in site.get("/api/members")["seats"]} == {"anthropic"}
    assert site.post("/api/estimate", {"question": QUESTION})["cost"]["worst"] > 0


@pytest.mark.behaviour("50-web-setup")
def test_a_key_is_in_no_response_no_file_and_no_output(
    open_site: Callable[..., Site], provider: FakeProvider, ring: Ring, capfd: pytest.CaptureFixture[str]
) -> None:
    site = open_site()
    provider.script("/models", Reply(status=401, error={"message": f"the key {KEY} was revoked"}))
    bodies = [
        {"name": "anthropic", "key": KEY}, {"name": "anthropic", "key": KEY}, {"name": KEY, "key": KEY[:9]}, {"name": "anthropic", "kye": KEY},
        {"name": "anthropic", "key": {"value": KEY}}, {"name": "anthropic", "key": f"{KEY} {KEY}"}, [KEY], {"name": "tavily", "key": KEY},
    ]  # fmt: skip
    answers = [site.ask("POST", f"/api/setup/{path}", body) for body in bodies for path in ("key", "search")]
    answers += [site.ask("POST", "/api/setup/key", f'{{"key": "{KEY}"'), site.ask("GET", "/api/setup")]
    assert answers[2].status == 200  # the second key
    for answer in answers:
        assert KEY not in answer.body.decode()
    files = [file for file in Path(site.env["HOME"]).rglob("*") if file.is_file()]
    assert len(files) > 3 and not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in "".join(capfd.readouterr())


@pytest.mark.behaviour("50-web-setup")
def test_a_key_that_does_not_work_is_not_stored(
    open_site: Callable[..., Site], provider: FakeProvider, ring: Ring
) -> None:
    site = open_site(OPENAI_API_KEY="from-the-environment")
    provider.script("/models", Reply(status=401, error={"message": "this key was revoked"}))
    line = site.refused("/api/setup/key", OPERATIONS["key"])
    assert "this key was revoked" in line and line.endswith("nothing was stored")
    assert "takes precedence" in site.refused("/api/setup/key", {"name": "openai", "key": KEY})
    assert "available are" in site.refused("/api/setup/key", {"name": "nobody", "key": KEY})
    ring.locked = True
    assert "the system keyring failed" in site.refused("/api/setup/key", OPERATIONS["key"])
    assert ring.held == {}


@pytest.mark.behaviour("50-web-setup")
def test_a_project_does_not_decide_where_a_new_key_is_sent(
    open_site: Callable[..., Site], provider: FakeProvider, ring: Ring
) -> None:
    site = open_site()
    (site.folder / "council.toml").write_text('[providers.anthropic]\nbase_url = "http://127.0.0.1:9"\n')
    trust_project(site.folder, **site.env)
    assert load_settings(site.folder, site.env).providers["anthropic"].base_url == "http://127.0.0.1:9"
    assert site.post("/api/setup/key", OPERATIONS["key"])["detail"] == "3 models"


@pytest.mark.behaviour("50-web-setup-owner")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_the_owner_on_this_machine_may_set_up(open_site: Callable[..., Site], ring: Ring, operation: str) -> None:
    site = open_site("https://council.example.com")
    path, body = f"/api/setup/{operation}", OPERATIONS[operation]
    chat, runs, admin = (site.add_user(scope, scope) for scope in ("chat", "runs", "admin"))  # type: ignore[arg-type]
    for token in (chat, runs, admin):
        assert site.ask_as(token, "POST", path, body).status == 403
        shown = site.ask_as(token, "GET", "/api/setup").json
        assert (shown["vendors"], shown["search"]) == ([], []) and "only" in shown["refused"]
    proxied = [{"Host": "council.example.com"}, {"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}]
    for headers in proxied:
        refused = site.ask("POST", path, body, headers=headers)
        assert (refused.status, refused.json["error"]["code"]) == (403, "forbidden")
        assert "on the machine of the server itself" in refused.line and "nothing was stored" in refused.line
        assert site.ask("GET", "/api/setup", headers=headers).json["vendors"] == []
    for more, status in (({"Origin": "http://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Content-Type": "text/plain"}, 415)):  # fmt: skip
        assert site.ask("POST", path, body, headers=more).status == status
    assert site.ask("POST", path, body, token=False).status == 401
    assert ring.held == {}


@pytest.mark.behaviour("50-web-setup-owner")
def test_only_loopback_addresses_are_this_machine() -> None:
    assert [is_loopback(one) for one in ("127.0.0.1", "127.8.0.1", "::1", "192.168.1.20", "0.0.0.0", "", "name")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.behaviour("50-web-setup")
def test_search_is_set_up_with_a_key_or_an_address(
    open_site: Callable[..., Site], ring: Ring, search_server: str
) -> None:
    site = open_site()
    own = Path(site.env["XDG_CONFIG_HOME"]) / "council" / "config.toml"
    assert "not enabled" in site.refused("/api/runs", {"question": QUESTION, "protocol": "general"})
    assert "not a valid address" in site.refused("/api/setup/search", {"name": "searxng", "address": "elsewhere"})
    assert "cannot be reached" in site.refused(
        "/api/setup/search", {"name": "searxng", "address": "http://127.0.0.1:9"}
    )
    assert "search" not in read_own_settings(site)

    stored = site.post("/api/setup/search", {"name": "searxng", "address": f"{search_server}/search"})
    assert (stored["tested"], stored["variable"]) == (True, None)
    assert read_own_settings(site)["search"] == {"provider": "searxng", "base_url": search_server}
    assert read_own_settings(site)["providers"]["anthropic"] and own.stat().st_mode & 0o077 == 0
    plan = site.post("/api/estimate", {"question": QUESTION, "protocol": "general"})
    assert plan["options"]["search"] == f"searxng:{search_server}"

    own.write_text(own.read_text().replace('"searxng"', '"tavily"'))  # with the address of the fake server
    stored = site.post("/api/setup/search", {"name": "tavily", "key": KEY})
    assert (stored["tested"], stored["variable"]) == (True, "TAVILY_API_KEY")
    assert ring.held == {("council", "TAVILY_API_KEY"): KEY}
    assert site.post("/api/estimate", {"question": QUESTION, "protocol": "general"})["options"]["search"] == "tavily"


@pytest.mark.behaviour("50-web-setup")
def test_a_search_without_a_free_request_is_stored_untested(open_site: Callable[..., Site], ring: Ring) -> None:
    site = open_site()
    stored = site.post("/api/setup/search", {"name": "brave", "key": KEY})
    assert (stored["tested"], stored["detail"]) == (False, "not tested, because it has no free request")
    assert ring.held == {("council", "BRAVE_SEARCH_API_KEY"): KEY}
