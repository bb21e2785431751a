#!/usr/bin/env python3
"""An old version without JSON output and with few flags."""

import sys

from agent import begin, say

begin("Usage: claude [options]\n  -p, --print  Print response and exit\n")
say("Tabs are better." if sys.argv[1:] == ["--print"] else f"unexpected {sys.argv}")
