"""Generate the tables of flags, so that help imports neither pydantic nor any command.

src/council/data/flags.json has the flags of protocols, from their option models; src/council/data/commands.json has the
management commands and their flags.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from council.doors.cli.help import describe_commands
from council.doors.cli.management import management_group
from council.protocols.options import build_flag_table

DATA = Path(__file__).parent.parent / "src" / "council" / "data"


def main() -> None:
    _write("flags.json", build_flag_table())
    _write("commands.json", describe_commands(management_group().commands))


def _write(name: str, table: Iterable[object]) -> None:
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table)
    (DATA / name).write_text(f"[\n{rows}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
