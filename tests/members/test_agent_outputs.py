"""Output of the real agents, in tests/data/vendor_responses/agents: a program on PATH prints it, and it is read
right.
"""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.errors import Fault
from council.members import cli_agent
from council.members.cli_agent import CliAgentMember, ExecutableInfo
from tests.run_session import make_ask

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("18-vendor-responses", "issue-18-agent-retries")]
FILES = sorted((Path(__file__).parents[1] / "data" / "vendor_responses" / "agents").glob("*.toml"))
PRINTED = {"name", "stdout", "stderr", "exit", "running"}
READ = {"text", "finish", "usage", "model", "kind", "detail"}


def load(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["output"]
    return rows


def write_program(path: Path, row: dict[str, Any]) -> None:
    """Write a program that prints what the agent printed, and then exits or keeps running."""
    printed = [
        f"printf %s {shlex.quote(row[stream].lstrip())}{'' if stream == 'stdout' else ' >&2'}"
        for stream in ("stderr", "stdout")
        if stream in row
    ]
    ends = "printf '\\n\\n'; printf '\\n' >&2; exec sleep 600" if row.get("running") else f"exit {row.get('exit', 0)}"
    path.write_text("\n".join(["#!/bin/sh", "cat > /dev/null", *printed, ends]))
    path.chmod(0o755)


async def read(member: CliAgentMember, row: dict[str, Any]) -> dict[str, Any]:
    """Return what is read from an output, by the keys of its row."""
    try:
        answer = await member.send(member.prepare(make_ask()), lambda piece: None)
    except Fault as fault:
        detail = row["detail"] if row.get("detail", "\0") in fault.detail else fault.detail
        return {"kind": fault.kind, "detail": detail}
    usage = answer.usage
    counts = [usage.input, usage.output, usage.cached, usage.written] if usage.known else []
    found = {"text": answer.text, "finish": answer.finish, "usage": counts, "model": answer.model}
    return {key: found[key] for key in found if key in row}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_each_output_of_an_agent_is_read_right(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {}
    for row in load(file):
        assert not row.keys() - PRINTED - READ, row["name"]
        write_program(program := tmp_path / file.stem, row)
        monkeypatch.setitem(cli_agent._executables, cli_agent._file_version(program), ExecutableInfo(""))
        member = CliAgentMember(
            f"cli:{file.stem}", env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}, vendor="x"
        )
        expected = {key: row[key] for key in READ & row.keys()}
        assert expected.keys() & {"kind", "finish"}, row["name"]
        if (found := await read(member, row)) != expected:
            wrong[row["name"]] = (found, expected)
    assert not wrong
