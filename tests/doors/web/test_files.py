"""Which files can be seen and named: those inside the roots that may leave the machine, however one asks for others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment

OUTSIDE = ["..", "../outside", "src/../../outside", "/", "/etc", "~", "escape", "escape/hosts", "src/escape", "loop", "nowhere", "%00", "src%00", "a%0ab"]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Two roots, a neighbour that is none, and links in all directions."""
    place = tmp_path_factory.mktemp("house")
    folder, other, outside = write_project(place), place / "more" / "project", place / "outside"
    for path in (other, outside):
        path.mkdir(parents=True)
    (other / "plan.md").write_text("Later.\n")
    (outside / "private.md").write_text("Nobody's business.\n")
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
def test_folders_come_first_and_what_stands_for_secrets_does_not_come(server: WebServer) -> None:
    rows = server.get("/api/files")
    assert names(rows) == ["credentials", "deep", "inner", "src", "council.toml", "notes.md"]
    assert rows[-1] == {"name": "notes.md", "path": "notes.md", "kind": "file", "bytes": 23}
    assert rows[3] == {"name": "src", "path": "src", "kind": "folder", "bytes": None}
    assert names(server.get("/api/files?path=deep")) == [".env.example"]
    assert names(server.get("/api/files?path=credentials")) == ["store.py"]


@pytest.mark.behaviour("50-web-files")
def test_a_link_counts_as_what_it_leads_to_if_that_is_inside(server: WebServer) -> None:
    assert server.get("/api/files?path=inner")[-1]["path"] == "inner/core.py"
    assert "escape" not in names(server.get("/api/files?path=src"))


@pytest.mark.behaviour("50-web-roots")
def test_each_root_has_a_name_of_its_own(server: WebServer) -> None:
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
def test_a_folder_that_is_kept_out_or_is_none_is_not_listed(server: WebServer, path: str) -> None:
    assert server.refused(f"/api/files?path={path}")


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("root", ["nothing", "..", "/", "project/..", "%00"])
def test_an_unknown_root_is_refused_with_those_there_are(server: WebServer, root: str) -> None:
    assert "project, project-2" in server.refused(f"/api/files?root={root}")


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("target", ["..", "../outside/private.md", "/etc/hosts", "escape/private.md", "private.md", "src/../../outside/private.md", "a\0b", "nothing.md", "*.rs", "../*.md", "/etc/*", "\ud800", ".env", "hidden.txt", "secret.pem", "deep/id_rsa", ""])  # fmt: skip
@pytest.mark.parametrize("question", ["Is it sound?", "validate", ""])
def test_no_target_leads_out_of_its_root_or_to_a_secret(server: WebServer, target: str, question: str) -> None:
    told = server.ask("POST", "/api/estimate", {"question": question, "targets": [target]})
    assert told.status in (400, 422), told.body
    assert "Nobody" not in told.line


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize("target", [".git/config", ".agents/council/old.md"])
def test_what_is_kept_out_of_every_packet_is_no_target_either(server: WebServer, target: str) -> None:
    told = server.post("/api/estimate", {"question": "Is it sound?", "targets": [target, "notes.md"]})
    assert told["packet"]["files"] == ["notes.md"]


@pytest.mark.behaviour("50-web-start")
@pytest.mark.parametrize(("wish", "files"), [
    ({"question": "Is it sound?", "targets": ["notes.md"]}, ["notes.md"]),
    ({"question": "validate", "targets": ["src"]}, ["src/core.py"]),
    ({"question": "", "targets": ["src/core.py", "notes.md"]}, ["src/core.py", "notes.md"]),
    ({"question": "review it", "targets": ["src/*.py"], "protocol": "judges"}, ["src/core.py"]),
    ({"question": "Is it sound?", "targets": ["plan.md"], "root": "project-2"}, ["plan.md"]),
    ({"question": "Is it sound?", "targets": [".env"], "redact": True}, [".env"]),
    ({"question": "Is it sound?", "targets": [".env", "notes.md"], "skip_secrets": True}, ["notes.md"]),
])  # fmt: skip
def test_what_was_chosen_is_in_the_packet_and_nothing_else(server: WebServer, wish: Json, files: list[str]) -> None:
    told = server.post("/api/estimate", wish)
    assert told["packet"]["files"] == files
    assert told["target"] == " ".join(wish["targets"])


@pytest.mark.behaviour("50-web-roots")
@pytest.mark.parametrize(
    "words", ["validate ../outside/private.md", "validate /etc/hosts", "validate escape/private.md"]
)
def test_words_reach_no_farther_than_targets(server: WebServer, words: str) -> None:
    assert server.refused("/api/estimate", {"question": words})


@pytest.mark.behaviour("50-web-roots")
def test_a_question_may_speak_of_a_file_outside_and_does_not_get_it(server: WebServer) -> None:
    told = server.post("/api/estimate", {"question": "What is in /etc/hosts and ../outside/private.md?"})
    assert told["packet"]["files"] == []


@pytest.mark.behaviour("50-web-files")
def test_a_folder_with_too_many_names_is_told_in_a_line(server: WebServer) -> None:
    crowd = server.folder / "crowd"
    crowd.mkdir()
    for n in range(10_001):
        (crowd / str(n)).touch()
    assert "10,000" in server.refused(f"/api/files?path={quote('crowd')}")
