"""File listing and targets: only files inside the roots that may be sent."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment
from tests.packet.fake_secrets import SECRETS
from tests.search.test_local_files import pdf

RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
OUTSIDE = ["..", "../outside", "src/../../outside", "/", "/etc", "~", "escape", "escape/hosts", "src/escape", "loop", "nowhere", "%00", "src%00", "a%0ab"]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Server with two roots, a folder outside them, and links between them."""
    place = tmp_path_factory.mktemp("house")
    folder, other, outside = write_project(place), place / "more" / "project", place / "outside"
    for path in (other, outside):
        path.mkdir(parents=True)
    (other / "plan.md").write_text("Later.\n")
    (outside / "private.md").write_text("Confidential.\n")
    for link, target in {"escape": outside, "src/escape": outside, "inner": "src", "loop": "loop", "nowhere": "gone", "hidden.txt": ".env", "private.md": outside / "private.md"}.items():  # fmt: skip
        (folder / link).symlink_to(target)
    for name in (".git/config", ".ssh/known", "credentials/store.py", "credentials.json", "deep/.git/config", "deep/.env.local", "deep/.env.example", "deep/id_rsa", "node.tfvars"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    (folder / "deep" / os.fsdecode(b"bad\xff.txt")).write_text("x")
    os.mkfifo(folder / "deep" / "pipe")
    served = WebServer(folder, environment(place), [other])
    yield served
    served.close()


def names(rows: list[Json]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.mark.behaviour("50-web-files")
def test_folders_come_first_and_secret_files_are_hidden(server: WebServer) -> None:
    rows = server.get("/api/files")
    assert names(rows) == ["credentials", "deep", "inner", "src", "council.toml", "notes.md"]
    assert rows[-1] == {"name": "notes.md", "path": "notes.md", "kind": "file", "bytes": 23}
    assert rows[3] == {"name": "src", "path": "src", "kind": "folder", "bytes": None}
    assert names(server.get("/api/files?path=deep")) == [".env.example"]
    assert names(server.get("/api/files?path=credentials")) == ["store.py"]


@pytest.mark.behaviour("50-web-files")
def test_a_link_is_followed_only_inside_the_root(server: WebServer) -> None:
    assert server.get("/api/files?path=inner")[-1]["path"] == "inner/core.py"
    assert "escape" not in names(server.get("/api/files?path=src"))


@pytest.mark.behaviour("50-web-file-search")
def test_files_are_found_by_words_and_previewed_without_secrets(server: WebServer) -> None:
    found = server.get("/api/files/search?q=CORE%20src")
    assert ([row["path"] for row in found["files"]], found["more"]) == (["src/core.py"], False)
    assert server.get("/api/files/search?q=store")["files"][0]["path"] == "credentials/store.py"
    for hidden in ("env.local", "id_rsa", "secret.pem", "private", "old.md", "config"):
        assert server.get(f"/api/files/search?q={hidden}")["files"] == [], hidden
    key = "-".join(["sk", "proj", "a1B2c3D4" * 5])
    (server.folder / "long.md").write_text(f"key = {key}\n" + "word " * 6000)
    shown = server.get("/api/files/text?path=long.md")
    assert (shown["path"], shown["bytes"], shown["cut"]) == ("long.md", 30_000 + len(key) + 7, True)
    assert shown["tokens"] > 10_000 and key not in shown["text"] and "word word" in shown["text"]
    for path in (
        *OUTSIDE,
        ".env",
        "hidden.txt",
        "secret.pem",
        ".git/config",
        "private.md",
        "deep/pipe",
        "src",
        "no.md",
    ):
        assert "Confidential" not in server.refused(f"/api/files/text?path={path}"), path


@pytest.mark.behaviour("50-web-preview-gate")
@pytest.mark.parametrize("kind", sorted(SECRETS))
def test_a_secret_in_a_preview_is_masked_and_named_as_the_gate_refuses_it(server: WebServer, kind: str) -> None:
    text, secret = SECRETS[kind]
    (server.folder / "planted.txt").write_text(f"first\nsecond\n{text}\n", encoding="utf-8")
    response = server.ask("GET", "/api/files/text?path=planted.txt")
    assert secret not in response.body.decode() and "second" in response.json["text"]
    refused = server.refused("/api/estimate", {"question": "check planted.txt", "targets": ["planted.txt"]})
    assert [place for place in response.json["secrets"] if place in refused] == response.json["secrets"] != []
    assert response.json["secrets"][0].startswith("planted.txt:3 (")


@pytest.mark.behaviour("50-web-preview-gate")
def test_a_preview_shows_what_the_packet_would_show(server: WebServer) -> None:
    """A lock file, a link to a private folder and a name that is a secret are refused by both."""
    (server.folder / "uv.lock").write_text("x\n")
    (server.folder / "notes-link").symlink_to(".git")
    name = f"{SECRETS['github'][1]}.txt"
    (server.folder / name).write_text("x\n")
    assert "a lock file" in server.refused("/api/files/text?path=uv.lock")
    assert "cannot be shown" in server.refused("/api/files/text?path=notes-link/config")
    assert name not in server.ask("GET", "/api/files").body.decode()
    assert name not in server.ask("GET", "/api/files/search?q=txt").body.decode()
    (server.folder / "plain.txt").write_text("zero\u200bwidth\n", encoding="utf-8")
    shown = server.get("/api/files/text?path=plain.txt")
    assert (shown["text"], shown["secrets"]) == ("zerowidth\n", [])
    for made in ("uv.lock", "notes-link", name):
        (server.folder / made).unlink()


@pytest.mark.behaviour("50-web-preview-gate")
def test_the_packet_of_a_run_is_shown_with_secrets_masked(server: WebServer) -> None:
    """A packet of an earlier version may have a secret that its gate did not know."""
    run = server.run_council("review notes.md", protocol="triad", settings={"models": ["scripted:"]})
    secret = SECRETS["github"][1]
    with server.database() as db:
        db.execute("UPDATE runs SET setup = replace(setup, 'Cold storage is cheap', ?)", (f"token {secret}",))
    response = server.ask("GET", f"/api/runs/{run}/packet")
    assert response.status == 200 and secret not in response.body.decode()


@pytest.mark.behaviour("50-web-attachments")
def test_attached_texts_are_checked_and_sent_like_files(server: WebServer) -> None:
    def estimate(*attached: tuple[str, str], **more: Any) -> Any:
        files = [{"name": name, "text": text} for name, text in attached]
        return server.ask("POST", "/api/estimate", {"question": "Is it sound?", "attachments": files, **more})

    plan = estimate(
        ("plan.md", "Move it."), ("C:\\docs\\plan.md", "Keep it."), ("../x/notes.md", "Why?"), ("e.txt", " ")
    ).json
    assert plan["packet"]["files"] == ["attached/plan.md", "attached/2/plan.md", "attached/notes.md"]
    assert plan["packet"]["skipped"] == [{"path": "attached/e.txt", "why": "empty"}]
    review = estimate(("plan.md", "Move it."), question="review this", protocol="judges").json
    assert (review["task"], review["packet"]["files"]) == ("validate", ["attached/plan.md"])
    key = f"key = {'-'.join(['sk', 'proj', 'a1B2c3D4' * 5])}"
    assert "secrets found at attached/plan.md:1" in estimate(("plan.md", key)).line
    assert ".env:1 (secret file name)" in estimate((".env", "A=1")).line
    assert estimate(("plan.md", key), redact=True).json["packet"]["files"] == ["attached/plan.md"]
    assert '"x.bin" is binary' in estimate(("x.bin", "a\0b")).line
    assert estimate(("big.txt", "x" * 300_000)).json["packet"]["skipped"][0]["why"].startswith("over 256 KB")


@pytest.mark.behaviour("50-web-attachments")
def test_attached_bytes_are_recognised_and_refused_with_one_line(server: WebServer) -> None:
    def estimate(**file: str) -> Any:
        return server.ask("POST", "/api/estimate", {"question": "What is it?", "attachments": [{"name": "a", **file}]})

    assert estimate(data=base64.b64encode(b"Move it.").decode()).json["packet"]["files"] == ["attached/a"]
    report = estimate(data=base64.b64encode(pdf("Sales rose.")).decode()).json
    assert report["packet"]["attachments"][0]["pages"] == 1
    assert {row["has_text"] for row in report["attachments"]} == {True} and report["attachments"][0]["unseen_by"]
    picture = f"data:image/png;base64,{RED_PIXEL}"
    assert 'no seat of this council can see "attached/a"' in estimate(data=picture).line
    for wrong, line in (
        ({}, "needs one of text and data"), ({"text": "", "data": ""}, "needs one of text and data"),
        ({"data": "%%%"}, "is not base64: encode it"), ({"data": ""}, "is empty: attach a file with content"),
        ({"data": "iVBORw0KGgo="}, "is a damaged or truncated image"),
    ):  # fmt: skip
        refused = estimate(**wrong)
        assert (refused.status, line in refused.line) == (400, True), refused.line
    assert "is text of 2.1 MB" in estimate(data=base64.b64encode(b"x" * (2 << 20)).decode()).line
    assert estimate(text="x" * (25 << 20)).line == "the body is over 24 MB: send less"
    assert server.ask("POST", "/api/session", {"token": "x" * (2 << 20)}).line == "the body is over 1 MB: send less"


@pytest.mark.behaviour("50-web-roots")
def test_each_root_has_a_unique_name(server: WebServer) -> None:
    rows = server.get("/api/roots")
    assert [(row["name"], Path(row["path"])) for row in rows] == [
        ("project", server.folder), ("project-2", server.folder.parent / "more" / "project"),
    ]  # fmt: skip
    assert names(server.get("/api/files?root=project-2")) == ["plan.md"]


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_a_root_is_listed(server: WebServer, path: str) -> None:
    line = server.refused(f"/api/files?path={path}")
    assert "private.md" not in line


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("path", [".git", "deep/.git", ".ssh", ".agents", ".agents/council", "notes.md", "nothing"])
def test_excluded_and_missing_folders_are_not_listed(server: WebServer, path: str) -> None:
    assert server.refused(f"/api/files?path={path}")


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("root", ["nothing", "..", "/", "project/..", "%00"])
def test_an_unknown_root_error_lists_the_roots(server: WebServer, root: str) -> None:
    assert "project, project-2" in server.refused(f"/api/files?root={root}")


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("target", ["..", "../outside/private.md", "/etc/hosts", "escape/private.md", "private.md", "src/../../outside/private.md", "a\0b", "nothing.md", "*.rs", "../*.md", "/etc/*", "\ud800", ".env", "hidden.txt", "secret.pem", "deep/id_rsa", ""])  # fmt: skip
@pytest.mark.parametrize("question", ["Is it sound?", "validate", ""])
def test_no_target_reaches_outside_its_root_or_a_secret(server: WebServer, target: str, question: str) -> None:
    response = server.ask("POST", "/api/estimate", {"question": question, "targets": [target]})
    assert response.status in (400, 422), response.body
    assert "Confidential" not in response.line


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("target", [".git/config", ".agents/council/old.md"])
def test_excluded_files_are_dropped_from_targets(server: WebServer, target: str) -> None:
    response = server.post("/api/estimate", {"question": "Is it sound?", "targets": [target, "notes.md"]})
    assert response["packet"]["files"] == ["notes.md"]


@pytest.mark.behaviour("50-web-start")
@pytest.mark.parametrize(("body", "files"), [
    ({"question": "Is it sound?", "targets": ["notes.md"]}, ["notes.md"]),
    ({"question": "validate", "targets": ["src"]}, ["src/core.py"]),
    ({"question": "", "targets": ["src/core.py", "notes.md"]}, ["src/core.py", "notes.md"]),
    ({"question": "review it", "targets": ["src/*.py"], "protocol": "judges"}, ["src/core.py"]),
    ({"question": "Is it sound?", "targets": ["plan.md"], "root": "project-2"}, ["plan.md"]),
    ({"question": "Is it sound?", "targets": [".env"], "redact": True}, [".env"]),
    ({"question": "Is it sound?", "targets": [".env", "notes.md"], "skip_secrets": True}, ["notes.md"]),
])  # fmt: skip
def test_the_packet_holds_exactly_the_targets(server: WebServer, body: Json, files: list[str]) -> None:
    response = server.post("/api/estimate", body)
    assert response["packet"]["files"] == files
    assert response["target"] == " ".join(body["targets"])


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize(
    "words", ["validate ../outside/private.md", "validate /etc/hosts", "validate escape/private.md"]
)
def test_paths_in_the_question_have_the_same_limits(server: WebServer, words: str) -> None:
    assert server.refused("/api/estimate", {"question": words})


@pytest.mark.behaviour("50-web-roots")
def test_a_question_that_mentions_an_outside_file_does_not_include_it(server: WebServer) -> None:
    response = server.post("/api/estimate", {"question": "What is in /etc/hosts and ../outside/private.md?"})
    assert response["packet"]["files"] == []


@pytest.mark.behaviour("50-web-files")
def test_a_folder_with_too_many_entries_is_a_one_line_error(server: WebServer) -> None:
    crowd = server.folder / "crowd"
    crowd.mkdir()
    for n in range(10_001):
        (crowd / str(n)).touch()
    assert "10,000" in server.refused(f"/api/files?path={quote('crowd')}")
