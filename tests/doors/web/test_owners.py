"""No user reads, changes, repeats or spends the runs of another one: every route of the API, on both stores,
generated from its description.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode

import pytest

from council.doors.web.access import OPERATIONS
from council.runs.service import Convener
from council.store.interface import Hold, StoreAddress
from council.store.run_store import RunStore
from tests.acceptance.workers import held_worker
from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, Response, environment
from tests.doors.web.test_users import Site
from tests.store.older_stores import Content, read_postgres, read_sqlite

WORD = "zanzibar"  # in the question, the answer and the attachment of the other user only
OTHER = "ann"
ASK_KEY = "draft/gamma"
UNKNOWN_RUN = "rzzzzzzzz"
# Bodies of the operations that need one. A new operation that needs a body fails until it has one here.
BODIES: dict[str, Json] = {
    "answer_ask": {"answer": "stolen"},
    "cancel_response": {},
    "cancel_run": {},
    "change_run": {"title": "stolen"},
    "create_chat_completion": {"model": "council/title", "messages": [{"role": "user", "content": "Why?"}], "stream": True},
    "create_code": {},
    "estimate_run": {"question": "Why?", "protocol": "triad"},
    "fork_run": {"from": "merge"},
    "create_response": {"model": "council/triad", "input": "Why?", "background": True},
    "open_session": {"token": "none"},
    "record_outcome": {"label": "wrong", "note": "stolen"},
    "resume_run": {},
    "set_up_key": {"name": "anthropic", "key": "stolen"},
    "set_up_search": {"name": "searxng", "address": "http://127.0.0.1:1"},
    "start_run": {"question": "Why?", "protocol": "triad"},
    "upload_attachment": {"name": "own.txt", "text": "own"},
}  # fmt: skip
SCOPES = {"bob": "runs", "an": "runs", "ann.b": "runs", "eve": "chat"}  # names that are parts of the other one, too
STREAMED = {"create_chat_completion"}  # their answers have no end while the runs are queued


@dataclass
class Crowd:
    """A server with users, and the runs of one of them."""

    site: Site
    database: str
    tokens: dict[str, str]
    done: str
    open: str

    @property
    def runs(self) -> tuple[str, str]:
        return self.done, self.open

    def read(self) -> Content:
        """Return the stored rows of the other user's runs."""
        path = Path(self.site.env["COUNCIL_DATA"]) / "council.db"
        rows = read_postgres(self.database) if self.database else read_sqlite(path)
        return {table: [row for row in found if row[0] in self.runs] for table, found in rows.items()}

    def describe(self) -> Iterator[tuple[str, str, str, Json]]:
        """Yield the method, the path, the operation and the description of each route."""
        for path, methods in self.site.get("/api/openapi.json")["paths"].items():
            for method, about in methods.items():
                yield method.upper(), path, about["operationId"], about


def make_runs(site: Site) -> tuple[str, str]:
    """Make a complete run and a queued run with an open question, an attachment and spending, of the other user."""
    user: Json = {"user": OTHER, "user_cap": 5.0}

    async def work(store: RunStore) -> tuple[str, str]:
        convener = Convener(site.folder, site.env, flags=user, store=store)
        try:
            request: Json = {"model": "council/triad"}  # so that they are responses too
            plan = await convener.plan([f"Should {WORD} move to cold storage?"], protocol="triad")
            done = (await convener.run(replace(plan, request=request), lambda entry: None)).run
            plan = await convener.plan([f"Should {WORD} stay?"], protocol="triad")
            queued = await convener.enqueue(replace(plan, request=request))
        finally:
            await convener.close()
        await store.write(queued, [("ask", (ASK_KEY, "gamma", f"What about {WORD}?", "{}", 1.0))])
        day = "2026-11-16"
        assert await store.reserve(done, Hold("k", 1, "m", 1.0, day, "{}", 7_000_000_000, user=OTHER)) is None
        await store.write(done, [("user_run", (OTHER,)), ("charge", ("k", 1, 7_000_000_000, 0))])
        return done, queued

    return site.with_store(work)


