#!/usr/bin/env python3
"""Replaces its login file atomically."""

import os
from pathlib import Path

from agent import begin, result, say

begin()
store = Path(os.environ["HOME"]) / ".claude"
(store / "fresh").write_text("new")
(store / "fresh").replace(store / ".credentials.json")
say(result("Tabs are better."))
