"""Schema migrations: one SQL file for each version of a database, applied in order. A file never changes.

The files are read when a database is created or migrated. Statements have an empty line between them, so that functions
need no parser; lines that start with `--` are comments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def list_migrations(database: Literal["sqlite", "postgres"]) -> list[Path]:
    """Return the files of a database in order. Their number is the version of its schema."""
    return sorted((Path(__file__).parent / database).glob("*.sql"))


def read_statements(file: Path) -> list[str]:
    """Return the statements of a migration."""
    lines = file.read_text(encoding="utf-8").split("\n")
    text = "\n".join(line for line in lines if not line.startswith("--"))
    statements = (part.strip().removesuffix(";") for part in text.split("\n\n"))
    return [statement for statement in statements if statement]
