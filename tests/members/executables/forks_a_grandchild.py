#!/usr/bin/env python3
"""Leaves two child processes: one keeps its streams open, one left its process group."""

import os
import signal

from agent import begin, note, result, say

begin()
noted, told = os.pipe()
for leaves in (False, True):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if leaves:
            os.setsid()
        note(child=True)
        os.write(told, b"!")
        while True:
            signal.pause()
    os.read(noted, 1)
say(result("Tabs are better."))
