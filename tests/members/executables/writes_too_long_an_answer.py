#!/usr/bin/env python3
"""Streams an answer of 400 KB in pieces, then waits."""

import time

from agent import begin, event, say

begin()
for n in range(100):
    say(event("".join(f"{1000 * n + word} " for word in range(800))))
time.sleep(600)
