#!/usr/bin/env python3
"""Prints the whole answer and does not exit."""

import signal

from agent import begin, result, say

begin()
say(result("Tabs are better."))
signal.pause()