@pytest.fixture
def crowd(store_address: StoreAddress, tmp_path: Path) -> Iterator[Crowd]:
    env = environment(tmp_path) | ({"COUNCIL_DATABASE": store_address.url} if store_address.url else {})
    with ExitStack() as stack:
        if not store_address.url:
            stack.enter_context(held_worker(Path(env["COUNCIL_DATA"])))
        site = Site(write_project(tmp_path), env, has_worker=False)
        stack.callback(site.stop)
        tokens = {OTHER: site.add_user(OTHER)}
        done, queued = make_runs(site)
        tokens |= {name: site.add_user(name, scope) for name, scope in SCOPES.items()}  # type: ignore[arg-type]
        yield Crowd(site, store_address.url, tokens, done, queued)


def send(
    crowd: Crowd, user: str, method: str, path: str, name: str, about: Json, query: str = "", **body: Any
) -> Response:
    """Send a request of a user; of an answer without end, read the head and one line."""
    sent = {**BODIES[name], **body} if "requestBody" in about else None
    assert method != "GET" or sent is None
    if name not in STREAMED:
        return crowd.site.ask_as(crowd.tokens[user], method, path + query, sent)
    headers = {"Authorization": f"Bearer {crowd.tokens[user]}"}
    with crowd.site.open_request(method, path + query, sent, headers=headers) as response:
        return Response(response.status, dict(response.getheaders()), response.readline())


def fill_path(path: str, run: str) -> str:
    values = {"run": run, "response": f"resp_{run}", "key": ASK_KEY, "model": "council/triad", "id": "0"}
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value))
    assert "{" not in path, f"{path}: add a value for its parameter to this test"
    return path


def list_queries(about: Json, crowd: Crowd) -> Iterator[str]:
    """Yield queries that name a run, the owner or a word of the other user in each text parameter of a route."""
    yield ""
    required = {one["name"]: one for one in about.get("parameters", ()) if one["in"] == "query" and one["required"]}
    base = dict.fromkeys(required, crowd.done)
    for parameter in about.get("parameters", ()):
        if parameter["in"] == "query":
            for value in (crowd.done, crowd.open[:5], f"token:{OTHER}", OTHER, WORD, "all"):
                yield "?" + urlencode({**base, parameter["name"]: value})


def reveals(crowd: Crowd, response: Response, asked: str) -> bool:
    """Return whether a response has something of the other user that the request had not."""
    text = response.body.decode("utf-8", "replace")
    secrets = {WORD, f'"token:{OTHER}"', *crowd.runs}
    return any(secret in text and secret not in unquote_plus(asked) for secret in secrets)


@pytest.mark.behaviour("50-users-own-runs", "50-users-every-route")
@pytest.mark.parametrize(
    "user", ["bob", "eve", *(pytest.param(user, marks=pytest.mark.sweep) for user in ("an", "ann.b"))]
)
def test_no_route_shows_or_changes_the_runs_of_another_user(
    crowd: Crowd, user: str, sweep_figures: Callable[..., None]
) -> None:
    before, routes = crowd.read(), list(crowd.describe())
    assert {name for *_, name, about in routes if "requestBody" in about} <= BODIES.keys()
    assert any(f"{WORD}" in str(row) for row in before["runs"]) and before["asks"] and before["spending"]
    refused = others = 0
    for method, path, name, about in routes:
        is_allowed = name in OPERATIONS[SCOPES[user]]
        if "{run}" in path or "{response}" in path:
            unknown = send(crowd, user, method, fill_path(path, UNKNOWN_RUN), name, about)
            assert unknown.status == (404 if is_allowed else 403), (name, unknown)
            for run in (*crowd.runs, crowd.done[:5]):
                answer = send(crowd, user, method, fill_path(path, run), name, about)
                same = answer.body.decode().replace(run, UNKNOWN_RUN) == unknown.body.decode()
                assert (answer.status, same) == (unknown.status, True), (name, answer)
                refused += 1
            continue
        for query in list_queries(about, crowd):
            answer = send(crowd, user, method, fill_path(path, ""), name, about, query)
            assert answer.status < 500 and not reveals(crowd, answer, query), (name, query, answer)
            assert is_allowed or answer.status in (403, 422), (name, query, answer)
            others += 1
    assert refused > 30
    assert crowd.read() == before
    sweep_figures("owners", users=1, worst_routes=len(routes), requests=refused + others, shown=0, changed=0)


