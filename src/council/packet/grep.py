"""Line search by pattern. Run as a separate process, so that a pattern that never finishes can be killed."""

from __future__ import annotations

import json
import re
import sys

MAX_LINE_CHARS = 2_000


def grep(pattern: str, texts: dict[str, str], limit: int) -> list[tuple[str, int]]:
    """Return (path, line) of the first matches, in the order of the files."""
    matcher = re.compile(pattern)
    matches: list[tuple[str, int]] = []
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if matcher.search(line[:MAX_LINE_CHARS]):
                matches.append((path, number))
                if len(matches) >= limit:
                    return matches
    return matches


def main() -> None:
    request = json.load(sys.stdin)
    json.dump(grep(request["pattern"], request["texts"], request["limit"]), sys.stdout)


if __name__ == "__main__":
    main()
