#!/usr/bin/env python3
"""Begins, hangs, and will not be asked to end."""

import signal

from agent import begin, event, say

signal.signal(signal.SIGTERM, signal.SIG_IGN)
begin()
say(event("Tabs"))
while True:
    signal.pause()
