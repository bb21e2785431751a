"""Responses of real vendors, in tests/data/vendor_responses: each is sent over a socket and read right."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.errors import Fault
from council.types import Answer
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import asked, seated

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("18-vendor-responses")]
FILES = sorted((Path(__file__).parents[2] / "data" / "vendor_responses").glob("*.toml"))
SENT = {"name", "wire", "status", "headers", "stream", "body"}
READ = {"text", "finish", "usage", "kind", "detail", "said", "retry_after"}


def load(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["response"]
    return rows


def make_reply(row: dict[str, Any]) -> Reply:
    status = row.get("status", 200)
    if status != 200:
        return Reply(status=status, headers=row.get("headers", {}), error=json.loads(row["body"]))
    raw = row["stream"].lstrip() if "stream" in row else row["body"]
    return Reply(raw=raw.encode(), stream="stream" in row, headers=row.get("headers", {}))


async def read(provider: FakeProvider, row: dict[str, Any]) -> dict[str, Any]:
    """Return what is read from a response, by the keys of its row."""
    provider.script("m1", make_reply(row))
    try:
        answer: Answer | Fault = (await asked(seated(provider, row["wire"])))[0]
    except Fault as fault:
        answer = fault
    if isinstance(answer, Fault):
        found: dict[str, Any] = {
            "kind": answer.kind,
            "detail": answer.detail,
            "said": answer.said,
            "retry_after": answer.retry_after,
        }
        if row.get("detail", "") in answer.detail:
            found["detail"] = row.get("detail", "")
        return {key: found[key] for key in found if key in row or key == "kind"}
    usage = answer.usage
    counts = [usage.input, usage.output, usage.cached, usage.written] if usage.known else []
    found = {"text": answer.text, "finish": answer.finish, "usage": counts}
    return {key: found[key] for key in found if key in row or key != "usage"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_each_response_of_a_vendor_is_read_right(provider: FakeProvider, file: Path) -> None:
    rows = load(file)
    assert rows
    wrong = {}
    for row in rows:
        assert not row.keys() - SENT - READ, row["name"]
        expected = {key: row[key] for key in READ & row.keys()}
        assert expected.keys() & {"kind", "finish"}, row["name"]
        if (found := await read(provider, row)) != expected:
            wrong[row["name"]] = (found, expected)
    assert not wrong
