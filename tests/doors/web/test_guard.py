"""Who is let in: the right host, the right page, the token, and JSON. Tried on a real socket, header by header."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import wait_until
from tests.doors.web.server import WebServer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.mark.behaviour("40-web-host")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:{port}", "127.0.0.1:{port}.evil.example", "", None])  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/runs", "/page/app.js"])
def test_a_wrong_host_is_refused_everywhere(shared_server: WebServer, host: str | None, path: str) -> None:
    told = shared_server.ask(
        "GET", path, headers={"Host": host and host.format(port=shared_server.host.rpartition(":")[2])}
    )
    assert told.status == 400
    if host is not None:  # without one it is no HTTP at all, and the server below says so
        assert "Host" in told.line


@pytest.mark.behaviour("40-web-host")
def test_localhost_is_the_same_machine(shared_server: WebServer) -> None:
    told = shared_server.ask(
        "GET", "/api/roots", headers={"Host": shared_server.host.replace("127.0.0.1", "localhost")}
    )
    assert told.status == 200


@pytest.mark.behaviour("40-web-origin")
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://127.0.0.1:1", "http://localhost:{port}", "http://{host}.evil.example", ""])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused_whatever_it_knows(
    shared_server: WebServer, origin: str, method: str
) -> None:
    said = origin.format(host=shared_server.host, port=shared_server.host.rpartition(":")[2])
    told = shared_server.ask(method, "/api/runs", {} if method == "POST" else None, headers={"Origin": said})
    assert told.status == 403
    assert "another page" in told.line


@pytest.mark.behaviour("40-web-origin")
def test_the_servers_own_page_is_heard(shared_server: WebServer) -> None:
    own = {"Origin": f"http://{shared_server.host}", "Sec-Fetch-Site": "same-origin"}
    assert shared_server.ask("POST", "/api/estimate", {"question": "Tabs or spaces?"}, headers=own).status == 200


@pytest.mark.behaviour("40-web-fetch-site")
@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("", 403), ("same-origin", 200), ("none", 200), (None, 200)])  # fmt: skip
def test_another_site_is_refused_and_a_program_without_a_site_is_not(
    shared_server: WebServer, site: str | None, status: int
) -> None:
    assert shared_server.ask("GET", "/api/roots", headers={"Sec-Fetch-Site": site}).status == status


@pytest.mark.behaviour("40-web-token")
@pytest.mark.parametrize(
    "said", [None, "", "Bearer", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x", "Bearer \xff"]
)
@pytest.mark.parametrize("path", ["/api/roots", "/api/openapi.json", "/api/runs/x/events", "/api/nothing", "/nothing", "/api/roots?token={token}"])  # fmt: skip
def test_nobody_is_heard_without_the_token(shared_server: WebServer, said: str | None, path: str) -> None:
    headers = {"Authorization": said and said.format(token=shared_server.token)}
    told = shared_server.ask("GET", path.format(token=shared_server.token), headers=headers)
    assert told.status == 401
    assert "token" in told.line
    assert told.headers["www-authenticate"] == "Bearer"


@pytest.mark.behaviour("40-web-token")
def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use(shared_server: WebServer) -> None:
    told = shared_server.ask("POST", "/api/session", {"token": shared_server.token}, token=False)
    assert told.status == 200
    cookie, *attributes = told.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)
    assert shared_server.ask("GET", "/api/roots", token=False, headers={"Cookie": f"a=b; {cookie}"}).status == 200
    assert shared_server.ask("GET", "/api/roots", token=False, headers={"Cookie": f"{cookie}x"}).status == 401
    assert shared_server.host.rpartition(":")[2] in cookie.partition("=")[0], (
        "two servers would take each other's cookie"
    )


@pytest.mark.behaviour("40-web-token")
def test_a_wrong_token_opens_no_session(shared_server: WebServer) -> None:
    told = shared_server.ask("POST", "/api/session", {"token": "wrong\u00e9"}, token=False)
    assert (told.status, "set-cookie" in told.headers) == (401, False)


@pytest.mark.behaviour("40-web-json-only")
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain; application/json", None])  # fmt: skip
@pytest.mark.parametrize("path", ["/api/runs", "/api/session", "/api/runs/x/cancel"])
def test_a_form_starts_nothing(shared_server: WebServer, kind: str | None, path: str) -> None:
    told = shared_server.ask("POST", path, '{"question": "x"}', headers={"Content-Type": kind})
    assert told.status == 415
    assert "application/json" in told.line


@pytest.mark.behaviour("40-web-json-only")
def test_a_form_is_told_so_before_it_is_asked_for_a_token(shared_server: WebServer) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert shared_server.ask("POST", "/api/runs", "question=x", token=False, headers=form).status == 415


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/roots"), ("DELETE", "/api/runs"), ("PUT", "/api/runs/x"), ("GET", "/api/estimate"), ("HEAD", "/api/roots"), ("OPTIONS", "/api/runs")])  # fmt: skip
def test_another_method_is_refused(shared_server: WebServer, method: str, path: str) -> None:
    told = shared_server.ask(method, path, {} if method in ("POST", "PUT") else None)
    assert told.status == 405
    assert "allow" in told.headers
    assert method == "HEAD" or method in told.line


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("body", ["", "{", "[", "nothing", "\xff", "[" * 100_000, "1" * 10_000])
def test_what_is_no_json_is_told_in_a_line(shared_server: WebServer, body: str) -> None:
    told = shared_server.ask("POST", "/api/runs", body)
    assert told.status in (400, 422)
    assert told.line


@pytest.mark.behaviour("50-web-errors")
def test_too_much_is_refused_before_it_is_read(shared_server: WebServer) -> None:
    told = shared_server.ask("POST", "/api/estimate", {"question": "x" * (1 << 20)})
    assert told.status == 413
    assert "1 MB" in told.line


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/", "/api/runs/", "/page/nothing.js", "/page/../app.py", "/page/%2e%2e/app.py"]
)
def test_a_path_that_is_not_there_is_told_in_a_line(shared_server: WebServer, path: str) -> None:
    told = shared_server.ask("GET", path)
    assert told.status == 404
    assert told.line


@pytest.mark.behaviour("40-web-policy")
@pytest.mark.parametrize(
    ("path", "token"),
    [("/", True), ("/api/roots", True), ("/api/roots", False), ("/api/nothing", True), ("/page/x", True)],
)
def test_every_answer_says_what_a_page_may_do(shared_server: WebServer, path: str, token: bool) -> None:
    told = shared_server.ask("GET", path, token=token)
    assert told.headers["content-security-policy"] == POLICY
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.headers["referrer-policy"] == "no-referrer"
    assert told.headers["cache-control"] == ("no-store" if path.startswith("/api/") else "no-cache")
    assert "access-control-allow-origin" not in told.headers
    assert "server" not in told.headers


@pytest.mark.behaviour("40-web-token")
def test_the_page_itself_needs_no_token_and_holds_none(shared_server: WebServer) -> None:
    told = shared_server.ask("GET", "/", token=False)
    assert told.status == 200
    assert shared_server.token.encode() not in told.body


@pytest.mark.behaviour("50-web-errors")
def test_a_store_that_breaks_is_told_in_a_line(server: WebServer) -> None:
    run = server.convened()
    server.get(f"/api/runs/{run}")
    with server.database() as db:
        db.execute("ALTER TABLE events RENAME TO elsewhere")
        db.commit()
        told = server.ask("GET", f"/api/runs/{run}")
        db.execute("ALTER TABLE elsewhere RENAME TO events")
    assert told.status == 503
    assert "run store" in told.line


@pytest.mark.behaviour("50-web-errors")
def test_what_nobody_foresaw_is_told_in_a_line_too(server: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    run = server.convened()
    with server.database() as db:
        db.execute("UPDATE events SET body = '{' WHERE run = ? AND seq = 3", (run,))
    told = server.ask("GET", f"/api/runs/{run}")
    assert told.status == 500
    assert "internal error" in told.line
    said: list[str] = []
    wait_until(
        lambda: said.append(capsys.readouterr().err) or "".join(said), "the owner is told"
    )  # after the caller was
    assert "".join(said).startswith("council: internal error (")
    assert "Traceback" not in "".join(said)
    assert server.heard(f"/api/runs/{run}/events")[-1]["data"]["error"].startswith("internal error (")
    assert server.get("/api/runs")["runs"]
