#!/usr/bin/env python3
"""Says all, and stays."""

import signal

from agent import begin, result, say

begin()
say(result("Tabs are better."))
signal.pause()
