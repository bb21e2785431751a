#!/usr/bin/env python3
"""Prints terminal escape sequences inside and outside its JSON."""

import sys

from agent import begin, event, result

begin()
sys.stdout.write("\x1b]0;thinking\x07\x1b[?25l" + event("\x1b[1mTabs\x1b[0m ") + "\x1b[0m\r\n")
sys.stdout.write(
    "\x1b[2K" + result("\x1b[31mTabs\x1b[0m are \x1b]8;;http://x.example\x07better\x1b]8;;\x07.\x9b5m") + "\x1b[0m\n"
)