@pytest.mark.behaviour("50-users-own-runs", "50-users-every-route")
def test_no_request_of_a_user_joins_or_continues_a_run_of_another_one(crowd: Crowd) -> None:
    about = {name: (method, path, row) for method, path, name, row in crowd.describe()}
    before = crowd.read()
    for name in ("start_run", "estimate_run"):
        method, path, row = about[name]
        for run in (*crowd.runs, crowd.done[:5]):
            answer = send(crowd, "bob", method, path, name, row, continues=run)
            assert (answer.status, reveals(crowd, answer, run)) == (404, False), answer
    method, path, row = about["create_response"]
    for run in (*crowd.runs, crowd.done[:5]):
        answer = send(crowd, "bob", method, path, "create_response", row, previous_response_id=f"resp_{run}")
        assert (answer.status, reveals(crowd, answer, run)) == (404, False), answer
    started = set[str]()
    headers = {"Idempotency-Key": "k 1", "x-stainless-retry-count": "1"}
    for user in (OTHER, "bob", "ann.b"):
        token = crowd.tokens[user]
        run = crowd.site.ask_as(token, "POST", "/api/runs", BODIES["start_run"], **headers)
        chat = []
        for sent in (headers, {"x-stainless-retry-count": "1"}):
            with crowd.site.open_request(
                "POST", "/v1/chat/completions", BODIES["create_chat_completion"], headers={"Authorization": f"Bearer {token}", **sent, "Idempotency-Key": f"chat {len(sent)}"}
            ) as response:  # fmt: skip
                chat.append(response.getheader("x-council-run"))
        started |= {run.json["run"], *map(str, chat)}
    assert len(started) == 9
    assert crowd.read() == before
    rows = crowd.site.get("/api/runs?limit=100")["runs"]
    assert sorted(row["owner"] for row in rows if row["run"] in started) == sorted(
        f"token:{user}" for user in (OTHER, "bob", "ann.b") for _ in range(3)
    )


@pytest.mark.behaviour("50-users-own-runs", "50-users-every-route")
def test_the_spending_of_a_user_is_not_that_of_another_one(crowd: Crowd) -> None:
    spent = {
        user: crowd.site.ask_as(token, "GET", "/api/spend?since=2026-11-01").json
        for user, token in crowd.tokens.items()
    }
    assert spent[OTHER]["total"]["usd"] == 7.0
    for user in SCOPES:
        assert (spent[user]["total"]["usd"], spent[user]["runs"], spent[user]["days"]) == (0.0, [], []), spent[user]
        assert "7.0" not in json.dumps(spent[user])


@pytest.mark.behaviour("50-users-own-runs", "50-users-every-route")
def test_workers_execute_the_runs_of_all_users_and_keep_their_owners(
    store_address: StoreAddress, tmp_path: Path
) -> None:
    env = environment(tmp_path) | ({"COUNCIL_DATABASE": store_address.url} if store_address.url else {})
    site = Site(write_project(tmp_path), env)
    with closing(site):
        tokens = {name: site.add_user(name) for name in ("ann", "bob")}
        runs = {name: site.start_as(token, question=f"Should {name}s archive move?") for name, token in tokens.items()}
        for name, run in runs.items():
            assert site.wait_for_end(run)["status"] == "complete"
            other = "bob" if name == "ann" else "ann"
            mine = site.ask_as(tokens[name], "GET", "/api/runs").json["runs"]
            assert [(row["run"], row["owner"], row["status"]) for row in mine] == [(run, f"token:{name}", "complete")]
            report = site.ask_as(tokens[name], "GET", f"/api/runs/{run}/report")
            assert f"{name}s archive" in report.body.decode() and f"{other}s archive" not in report.body.decode()
            fork = site.ask_as(tokens[other], "POST", f"/api/runs/{run}/fork", {})
            found = site.ask_as(tokens[other], "GET", "/api/runs?q=archive").json["runs"]
            assert (fork.status, [row["run"] for row in found]) == (404, [runs[other]])
