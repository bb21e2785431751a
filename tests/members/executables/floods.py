#!/usr/bin/env python3
"""Writes 50 MB."""

import sys

from agent import begin, result, say

begin()
for _ in range(50):
    sys.stdout.write("x" * 1024 * 1023 + "\n")
    sys.stderr.write("y" * 1024 + "\n")
say(result("Tabs are better."))
