#!/usr/bin/env python3
"""Lists a flag in --help that it rejects."""

import sys

from agent import begin, result, say

begin()
if "--strict-mcp-config" in sys.argv:
    print("error: unknown option '--strict-mcp-config'", file=sys.stderr)
    sys.exit(1)
say(result("Tabs are better."))
