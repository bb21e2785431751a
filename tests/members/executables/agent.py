"""Shared code of the fake agents in this folder: help text, prompt and log.

Each script plays `claude`, started by a link in a separate folder. It reports to the test through `log.jsonl` beside
that link, because its environment has no variables of the test.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[0]).parent / "log.jsonl"
HELP = """Usage: claude [options] [prompt]

Options:
  -p, --print                   Print response and exit
  --output-format <format>      "text" (default), "json", or "stream-json"
  --include-partial-messages    Include partial messages
  --verbose                     Say more
  --json-schema <schema>        JSON Schema for structured output
  --tools <tools...>            Available tools; "" for none
  --strict-mcp-config           Only MCP servers from the command line
  --model <model>               Model for the session
"""


def begin(help: str = HELP) -> str:
    """Answer what every agent answers at once; else the prompt, once it is noted who was started how."""
    if "--version" in sys.argv:
        print("9.9.9 (Claude Code)")
        sys.exit(0)
    if "--help" in sys.argv:
        print(help)
        sys.exit(0)
    note(started=sys.argv[1:])
    prompt = sys.stdin.read()
    note(prompt=prompt)
    return prompt


def note(**what: Any) -> None:
    home = Path(os.environ["HOME"])
    known = {
        "pid": os.getpid(), "group": os.getpgid(0), "environ": dict(os.environ), "cwd": sorted(path.name for path in Path().iterdir()),
        "home": sorted(str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()),
    }  # fmt: skip
    with LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps(known | what) + "\n")


def result(text: str, **more: Any) -> str:
    usage = {"input_tokens": 12, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 9}
    event = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": text,
        "session_id": "s1",
        "usage": usage,
    }
    return json.dumps(event | more)


def event(text: str) -> str:
    return json.dumps(
        {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        }
    )


def say(*lines: str) -> None:
    print("\n".join(lines), flush=True)
