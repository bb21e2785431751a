#!/usr/bin/env python3
"""Starts, hangs and ignores SIGTERM."""

import signal

from agent import begin, event, say

signal.signal(signal.SIGTERM, signal.SIG_IGN)
begin()
say(event("Tabs"))
while True:
    signal.pause()
