#!/usr/bin/env python3
"""Has no login."""

import sys

from agent import begin, result, say

begin()
say(result("Not logged in · Please run /login", is_error=True))
sys.exit(1)
