"""Checks of Host, Origin, token and content type, on a real socket."""

from __future__ import annotations

import gzip
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from council.doors.web import guard, serve
from council.doors.web.serve import parse_address
from council.errors import UsageError
from tests.acceptance.helpers import wait_until
from tests.doors.web.conftest import write_project
from tests.doors.web.server import WebServer, environment

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.mark.behaviour("40-web-host")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:{port}", "127.0.0.1:{port}.evil.example", "", None])  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/runs", "/page/app.js"])
def test_a_wrong_host_is_refused_everywhere(shared_site: WebServer, host: str | None, path: str) -> None:
    response = shared_site.ask(
        "GET", path, headers={"Host": host and host.format(port=shared_site.host.rpartition(":")[2])}
    )
    assert response.status == 400
    if host is not None:  # a request without Host is refused by the HTTP server itself
        assert "Host" in response.line


@pytest.mark.behaviour("40-web-host")
def test_localhost_is_the_same_machine(shared_site: WebServer) -> None:
    response = shared_site.ask(
        "GET", "/api/roots", headers={"Host": shared_site.host.replace("127.0.0.1", "localhost")}
    )
    assert response.status == 200


@pytest.mark.behaviour("40-web-origin")
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://127.0.0.1:1", "http://localhost:{port}", "http://{host}.evil.example", ""])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused_even_with_the_token(shared_site: WebServer, origin: str, method: str) -> None:
    said = origin.format(host=shared_site.host, port=shared_site.host.rpartition(":")[2])
    response = shared_site.ask(method, "/api/runs", {} if method == "POST" else None, headers={"Origin": said})
    assert response.status == 403
    assert "another page" in response.line


@pytest.mark.behaviour("40-web-origin")
def test_the_servers_own_page_is_allowed(shared_site: WebServer) -> None:
    own = {"Origin": f"http://{shared_site.host}", "Sec-Fetch-Site": "same-origin"}
    assert shared_site.ask("POST", "/api/estimate", {"question": "Tabs or spaces?"}, headers=own).status == 200


@pytest.mark.behaviour("40-web-fetch-site")
@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("", 403), ("same-origin", 200), ("none", 200), (None, 200)])  # fmt: skip
def test_another_site_is_refused_and_a_missing_header_is_allowed(
    shared_site: WebServer, site: str | None, status: int
) -> None:
    assert shared_site.ask("GET", "/api/roots", headers={"Sec-Fetch-Site": site}).status == status


