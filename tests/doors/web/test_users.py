"""Several users of one server: each token sees its own runs, reads no file of the server, and keeps to its cap."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from council.doors.web.access import OPERATIONS
from council.runs.service import Convener
from council.runs.tokens import Scope, add_token, revoke_token
from council.store.interface import Hold, StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store
from tests.acceptance.helpers import Terminal, Workspace
from tests.acceptance.workers import held_worker
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, Json, Response, WebServer, environment
from tests.fake_provider import FakeProvider

R = TypeVar("R")
ADMIN_ONLY = {
    "get_evals",
    "get_eval",
    "create_code",
    "set_up_key",
    "set_up_search",
    "get_files",
    "get_found_files",
    "get_file_text",
}  # operations that no user may use
BODIES: dict[str, Json] = {"answer_ask": {"answer": "x"}}


class Site(WebServer):
    """Server with users, whose runs stay queued."""

    def with_store(self, work: Callable[[RunStore], Awaitable[R]]) -> R:
        async def run() -> R:
            convener = Convener(self.folder, self.env)
            try:
                return await work(convener.store)
            finally:
                await convener.close()

        return asyncio.run(run())

    def add_user(self, name: str, scope: Scope = "runs", max_cost: float | None = None) -> str:
        return self.with_store(lambda store: add_token(store, name, scope, max_cost))

    def ask_as(self, token: str, method: str, path: str, body: Any = None, **headers: str) -> Response:
        return self.ask(method, path, body, headers={"Authorization": f"Bearer {token}", **headers})

    def start_as(self, token: str, **body: Any) -> str:
        response = self.ask_as(token, "POST", "/api/runs", {"question": QUESTION, "protocol": "triad", **body})
        assert response.status == 201, response.body
        return str(response.json["run"])


@pytest.fixture
def site(store_address: StoreAddress, tmp_path: Path) -> Iterator[Site]:
    """A server on each store. No worker executes its runs."""
    env = environment(tmp_path) | ({"COUNCIL_DATABASE": store_address.url} if store_address.url else {})
    with ExitStack() as stack:
        if not store_address.url:
            stack.enter_context(held_worker(Path(env["COUNCIL_DATA"])))
        served = Site(write_project(tmp_path), env, has_worker=False)
        stack.callback(served.stop)
        yield served


@pytest.mark.behaviour("50-users-own-runs", "50-users-scope", "50-users-revoke")
def test_a_user_sees_only_the_own_runs_until_the_token_is_revoked(site: Site) -> None:
    ann, bob, chat, admin = (site.add_user("ann"), site.add_user("bob"), site.add_user("eve", "chat"), site.add_user("root", "admin"))  # fmt: skip
    run = site.start_as(ann)
    own = site.run_council()
    described = site.get("/api/openapi.json")["paths"]
    for path, methods in described.items():
        for method, about in methods.items():
            if "{run}" not in path:
                continue
            name, body = about["operationId"], None if method == "get" else BODIES.get(about["operationId"], {})
            for token in (bob, chat):
                answers = [
                    site.ask_as(token, method.upper(), path.replace("{run}", wanted).replace("{key}", "k"), body)
                    for wanted in (run, *([own, run[:5]] if token is bob else []), "rnothing")
                ]
                allowed = name in OPERATIONS["chat" if token is chat else "runs"]
                assert {answer.status for answer in answers} == {404 if allowed else 403}, (name, answers)
                if allowed:
                    assert answers[0].line.replace(run, "rnothing") == answers[-1].line
    for token in (bob, chat):
        assert site.ask_as(token, "GET", "/api/runs").json["runs"] == []
        assert site.ask_as(token, "GET", "/api/runs?q=archive").json["runs"] == []
        assert site.ask_as(token, "GET", f"/api/runs?before={run}").status == 404
        assert site.ask_as(token, "GET", f"/api/stream?run={run}").status == 404
        continued = site.ask_as(token, "POST", "/api/runs", {"question": "And then?", "continues": run})
        assert (continued.status, "there is no run" in continued.line) == (404, True)
        assert site.ask_as(token, "GET", "/api/spend").json["runs"] == []
    assert site.ask_as(bob, "GET", "/api/runs?owner=token:ann").status == 403
    mine = site.ask_as(ann, "GET", "/api/runs").json["runs"]
    assert [(row["run"], row["owner"]) for row in mine] == [(run, "token:ann")]
    assert site.ask_as(ann, "GET", f"/api/runs/{run[:5]}").json["run"] == run
    for token in (admin, site.token):
        assert {row["run"] for row in site.ask_as(token, "GET", "/api/runs").json["runs"]} == {run, own}
    with site.open_request(
        "GET", f"/api/runs/{run}/events", headers={"Authorization": f"Bearer {ann}", "Accept-Encoding": "gzip"}
    ) as stream:
        assert stream.getheader("content-encoding") is None
        assert stream.readline().startswith(b"retry")
        site.with_store(lambda store: revoke_token(store, "ann"))
        stream.read()  # to its end, although the run is queued
    assert site.ask_as(ann, "GET", "/api/runs").status == 401
    again = site.add_user("ann")
    assert [row["run"] for row in site.ask_as(again, "GET", "/api/runs").json["runs"]] == [run]
    secret = ann.rpartition("-")[2].encode()
    stored = site.with_store(lambda store: store.list_tokens())
    assert secret not in repr(stored).encode()


@pytest.mark.refused_rows  # one of two equal requests at the same time is refused by the database
@pytest.mark.behaviour("50-web-idempotency", "50-users-own-runs")
def test_equal_requests_with_one_key_start_one_run(site: Site) -> None:
    ann = site.add_user("ann")
    body, sites = {"question": QUESTION, "protocol": "triad"}, [site, Site(site.folder, site.env, has_worker=False)]

    def start(n: int = 0, token: str = site.token, key: str = "k 1", **more: Any) -> Response:
        return sites[n % 2].ask_as(token, "POST", "/api/runs", body | more, **{"Idempotency-Key": key})

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(start, range(20)))
    sites[1].stop()
    assert {answer.status for answer in answers} == {201}
    [run] = {answer.json["run"] for answer in answers}
    assert len({str(answer.json["plan"]["seats"]) for answer in answers}) == 1
    assert [answer.headers.get("idempotency-replayed") for answer in answers].count(None) == 1
    other = start(question="Another?")
    assert (other.status, other.json["error"]["code"]) == (422, "idempotency_key_reused")
    assert other.json["error"]["field"] == "Idempotency-Key"
    own = start(token=ann)
    assert (own.status, own.json["run"] == run) == (201, False)
    refused = start(key="k 2", protocol="nothing")
    assert refused.status == 400
    assert start(key="k 2").status == 201
    for key in ("", "x" * 10_240, "\xe9"):
        assert (start(key=key).status, "Idempotency-Key" in start(key=key).line) == (422, True)
    assert len(site.get("/api/runs")["runs"]) == 3
    for act in ("cancel", "cancel"):
        done = site.ask_as(site.token, "POST", f"/api/runs/{run}/{act}", {}, **{"Idempotency-Key": "stop"})
        assert done.status == 202
    assert site.ask("DELETE", f"/api/runs/{run}").status == 204
    assert start().status == 404


@pytest.mark.behaviour("50-users-files", "look-users")
def test_a_user_reads_no_file_of_the_server_and_starts_no_program(tmp_path: Path) -> None:
    env = environment(tmp_path)
    with held_worker(Path(env["COUNCIL_DATA"])):
        site = Site(write_project(tmp_path), env)
        try:
            ann, chat = site.add_user("ann"), site.add_user("eve", "chat")
            for words in ("Is notes.md sound?", "What does src/core.py do?", f"Explain {site.folder}/notes.md."):
                plan = site.ask_as(ann, "POST", "/api/estimate", {"question": words, "protocol": "triad"})
                assert plan.json["packet"]["files"] == []
            cases: list[tuple[Json, str | None]] = [
                ({"targets": ["notes.md"]}, "targets"), ({"root": site.folder.name}, "root"), ({"look": True}, "look"),
                ({"seats": {"alpha": "cli:claude"}}, "seats"), ({"models": ["cli:codex"]}, "seats"),
                ({"protocol": "judges", "question": "validate notes.md"}, None),
                ({"protocol": "judges", "question": "Compare tabs with spaces.", "options": {"explorers": 1}}, "explorers"),
                ({"protocol": "judges", "options": {"perspectives_file": f"{site.folder}/notes.md"}}, None),
                ({"protocol": "general", "options": {"search": "files:."}}, "search"),
                ({"protocol": "general", "options": {"search": f"files:{site.folder}"}}, None),
            ]  # fmt: skip
            for body, field in cases:
                answer = site.ask_as(ann, "POST", "/api/estimate", {"question": QUESTION, **body})
                assert answer.status in (400, 403), (body, answer.body)
                assert "Cold storage is cheap" not in answer.body.decode()
                assert field in (None, answer.json["error"]["field"]), (body, answer.body)
                assert site.ask_as(ann, "POST", "/api/runs", {"question": QUESTION, **body}).status == answer.status
            searches = [
                site.ask_as(ann, "POST", "/api/estimate", {"question": QUESTION, "protocol": "general", "options": {"search": search}})
                for search in ("files:.", "tavily")
            ]  # fmt: skip
            assert [answer.status for answer in searches] == [403, 200]
            assert searches[0].json["error"]["code"] == "forbidden"
            for path in ("/api/files", "/api/files?path=src"):
                assert site.ask_as(ann, "GET", path).json["error"]["code"] == "forbidden"
            assert site.ask_as(ann, "GET", "/api/roots").json == []
            assert "look" not in site.ask_as(ann, "GET", "/api/options").json["properties"]
            members = site.ask_as(ann, "GET", "/api/members").json["members"]
            assert members and not [row for row in members if row["member"].startswith("cli:")]
            for field in ("seats", "models", "options"):
                body = {"question": QUESTION, field: ["sim:m"] if field == "models" else {"alpha": "sim:m"}}
                assert site.ask_as(chat, "POST", "/api/runs", body).json["error"]["field"] == field
            assert site.ask_as(chat, "GET", "/api/files").status == 403
            assert site.ask_as(ann, "POST", "/api/codes", {}).status == 403
        finally:
            site.stop()


def test_each_operation_has_a_scope(shared_site: WebServer) -> None:
    paths = shared_site.get("/api/openapi.json")["paths"]
    names = {about["operationId"] for methods in paths.values() for about in methods.values()}
    assert names - OPERATIONS["runs"] == ADMIN_ONLY
    assert OPERATIONS["runs"] - names == {"get_page", "get_page_file", "get_docs"}


@pytest.mark.anyio
@pytest.mark.behaviour("50-users-cap")
async def test_the_cap_of_a_user_holds_over_all_runs_and_survives_their_removal(store_address: StoreAddress) -> None:
    store = open_store(store_address)
    try:
        for run in ("r1", "r2", "r3"):
            rows = [("run", (run, "here", 1.0, "random", "{}")), ("user_run", ("bob" if run == "r3" else "ann",))]
            await store.write(run, rows)

        def hold(n: int, cap: int = 10) -> Hold:
            return Hold("k", n, "m", 1.0, "2026-11-16", "", 1, user_cap=cap, user="ann")

        refusals = await asyncio.gather(*(store.reserve(f"r{1 + n % 2}", hold(n)) for n in range(50)))
        assert sum(refused is None for refused in refusals) == 10
        assert {(found.scope, found.cap, found.spent) for found in refusals if found} == {("user", 10, 10)}
        await store.delete_run("r1")
        assert await store.reserve("r2", hold(60)) is not None
        assert await store.reserve("r2", hold(60, cap=11)) is None
        bob = Hold("k", 1, "m", 1.0, "2026-11-16", "", 10, user_cap=10, user="bob")
        assert await store.reserve("r3", bob) is None
        assert len(await store.list_spending("2026-11-16", "ann")) == 11
    finally:
        store.close()


@pytest.mark.behaviour("50-users-cap")
def test_a_run_that_the_cap_of_its_user_does_not_cover_is_refused(provider: FakeProvider, tmp_path: Path) -> None:
    table = Workspace(write_project(tmp_path), provider)
    table.configure(more='[prices."sim:*"]\ninput = 1.0\noutput = 5.0\n')
    site = Site(table.folder, environment(tmp_path))
    try:
        ann, bob = site.add_user("ann", max_cost=0.000001), site.add_user("bob", max_cost=1.0)
        refused = site.ask_as(ann, "POST", "/api/runs", {"question": QUESTION})
        assert (refused.status, refused.json["error"]["code"], provider.log) == (422, "cap_too_low", [])
        assert "left of this user's" in refused.json["error"]["message"]
        assert refused.json["error"]["details"]["needed"] > 0.000001
        spent = site.ask_as(ann, "GET", "/api/spend?since=today").json["today"]
        assert (spent["usd"], spent["cap"]) == (0.0, 0.000001)
        run = site.start_as(bob)
        assert site.wait_for_end(run)["status"] == "complete"
        fork = site.ask("POST", f"/api/runs/{run}/fork", {})
        assert fork.status == 202, fork.body
        assert site.wait_for_end(fork.json["run"])["status"] == "complete"  # the owner pays for the own fork
        assert {row["owner"] == "token:bob" for row in site.get("/api/runs")["runs"]} == {True, False}
    finally:
        site.close()


@pytest.mark.behaviour("50-users-tokens")
def test_the_command_prints_a_token_once_and_lists_and_revokes_it(council: Terminal) -> None:
    assert "no tokens" in council("serve", "tokens").out
    made = council("serve", "tokens", "add", "ann", "--scope", "chat", "--max-cost", "0.5")
    assert (made.code, made.err) == (0, "council: give this token to the user; it is not shown again\n")
    assert re.fullmatch(r"ct-[0-9a-f]{12}-[\w-]{43}\n", made.out)
    listed = council("serve", "tokens", "list")
    assert re.search(r"ann +chat +\$0\.50 +\d{4}-\d\d-\d\d +active", listed.out)
    [row] = json.loads(council("serve", "tokens", "--json").out)
    assert (row["name"], row["scope"], row["max_cost_per_day"], row["revoked"]) == ("ann", "chat", 0.5, None)
    stored = Path(os.environ["COUNCIL_DATA"], "council.db").read_bytes()
    assert made.out.strip()[-43:].encode() not in stored
    for wrong, line in (
        (("add", "ann"), 'council: "ann" has a token already: revoke it first'),
        (("add", "Ann B"), 'council: "Ann B" is not a name for a token'),
        (("revoke", "bob"), 'council: there is no token "bob"'),
    ):
        done = council("serve", "tokens", *wrong)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith(line)
    assert council("serve", "tokens", "revoke", "ann").code == 0
    assert "revoked" in council("serve", "tokens", "list").out
    assert json.loads(council("serve", "tokens", "add", "ann", "--json").out)["scope"] == "runs"
