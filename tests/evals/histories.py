"""Histories of repositories for tests, written with `git fast-import` in one process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

DAY = 86_400
START = 1_577_880_000  # 1 January 2020
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TEMPLATE_DIR": "",
    "PATH": os.environ["PATH"],
}


def git(folder: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", *args], cwd=folder, env=ENVIRONMENT, input=stdin, capture_output=True, check=True)
    return done.stdout.decode()


class History:
    """A bare repository whose commits follow each other by a day. `write` makes them real and returns their ids."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream: list[bytes] = []
        self.count = 0

    def commit(
        self,
        message: str,
        files: Mapping[str, str | bytes | None],
        *,
        branch: str = "main",
        parents: tuple[int, ...] | None = None,
        day: int | None = None,
    ) -> int:
        """Add a commit and return its mark. A file without content is deleted."""
        self.count += 1
        text = message.encode()
        when = START + DAY * (self.count if day is None else day)
        rows = [b"commit refs/heads/%s\nmark :%d\n" % (branch.encode(), self.count)]
        rows += [b"committer Ada <ada@example.org> %d +0000\ndata %d\n%s\n" % (when, len(text), text)]
        if parents:
            rows += [b"from :%d\n" % parents[0], *(b"merge :%d\n" % parent for parent in parents[1:])]
        for path, content in files.items():
            quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
            if content is None:
                rows.append(b"D %s\n" % quoted.encode())
            else:
                data = content if isinstance(content, bytes) else content.encode()
                rows.append(b"M 100644 inline %s\ndata %d\n%s\n" % (quoted.encode(), len(data), data))
        self.stream += rows
        return self.count

    def write(self) -> dict[int, str]:
        """Make the repository and return the ids of the commits by their marks. More commits can follow."""
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            git(self.folder, "init", "-q", "--bare", "-b", "main")
        marks = self.folder / "marks"
        known = ["--import-marks=marks"] if marks.exists() else []
        git(self.folder, "fast-import", "--quiet", "--export-marks=marks", *known, stdin=b"".join(self.stream))
        self.stream = []
        rows = (row.split() for row in marks.read_text().splitlines())
        return {int(mark.removeprefix(":")): commit for mark, commit in rows}