@pytest.mark.behaviour("40-web-token")
@pytest.mark.parametrize(
    "said", [None, "", "Bearer", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x", "Bearer \xff"]
)
@pytest.mark.parametrize("path", ["/api/roots", "/api/openapi.json", "/api/runs/x/events", "/api/nothing", "/nothing", "/api/roots?token={token}"])  # fmt: skip
def test_requests_without_the_token_are_refused(shared_site: WebServer, said: str | None, path: str) -> None:
    headers = {"Authorization": said and said.format(token=shared_site.token)}
    response = shared_site.ask("GET", path.format(token=shared_site.token), headers=headers)
    assert response.status == 401
    assert "token" in response.line
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.behaviour("40-web-token")
def test_the_token_is_in_no_cookie_because_other_ports_would_get_it(shared_site: WebServer) -> None:
    response = shared_site.ask("POST", "/api/session", {"token": shared_site.token}, token=False)
    assert (response.status, "set-cookie" in response.headers) == (200, False)
    port = shared_site.host.rpartition(":")[2]
    for name in (f"council-{port}", "token", "Authorization"):
        cookie = {"Cookie": f"{name}={shared_site.token}"}
        assert shared_site.ask("GET", "/api/roots", token=False, headers=cookie).status == 401


@pytest.mark.behaviour("40-web-token")
def test_a_wrong_token_opens_no_session(shared_site: WebServer) -> None:
    response = shared_site.ask("POST", "/api/session", {"token": "wrong\u00e9"}, token=False)
    assert (response.status, "set-cookie" in response.headers) == (401, False)


@pytest.mark.behaviour("40-web-json-only")
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain; application/json", None])  # fmt: skip
@pytest.mark.parametrize("path", ["/api/runs", "/api/session", "/api/runs/x/cancel"])
def test_a_form_post_is_refused(shared_site: WebServer, kind: str | None, path: str) -> None:
    response = shared_site.ask("POST", path, '{"question": "x"}', headers={"Content-Type": kind})
    assert response.status == 415
    assert "application/json" in response.line


@pytest.mark.behaviour("40-web-json-only")
def test_the_content_type_is_checked_before_the_token(shared_site: WebServer) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert shared_site.ask("POST", "/api/runs", "question=x", token=False, headers=form).status == 415


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/roots"), ("DELETE", "/api/runs"), ("PUT", "/api/runs/x"), ("GET", "/api/estimate"), ("HEAD", "/api/estimate")])  # fmt: skip
def test_another_method_is_refused(shared_site: WebServer, method: str, path: str) -> None:
    response = shared_site.ask(method, path, {} if method in ("POST", "PUT") else None)
    assert response.status == 405
    assert "allow" in response.headers
    assert method == "HEAD" or method in response.line


@pytest.mark.behaviour("50-web-head")
def test_head_answers_like_get_without_a_body(site: WebServer) -> None:
    run = site.run_council()
    for path in ("/", "/page/main.js", "/api/roots", f"/api/runs/{run}", f"/api/runs/{run}/events", "/api/runs/none"):
        asked, head = site.ask("GET", path), site.ask("HEAD", path)
        assert (head.status, head.headers["content-type"]) == (asked.status, asked.headers["content-type"])
        assert head.body == b""
    assert site.ask("HEAD", "/api/roots", token=False).status == 401


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("body", ["", "{", "[", "nothing", "\xff", "[" * 100_000, "1" * 10_000])
def test_invalid_json_is_a_one_line_error(shared_site: WebServer, body: str) -> None:
    response = shared_site.ask("POST", "/api/runs", body)
    assert response.status in (400, 422)
    assert response.line


@pytest.mark.behaviour("50-web-errors")
def test_a_body_over_the_limit_is_refused(shared_site: WebServer) -> None:
    assert shared_site.ask("POST", "/api/estimate", {"question": "x" * ((1 << 20) + 1)}).status == 422
    response = shared_site.ask("POST", "/api/session", {"token": "x" * (1 << 20)})
    assert response.status == 413
    assert "1 MB" in response.line


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/", "/api/runs/", "/page/nothing.js", "/page/../app.py", "/page/%2e%2e/app.py"]
)
def test_an_unknown_path_is_a_one_line_error(shared_site: WebServer, path: str) -> None:
    response = shared_site.ask("GET", path)
    assert response.status == 404
    assert response.line


@pytest.mark.behaviour("50-web-half-open", "50-web-gzip")
def test_clients_that_do_not_finish_a_request_are_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_WAITING", 20)
    monkeypatch.setattr(guard, "BODY_TIMEOUT_S", 0.2)
    site = WebServer(write_project(tmp_path), environment(tmp_path))
    address = ("127.0.0.1", int(site.host.rpartition(":")[2]))
    half_open = [socket.create_connection(address, 60) for _ in range(40)]
    try:
        for one in half_open:
            with suppress(OSError):  # it may be closed already
                one.sendall(b"GET /api/roots HTTP/1.1\r\nHost: x")
        for one in half_open[:20]:
            assert is_closed(one)
        plain, packed = (site.ask("GET", "/api/openapi.json", headers={"Accept-Encoding": kind}) for kind in (None, "gzip"))  # fmt: skip
        assert (plain.status, packed.headers["content-encoding"]) == (200, "gzip")
        assert gzip.decompress(packed.body) == plain.body
        with socket.create_connection(address, 60) as slow:
            head = f"POST /api/estimate HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
            slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
        monkeypatch.setattr(serve, "HEAD_TIMEOUT_S", 0.2)
        with socket.create_connection(address, 60) as silent:
            assert is_closed(silent)
    finally:
        for one in half_open:
            one.close()
        site.close()


