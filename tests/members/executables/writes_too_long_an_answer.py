#!/usr/bin/env python3
"""Streams an answer of 400 KB in pieces, then waits."""

import time

from agent import begin, event, say

begin()
for n in range(100):
    say(event(f"{n} " + "x" * 4096))
time.sleep(600)
