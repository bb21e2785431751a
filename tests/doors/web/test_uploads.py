"""Attachments that are uploaded before a run: checked, private, owned by their sender, and removed in time."""

from __future__ import annotations

import base64
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.doors.web.uploads import KEEP_S
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, Json, environment
from tests.doors.web.test_users import Site

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
PLAN = {"name": "plan.md", "text": "Move the archive."}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("uploads")
    served = Site(write_project(place), environment(place))
    yield served
    served.close()


def upload(site: Site, body: Json = PLAN) -> str:
    return str(site.post("/api/attachments", body, 201)["id"])


def files_of(site: Site) -> list[Path]:
    return [file for file in (Path(site.env["COUNCIL_DATA"]) / "uploads").rglob("*") if file.is_file()]


@pytest.mark.behaviour("50-web-uploads")
def test_an_upload_is_listed_read_and_removed(site: Site) -> None:
    image = {"name": "chart.png", "data": base64.b64encode(PIXEL).decode()}
    kept = site.post("/api/attachments", image, 201)
    about = {"name": "chart.png", "media_type": "image/png", "bytes": len(PIXEL)}
    assert {name: kept[name] for name in about} == about
    assert kept["expires"] == pytest.approx(time.time() + KEEP_S, abs=60)
    assert kept in site.get("/api/attachments")
    assert site.get(f"/api/attachments/{kept['id']}") == {**kept, "data": image["data"]}
    assert site.ask("DELETE", f"/api/attachments/{kept['id']}").status == 204
    for method in ("GET", "DELETE"):
        gone = site.ask(method, f"/api/attachments/{kept['id']}")
        assert (gone.status, gone.json["error"]["code"]) == (404, "unknown_attachment")
        assert "attach the file again" in gone.line


@pytest.mark.behaviour("50-web-uploads")
def test_a_run_takes_an_upload_over(site: Site) -> None:
    id_ = upload(site)
    body = {"question": QUESTION, "protocol": "triad", "uploads": [id_]}
    plan = site.post("/api/estimate", body)
    assert plan["packet"]["files"] == ["attached/plan.md"]
    assert id_ in [one["id"] for one in site.get("/api/attachments")]  # an estimate takes nothing
    run = site.post("/api/runs", body, 201)["run"]
    assert id_ not in [one["id"] for one in site.get("/api/attachments")]
    site.wait_for_end(run)
    packet = site.get(f"/api/runs/{run}/packet")
    assert packet["receipt"]["files"] == ["attached/plan.md"] and "Move the archive." in json.dumps(packet["dossier"])
    assert "attach the file again" in site.refused("/api/estimate", body)


@pytest.mark.behaviour("50-web-uploads")
@pytest.mark.parametrize(("body", "line"), [
    ({"name": "photo.heic", "data": base64.b64encode(b"\0\0\0\x18ftypheic").decode()}, "attach PNG, JPEG, WebP, GIF, PDF or text"),
    ({"name": "log.txt", "text": "x" * (256 * 1024 + 1)}, "attach at most 256 KB of it"),
    ({"name": "empty.txt", "text": ""}, "is empty"),
    ({"name": "both.txt", "text": "x", "data": "eA=="}, "needs one of text and data"),
])  # fmt: skip
def test_what_cannot_be_attached_is_refused_when_it_is_uploaded(site: Site, body: Json, line: str) -> None:
    before = len(files_of(site))
    assert line in site.refused("/api/attachments", body)
    assert len(files_of(site)) == before


@pytest.mark.behaviour("50-web-uploads")
def test_an_upload_belongs_to_its_sender(site: Site) -> None:
    ann, eve, root = site.add_user("ann"), site.add_user("eve", "chat"), site.add_user("root", "admin")
    id_ = str(site.ask_as(ann, "POST", "/api/attachments", PLAN).json["id"])
    own = upload(site)
    for token in (eve, root, site.token):
        assert site.ask_as(token, "GET", f"/api/attachments/{id_}").status == 404
        assert site.ask_as(token, "DELETE", f"/api/attachments/{id_}").status == 404
        assert id_ not in [one["id"] for one in site.ask_as(token, "GET", "/api/attachments").json]
        refused = site.ask_as(token, "POST", "/api/estimate", {"question": QUESTION, "uploads": [id_]})
        assert (refused.status, refused.json["error"]["field"]) == (400, "uploads")
    assert site.ask_as(ann, "GET", f"/api/attachments/{own}").status == 404
    assert site.ask_as(ann, "GET", "/api/attachments/..%2F..%2Fcouncil.db").status in (404, 422)
    plan = site.ask_as(ann, "POST", "/api/estimate", {"question": QUESTION, "uploads": [id_]}).json
    assert plan["packet"]["files"] == ["attached/plan.md"]


@pytest.mark.behaviour("50-web-uploads")
def test_uploads_are_private_and_removed_after_a_day(site: Site) -> None:
    old, young = upload(site), upload(site)
    for file in files_of(site):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (stored,) = [file for file in files_of(site) if file.name == old]
    os.utime(stored, (time.time() - KEEP_S - 1,) * 2)
    assert site.ask("GET", f"/api/attachments/{old}").status == 404
    assert {old, young} & {one["id"] for one in site.get("/api/attachments")} == {young}
    site.app_state.uploads.remove_expired()
    assert not stored.exists() and young in [file.name for file in files_of(site)]
