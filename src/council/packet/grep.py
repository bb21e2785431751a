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
    """Search for a regex, or for the text itself if it is not a valid one. Compiling can take as long as searching."""
    request = json.load(sys.stdin)
    pattern, problem = request["pattern"], ""
    try:
        re.compile(pattern)
    except re.error as error:
        problem = error.msg
    except (RecursionError, OverflowError, MemoryError):
        problem = "too complex"
    matches = grep(re.escape(pattern) if problem else pattern, request["texts"], request["limit"])
    json.dump({"matches": matches, "problem": problem}, sys.stdout)


if __name__ == "__main__":
    main()
