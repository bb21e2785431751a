"""docs/web.md: its commands run, and its tables match the server."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import pytest

from council.doors.cli.service_commands import serve_command
from council.doors.web.serve import DEFAULT_PORT
from tests.doors.web.server import WebServer
from tests.doors.web.test_schema import OPERATIONS
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.behaviour("007-web-docs")
def test_the_commands_of_the_page_run(site: WebServer, tmp_path: Path) -> None:
    mark = "echo; echo ----"
    script = "set -euo pipefail\n" + f"\n{mark}\n".join(BLOCKS)
    env = {"PATH": os.environ["PATH"], "URL": f"http://{site.host}", "TOKEN": site.token}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    estimated, started, received, read, forked, rest = done.stdout.split("----\n")
    assert '"schema":"council.plan/1"' in estimated
    assert not started.strip()
    assert received.rstrip().endswith('"status":"complete"}')
    assert read.startswith("# Is it sound?")
    assert (tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert forked.startswith('{"run":"r')
    assert '"schema":"council.spend/1"' in rest


@pytest.mark.behaviour("007-web-docs")
def test_the_table_of_the_page_lists_every_route() -> None:
    rows = re.findall(r"^\| (GET|POST|PATCH|DELETE) \| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(OPERATIONS)


@pytest.mark.behaviour("007-web-docs")
def test_every_flag_of_the_command_is_on_the_page() -> None:
    flags = {option.opts[0] for option in serve_command().params if isinstance(option, click.Option)}
    assert flags == set(re.findall(r"^\| `(--[\w-]+)", PAGE, re.MULTILINE))
    assert str(DEFAULT_PORT) in PAGE
