#!/usr/bin/env python3
"""Puts a new login in place of the old, as a careful program writes a file."""

import os
from pathlib import Path

from agent import begin, result, say

begin()
store = Path(os.environ["HOME"]) / ".claude"
(store / "fresh").write_text("new")
(store / "fresh").replace(store / ".credentials.json")
say(result("Tabs are better."))