def is_closed(connection: socket.socket) -> bool:
    """Wait until the server has closed a connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.behaviour("50-web-public-url", "40-web-host", "40-web-origin")
def test_the_address_of_a_proxy_is_the_only_other_host(tmp_path: Path) -> None:
    assert parse_address(None, None, "https://Council.example.com:443/").public_url == "https://council.example.com"
    assert parse_address("0.0.0.0", None, "http://c.example:80").public_url == "http://c.example"
    assert (
        parse_address(None, None, "http://c.example:8080").make_origins(1)["c.example:8080"] == "http://c.example:8080"
    )
    for wrong in ("council.example.com", "https://", "ftp://c.example", "https://c.example/x", "https://u@c.example", "https://c.example?x", "https://c.example:x"):  # fmt: skip
        with pytest.raises(UsageError, match="--public-url"):
            parse_address(None, None, wrong)
    site = WebServer(write_project(tmp_path), environment(tmp_path), public_url="https://council.example.com")
    try:
        for host, origin, status in (
            ("council.example.com", "https://council.example.com", 200), ("council.example.com", None, 200),
            ("council.example.com", "http://council.example.com", 403), ("council.example.com", f"http://{site.host}", 403),
            ("council.example.com:443", None, 400), ("council.example.com.evil.example", None, 400), ("evil.example", None, 400),
            (site.host, "https://council.example.com", 403), (site.host, f"http://{site.host}", 200),
        ):  # fmt: skip
            assert site.ask("GET", "/api/roots", headers={"Host": host, "Origin": origin}).status == status
    finally:
        site.close()


@pytest.mark.behaviour("50-web-code")
def test_a_code_gives_the_token_once(shared_site: WebServer) -> None:
    assert shared_site.ask("POST", "/api/codes", {}, token=False).status == 401
    code = shared_site.post("/api/codes", {}, 201)["code"]
    first, second = (shared_site.ask("POST", "/api/session", {"code": code}, token=False) for _ in range(2))
    assert (first.status, first.json["token"], second.status) == (200, shared_site.token, 401)
    assert second.json["error"]["field"] == "code"


@pytest.mark.behaviour("40-web-policy")
@pytest.mark.parametrize(
    ("path", "token"),
    [("/", True), ("/api/roots", True), ("/api/roots", False), ("/api/nothing", True), ("/page/x", True)],
)
def test_every_response_has_the_security_headers(shared_site: WebServer, path: str, token: bool) -> None:
    response = shared_site.ask("GET", path, token=token)
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == ("no-store" if path.startswith("/api/") else "no-cache")
    assert "access-control-allow-origin" not in response.headers
    assert "server" not in response.headers


@pytest.mark.behaviour("40-web-token")
def test_the_page_needs_no_token_and_contains_none(shared_site: WebServer) -> None:
    response = shared_site.ask("GET", "/", token=False)
    assert response.status == 200
    assert shared_site.token.encode() not in response.body


@pytest.mark.behaviour("50-page-first-load")
def test_the_script_of_the_page_is_one_file_compressed_and_cached(shared_site: WebServer) -> None:
    plain = shared_site.ask("GET", "/page/app.js", token=False)
    packed = shared_site.ask("GET", "/page/app.js", token=False, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    known = shared_site.ask("GET", "/page/app.js", token=False, headers={"If-None-Match": plain.headers["etag"]})
    assert (known.status, known.body) == (304, b"")
    assert shared_site.get("/page/app.js.map")["sources"][-1] == "/page/main.js"


@pytest.mark.behaviour("50-web-errors")
def test_a_broken_store_is_a_one_line_error(site: WebServer) -> None:
    run = site.run_council()
    site.get(f"/api/runs/{run}")
    with site.database() as db:
        db.execute("ALTER TABLE events RENAME TO elsewhere")
        db.commit()
        response = site.ask("GET", f"/api/runs/{run}")
        db.execute("ALTER TABLE elsewhere RENAME TO events")
    assert response.status == 503
    assert "run store" in response.line


@pytest.mark.behaviour("50-web-errors")
def test_an_unexpected_exception_is_a_one_line_error(site: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    run = site.run_council()
    with site.database() as db:
        db.execute(
            "UPDATE events SET body = json_set(body, '$.usage', 'x') WHERE run = ? AND type = 'statement'", (run,)
        )
    response = site.ask("GET", f"/api/runs/{run}")
    assert response.status == 500
    assert "internal error" in response.line
    said: list[str] = []
    wait_until(
        lambda: said.append(capsys.readouterr().err) or "".join(said), "the error is printed"
    )  # after the response
    assert "".join(said).startswith("council: internal error (")
    assert "Traceback" not in "".join(said)
    with site.database() as db:
        db.execute("UPDATE events SET body = '{' WHERE run = ? AND seq = 3", (run,))
    assert "damaged" in site.read_stream(f"/api/runs/{run}/events")[-1]["data"]["error"]
    assert site.get("/api/runs")["runs"]
