"""Generate src/council/data/flags.json from the option models, so that `council --help` does not import pydantic."""

from __future__ import annotations

import json
from pathlib import Path

from council.protocols.options import build_flag_table

TARGET = Path(__file__).parent.parent / "src" / "council" / "data" / "flags.json"


def main() -> None:
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in build_flag_table())
    TARGET.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
