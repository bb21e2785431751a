#!/usr/bin/env python3
"""Plays a version of codex that reads one setting differently."""

import sys

from agent import begin, say

begin("Usage: codex exec [OPTIONS]\n  -c, --config <key=value>\n  --json\n")
if "agents.enabled=false" in sys.argv:
    print("Error loading config.toml: invalid type: boolean\nin `agents`", file=sys.stderr)
    sys.exit(1)
say(
    '{"type": "item.completed", "item": {"type": "agent_message", "text": "Tabs are better."}}',
    '{"type": "turn.completed"}',
)
